/*
 * Ticks of sessions as documents and metrics. See ticks.h.
 */
#include "store/relay/ticks.h"

#include "base/units.h"
#include "schemas/json_read.h"
#include "schemas/outcome_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PART_NUMBERS = 1 + TICK_BOUNDS + 1 };
#define SUM_MAX_MS 1e12
#define COUNT_MAX INT64_C(1000000000) /* of a bucket, in one document */

static const char other[] = "other";

/* ---- telling ---- */

static json_t *part_json(const struct tick_histogram *now, const struct tick_histogram *told)
{
    json_t *numbers = json_array();
    json_array_append_new(numbers, json_real(now->sum_ms - told->sum_ms));
    for (int i = 0; i <= TICK_BOUNDS; i++) {
        json_array_append_new(numbers,
                              json_integer((json_int_t)(now->counts[i] - told->counts[i])));
    }
    return numbers;
}

static json_t *row_json(const struct tick_tier *now, const struct tick_tier *told)
{
    json_t *parts = json_array();
    for (int part = 0; part < TICK_PARTS; part++) {
        json_array_append_new(parts, part_json(&now->parts[part], &told->parts[part]));
    }
    return json_pack("{s:s,s:I,s:I,s:o}", "tier", now->tier, "steps", (json_int_t)now->steps,
                     "lates", (json_int_t)(now->lates - told->lates), "parts", parts);
}

char *ticks_tell(const struct tick_tier *now, struct tick_tier *told, uint32_t count)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < count; i++) {
        if (now[i].ticks != told[i].ticks) {
            json_array_append_new(rows, row_json(&now[i], &told[i]));
        }
    }
    char *text = json_array_size(rows) > 0
                     ? json_dumps(rows, JSON_COMPACT | JSON_REAL_PRECISION(12))
                     : calloc(1, 1);
    json_decref(rows);
    if (text != NULL) {
        memcpy(told, now, count * sizeof *told);
    }
    return text;
}

/* ---- taking ---- */

static enum status read_part(const struct json_cursor *cursor, struct tick_histogram *out,
                             struct error *error)
{
    size_t count;
    TRY(json_array_begin(cursor, PART_NUMBERS, PART_NUMBERS, &count, error));
    const struct json_cursor sum = json_cursor_element(cursor, 0);
    TRY(json_value_number(&sum, -SUM_MAX_MS, SUM_MAX_MS, &out->sum_ms, error));
    for (size_t i = 1; i < count; i++) {
        int64_t number;
        const struct json_cursor element = json_cursor_element(cursor, i);
        TRY(json_value_integer(&element, 0, COUNT_MAX, &number, error));
        out->counts[i - 1] = (uint64_t)number;
    }
    return STATUS_OK;
}

/* A word of ours: tiers of worlds, and those that sessions have beside them. */
static bool is_tier(const char *text)
{
    bool known = strcmp(text, "previous") == 0 || strcmp(text, "drawn") == 0;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        known = known || strcmp(text, tier_names[tier]) == 0;
    }
    return known;
}

static enum status read_row(const struct json_cursor *cursor, struct tick_tier *out,
                            struct error *error)
{
    static const char *const members[] = {"tier", "steps", "lates", "parts", NULL};
    int64_t steps = 0;
    int64_t lates = 0;
    size_t count = 0;
    memset(out, 0, sizeof *out);
    TRY(json_object_begin(cursor, members, error));
    TRY(json_member_text(cursor, "tier", true, out->tier, sizeof out->tier, error));
    if (!is_tier(out->tier)) {
        return json_fail(cursor, error, "expected a tier of sessions, found \"%s\"", out->tier);
    }
    TRY(json_member_integer(cursor, "steps", true, 0, LIMIT_SAMPLER_STEPS, &steps, error));
    TRY(json_member_integer(cursor, "lates", true, 0, COUNT_MAX, &lates, error));
    const struct json_cursor parts = json_cursor_member(cursor, "parts");
    TRY(json_array_begin(&parts, TICK_PARTS, TICK_PARTS, &count, error));
    for (size_t part = 0; part < count; part++) {
        const struct json_cursor element = json_cursor_element(&parts, part);
        TRY(read_part(&element, &out->parts[part], error));
    }
    out->steps = (uint32_t)steps;
    out->lates = (uint64_t)lates;
    out->ticks = tick_histogram_count(&out->parts[0]);
    for (int part = 1; part < TICK_PARTS; part++) {
        if (tick_histogram_count(&out->parts[part]) != out->ticks) {
            return json_fail(cursor, error,
                             "expected as many of each part, found %s of another "
                             "number than %s",
                             tick_part_names[part], tick_part_names[0]);
        }
    }
    return out->lates <= out->ticks
               ? STATUS_OK
               : json_fail(cursor, error, "expected lates of at most %" PRIu64 ", found %" PRId64,
                           out->ticks, lates);
}

