/*
 * A session: one drive that somebody steers tick by tick, goes back in, and drives otherwise. It
 * stands on an environment (worker/env/env.h), so a session has the bits of `swerve run` under the
 * same actions.
 *
 * What was driven is a list of lines. The newest goes on; each other one was left where the driver
 * went back, and is kept with its actions. A session's scenario with a branch for each line is a
 * scenario of its own, which any planner can be asked to drive better.
 *
 * One thread at a time.
 */
#ifndef SWERVE_WORKER_INTERACTIVE_SESSION_H
#define SWERVE_WORKER_INTERACTIVE_SESSION_H

#include "base/status.h"
#include "engine/sensors/raster.h"
#include "schemas/scene.h"
#include "worker/env/env.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SESSION_LINES_MAX = 32,
    SESSION_KEEP_TICKS = 20, /* between states that are kept to go back to */
    SESSION_ID_BYTES = 64,
};

struct session;
struct drive_log; /* engine/trace/drive_log.h */

/* Begins a drive of a scenario of the environments' suite in the environment `index`, which is the
 * session's until it is destroyed. Seed 0 varies nothing. The environments outlive it. */
enum status session_create(struct swerve_env *env, uint32_t index, uint32_t scenario, uint64_t seed,
                           struct session **out, struct error *error);
void session_destroy(struct session *session); /* accepts NULL */

/* From now on everything is written to a log, which is the session's then, and goes on elsewhere.
 * What cannot be written is told by session_unkept, once, and the log is closed. */
void session_keep(struct session *session, struct drive_log *log);
/* A terminated sentence, or NULL: everything is kept. */
const char *session_unkept(struct session *session);
/* The drive of a log that was opened: a session of its scenario and seed, at tick 0, is to become
 * it, and to keep it from then on. The way there is left to be gone (session_returning): through
 * ticks up to the last kept state, of which nothing is generated, and those behind it again. On
 * failure, also of a session_return() before it is there, the log is closed and the session of no
 * use. BAD_INPUT: it is none of this scenario. */
enum status session_resume(struct session *session, struct drive_log *log, struct error *error);
/* Destroys the session, but for its log, which is the caller's; NULL: it has none. */
struct drive_log *session_release(struct session *session);

/* One tick of 0.1 s under this action, which leaves out so many steps of a learned world's sampler.
 * Both are kept: whoever goes back, or drives the saved scenario, has the same bits. CONFLICT: the
 * line has ended. BAD_INPUT as of swerve_env_step() and env_skip(). */
enum status session_step(struct session *session, const struct action *action, uint32_t skipped,
                         struct error *error);

/* Goes `ticks` back, at most to the start, and on from there in a line of its own. The line that is
 * left is kept, with `keep`; LIMIT: there are as many as a session may have. */
enum status session_back(struct session *session, uint32_t ticks, bool keep, struct error *error);

/* The same in parts, for who serves others meanwhile: to the kept state before that tick, then tick
 * by tick while there are some (session_returning), which are driven as they were. */
enum status session_turn(struct session *session, uint32_t ticks, bool keep, struct error *error);
uint32_t session_returning(const struct session *session); /* ticks that are left */
/* Whether nothing is generated of the next of them, else the steps that it leaves out; there is
 * one.
 */
bool session_retraces(const struct session *session);
uint32_t session_return_skips(const struct session *session);
/* Steps that a tick of the line that goes on left out, also one that is still to be returned to. */
uint32_t session_skipped(const struct session *session, uint32_t tick);
enum status session_return(struct session *session, struct error *error);

uint32_t session_tick(const struct session *session);
/* Ways back since it began, in whichever process: those that its log has. */
uint32_t session_turns(const struct session *session);
/* Lines, the one that goes on included. */
uint32_t session_lines(const struct session *session);
enum swerve_env_end session_end(const struct session *session);
/* Borrowed until the session changes. */
const struct scene *session_scene(const struct session *session);
const uint8_t *session_cameras(const struct session *session); /* [SWERVE_ENV_CAMERA_BYTES] */
/* As env_picture(). */
bool session_picture(const struct session *session, const struct raster_rays *rays, uint8_t *rgb);
/* Whether ego touched something in this line so far. */
bool session_touched(const struct session *session);

/* The outcome of a line that has ended, as swerve_env_outcome() writes it. CONFLICT: it goes on. */
enum status session_outcome(const struct session *session, char json[SWERVE_ENV_OUTCOME_BYTES],
                            struct error *error);

/* The scenario with a branch "wheel-N" for each line, from tick 0 under the actions that were
 * driven; the planner goes on where a line stopped before the horizon. *text is malloc'ed and
 * terminated. `id` is the new scenario's. CONFLICT: nothing has been driven. */
enum status session_scenario(const struct session *session, const char *id, char **text,
                             struct error *error);

#endif
