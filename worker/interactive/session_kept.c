/*
 * A session's drive into its log. See session.h.
 */
#include "worker/interactive/session_internal.h"

#include "base/check.h"

void session_keep(struct session *session, struct drive_log *log)
{
    CHECK(session->log == NULL);
    session->log = log;
}

/* The drive goes on, though nobody can take it up elsewhere. */
static void stop_keeping(struct session *session, const struct error *error)
{
    drive_log_close(session->log);
    session->log = NULL;
    session->unkept = *error;
}

const char *session_unkept(struct session *session)
{
    if (session->unkept.text[0] == '\0' || session->unkept_told) {
        return NULL;
    }
    session->unkept_told = true;
    return session->unkept.text;
}

void session_log_step(struct session *session, const struct driven *driven)
{
    struct error error;
    if (session->log == NULL) {
        return;
    }
    const struct env_past past = env_past(session->env, session->index);
    if (drive_log_tick(session->log, driven->action, driven->skipped, past.observation_digest,
                       past.world.frame_stats, &error) != STATUS_OK) {
        stop_keeping(session, &error);
    }
}

void session_log_state(struct session *session)
{
    const uint8_t *frames[DRIVE_LOG_FRAMES_MAX];
    struct error error;
    uint32_t count = 0;
    if (session->log == NULL || session->rows.tick[session->index] == 0) {
        return;
    }
    while (count < DRIVE_LOG_FRAMES_MAX) {
        frames[count] = env_memory(session->env, session->index, count);
        if (frames[count] == NULL) {
            break;
        }
        count++;
    }
    if (count > 0 && drive_log_frames(session->log, frames, count, &error) != STATUS_OK) {
        stop_keeping(session, &error);
    }
}

void session_log_turn(struct session *session, uint32_t target, bool keep)
{
    struct error error;
    if (session->log != NULL && drive_log_back(session->log, target, keep, &error) != STATUS_OK) {
        stop_keeping(session, &error);
    }
}
