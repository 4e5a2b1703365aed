/*
 * Imported: helpers of the CommonRoad tests. Runs the importer and loads what it gives; a failure
 * ends the test with the importer's own sentence.
 */
#ifndef SWERVE_TESTS_SCENARIOS_IMPORTED_H
#define SWERVE_TESTS_SCENARIOS_IMPORTED_H

#include "scenarios/import/import.h"
#include "tests/scenarios/files.h"

#include <stdlib.h>

enum { IMPORTED_MAX = 8 };

struct imported {
    size_t count;
    struct scenario_document *documents[IMPORTED_MAX];
};

/* Every text that the importer gives must load; its canonical text is the text itself. */
static inline enum status imported_try(const char *name, const char *xml, size_t bytes,
                                       struct imported *out, struct error *error)
{
    char **texts = NULL;
    size_t count = 0;
    memset(out, 0, sizeof *out);
    enum status status = import_commonroad(name, xml, bytes, &texts, &count, error);
    if (status != STATUS_OK) {
        EXPECT(texts == NULL && count == 0);
        return status;
    }
    EXPECT(count >= 1 && count <= IMPORTED_MAX);
    for (size_t i = 0; i < count; i++) {
        struct error load;
        EXPECT_OK(
            scenario_load_text("imported", texts[i], strlen(texts[i]), &out->documents[i], &load),
            load);
        EXPECT_TEXT(out->documents[i]->canonical, texts[i]);
        free(texts[i]);
    }
    free(texts);
    out->count = count;
    return STATUS_OK;
}

static inline struct imported imported_make(const char *name, const char *xml, size_t bytes)
{
    struct imported out;
    struct error error;
    EXPECT_OK(imported_try(name, xml, bytes, &out, &error), error);
    return out;
}

static inline void imported_free(struct imported *imported)
{
    for (size_t i = 0; i < imported->count; i++) {
        scenario_destroy(imported->documents[i]);
    }
    imported->count = 0;
}

static inline const struct agent *imported_agent(const struct scenario *scenario, const char *id)
{
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        if (strcmp(scenario->agents[i].id, id) == 0) {
            return &scenario->agents[i];
        }
    }
    return NULL;
}

static inline const struct lane *imported_lane(const struct scenario *scenario, const char *id)
{
    for (uint32_t i = 0; i < scenario->map.lane_count; i++) {
        if (strcmp(scenario->map.lanes[i].id, id) == 0) {
            return &scenario->map.lanes[i];
        }
    }
    TEST_FAIL("expected a lane %s, found none", id);
    return NULL;
}

/* Linear between samples; false outside the log. */
static inline bool imported_at(const struct trajectory *log, double t_s,
                               struct trajectory_point *out)
{
    for (uint32_t i = 1; i < log->point_count; i++) {
        const struct trajectory_point *a = &log->points[i - 1];
        const struct trajectory_point *b = &log->points[i];
        if (t_s >= a->t_s - 1e-9 && t_s <= b->t_s + 1e-9) {
            double t = (t_s - a->t_s) / (b->t_s - a->t_s);
            *out = (struct trajectory_point){t_s, a->x_m + t * (b->x_m - a->x_m),
                                             a->y_m + t * (b->y_m - a->y_m), a->heading_rad,
                                             a->speed_mps + t * (b->speed_mps - a->speed_mps)};
            return true;
        }
    }
    return false;
}

#endif
