/*
 * Counts and histograms of the pool as text. See session_metrics.h.
 */
#include "cli/session/session_metrics.h"

#include "store/relay/ticks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

char *session_metrics(struct interactive *pool)
{
    struct tick_tier ticks[DEADLINE_TIERS_MAX];
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
    ticks_print(out, ticks, count);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
