/*
 * The order of a search: sampling over each logical scenario, cross-entropy towards failures,
 * clusters of what failed, then lines from failures to what passes.
 *
 * Invariant: nothing is asked for beyond the budget, and a logical scenario spends its own share.
 */
#include "cli/search/search_run.h"

#include "base/array.h"
#include "base/check.h"
#include "cli/search/search_trace.h"

#include <math.h>
#include <stdlib.h>

/* Shares of a logical scenario's budget. */
#define SAMPLE_SHARE 0.3
#define GENERATION_SHARE 0.1
enum { GENERATIONS = 3, GENERATIONS_MAX = 7, SAMPLES_MIN = 4 };

struct wants {
    uint32_t count;
    struct search_want *items; /* owned */
};

static enum status want(struct wants *wants, uint32_t logical, const struct search_point *point,
                        struct error *error)
{
    TRY(array_room(&wants->items, wants->count, sizeof *wants->items, error));
    wants->items[wants->count++] = (struct search_want){logical, *point};
    return STATUS_OK;
}

/* Drives what is wanted and forgets it. */
static enum status drive(struct search_run *run, struct wants *wants, struct error *error)
{
    enum status status =
        wants->count > 0 ? search_drive_points(run, wants->items, wants->count, error) : STATUS_OK;
    for (uint32_t l = 0; l < run->count; l++) {
        struct search_logical *logical = &run->logicals[l];
        logical->failure_count = 0;
        for (uint32_t i = 0; i < logical->drive_count; i++) {
            logical->failure_count +=
                logical->drives[i].worst != NULL && logical->drives[i].sample.margin < 0.0;
        }
    }
    free(wants->items);
    *wants = (struct wants){.count = 0};
    return status;
}

/* ---- sampling ---- */

static uint32_t sample_count(const struct search_logical *logical, double share)
{
    uint32_t count = (uint32_t)(share * logical->share);
    count = count < SAMPLES_MIN ? SAMPLES_MIN : count;
    uint32_t left = logical->share - logical->drive_count;
    count = count < left ? count : left;
    return count < SEARCH_LATIN_MAX ? count : SEARCH_LATIN_MAX;
}

static enum status sample_latin(struct search_run *run, struct error *error)
{
    struct wants wants = {.count = 0};
    enum status status = STATUS_OK;
    struct search_point *points = calloc(SEARCH_LATIN_MAX, sizeof *points);
    TRY(memory_check(points, error, "search: out of memory"));
    for (uint32_t l = 0; l < run->count; l++) {
        struct search_logical *logical = &run->logicals[l];
        uint32_t count = sample_count(logical, SAMPLE_SHARE);
        search_draw_init(&logical->space, &logical->draw);
        search_latin(&logical->space, (uint64_t)run->options->seed + l, count, points);
        for (uint32_t i = 0; i < count; i++) {
            THEN(status, want(&wants, l, &points[i], error));
        }
    }
    free(points);
    THEN(status, drive(run, &wants, error));
    free(wants.items);
    return status;
}

static enum status learn(struct search_logical *logical, struct error *error)
{
    struct search_sample *samples = calloc(logical->drive_count + 1, sizeof *samples);
    TRY(memory_check(samples, error, "search: out of memory"));
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        samples[i] = logical->drives[i].sample;
    }
    search_draw_learn(&logical->space, &logical->draw, samples, logical->drive_count);
    free(samples);
    return STATUS_OK;
}

/* Drives a generation. Known failures leave the rest of the budget to their boundaries; none, to
 * more generations. */
static enum status sample_generation(struct search_run *run, uint32_t generation,
                                     struct error *error)
{
    struct wants wants = {.count = 0};
    enum status status = STATUS_OK;
    for (uint32_t l = 0; l < run->count && status == STATUS_OK; l++) {
        struct search_logical *logical = &run->logicals[l];
        if (generation >= GENERATIONS && logical->failure_count > 0) {
            continue;
        }
        uint32_t count = sample_count(logical, GENERATION_SHARE);
        status = learn(logical, error);
        for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
            struct search_point point = search_draw_point(
                &logical->space, &logical->draw, (uint64_t)run->options->seed + l, generation, i);
            status = want(&wants, l, &point, error);
        }
    }
    THEN(status, drive(run, &wants, error));
    free(wants.items);
    return status;
}

/* ---- clusters ---- */

static enum status cluster(struct search_run *run, struct search_logical *logical,
                           struct error *error)
{
    TRY(search_trace_describe(run, logical, error));
    uint32_t count = 0;
    struct search_failure *failures = calloc(logical->drive_count + 1, sizeof *failures);
    uint32_t *found = calloc(logical->drive_count + 1, sizeof *found);
    free(logical->clusters);
    logical->clusters = calloc(logical->drive_count + 1, sizeof *logical->clusters);
    enum status status = memory_check(failures != NULL && found != NULL ? logical->clusters : NULL,
                                      error, "search: out of memory");
    for (uint32_t i = 0; i < logical->drive_count && status == STATUS_OK; i++) {
        if (logical->drives[i].worst != NULL && logical->drives[i].sample.margin < 0.0) {
            failures[count++] = logical->drives[i].failure;
        }
    }
    if (status == STATUS_OK) {
        logical->cluster_count = search_cluster(failures, count, found);
        count = 0;
        for (uint32_t i = 0; i < logical->drive_count; i++) {
            bool failed =
                logical->drives[i].worst != NULL && logical->drives[i].sample.margin < 0.0;
            logical->clusters[i] = failed ? found[count++] : UINT32_MAX;
        }
    }
    free(failures);
    free(found);
    return status;
}

