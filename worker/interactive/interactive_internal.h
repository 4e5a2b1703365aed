/*
 * Parts that the files of the pool share: the pool, its seats, and what its thread does.
 *
 * Two locks. `lock` guards the seats' list, times and control inputs, and is held for moments only;
 * `world_lock` guards environments and sessions, and is held for a tick. Who takes both takes
 * world_lock first.
 */
#ifndef SWERVE_WORKER_INTERACTIVE_INTERACTIVE_INTERNAL_H
#define SWERVE_WORKER_INTERACTIVE_INTERACTIVE_INTERNAL_H

#include "base/units.h"
#include "engine/sensors/raster.h"
#include "engine/trace/drive_log.h"
#include "worker/env/env_scene.h"
#include "worker/interactive/interactive.h"

#include <pthread.h>

/* A tick on the way back waits so long for room between the ticks of others. */
#define INTERACTIVE_PATIENCE_NS NS_PER_S

struct seat {
    struct interactive *pool;
    uint32_t place;
    struct session *session;
    uint32_t scenario;
    uint64_t seed;
    char name[INTERACTIVE_NAME_BYTES]; /* of its log; "": none */
    struct interactive_listener listener;
    bool plain; /* it is shown no windscreen */
    int64_t period_ns, limit_ns;
    uint32_t least; /* tier */
    bool paused;
    struct drive_log *before; /* of the session whose seat it took; NULL: none, or forgotten */
    bool unkept;              /* its log has what it may, and nothing more is kept */
    uint32_t turns;           /* as session_turns(); the holder's */
    bool leaving;             /* another is about to take its place: meanwhile it stands still */
    bool returning;      /* its session goes back, and whoever told it to waits: it is paused */
    int64_t patience_ns; /* moment from which its next tick back no longer waits for room */
    enum status return_status; /* of what came of it .. */
    struct error return_error; /* .. not OK: why */
    int64_t due_ns;            /* moment of the next tick */
    struct action action;      /* newest control input */
    struct action driven;      /* of the last tick */
    struct tick_tier ticks[DEADLINE_TIERS_MAX];
};

struct interactive {
    struct swerve_env *env;
    const struct models_model *model;    /* NULL: the world is of no learned one */
    const struct models_model *previous; /* NULL: none */
    enum conditioning conditioning;
    char world[LIMIT_ID_BYTES];
    char keep[LIMIT_PATH_BYTES]; /* folder of logs; "": none */
    uint64_t keep_bytes;         /* of a tenant's */
    uint32_t judged_count;
    const struct interactive_judged *judged; /* borrowed */
    uint32_t skips[DEADLINE_TIERS_MAX];      /* by tier, as of env_skip() */
    uint8_t makers[DEADLINE_TIERS_MAX];      /* likewise: INTERACTIVE_GENERATED, .. */
    char backend[DEVICE_NAME_BYTES];         /* device of a learned world; "": the CPU */
    struct raster_rays *rays;                /* of the windscreen */
    uint8_t *windscreen; /* [WINDSCREEN_HEIGHT][WINDSCREEN_WIDTH][3], of the tick that is told */
    const struct clock *clock;
    uint32_t seat_count;
    uint32_t place_count; /* one more, for who changes seats */
    pthread_mutex_t world_lock;
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_cond_t returned; /* a seat is back */
    pthread_t thread;
    bool running;
    bool stopping;
    bool asked;            /* a seat has begun to return since the thread last looked */
    bool measures;         /* what ticks cost; else it was planted */
    struct session *trial; /* drive by which costs are measured while nobody sits; NULL: none */
    struct seat **seats;   /* [place_count], NULL: free */
    struct deadline_pool deadlines;
    struct interactive_counts counts;
    struct tick_tier ticks[DEADLINE_TIERS_MAX]; /* of all; their names */
};

static inline int64_t interactive_now_ns(const struct interactive *pool)
{
    return clock_now_ns(pool->clock);
}

/* ---- interactive_kept.c ---- */

/* Log of a session that is to be taken up. */
struct interactive_kept {
    char path[LIMIT_PATH_BYTES];
    struct drive_log_head head;
    struct drive_log *log; /* NULL: none, or a session has it */
};
/* Reads and checks the whole file, which takes time: no lock is held. Waits until the pool behind
 * which it comes lets go of it, for a second. BUSY, NOT_FOUND, BAD_INPUT. */
enum status interactive_open_kept(const struct interactive *pool,
                                  const struct interactive_wish *wish, struct interactive_kept *out,
                                  struct error *error);
void interactive_close_kept(struct interactive_kept *kept);
/* The folder of a tenant's logs, made where there is none, with room for one more; nothing where
 * the pool keeps none. Takes time in a large folder: no lock is held. LIMIT, IO. */
enum status interactive_make_room(const struct interactive *pool, const char *tenant,
                                  struct error *error);

/* The session of a seat, in its place: new, or out of its log, then with a way to drive again; kept
 * from now on where the pool keeps any. world_lock is held. */
enum status interactive_make_session(struct interactive *pool, const struct interactive_wish *wish,
                                     struct interactive_kept *kept, struct seat *seat,
                                     struct error *error);

/* ---- interactive_hardware.c ---- */

/* BAD_INPUT: hardware is refused a tier that the wish accepts, in a slice of the seat's scenario.
 */
enum status interactive_check_hardware(const struct interactive *pool,
                                       const struct interactive_wish *wish, const struct seat *seat,
                                       struct error *error);

/* BAD_INPUT: the line that goes on in a session which hardware takes up, and in which it may go
 * back, has a tick of a tier that it is refused. The sentence names the first, as its frame does.
 */
enum status interactive_check_driven(const struct interactive *pool,
                                     const struct interactive_wish *wish, const struct seat *seat,
                                     struct error *error);

/* ---- interactive_thread.c ---- */

/* The pool's thread: serves ticks until the pool is stopping. `context` is the pool. */
void *interactive_run(void *context);
/* Tells the listener the state of the session; world_lock is held. */
void interactive_tell(struct seat *seat, struct interactive_frame *frame);
/* The seats as the scheduler sees them, and their places [seat_count]; `lock` is held. */
uint32_t interactive_look(const struct interactive *pool, uint32_t *places,
                          struct deadline_session *sessions);
/* Whether nobody sits; `lock` is held. */
bool interactive_is_empty(const struct interactive *pool);
/* The best tier of a kind of frames of which too little is known to refuse anybody by it; -1: none.
 * `lock` is held. */
int32_t interactive_unknown_tier(const struct interactive *pool);

#endif
