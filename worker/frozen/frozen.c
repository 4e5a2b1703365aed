/*
 * The drives of frozen seeds, and what is measured in them. See frozen.h.
 */
#include "worker/frozen/frozen.h"

#include "base/units.h"
#include "engine/sensors/layout.h"
#include "engine/worlds/world.h"
#include "scenarios/scenarios.h"
#include "worker/datagen/datagen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cells that lie in every model's window: within 36 m of the point 24 m ahead. */
#define REGION_AHEAD_M 24.0
#define REGION_M 36.0

/* As the checks of single agents have them (docs/trust.md). */
#define DUE_CELLS_LEAST 1.0
#define DUE_CELLS_LEAST_VRU 0.25
#define MISSING_MOST 0.6
#define OFFSET_MOST_M 2.0
/* Of an extracted agent in a tick, beside what its last speed explains: 1 m is 100 m/s2. */
#define STEP_MOST_M 1.0

enum { VIEW_BYTES = BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES };

/* One world in its only slot, and what was seen of it. */
struct side {
    const struct world_ops *ops; /* NULL: there is none */
    struct world *world;
    uint8_t *now; /* [VIEW_BYTES]; owned, as the next */
    uint8_t *before;
    bool started[LIMIT_AGENTS]; /* agents that its scene had at tick 0 */
    struct agent_state last[LIMIT_AGENTS];
    double step_m[LIMIT_AGENTS]; /* of the last tick; NAN: none */
};

struct drive {
    const struct frozen_options *options;
    struct frozen *frozen;
    struct frozen_conditioning *results;
    enum conditioning conditioning;
    const struct scenario *scenario;
    struct side sides[FROZEN_SIDES];
    bool in_slice[FROZEN_SLICES_MAX];
    uint8_t region[BEV_CELLS];
    struct prepared *prepared; /* of the present drive; borrowed */
    struct anchor anchor;
    uint8_t truth[BEV_BYTES]; /* what a sensor without noise would see now */
    uint8_t frame[FRAME_BEV_BYTES];
};

static const uint8_t *occupancy(const uint8_t *view)
{
    return view + BEV_OCCUPANCY * BEV_CELLS;
}

static void region_make(uint8_t region[BEV_CELLS])
{
    for (int row = 0; row < BEV_ROWS; row++) {
        for (int col = 0; col < BEV_COLS; col++) {
            double x_m = BEV_X_MIN_M + (row + 0.5) * BEV_CELL_M - REGION_AHEAD_M;
            double y_m = BEV_Y_MIN_M + (col + 0.5) * BEV_CELL_M;
            region[row * BEV_COLS + col] = x_m * x_m + y_m * y_m <= REGION_M * REGION_M;
        }
    }
}

/* Below this (2 cells, 0.5 m2) one lost return is all of the picture. */
#define AREA_MIN (2 * 255)

/* Soft overlap of two planes in the region; NAN: both are all but empty. *ratio: of their areas,
 * the smaller over the larger. */
static double overlap(const uint8_t *region, const uint8_t *a, const uint8_t *b, double *ratio)
{
    int64_t both = 0;
    int64_t area_a = 0;
    int64_t area_b = 0;
    for (int i = 0; i < BEV_CELLS; i++) {
        if (region[i]) {
            area_a += a[i];
            area_b += b[i];
            both += a[i] < b[i] ? a[i] : b[i];
        }
    }
    int64_t larger = area_a > area_b ? area_a : area_b;
    *ratio = larger >= AREA_MIN ? (double)(area_a + area_b - larger) / (double)larger : NAN;
    return larger >= AREA_MIN ? (double)both / (double)(area_a + area_b - both) : NAN;
}

/* Pearson's correlation of image `a` with the recorded `b`, 0 where it is negative or where `a` is
 * of a single shade: a dead camera has to show. NAN: the recorded one is of a single shade. */
static double correlation(const uint8_t *a, const uint8_t *b, size_t count)
{
    int64_t sa = 0;
    int64_t sb = 0;
    int64_t aa = 0;
    int64_t bb = 0;
    int64_t ab = 0;
    for (size_t i = 0; i < count; i++) {
        sa += a[i];
        sb += b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        ab += a[i] * b[i];
    }
    double n = (double)count;
    double va = (double)aa - (double)sa * (double)sa / n;
    double vb = (double)bb - (double)sb * (double)sb / n;
    double cov = (double)ab - (double)sa * (double)sb / n;
    if (!(vb > 0.0)) {
        return NAN;
    }
    return va > 0.0 ? fmax(cov / sqrt(va * vb), 0.0) : 0.0;
}

