/*
 * A plan as a suite: further concrete scenarios of the logical ones that need them, at points that
 * fill the ranges that the suite's grids span (Halton's sequence: J. H. Halton, Numerische
 * Mathematik 2, 1960). Words are taken in turn.
 */
#include "report/risk/risk.h"
#include "scenarios/coverage/coverage.h"
#include "schemas/json_read.h"
#include "schemas/scenario_id.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SUITE_MODE = 0644, POINTS_SKIPPED = 1, POINT_TRIES = 64 };

/* Of numbers: few, so that ids stay short; or as many as an id shows, where those are all taken. */
enum { DIGITS = 4, DIGITS_MOST = 6 };

struct writing {
    const struct suite *suite;
    struct coverage *coverage;
    const char *path;
    char folder[PATH_MAX]; /* of the file, resolved, with a slash at its end */
    json_t *scenarios;
    uint32_t entries;
    double unvaried;
    struct error *error;
};

static const uint32_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19};
enum { PRIMES = sizeof primes / sizeof *primes };

static double halton(uint32_t index, uint32_t base)
{
    double value = 0;
    double share = 1;
    for (; index > 0; index /= base) {
        share /= base;
        value += share * (index % base);
    }
    return value;
}

/* The suite's folder, so that files can be named relative to it. */
static enum status find_folder(struct writing *writing)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(writing->path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - writing->path) : 1,
             slash != NULL ? writing->path : ".");
    if (realpath(folder[0] != '\0' ? folder : "/", writing->folder) == NULL) {
        return error_set(writing->error, STATUS_IO, "%s: %s", folder, strerror(errno));
    }
    size_t bytes = strlen(writing->folder);
    if (bytes + 2 > sizeof writing->folder) {
        return error_set(writing->error, STATUS_LIMIT, "%s: the path is too long", folder);
    }
    if (writing->folder[bytes - 1] != '/') {
        memcpy(writing->folder + bytes, "/", 2);
    }
    return STATUS_OK;
}

/* The scenario file below the suite's folder. */
static enum status relative_name(const struct writing *writing, const char *file,
                                 char out[PATH_MAX])
{
    char resolved[PATH_MAX];
    size_t bytes = strlen(writing->folder);
    if (realpath(file, resolved) == NULL) {
        return error_set(writing->error, STATUS_IO, "%s: %s", file, strerror(errno));
    }
    if (strncmp(resolved, writing->folder, bytes) != 0) {
        return error_set(writing->error, STATUS_BAD_INPUT,
                         "--plan %s: expected a file in a folder that %s is below, such as that of "
                         "--from: suites name files below their own",
                         writing->path, file);
    }
    snprintf(out, PATH_MAX, "%s", resolved + bytes);
    return STATUS_OK;
}

