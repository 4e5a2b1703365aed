/*
 * Counts and histograms of the pool as text. See session_metrics.h.
 */
#include "cli/session/session_metrics.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_histogram(FILE *out, const struct interactive_ticks *ticks, enum tick_part part)
{
    static const char *const name = "swerve_session_tick_seconds";
    const struct tick_histogram *histogram = &ticks->parts[part];
    char labels[LIMIT_ID_BYTES + 96];
    uint64_t sum = 0;
    snprintf(labels, sizeof labels, "tier=\"%.60s\",steps=\"%" PRIu32 "\",part=\"%s\"", ticks->tier,
             ticks->steps, tick_part_names[part]);
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

char *session_metrics(struct interactive *pool)
{
    struct interactive_ticks ticks[DEADLINE_TIERS_MAX];
    uint32_t count = interactive_ticks(pool, NULL, ticks);
    struct interactive_counts counts = interactive_counts(pool);
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    family(out, "swerve_sessions", "gauge", "Sessions that sit.");
    fprintf(out, "swerve_sessions %" PRIu32 "\n", counts.seated);
    family(out, "swerve_session_begins_total", "counter", "Sessions that were let in, or refused.");
    fprintf(out, "swerve_session_begins_total{end=\"let_in\"} %" PRIu64 "\n", counts.sessions);
    fprintf(out, "swerve_session_begins_total{end=\"refused\"} %" PRIu64 "\n", counts.refused);
    family(out, "swerve_session_load", "gauge",
           "Share of the pool's thread that sessions need at their lowest tiers.");
    fprintf(out, "swerve_session_load %.9g\n", counts.load);
    family(out, "swerve_session_ticks_late_total", "counter", "Ticks after their deadline.");
    for (uint32_t i = 0; i < count; i++) {
        fprintf(out,
                "swerve_session_ticks_late_total{tier=\"%s\",steps=\"%" PRIu32 "\"} %" PRIu64 "\n",
                ticks[i].tier, ticks[i].steps, ticks[i].lates);
    }
    family(out, "swerve_session_tick_seconds", "histogram",
           "Parts of each tick; slack is what was left of the deadline, 0 where it was late.");
    for (uint32_t i = 0; i < count; i++) {
        for (int part = 0; part < TICK_PARTS; part++) {
            put_histogram(out, &ticks[i], (enum tick_part)part);
        }
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