static double change(const uint8_t *a, const uint8_t *b, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += abs(a[i] - b[i]);
    }
    return (double)sum / (double)count / 255.0;
}

static void features_of(const struct side *side, double value[FROZEN_FEATURES])
{
    const uint8_t *cameras = side->now + BEV_BYTES;
    const size_t camera_bytes = (size_t)CAMERA_COUNT * CAMERA_BYTES;
    int64_t cells[2] = {0};
    int64_t sum = 0;
    int64_t square = 0;
    for (int i = 0; i < BEV_CELLS; i++) {
        cells[0] += side->now[BEV_OCCUPANCY * BEV_CELLS + i];
        cells[1] += side->now[BEV_UNSEEN * BEV_CELLS + i];
    }
    for (size_t i = 0; i < camera_bytes; i++) {
        sum += cameras[i];
        square += cameras[i] * cameras[i];
    }
    double mean = (double)sum / (double)camera_bytes;
    value[0] = (double)cells[0] / 255.0;
    value[1] = (double)cells[1] / 255.0;
    value[2] = change(occupancy(side->now), occupancy(side->before), BEV_CELLS);
    value[3] = mean / 255.0;
    value[4] = sqrt(fmax((double)square / (double)camera_bytes - mean * mean, 0.0)) / 255.0;
    value[5] = change(cameras, side->before + BEV_BYTES, camera_bytes);
}

static void observe(struct side *side)
{
    uint8_t *swap = side->before;
    side->before = side->now;
    side->now = swap;
    struct observation_buffers buffers = {.bev = side->now};
    for (int c = 0; c < CAMERA_COUNT; c++) {
        buffers.camera[c] = side->now + BEV_BYTES + (size_t)c * CAMERA_BYTES;
    }
    side->ops->slot_observe(side->world, 0, &buffers);
}

/* Agents that the model was given: those that are drawn, and where they are. */
static void measure_given(const struct frame_stats *stats, double out[FROZEN_MEASURES])
{
    uint32_t due = 0;
    uint32_t drawn = 0;
    uint32_t placed = 0;
    for (uint32_t i = 0; i < stats->agent_count; i++) {
        const struct agent_stats *agent = &stats->agents[i];
        if (agent->due_cells < (agent->vru ? DUE_CELLS_LEAST_VRU : DUE_CELLS_LEAST)) {
            continue;
        }
        bool there = agent->missing_share <= MISSING_MOST;
        due++;
        drawn += there;
        placed += there && !(agent->offset_m > OFFSET_MOST_M);
    }
    out[FROZEN_PERMANENCE] = due > 0 ? (double)drawn / due : NAN;
    out[FROZEN_KINEMATICS] = drawn > 0 ? (double)placed / drawn : NAN;
}

static bool is_near(const struct scene *scene, const struct agent_state *agent)
{
    const struct pose *ego = &scene->ego.pose;
    double dx = agent->pose.x_m - ego->x_m - REGION_AHEAD_M * cos(ego->heading_rad);
    double dy = agent->pose.y_m - ego->y_m - REGION_AHEAD_M * sin(ego->heading_rad);
    return dx * dx + dy * dy <= REGION_M * REGION_M;
}

/* Agents that the model moves: those of the start that are there yet, and how they move. */
static void measure_extracted(const struct scenario *scenario, struct side *side,
                              const struct scene *recorded, double out[FROZEN_MEASURES])
{
    const struct scene *scene = side->ops->slot_scene(side->world, 0);
    uint32_t due = 0;
    uint32_t there = 0;
    uint32_t moved = 0;
    uint32_t plausible = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *agent = &scene->agents[i];
        struct agent_state *last = &side->last[i];
        double dx = agent->pose.x_m - last->pose.x_m;
        double dy = agent->pose.y_m - last->pose.y_m;
        double step_m = agent->present && last->present ? sqrt(dx * dx + dy * dy) : NAN;
        bool mobile = scenario->agents[i].behaviour != BEHAVIOUR_STATIC;
        if (side->started[i] && recorded->agents[i].present &&
            is_near(recorded, &recorded->agents[i])) {
            due++;
            there += agent->present;
        }
        if (mobile && !isnan(step_m) && !isnan(side->step_m[i])) {
            moved++;
            plausible += fabs(step_m - side->step_m[i]) <= STEP_MOST_M;
        }
        side->step_m[i] = step_m;
        *last = *agent;
    }
    out[FROZEN_PERMANENCE] = due > 0 ? (double)there / due : NAN;
    out[FROZEN_KINEMATICS] = moved > 0 ? (double)plausible / moved : NAN;
}

