/*
 * Log of a session: a file that grows with every tick, from which the drive goes on in another
 * process, or on another machine, with the same bits. It has what was done in each tick and what
 * became of it, and now and then the frames that a learned world remembers, from which the ticks
 * behind them alone are generated again.
 *
 * Whatever ends the process, at most the tick that was being written is missing. Records carry a
 * digest over themselves and all before. A log belongs to one revision and one set of models.
 */
#ifndef SWERVE_WORKER_INTERACTIVE_SESSION_LOG_H
#define SWERVE_WORKER_INTERACTIVE_SESSION_LOG_H

#include "base/sha256.h"
#include "base/status.h"
#include "engine/learned/frame_stats.h"
#include "schemas/limits.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SESSION_LOG_BYTES_MAX = 256 << 20, SESSION_LOG_FRAMES_MAX = 16 };

struct session_log;

/* Identity of the drive; texts are terminated. */
struct session_log_head {
    char revision[SHA256_HEX_BYTES];
    char world[LIMIT_ID_BYTES];
    char scenario[LIMIT_ID_BYTES];
    char scenario_hash[SHA256_HEX_BYTES];
    char model_hash[SHA256_HEX_BYTES]; /* "": of no learned world */
    char sampler[LIMIT_ID_BYTES];      /* with the previous model, where there is one */
    uint64_t seed;
};

enum session_log_kind { SESSION_LOG_TICK = 1, SESSION_LOG_FRAMES, SESSION_LOG_BACK };

/* One entry; what it points to is borrowed from the log until the next one is read. */
struct session_log_entry {
    enum session_log_kind kind;
    /* of a tick */
    struct action action;
    uint32_t skipped;
    uint64_t observation_digest;
    struct frame_stats frame_stats; /* of a learned world, else zeros */
    /* frames [frame_count][FRAME_BYTES], the newest first, packed */
    uint32_t frame_count;
    const uint8_t *packed;
    size_t packed_bytes;
    /* of a way back */
    uint32_t target;
    bool keep;
};

/* A new file; BAD_INPUT, IO name the path. */
enum status session_log_create(const char *path, const struct session_log_head *head,
                               struct session_log **out, struct error *error);
/* One that is there, to be read and to go on. BUSY: somebody drives it. NOT_FOUND, BAD_INPUT, IO
 * name path, place, expected and found; an entry that was being written is cut off. */
enum status session_log_open(const char *path, struct session_log_head *head,
                             struct session_log **out, struct error *error);
void session_log_close(struct session_log *log);  /* accepts NULL; the file stays */
void session_log_remove(struct session_log *log); /* accepts NULL; the file goes */

/* The next entry of those that were there at opening; false: no more. Between two ways back ticks
 * follow each other from the start or the target on. */
bool session_log_next(struct session_log *log, struct session_log_entry *out);
/* A frame out of an entry's, which is still borrowed, `back` < frame_count; frame [FRAME_BYTES]. */
enum status session_log_frame(struct session_log *log, const struct session_log_entry *entry,
                              uint32_t back, uint8_t *frame, struct error *error);

/* One more entry. frame_stats NULL: of no learned world. LIMIT: the file has SESSION_LOG_BYTES_MAX.
 */
enum status session_log_tick(struct session_log *log, struct action action, uint32_t skipped,
                             uint64_t observation_digest, const struct frame_stats *frame_stats,
                             struct error *error);
enum status session_log_frames(struct session_log *log, const uint8_t *const *frames,
                               uint32_t count, struct error *error);
enum status session_log_back(struct session_log *log, uint32_t target, bool keep,
                             struct error *error);

#endif
