/*
 * Recordings: the drives of one job, main line and branches, with every frame that their world
 * showed: what a golden world answers from. An artifact: a recording_header, the job's trace
 * artifact (both: schemas/trace.h), then for each rollout of the trace the sizes of its packed
 * frames, one for each tick of it, then the frames themselves (engine/trace/reel.h). Little-endian.
 */
#ifndef SWERVE_WORKER_GOLDEN_GOLDEN_RECORDING_H
#define SWERVE_WORKER_GOLDEN_GOLDEN_RECORDING_H

#include "base/status.h"
#include "engine/trace/trace.h"
#include "worker/run/rollout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recording {
    void *data; /* owned */
    struct trace_reader reader;
    uint32_t *first; /* [rollout_count]: index of a rollout's first frame; owned */
    size_t *offsets; /* [frames + 1]: where in `frames` each lies; owned */
    const uint8_t *frames;
};

/* The recording of a job whose rollouts are finished and were filmed; malloc'ed, the caller's. */
enum status recording_pack(const struct job_run *job, uint8_t **data, size_t *bytes,
                           struct error *error);

/* Takes `data` (malloc'ed) over, on failure too, and checks that every tick has a frame. BAD_INPUT,
 * NO_MEMORY. */
enum status recording_open(void *data, size_t bytes, struct recording *out, struct error *error);
void recording_close(struct recording *recording); /* accepts a zeroed one */

/* Parts (of enum reel_part, or'ed) of a rollout's frame of a tick, which before its fork is its
 * parent's, into their places in frame[REEL_FRAME_BYTES]; false: it has none, or that is damaged.
 */
bool recording_frame(const struct recording *recording, int32_t rollout, uint32_t tick,
                     unsigned parts, uint8_t *frame);

#endif
