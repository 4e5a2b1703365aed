/*
 * A session's drive out of its log. See session.h.
 *
 * What is read is of another process, so it counts for nothing until it fits: entries follow each
 * other, frames show what was seen, and what they do not cover is generated again.
 */
#include "worker/interactive/session_internal.h"

#include "base/check.h"
#include "engine/sensors/layout.h"

#include <stdlib.h>
#include <string.h>

/* The line that goes on, as it is read. */
struct past {
    struct drive_log *log;          /* owned */
    uint32_t last;                  /* tick up to which nothing has to be generated */
    struct drive_log_entry *ticks;  /* [horizon_ticks], of each tick of the line */
    struct drive_log_entry *states; /* [horizon_ticks / SESSION_KEEP_TICKS + 1], frames; kind 0:
                                         there are none */
    uint32_t tick_count;
    uint8_t *frame; /* [FRAME_BYTES] */
};

static enum status misfit(const char *expected, uint32_t tick, struct error *error)
{
    return error_set(error, STATUS_BAD_INPUT, "session: tick %u of its log: expected %s", tick,
                     expected);
}

static enum status read_tick(struct session *session, struct past *past,
                             const struct drive_log_entry *entry, struct error *error)
{
    if (past->tick_count == session->horizon_ticks) {
        return misfit("the end of the drive, found another tick", past->tick_count, error);
    }
    past->ticks[past->tick_count] = *entry;
    session->driven[past->tick_count] =
        (struct driven){.action = entry->action, .skipped = (uint8_t)entry->skipped};
    if (entry->skipped > UINT8_MAX) {
        return misfit("fewer steps to be left out", past->tick_count, error);
    }
    past->tick_count++;
    return STATUS_OK;
}

static enum status read_back(struct session *session, struct past *past,
                             const struct drive_log_entry *entry, struct error *error)
{
    if (entry->target > past->tick_count) {
        return misfit("a way back, found one ahead", past->tick_count, error);
    }
    if (entry->keep) {
        TRY(session_leave_line(session, past->tick_count, error));
    }
    uint32_t kept = entry->target / SESSION_KEEP_TICKS;
    for (uint32_t i = kept + 1; i <= past->tick_count / SESSION_KEEP_TICKS; i++) {
        past->states[i].frame_count = 0;
    }
    past->tick_count = entry->target;
    session->turns++;
    return STATUS_OK;
}

static enum status read_entry(struct session *session, struct past *past,
                              const struct drive_log_entry *entry, struct error *error)
{
    switch (entry->kind) {
    case DRIVE_LOG_TICK:
        return read_tick(session, past, entry, error);
    case DRIVE_LOG_BACK:
        return read_back(session, past, entry, error);
    case DRIVE_LOG_FRAMES:
        break;
    }
    if (past->tick_count % SESSION_KEEP_TICKS != 0 || entry->frame_count > past->tick_count + 1) {
        return misfit("frames of a tick at which a state is kept", past->tick_count, error);
    }
    past->states[past->tick_count / SESSION_KEEP_TICKS] = *entry;
    return STATUS_OK;
}

/* The frame that is remembered of a tick, out of those of the next kept state; *frame NULL: none
 * is. */
static enum status frame_of(const struct past *past, uint32_t tick, const uint8_t **frame,
                            struct error *error)
{
    uint32_t kept = (tick + SESSION_KEEP_TICKS - 1) / SESSION_KEEP_TICKS;
    const struct drive_log_entry *state = &past->states[kept];
    uint32_t back = kept * SESSION_KEEP_TICKS - tick;
    *frame = NULL;
    if (kept * SESSION_KEEP_TICKS > past->last || back >= state->frame_count) {
        return STATUS_OK;
    }
    TRY(drive_log_frame(past->log, state, back, past->frame, error));
    *frame = past->frame;
    return STATUS_OK;
}

static enum status retrace_tick(struct session *session, const struct past *past,
                                struct error *error)
{
    uint32_t tick = session_tick(session);
    const struct drive_log_entry *entry = &past->ticks[tick];
    struct env_past found = {
        .observation_digest = entry->observation_digest,
        .world = {.frame_stats = &entry->frame_stats},
    };
    if (session_end(session) != SWERVE_ENV_GOES_ON) {
        return misfit("the end of the drive, found another tick", tick, error);
    }
    TRY(frame_of(past, tick + 1, &found.world.frame, error));
    TRY(session_set(session, &session->driven[tick], error));
    TRY(env_retrace(session->env, session->index, &found, error));
    session->touched = session->touched || session->rows.contact[session->index] != 0;
    return session_keep_state(session, error);
}

/* Behind the last tick of the past. */
static void end_past(struct session *session)
{
    struct past *past = session->past;
    session->past = NULL;
    session_keep(session, past->log);
    past->log = NULL;
    past_destroy(past);
}

enum status session_retrace(struct session *session, struct error *error)
{
    TRY(retrace_tick(session, session->past, error));
    if (session_tick(session) == session->past->last) {
        end_past(session);
    }
    return STATUS_OK;
}

/* The last tick whose state can be had without generating anything: with the frames of every kept
 * state until then in a learned world, else any. */
static uint32_t last_kept(const struct session *session, const struct past *past)
{
    uint32_t kept = 0;
    if (!env_generates(session->env)) {
        return past->tick_count;
    }
    while ((kept + 1) * SESSION_KEEP_TICKS <= past->tick_count &&
           past->states[kept + 1].frame_count > 0) {
        kept++;
    }
    return kept * SESSION_KEEP_TICKS;
}

void past_destroy(struct past *past)
{
    if (past != NULL) {
        drive_log_close(past->log);
        free(past->ticks);
        free(past->states);
        free(past->frame);
        free(past);
    }
}

/* An empty past of this session, with the log, which is closed on failure. */
static enum status past_create(const struct session *session, struct drive_log *log,
                               struct past **out, struct error *error)
{
    size_t kept = session->horizon_ticks / SESSION_KEEP_TICKS + 1;
    struct past *past = calloc(1, sizeof *past);
    if (past == NULL) {
        drive_log_close(log);
        return error_set(error, STATUS_NO_MEMORY, "session: out of memory");
    }
    past->log = log;
    past->ticks = malloc(session->horizon_ticks * sizeof *past->ticks);
    past->states = calloc(kept + 1, sizeof *past->states);
    past->frame = malloc(FRAME_BYTES);
    if (past->ticks == NULL || past->states == NULL || past->frame == NULL) {
        past_destroy(past);
        return error_set(error, STATUS_NO_MEMORY, "session: out of memory");
    }
    *out = past;
    return STATUS_OK;
}

enum status session_resume(struct session *session, struct drive_log *log, struct error *error)
{
    struct past *past = NULL;
    CHECK(session_tick(session) == 0 && session->log == NULL && session->past == NULL);
    TRY(past_create(session, log, &past, error));
    struct drive_log_entry *entry = malloc(sizeof *entry);
    enum status status = memory_check(entry, error, "session: out of memory");
    while (status == STATUS_OK && drive_log_next(log, entry)) {
        status = read_entry(session, past, entry, error);
    }
    free(entry);
    if (status != STATUS_OK) {
        past_destroy(past);
        return status;
    }
    past->last = last_kept(session, past);
    session->target = past->tick_count;
    session->past = past;
    if (past->last == 0) {
        end_past(session);
    }
    return STATUS_OK;
}
