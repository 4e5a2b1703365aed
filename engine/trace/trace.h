/*
 * Trace recording: the ticks of one rollout in the layout of schemas/trace.h, with their running
 * hash.
 *
 * A fork copies the hash but not the ticks: a branch's buffer starts at its fork, its hash at tick
 * 0. trace_pack() joins the rollouts of a job into one artifact; trace_open() reads one back.
 */
#ifndef SWERVE_ENGINE_TRACE_TRACE_H
#define SWERVE_ENGINE_TRACE_TRACE_H

#include "base/sha256.h"
#include "base/status.h"
#include "engine/trace/keyframes.h"
#include "engine/trace/reel.h"
#include "schemas/planner.h"
#include "schemas/scene.h"
#include "schemas/trace.h"

#include <stddef.h>
#include <stdint.h>

/* Records of schemas/trace.h one after the other; their `rollout` is filled in when packed. */
struct trace_plans {
    uint8_t *data; /* owned */
    size_t bytes;
    size_t capacity_bytes;
    uint32_t count;
};

/* Records of schemas/trace.h, as plans are kept. */
struct trace_pictures {
    uint8_t *data; /* owned */
    size_t bytes, capacity_bytes;
    size_t room_bytes;     /* that they may take */
    uint32_t period_ticks; /* of which they are kept; 0: none are */
    uint32_t count;
};

struct trace {
    uint8_t *data; /* encoded ticks; owned */
    size_t bytes;
    size_t capacity_bytes;
    uint32_t first_tick;
    uint32_t tick_count;
    uint32_t agent_count;
    struct sha256 hash;
    struct keyframes keyframes;     /* of learned worlds; not part of the hash */
    struct reel reel;               /* of drives that become goldens; nor part of it */
    struct trace_plans plans;       /* of planners with trajectories; nor part of it */
    struct trace_pictures pictures; /* of learned worlds; nor part of it */
    char *output; /* what the planner wrote; owned, NULL: nothing; nor part of it */
    uint32_t output_bytes;
};

/* Everything of a tick that is not in the scene. */
struct trace_extra {
    struct action action;
    uint32_t sensors_dark;
    bool guardian;
    uint32_t skipped; /* steps of the sampler that the world is about to leave out */
    uint64_t observation_digest;
};

void trace_init(struct trace *trace, uint32_t agent_count);
void trace_finish(struct trace *trace);

/* A branch that begins at `tick`: empty buffer, the parent's hash. */
void trace_fork(struct trace *branch, const struct trace *parent, uint32_t tick);

/* Appends one tick. NO_MEMORY leaves the trace as it was. */
enum status trace_append(struct trace *trace, const struct scene *scene,
                         const struct trace_extra *extra, struct error *error);

/* Keeps what the planner wrote, at most TRACE_OUTPUT_BYTES_MAX; nothing where memory is short. */
void trace_keep_output(struct trace *trace, const char *text, size_t bytes);

/* Keeps what a planner answered at a tick, where that is a trajectory, and the perceived ones of
 * the objects that it was given (NULL: none). ego: its place. Nothing where memory is short. */
void trace_keep_plan(struct trace *trace, uint32_t tick, struct vec2 ego,
                     const struct swerve_answer *answer, const struct swerve_surroundings *around);

/* Pictures of cameras are kept of every so many ticks (0: of none), and thinned out where they
 * outgrow what one of a job's `rollout_count` rollouts may keep. Forks go on alike. */
void trace_expect_pictures(struct trace *trace, uint32_t period_ticks, uint32_t rollout_count);
/* Whether those of a tick are wanted; `last`: the rollout ends here. */
bool trace_wants_pictures(const struct trace *trace, uint32_t tick, bool last);
/* Keeps a camera's, by tick, then by camera; jpeg [head->bytes]. NO_MEMORY leaves the trace as it
 * was. */
enum status trace_keep_picture(struct trace *trace, const struct trace_picture *head,
                               const uint8_t *jpeg, struct error *error);

/* Hash over everything from tick 0 on; the trace can go on afterwards. */
void trace_hash_hex(const struct trace *trace, char out[SHA256_HEX_BYTES]);

/* One artifact from a job's rollouts: traces[i], its branch id and parent index (-1: none). The
 * result is malloc'ed, owned by the caller. */
enum status trace_pack(const struct trace *const *traces, const char *const *branch_ids,
                       const int32_t *parents, uint32_t count, uint8_t **data, size_t *bytes,
                       struct error *error);

/* The most that a job of this scenario can record, all branches included, keyframes apart. */
uint64_t trace_artifact_bytes_max(const struct scenario *scenario);

