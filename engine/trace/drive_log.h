/*
 * Log of a drive: it grows with every tick, and from it the drive goes on in another process, or on
 * another machine, with the same bits. It has what was done in each tick and what became of it, and
 * the frames that a learned world remembers, from which the ticks behind them alone are generated
 * again: now and then of a session (worker/interactive), of each tick of a long rollout
 * (worker/run/checkpoint.h).
 *
 * Whatever ends the process, at most the tick that was being written is missing. Records carry a
 * digest over themselves and all before. A log belongs to one revision and one set of models.
 */
#ifndef SWERVE_ENGINE_TRACE_DRIVE_LOG_H
#define SWERVE_ENGINE_TRACE_DRIVE_LOG_H

#include "base/sha256.h"
#include "base/status.h"
#include "engine/learned/frame_stats.h"
#include "schemas/limits.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DRIVE_LOG_BYTES_MAX = 256 << 20, DRIVE_LOG_FRAMES_MAX = 16 };

#define DRIVE_LOG_SUFFIX ".session" /* of files that are kept */

struct drive_log;

/* Identity of the drive; texts are terminated. */
struct drive_log_head {
    char revision[SHA256_HEX_BYTES];
    char world[LIMIT_ID_BYTES];
    char scenario[LIMIT_ID_BYTES];
    char scenario_hash[SHA256_HEX_BYTES];
    char model_hash[SHA256_HEX_BYTES];  /* "": of no learned world */
    char sampler[LIMIT_ID_BYTES];       /* with the previous model, where there is one */
    char bounds_hash[SHA256_HEX_BYTES]; /* of what its frames are judged by; "": the same job's */
    uint64_t seed;
};

enum drive_log_kind { DRIVE_LOG_TICK = 1, DRIVE_LOG_FRAMES, DRIVE_LOG_BACK };

/* One entry; what it points to is borrowed from the log until the next one is read. */
struct drive_log_entry {
    enum drive_log_kind kind;
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

/* A new file; IO names the path. BUSY, NOT_FOUND: who makes room has it, or removed it. NULL: in
 * memory. */
enum status drive_log_create(const char *path, const struct drive_log_head *head,
                             struct drive_log **out, struct error *error);
/* One that is there, to be read and to go on. BUSY: somebody drives it. NOT_FOUND, BAD_INPUT, IO
 * name path, place, expected and found; an entry that was being written is cut off. */
enum status drive_log_open(const char *path, struct drive_log_head *head, struct drive_log **out,
                           struct error *error);
/* A copy of one in memory, to be read alone. `name` is for people. */
enum status drive_log_read(const char *name, const void *data, size_t bytes,
                           struct drive_log_head *head, struct drive_log **out,
                           struct error *error);
/* All of it, malloc'ed, owned by the caller. */
enum status drive_log_contents(const struct drive_log *log, char **data, size_t *bytes,
                               struct error *error);
void drive_log_close(struct drive_log *log);  /* accepts NULL; the file stays */
void drive_log_remove(struct drive_log *log); /* accepts NULL; the file goes */
/* Removes logs of a folder (files NAME.session) with which nobody goes on, the longest untouched
 * first, until it holds at most so many of at most so many bytes in all. IO names the folder. */
enum status drive_log_make_room(const char *folder, size_t count_max, uint64_t bytes_max,
                                struct error *error);

/* The next entry of those that were there at opening; false: no more. Between two ways back ticks
 * follow each other from the start or the target on. */
bool drive_log_next(struct drive_log *log, struct drive_log_entry *out);
/* A frame out of an entry's, which is still borrowed, `back` < frame_count; frame [FRAME_BYTES]. */
enum status drive_log_frame(struct drive_log *log, const struct drive_log_entry *entry,
                            uint32_t back, uint8_t *frame, struct error *error);

/* One more entry. frame_stats NULL: of no learned world. LIMIT: the file has DRIVE_LOG_BYTES_MAX.
 */
enum status drive_log_tick(struct drive_log *log, struct action action, uint32_t skipped,
                           uint64_t observation_digest, const struct frame_stats *frame_stats,
                           struct error *error);
enum status drive_log_frames(struct drive_log *log, const uint8_t *const *frames, uint32_t count,
                             struct error *error);
enum status drive_log_back(struct drive_log *log, uint32_t target, bool keep, struct error *error);

#endif