static void add(struct frozen_mean *mean, double value)
{
    if (!isnan(value)) {
        mean->sum += value;
        mean->count++;
    }
}

static void measure_side(struct drive *drive, enum frozen_side which, uint32_t tick)
{
    struct side *side = &drive->sides[which];
    const struct side *recorded = &drive->sides[FROZEN_RECORDED];
    const struct frame_stats *stats = side->ops->slot_frame_stats(side->world, 0);
    double value[FROZEN_MEASURES];
    double feature[FROZEN_FEATURES];
    value[FROZEN_FRECHET] = NAN;
    value[FROZEN_OCCUPANCY] =
        overlap(drive->region, occupancy(side->now), occupancy(drive->truth), &value[FROZEN_AREA]);
    value[FROZEN_CAMERA] = correlation(side->now + BEV_BYTES, recorded->now + BEV_BYTES,
                                       (size_t)CAMERA_COUNT * CAMERA_BYTES);
    value[FROZEN_VIEWS] = fmax(stats->camera_layout_corr, 0.0);
    if (isnan(stats->camera_layout_corr)) {
        value[FROZEN_VIEWS] = NAN;
    }
    if (drive->conditioning == CONDITIONING_AGENTS) {
        measure_given(stats, value);
    } else {
        measure_extracted(drive->scenario, side, recorded->ops->slot_scene(recorded->world, 0),
                          value);
    }
    features_of(side, feature);
    for (int i = 0; i < FROZEN_MEASURES; i++) {
        add(&drive->results->spans[which][frozen_span(tick)][i], value[i]);
    }
    for (uint32_t s = 0; s < drive->results->slice_count; s++) {
        struct frozen_slice *slice = &drive->results->slices[s];
        for (int i = 0; drive->in_slice[s] && i < FROZEN_MEASURES; i++) {
            add(&slice->mean[which][i], value[i]);
        }
        if (drive->in_slice[s] && tick > 1) { /* changes are between two generated frames */
            frozen_features_add(&slice->features[which], feature);
        }
    }
}

/* Models do not draw stray returns of rain and snow, and should not. */
static void draw_truth(struct drive *drive)
{
    const struct side *recorded = &drive->sides[FROZEN_RECORDED];
    const struct scene *scene = recorded->ops->slot_scene(recorded->world, 0);
    struct window window = window_of(anchor_local(&drive->anchor, scene->ego.pose));
    layout_bev(drive->prepared, scene, &drive->anchor, window, CONDITIONING_AGENTS, drive->frame);
    layout_observe_bev(drive->prepared, scene, &drive->anchor, window, CONDITIONING_AGENTS,
                       drive->frame, drive->truth);
}

/* Everybody is at the tick of the recorded world: what is seen of them. */
static void measure(struct drive *drive)
{
    struct frozen_conditioning *results = drive->results;
    struct side *sides = drive->sides;
    uint32_t tick = sides[FROZEN_RECORDED].ops->slot_scene(sides[FROZEN_RECORDED].world, 0)->tick;
    double feature[FROZEN_FEATURES];
    double ratio;
    for (int i = 0; i < FROZEN_SIDES; i++) {
        if (sides[i].ops != NULL) {
            observe(&sides[i]);
        }
    }
    draw_truth(drive);
    if (tick > results->stated_ticks) {
        memset(drive->in_slice, 0, sizeof drive->in_slice);
    }
    for (int i = 0; i < FROZEN_RECORDED; i++) {
        if (sides[i].ops != NULL) {
            measure_side(drive, (enum frozen_side)i, tick);
        }
    }
    if (sides[FROZEN_INCUMBENT].ops != NULL) {
        add(&results->alike, overlap(drive->region, occupancy(sides[FROZEN_CANDIDATE].now),
                                     occupancy(sides[FROZEN_INCUMBENT].now), &ratio));
    }
    features_of(&sides[FROZEN_RECORDED], feature);
    for (uint32_t s = 0; s < results->slice_count; s++) {
        if (drive->in_slice[s] && tick > 1) {
            frozen_features_add(&results->slices[s].features[FROZEN_RECORDED], feature);
        }
    }
    drive->frozen->ticks++;
    results->longest_ticks = tick > results->longest_ticks ? tick : results->longest_ticks;
}

/* The recorded world carried an action out: so do the models. */
static void stepped(void *context, const struct action *action)
{
    struct drive *drive = context;
    const uint8_t active = 1;
    for (int i = 0; i < FROZEN_RECORDED; i++) {
        if (drive->sides[i].ops != NULL) {
            drive->sides[i].ops->step(drive->sides[i].world, action, &active);
        }
    }
    measure(drive);
}