/* The row of a tier and its steps, which may be new. */
static struct tick_tier *row_of(struct ticks *ticks, const struct tick_tier *wanted)
{
    for (uint32_t i = 0; i < ticks->count; i++) {
        struct tick_tier *row = &ticks->rows[i];
        if (strcmp(row->tier, wanted->tier) == 0 && row->steps == wanted->steps) {
            return row;
        }
    }
    if (ticks->count == TICKS_ROWS_MAX) {
        return &ticks->rows[TICKS_ROWS_MAX - 1];
    }
    struct tick_tier *row = &ticks->rows[ticks->count++];
    bool last = ticks->count == TICKS_ROWS_MAX;
    memcpy(row->tier, last ? other : wanted->tier, last ? sizeof other : sizeof row->tier);
    row->steps = last ? 0 : wanted->steps;
    return row;
}

static void add_row(struct ticks *ticks, const struct tick_tier *more)
{
    struct tick_tier *row = row_of(ticks, more);
    row->ticks += more->ticks;
    row->lates += more->lates;
    for (int part = 0; part < TICK_PARTS; part++) {
        row->parts[part].sum_ms += more->parts[part].sum_ms;
        for (int i = 0; i <= TICK_BOUNDS; i++) {
            row->parts[part].counts[i] += more->parts[part].counts[i];
        }
    }
}

enum status ticks_take(struct ticks *ticks, const char *text, size_t bytes, struct error *error)
{
    static const char name[] = "ticks";
    json_t *root = NULL;
    size_t count = 0;
    struct tick_tier row;
    struct ticks sum = *ticks;
    TRY(json_read_text(name, text, bytes, &root, error));
    const struct json_cursor list = json_cursor_root(name, root);
    enum status status = json_array_begin(&list, 1, TICKS_ROWS_MAX, &count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct json_cursor element = json_cursor_element(&list, i);
        status = read_row(&element, &row, error);
        if (status == STATUS_OK) {
            add_row(&sum, &row);
        }
    }
    if (status == STATUS_OK) {
        *ticks = sum;
    }
    json_decref(root);
    return status;
}

/* ---- printing ---- */

static void family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_histogram(FILE *out, const struct tick_tier *row, enum tick_part part)
{
    static const char *const name = "swerve_session_tick_seconds";
    const struct tick_histogram *histogram = &row->parts[part];
    char labels[LIMIT_ID_BYTES + 96];
    uint64_t sum = 0;
    snprintf(labels, sizeof labels, "tier=\"%.60s\",steps=\"%" PRIu32 "\",part=\"%s\"", row->tier,
             row->steps, tick_part_names[part]);
    for (int i = 0; i <= TICK_BOUNDS; i++) {
        char bound[32] = "+Inf";
        sum += histogram->counts[i];
        if (i < TICK_BOUNDS) {
            snprintf(bound, sizeof bound, "%g", tick_bounds_ms[i] * NS_PER_MS / NS_PER_S);
        }
        fprintf(out, "%s_bucket{%s,le=\"%s\"} %" PRIu64 "\n", name, labels, bound, sum);
    }
    fprintf(out, "%s_sum{%s} %.9g\n%s_count{%s} %" PRIu64 "\n", name, labels,
            histogram->sum_ms * NS_PER_MS / NS_PER_S, name, labels, sum);
}

void ticks_print(FILE *out, const struct tick_tier *rows, uint32_t count)
{
    static const char *const lates = "swerve_session_ticks_late_total";
    family(out, lates, "counter", "Ticks of sessions after their deadline.");
    for (uint32_t i = 0; i < count; i++) {
        fprintf(out, "%s{tier=\"%s\",steps=\"%" PRIu32 "\"} %" PRIu64 "\n", lates, rows[i].tier,
                rows[i].steps, rows[i].lates);
    }
    family(out, "swerve_session_tick_seconds", "histogram",
           "Parts of each tick; slack is what was left of the deadline, 0 where it was late.");
    for (uint32_t i = 0; i < count; i++) {
        for (int part = 0; part < TICK_PARTS; part++) {
            print_histogram(out, &rows[i], (enum tick_part)part);
        }
    }
}
