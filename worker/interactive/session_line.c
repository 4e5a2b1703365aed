/*
 * Steps that a session takes alike on its way and through its past: a tick's row, states that are
 * kept, lines that are left. See session.h.
 */
#include "worker/interactive/session_internal.h"

#include <stdlib.h>
#include <string.h>

enum status session_answer(int number, const char *text, struct error *error)
{
    return number == 0 ? STATUS_OK : error_set(error, (enum status)number, "%s", text);
}

uint32_t session_tick(const struct session *session)
{
    return session->rows.tick[session->index];
}

enum swerve_env_end session_end(const struct session *session)
{
    return (enum swerve_env_end)session->rows.end[session->index];
}

enum status session_set(struct session *session, const struct driven *driven, struct error *error)
{
    double *row = session->rows.actions + (size_t)2 * session->index;
    if (session_end(session) != SWERVE_ENV_GOES_ON) {
        return error_set(error, STATUS_CONFLICT, "session: this line ended at tick %u: go back",
                         session_tick(session));
    }
    row[0] = driven->action.accel_mps2;
    row[1] = driven->action.steer_rad;
    return env_skip(session->env, session->index, driven->skipped, error);
}

enum status session_keep_state(struct session *session, struct error *error)
{
    char text[256];
    uint32_t tick = session_tick(session);
    if (tick != session->state_count * SESSION_KEEP_TICKS ||
        session_end(session) != SWERVE_ENV_GOES_ON) {
        return STATUS_OK;
    }
    struct swerve_env_state **place = &session->states[session->state_count];
    TRY(session_answer(swerve_env_save(session->env, session->index, place, text, sizeof text),
                       text, error));
    session->touches[session->state_count++] = session->touched;
    session_log_state(session);
    return STATUS_OK;
}

enum status session_leave_line(struct session *session, uint32_t ticks, struct error *error)
{
    if (session->left_count + 1 >= SESSION_LINES_MAX) {
        return error_set(error, STATUS_LIMIT, "session: expected at most %d lines",
                         SESSION_LINES_MAX);
    }
    struct line *line = &session->left[session->left_count];
    line->driven = calloc((size_t)ticks + 1, sizeof *line->driven);
    TRY(memory_check(line->driven, error, "session: out of memory"));
    memcpy(line->driven, session->driven, ticks * sizeof *line->driven);
    line->ticks = ticks;
    session->left_count++;
    return STATUS_OK;
}