static struct frozen_slice *find_slice(struct frozen_conditioning *results,
                                       const struct trust_slice *wanted)
{
    uint32_t at = 0;
    while (at < results->slice_count && !trust_slice_equal(&results->slices[at].slice, wanted)) {
        at++;
    }
    if (at == FROZEN_SLICES_MAX) {
        return NULL;
    }
    if (at == results->slice_count) {
        results->slices[at].slice = *wanted;
        results->slice_count++;
    }
    return &results->slices[at];
}

static enum status enter_slice(struct drive *drive, const struct trust_slice *wanted,
                               struct error *error)
{
    struct frozen_slice *slice = find_slice(drive->results, wanted);
    if (slice == NULL) {
        return error_set(error, STATUS_LIMIT, "frozen seeds: more than %d slices",
                         FROZEN_SLICES_MAX);
    }
    slice->drives++;
    drive->in_slice[slice - drive->results->slices] = true;
    return STATUS_OK;
}

/* Slices of a scenario: all, each of its values, safety-critical ones, those that are crossed. */
static enum status enter_slices(struct drive *drive, const struct slices *of, struct error *error)
{
    const struct trust_policy *policy = drive->options->policy;
    struct trust_slice slice = {.safety_critical = false};
    memset(drive->in_slice, 0, sizeof drive->in_slice);
    TRY(enter_slice(drive, &slice, error));
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        slice = (struct trust_slice){.safety_critical = false};
        memcpy(slice.value[kind], of->value[kind], sizeof slice.value[kind]);
        TRY(of->value[kind][0] != '\0' ? enter_slice(drive, &slice, error) : STATUS_OK);
    }
    slice = (struct trust_slice){.safety_critical = true};
    TRY(of->safety_critical ? enter_slice(drive, &slice, error) : STATUS_OK);
    for (uint32_t i = 0; i < policy->crossed_count; i++) {
        if (trust_slice_has(&policy->crossed[i], of->value, of->safety_critical)) {
            TRY(enter_slice(drive, &policy->crossed[i], error));
        }
    }
    return STATUS_OK;
}

static void start_side(struct side *side)
{
    const struct scene *scene = side->ops->slot_scene(side->world, 0);
    for (uint32_t i = 0; i < LIMIT_AGENTS; i++) {
        side->started[i] = i < scene->agent_count && scene->agents[i].present;
        side->last[i] = scene->agents[i];
        side->step_m[i] = NAN;
    }
}

static enum status drive_one(struct drive *drive, const struct scenario *scenario, uint64_t seed,
                             struct planner *planner, struct error *error)
{
    struct prepared *prepared = NULL;
    uint32_t scenes = 0;
    struct side *recorded = &drive->sides[FROZEN_RECORDED];
    const struct drive_plan plan = {.seed = seed,
                                    .planner = planner,
                                    .planner_wants = planner_wants(planner),
                                    .stepped = stepped,
                                    .context = drive};
    drive->scenario = scenario;
    TRY(enter_slices(drive, &scenario->slices, error));
    TRY(prepared_create(scenario, &prepared, error));
    enum status status = STATUS_OK;
    int begun = 0;
    for (; begun < FROZEN_RECORDED && status == STATUS_OK; begun++) {
        struct side *side = &drive->sides[begun];
        if (side->ops != NULL) {
            status = side->ops->slot_reset(side->world, 0, prepared, seed, error);
            if (status != STATUS_OK) {
                break;
            }
            start_side(side);
        }
    }
    if (status == STATUS_OK) {
        const struct side *candidate = &drive->sides[FROZEN_CANDIDATE];
        drive->prepared = prepared;
        drive->anchor = anchor_make(candidate->ops->slot_scene(candidate->world, 0)->ego.pose);
    }
    THEN(status, drive_record(recorded->world, prepared, &plan, NULL, &scenes, error));
    for (int i = 0; i < begun; i++) {
        if (drive->sides[i].ops != NULL) {
            drive->sides[i].ops->slot_release(drive->sides[i].world, 0);
        }
    }
    prepared_unref(prepared);
    drive->frozen->drives++;
    return status;
}

