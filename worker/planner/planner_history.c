/*
 * A ring of moments per session, turned so that the oldest stands first. See planner_history.h.
 */
#include "worker/planner/planner_history.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

struct kept_moment {
    struct swerve_object *objects; /* owned, [capacity] */
    uint32_t capacity;
};

struct session_history {
    uint32_t count;
    struct swerve_moment moments[SWERVE_HISTORY_TICKS]; /* oldest first */
    struct kept_moment kept[SWERVE_HISTORY_TICKS];      /* behind moments of the same index */
};

struct planner_history {
    uint32_t session_count;
    uint32_t ticks;
    struct session_history sessions[];
};

enum status planner_history_create(uint32_t session_count, uint32_t ticks,
                                   struct planner_history **out, struct error *error)
{
    CHECK(ticks >= 1 && ticks <= SWERVE_HISTORY_TICKS);
    struct planner_history *history =
        calloc(1, sizeof *history + session_count * sizeof history->sessions[0]);
    TRY(memory_check(history, error, "planner history: out of memory"));
    history->session_count = session_count;
    history->ticks = ticks;
    *out = history;
    return STATUS_OK;
}

void planner_history_destroy(struct planner_history *history)
{
    if (history == NULL) {
        return;
    }
    for (uint32_t i = 0; i < history->session_count; i++) {
        for (uint32_t k = 0; k < SWERVE_HISTORY_TICKS; k++) {
            free(history->sessions[i].kept[k].objects);
        }
    }
    free(history);
}

void planner_history_clear(struct planner_history *history, uint32_t session)
{
    CHECK(session < history->session_count);
    history->sessions[session].count = 0;
}

static enum status keep(struct session_history *session, uint32_t index,
                        const struct swerve_moment *moment, struct error *error)
{
    struct kept_moment *kept = &session->kept[index];
    if (moment->object_count > kept->capacity) {
        struct swerve_object *grown = realloc(kept->objects, moment->object_count * sizeof *grown);
        TRY(memory_check(grown, error, "planner history: out of memory"));
        kept->objects = grown;
        kept->capacity = moment->object_count;
    }
    if (moment->object_count > 0) {
        memcpy(kept->objects, moment->objects, moment->object_count * sizeof *kept->objects);
    }
    session->moments[index] = *moment;
    session->moments[index].objects = kept->objects;
    return STATUS_OK;
}

enum status planner_history_fork(struct planner_history *history, uint32_t from, uint32_t to,
                                 struct error *error)
{
    CHECK(from != to && from < history->session_count && to < history->session_count);
    const struct session_history *source = &history->sessions[from];
    struct session_history *target = &history->sessions[to];
    target->count = 0;
    for (uint32_t k = 0; k < source->count; k++) {
        TRY(keep(target, k, &source->moments[k], error));
    }
    target->count = source->count;
    return STATUS_OK;
}

void planner_history_show(struct planner_history *history, uint32_t session,
                          struct swerve_surroundings *out)
{
    CHECK(session < history->session_count);
    out->history = history->sessions[session].moments;
    out->history_count = history->sessions[session].count;
}

enum status planner_history_add(struct planner_history *history,
                                const struct swerve_observation *seen,
                                const struct swerve_surroundings *around, struct error *error)
{
    CHECK(seen->session < history->session_count);
    struct session_history *session = &history->sessions[seen->session];
    const struct swerve_moment moment = {
        .tick = seen->tick,
        .object_count = around->object_count,
        .time_ns = seen->time_ns,
        .x_m = seen->x_m,
        .y_m = seen->y_m,
        .heading_rad = seen->heading_rad,
        .speed_mps = seen->speed_mps,
        .accel_mps2 = seen->accel_mps2,
        .lat_accel_mps2 = seen->lat_accel_mps2,
        .yaw_rate_rps = seen->yaw_rate_rps,
        .steer_rad = seen->steer_rad,
        .objects = around->objects,
    };
    if (session->count == history->ticks) {
        /* The oldest leaves; its memory serves for the newest. */
        struct kept_moment first = session->kept[0];
        session->count--;
        memmove(&session->moments[0], &session->moments[1],
                session->count * sizeof session->moments[0]);
        memmove(&session->kept[0], &session->kept[1], session->count * sizeof session->kept[0]);
        session->kept[session->count] = first;
    }
    TRY(keep(session, session->count, &moment, error));
    session->count++;
    return STATUS_OK;
}
