/*
 * Keyframes: small pictures of what a learned world generated during one rollout, for people. The
 * frames of a learned world cannot be redrawn from a trace, so every few ticks one is kept:
 * bird's-eye grid and front camera, in few bits. No verdict and no hash depends on a set of
 * keyframes.
 *
 * The period is chosen per job, so that the keyframes of all its rollouts together stay within
 * KEYFRAMES_JOB_BYTES_MAX and within what its ticks leave of an artifact.
 */
#ifndef SWERVE_ENGINE_TRACE_KEYFRAMES_H
#define SWERVE_ENGINE_TRACE_KEYFRAMES_H

#include "base/status.h"
#include "engine/worlds/world.h"
#include "schemas/trace.h"

#include <stdbool.h>

enum { KEYFRAMES_PERIOD_MIN_TICKS = 5, KEYFRAMES_JOB_BYTES_MAX = 48 << 20 };

struct keyframes {
    struct trace_keyframe *frames; /* owned; ascending ticks; `rollout` is set by the packer */
    uint32_t count;
    uint32_t period_ticks; /* 0: this rollout has no keyframes */
};

void keyframes_finish(struct keyframes *keyframes);

/* Whether the frame of a tick belongs to the keyframes; `last`: the rollout ends here. */
bool keyframes_wants(const struct keyframes *keyframes, uint32_t tick, bool last);

/* Keeps what the slot's sensors see now. NO_MEMORY leaves the keyframes as they were. */
enum status keyframes_take(struct keyframes *keyframes, const struct world *world, uint32_t slot,
                           uint32_t tick, struct error *error);

/* The pure halves of it: an observation (front camera) to a frame and back. Of bev[BEV_BYTES] only
 * the kept rows are written. */
void keyframes_encode(const uint8_t *bev, const uint8_t *camera, struct trace_keyframe *frame);
void keyframes_decode_bev(const struct trace_keyframe *frame, uint8_t *bev);
void keyframes_decode_camera(const struct trace_keyframe *frame, uint8_t *camera);

#endif