/* ---- boundaries ---- */

/* The hardest failure of a cluster, the first of several. */
static const struct search_drive *hardest(const struct search_logical *logical, uint32_t cluster)
{
    const struct search_drive *found = NULL;
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        const struct search_drive *drive = &logical->drives[i];
        if (logical->clusters[i] == cluster &&
            (found == NULL || drive->sample.margin < found->sample.margin)) {
            found = drive;
        }
    }
    CHECK(found != NULL);
    return found;
}

static enum status add_boundary(struct search_logical *logical, uint32_t cluster, int32_t dimension,
                                bool high, const struct search_line *line, struct error *error)
{
    TRY(array_room(&logical->boundaries, logical->boundary_count, sizeof *logical->boundaries,
                   error));
    logical->boundaries[logical->boundary_count++] = (struct search_boundary){
        .cluster = cluster, .dimension = dimension, .high = high, .line = *line};
    return STATUS_OK;
}

/* From the cluster to the passing point that is closest to one of it. */
static enum status add_closest(struct search_logical *logical, uint32_t cluster, double resolution,
                               struct error *error)
{
    uint32_t failing;
    uint32_t passing;
    struct search_sample *samples = calloc(logical->drive_count + 1, sizeof *samples);
    TRY(memory_check(samples, error, "search: out of memory"));
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        samples[i] = logical->drives[i].sample;
        if (samples[i].margin < 0.0 && logical->clusters[i] != cluster) {
            samples[i].margin = NAN;
        }
    }
    enum status status = STATUS_OK;
    if (search_closest_pair(&logical->space, samples, logical->drive_count, &failing, &passing)) {
        struct search_line line = search_line_between(&logical->space, &samples[failing].point,
                                                      &samples[passing].point, resolution);
        status = add_boundary(logical, cluster, -1, false, &line, error);
    }
    free(samples);
    return status;
}

/* The drives that a line may take: its far end, and a halving for every factor of two. */
static uint32_t line_cost(double resolution)
{
    uint32_t halvings = 0;
    for (double width = 1.0; width > resolution; width *= 0.5) {
        halvings++;
    }
    return 1 + halvings;
}

/* As many lines as the budget that is left can bring to their end, the first kind for all clusters
 * before the next. */
static enum status add_boundaries(struct search_logical *logical, double resolution,
                                  struct error *error)
{
    uint32_t room = (logical->share - logical->drive_count) / line_cost(resolution);
    for (uint32_t c = 0; c < logical->cluster_count && logical->boundary_count < room; c++) {
        TRY(add_closest(logical, c, resolution, error));
    }
    for (uint32_t c = 0; c < logical->cluster_count; c++) {
        const struct search_drive *from = hardest(logical, c);
        for (uint32_t d = 0; d < logical->space.count; d++) {
            for (int high = 0; high < 2 && logical->boundary_count < room; high++) {
                if (logical->space.dimensions[d].choice_count == 0) {
                    struct search_line line = search_line_along(&from->sample.point, d, high == 1);
                    TRY(add_boundary(logical, c, (int32_t)d, high == 1, &line, error));
                }
            }
        }
    }
    return STATUS_OK;
}

/* One step of every line that is open. *open: how many. */
static enum status step_lines(struct search_run *run, double resolution, uint32_t *open,
                              struct error *error)
{
    struct wants wants = {.count = 0};
    struct search_point point;
    enum status status = STATUS_OK;
    uint32_t *before = calloc(run->count + 1, sizeof *before);
    TRY(memory_check(before, error, "search: out of memory"));
    for (uint32_t l = 0; l < run->count; l++) {
        struct search_logical *logical = &run->logicals[l];
        before[l] = logical->drive_count;
        for (uint32_t b = 0; b < logical->boundary_count && status == STATUS_OK; b++) {
            if (search_line_next(&logical->boundaries[b].line, &point)) {
                status = want(&wants, l, &point, error);
            }
        }
    }
    *open = wants.count;
    THEN(status, drive(run, &wants, error));
    free(wants.items);
    for (uint32_t l = 0; l < run->count && status == STATUS_OK; l++) {
        struct search_logical *logical = &run->logicals[l];
        for (uint32_t b = 0; b < logical->boundary_count; b++) {
            if (search_line_next(&logical->boundaries[b].line, &point)) {
                double margin = logical->drives[before[l]++].sample.margin;
                search_line_take(&logical->space, &logical->boundaries[b].line, margin, resolution);
            }
        }
    }
    free(before);
    return status;
}

enum status search_plan(struct search_run *run, struct error *error)
{
    double resolution = 1.0 / (double)run->options->resolution;
    uint32_t open = 1;
    TRY(sample_latin(run, error));
    for (uint32_t g = 0; g < GENERATIONS_MAX; g++) {
        TRY(sample_generation(run, g, error));
    }
    for (uint32_t l = 0; l < run->count; l++) {
        TRY(cluster(run, &run->logicals[l], error));
        TRY(add_boundaries(&run->logicals[l], resolution, error));
    }
    while (open > 0) {
        TRY(step_lines(run, resolution, &open, error));
    }
    for (uint32_t l = 0; l < run->count; l++) {
        TRY(cluster(run, &run->logicals[l], error));
    }
    return STATUS_OK;
}