/* The period of keyframes for the jobs of a scenario; 0 when its ticks leave no room. */
uint32_t trace_keyframes_period_ticks(const struct scenario *scenario);

/* Order-sensitive 64-bit digest of an observation buffer (not cryptographic). */
uint64_t trace_digest(uint64_t seed, const uint8_t *data, size_t bytes);
/* Of a grid [BEV_BYTES] of which occupancy and unseen alone were shown: of these two planes. */
uint64_t trace_digest_returns(const uint8_t *bev);

/* ---- reading ---- */

struct trace_rollout_view {
    struct trace_rollout_header header;
    const uint8_t *ticks; /* borrowed from the artifact */
};

struct trace_reader {
    struct trace_file_header header;
    struct trace_rollout_view *rollouts; /* owned */
    const uint8_t *keyframes; /* frames, borrowed from the artifact; NULL: no keyframes */
    uint32_t keyframes_count;
    const uint8_t *plans; /* records, borrowed; NULL: none */
    size_t plans_bytes;
    const uint8_t *pictures; /* records, borrowed; NULL: none */
    size_t pictures_bytes;
    const uint8_t *output; /* struct trace_output and texts, borrowed; NULL: none */
    uint32_t output_count;
};

/* Checks an untrusted artifact completely: magic, sizes, parents, tick continuity. `data` is
 * borrowed and must outlive the reader. */
enum status trace_reader_init(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                              struct error *error);
void trace_reader_finish(struct trace_reader *reader);

/* Index of the rollout of a branch ("" main line), -1: not in this artifact. */
int32_t trace_reader_find(const struct trace_reader *reader, const char *branch_id);

/* The other way round; borrowed from the reader. */
const char *trace_reader_branch(const struct trace_reader *reader, int32_t rollout);

/* The rollout that recorded a tick of another one: itself, or the parent that it shares it with;
 * -1: none. The tick may lie behind the last one. */
static inline int32_t trace_reader_owner(const struct trace_reader *reader, int32_t rollout,
                                         uint32_t tick)
{
    /* Parents have smaller indices, so this walk ends. */
    while (rollout >= 0 && (reader->rollouts[rollout].header.tick_count == 0 ||
                            tick < reader->rollouts[rollout].header.first_tick)) {
        rollout = reader->rollouts[rollout].header.parent;
    }
    return rollout;
}

/* First tick after those recorded for a rollout, which may share its parents': 0 where there are
 * none. A branch that never forked ends where its parent does. */
uint32_t trace_reader_end_tick(const struct trace_reader *reader, int32_t rollout);

/* The last tick recorded for a rollout; 0 too where there are none. */
uint32_t trace_reader_last_tick(const struct trace_reader *reader, int32_t rollout);

/* Tick `tick` of a rollout, looked up in its parents before its fork; agents[LIMIT_AGENTS] is
 * filled with agent_count entries. False when the tick was not recorded. */
bool trace_reader_tick(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                       struct trace_tick *out, struct trace_agent *agents);

/* The keyframe nearest to a tick, looked up in the parents before the fork. False: none. */
bool trace_reader_keyframes(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                            struct trace_keyframe *out);

/* A record of schemas/trace.h; jpeg [head.bytes] is borrowed from the artifact, and not looked
 * into. */
struct trace_picture_view {
    struct trace_picture head;
    const uint8_t *jpeg;
};

/* Pictures of the kept tick that is nearest to a tick, looked up in the parents before the fork, by
 * camera. 0: none were kept. */
uint32_t trace_reader_pictures(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                               struct trace_picture_view out[TRACE_CAMERAS_MAX]);

/* Text that the planner wrote in that rollout since its first tick there; one that shares its main
 * line's end shares this too. NULL: nothing. Borrowed, not terminated. */
const char *trace_reader_output(const struct trace_reader *reader, int32_t rollout,
                                uint32_t *bytes);

/* A record of schemas/trace.h, places as kept there. */
struct trace_plan_view {
    struct trace_plan head;
    struct trace_plan_point points[TRACE_PLAN_POINTS_MAX];
    struct trace_plan_object objects[TRACE_PLAN_OBJECTS_MAX];
};

/* The next record of a rollout's own ticks behind *at, which is 0 at first. False: no more. */
bool trace_reader_plan_next(const struct trace_reader *reader, int32_t rollout, size_t *at,
                            struct trace_plan_view *out);

/* The record of a tick, looked up in the parents before the fork. False: none. */
bool trace_reader_plan(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                       struct trace_plan_view *out);

/* The scene of that tick, for redrawing and re-scoring. */
bool trace_reader_scene(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                        struct scene *out, struct trace_tick *tick_out);

#endif