/* The entry of the suite that a logical scenario comes from, -1: none. */
static int32_t find_entry(const struct suite *suite, const char *logical)
{
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const char *id = suite->entries[i].document->scenario.id;
        size_t bytes = scenario_id_logical_bytes(id);
        if (strlen(logical) == bytes && memcmp(id, logical, bytes) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static const struct coverage_logical *find_coverage(const struct coverage *coverage,
                                                    const char *file)
{
    for (uint32_t i = 0; i < coverage->logical_count; i++) {
        if (strcmp(coverage->logical[i].file, file) == 0) {
            return &coverage->logical[i];
        }
    }
    return NULL;
}

static json_t *point_value(const struct coverage_parameter *parameter, uint32_t index,
                           uint32_t dimension, int digits)
{
    if (parameter->words) {
        return json_string(parameter->values[index % parameter->distinct]);
    }
    char text[32];
    double share = halton(index + POINTS_SKIPPED, primes[dimension % PRIMES]);
    double value = parameter->least + share * (parameter->most - parameter->least);
    snprintf(text, sizeof text, "%.*g", digits, value);
    return json_real(strtod(text, NULL));
}

/* One concrete scenario; NULL: the logical one has no number that varies. */
static json_t *point_grid(const struct coverage_logical *logical, uint32_t index, int digits)
{
    json_t *grid = json_object();
    uint32_t numbers = 0;
    for (uint32_t p = 0; p < logical->parameter_count; p++) {
        const struct coverage_parameter *parameter = &logical->parameters[p];
        if (parameter->distinct > 1) {
            json_object_set_new(grid, parameter->name,
                                json_pack("[o]", point_value(parameter, index, numbers, digits)));
            numbers += !parameter->words;
        }
    }
    if (numbers == 0) {
        json_decref(grid);
        return NULL;
    }
    return grid;
}

/* The next point that is not in `seen` yet, from *index on; NULL: nothing varies, or not enough. */
static json_t *new_point(const struct coverage_logical *logical, json_t *seen, uint32_t *index)
{
    for (uint32_t end = *index + 2 * POINT_TRIES; *index < end; (*index)++) {
        json_t *grid = point_grid(logical, *index / 2, *index % 2 == 0 ? DIGITS : DIGITS_MOST);
        char *key = grid != NULL ? json_compact_text(grid) : NULL;
        bool taken = key != NULL && json_object_get(seen, key) != NULL;
        bool kept = key != NULL && !taken && json_object_set_new(seen, key, json_true()) == 0;
        free(key);
        if (kept) {
            *index += 2 - *index % 2; /* each point in one spelling */
            return grid;
        }
        json_decref(grid);
        if (!taken) {
            return NULL;
        }
    }
    return NULL;
}

static enum status write_logical(struct writing *writing, const struct risk_logical *logical)
{
    int32_t found = find_entry(writing->suite, logical->name);
    char name[PATH_MAX];
    if (found < 0) {
        writing->unvaried += logical->jobs;
        return STATUS_OK;
    }
    const struct suite_entry *entry = &writing->suite->entries[found];
    const struct coverage_logical *coverage = find_coverage(writing->coverage, entry->file);
    json_t *seen = json_object();
    uint32_t index = 0;
    enum status status = relative_name(writing, entry->file, name);
    THEN(status, memory_check(seen, writing->error, "risk: out of memory"));
    for (uint32_t i = 0; status == STATUS_OK && i < logical->jobs; i++) {
        json_t *grid = coverage != NULL ? new_point(coverage, seen, &index) : NULL;
        if (grid == NULL) {
            writing->unvaried += logical->jobs - i;
            break;
        }
        if (writing->entries == LIMIT_SUITE_SCENARIOS) {
            json_decref(grid);
            status = error_set(writing->error, STATUS_LIMIT,
                               "%s: expected a plan of at most %d scenarios, found %.0f; ask for "
                               "less with --precision",
                               writing->path, LIMIT_SUITE_SCENARIOS, logical->jobs);
            break;
        }
        json_array_append_new(writing->scenarios,
                              json_pack("{s:s, s:o}", "file", name, "grid", grid));
        writing->entries++;
    }
    json_decref(seen);
    return status;
}

static enum status write_file(struct writing *writing)
{
    json_t *json = json_pack("{s:s, s:s, s:O}", "id", "plan", "title",
                             "Further concrete scenarios, until the rate is known as was asked for",
                             "scenarios", writing->scenarios);
    char *text = json != NULL ? json_indented_text(json) : NULL;
    enum status status = memory_check(text, writing->error, "risk: out of memory");
    THEN(status, file_replace(writing->path, text, strlen(text), SUITE_MODE, writing->error));
    free(text);
    json_decref(json);
    return status;
}

enum status risk_plan_write(const struct risk_study *study, const struct suite *suite,
                            const char *path, uint32_t *entries, double *unvaried,
                            struct error *error)
{
    struct writing writing = {
        .suite = suite, .path = path, .scenarios = json_array(), .error = error};
    enum status status = find_folder(&writing);
    THEN(status, coverage_load(suite, &writing.coverage, error));
    for (uint32_t i = 0; status == STATUS_OK && i < study->logical_count; i++) {
        if (study->logical[i].jobs > 0) {
            status = write_logical(&writing, &study->logical[i]);
        }
    }
    if (status == STATUS_OK && writing.entries > 0) {
        status = write_file(&writing);
    }
    *entries = writing.entries;
    *unvaried = writing.unvaried;
    coverage_destroy(writing.coverage);
    json_decref(writing.scenarios);
    return status;
}