static enum status side_open(const struct drive *drive, const struct models_model *model,
                             struct side *out, struct error *error)
{
    const struct frozen_options *options = drive->options;
    struct world_config config = {.slot_count = 1, .thread_count = options->thread_count};
    enum tier tier = TIER_OBJECT;
    if (model != NULL) {
        tier = model->config->tier;
        config.model = model->model;
        config.conditioning = drive->conditioning;
    }
    out->now = calloc(1, VIEW_BYTES);
    out->before = calloc(1, VIEW_BYTES);
    if (out->now == NULL || out->before == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "frozen seeds: out of memory");
    }
    const struct world_ops *ops =
        options->world_for_tier != NULL ? options->world_for_tier(tier) : world_ops_for_tier(tier);
    TRY(ops->open(&config, &out->world, error));
    out->ops = ops;
    return STATUS_OK;
}

static void sides_close(struct drive *drive)
{
    for (int i = 0; i < FROZEN_SIDES; i++) {
        struct side *side = &drive->sides[i];
        if (side->ops != NULL) {
            side->ops->close(side->world);
        }
        free(side->now);
        free(side->before);
        *side = (struct side){.ops = NULL};
    }
}

static enum status drive_conditioning(struct drive *drive, const struct suite *suite,
                                      struct planner *planner, struct error *error)
{
    const struct frozen_options *options = drive->options;
    struct frozen_conditioning *results = &drive->frozen->conditionings[drive->conditioning];
    drive->results = results;
    results->driven = true;
    results->stated_ticks = options->candidate->config->horizon_ticks[drive->conditioning];
    results->slices = calloc(FROZEN_SLICES_MAX, sizeof *results->slices);
    TRY(memory_check(results->slices, error, "frozen seeds: out of memory"));
    TRY(side_open(drive, options->candidate, &drive->sides[FROZEN_CANDIDATE], error));
    TRY(options->incumbent != NULL
            ? side_open(drive, options->incumbent, &drive->sides[FROZEN_INCUMBENT], error)
            : STATUS_OK);
    TRY(side_open(drive, NULL, &drive->sides[FROZEN_RECORDED], error));
    for (uint32_t e = 0; e < suite->entry_count; e++) {
        const struct suite_entry *entry = &suite->entries[e];
        for (uint32_t s = 0; s < entry->seed_count; s++) {
            TRY(drive_one(drive, &entry->document->scenario, entry->seeds[s], planner, error));
        }
    }
    return STATUS_OK;
}

enum status frozen_run(const struct frozen_options *options, struct frozen **out,
                       struct error *error)
{
    const struct planner_config config = {.session_count = 1};
    struct suite *suite = NULL;
    struct planner *planner = NULL;
    struct frozen *frozen = calloc(1, sizeof *frozen);
    struct drive *drive = calloc(1, sizeof *drive);
    *out = frozen;
    if (frozen == NULL || drive == NULL) {
        free(drive);
        return error_set(error, STATUS_NO_MEMORY, "frozen seeds: out of memory");
    }
    drive->options = options;
    drive->frozen = frozen;
    region_make(drive->region);
    enum status status = suite_load(options->suite, &suite, error);
    if (status == STATUS_OK) {
        memcpy(frozen->suite, suite->id, sizeof frozen->suite);
        memcpy(frozen->suite_hash, suite->hash, sizeof frozen->suite_hash);
        snprintf(frozen->planner, sizeof frozen->planner, "%s", options->planner);
    }
    THEN(status, planner_open(options->planner, &config, &planner, error));
    for (int c = 0; c < CONDITIONING_COUNT && status == STATUS_OK; c++) {
        drive->conditioning = (enum conditioning)c;
        if (options->conditionings[c]) {
            status = drive_conditioning(drive, suite, planner, error);
            sides_close(drive);
        }
    }
    if (options->exact != NULL && status == STATUS_OK) {
        struct frozen_parity_options compared = {.candidate = options->candidate->model,
                                                 .exact = options->exact->model,
                                                 .thread_count = options->thread_count,
                                                 .frames = FROZEN_PARITY_FRAMES};
        memcpy(compared.conditionings, options->conditionings, sizeof compared.conditionings);
        status = frozen_parity_run(&compared, suite, &frozen->parity, error);
    }
    planner_close(planner);
    suite_destroy(suite);
    free(drive);
    return status;
}

void frozen_destroy(struct frozen *frozen)
{
    for (int c = 0; frozen != NULL && c < CONDITIONING_COUNT; c++) {
        free(frozen->conditionings[c].slices);
    }
    free(frozen);
}

double frozen_slice_value(const struct frozen_slice *slice, enum frozen_side side,
                          enum frozen_measure measure)
{
    return measure == FROZEN_FRECHET
               ? 1.0 / (1.0 +
                        frozen_frechet(&slice->features[side], &slice->features[FROZEN_RECORDED]))
               : frozen_mean(&slice->mean[side][measure]);
}
