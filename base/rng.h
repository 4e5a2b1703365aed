/*
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC'11). A value depends on (key, counter) and on nothing else, so noise is the same in
 * any slot, batch, thread or fork.
 *
 * Convention: key = rollout seed; counter = (tick, stream, element, 0). Streams are named below so
 * that two users never draw the same numbers.
 */
#ifndef SWERVE_BASE_RNG_H
#define SWERVE_BASE_RNG_H

#include "base/both.h"

#include <stdint.h>

enum rng_stream {
    RNG_STREAM_AGENT = 1,   /* hidden intent and parameters of agents */
    RNG_STREAM_BEV = 2,     /* lidar dropout and weather returns */
    RNG_STREAM_CAMERA = 3,  /* image noise, rain streaks */
    RNG_STREAM_STACK = 4,   /* action latency jitter */
    RNG_STREAM_PLANNER = 5, /* planners that want randomness */
    RNG_STREAM_TEST = 6,
    RNG_STREAM_NOISE = 7,   /* a learned world's latents */
    RNG_STREAM_SENSOR = 8,  /* range noise and dropout of training targets */
    RNG_STREAM_LEAVE = 9,   /* who is out of sight and has left */
    RNG_STREAM_TOKEN = 10,  /* what drivers of token traffic do next */
    RNG_STREAM_FUTURE = 11, /* drivers of a drawn future */
};

/* One Philox4x32-10 block: 4 uniform 32-bit words for a 128-bit counter under a 64-bit key. */
void rng_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4]);

/* Uniform in [0, 1), 32 bits of resolution. */
double rng_uniform(uint64_t key, enum rng_stream stream, uint32_t tick, uint32_t element);

/* SplitMix64 step: derives independent 64-bit keys from a seed (Steele et al., OOPSLA'14). */
BOTH_FN uint64_t rng_mix(uint64_t value)
{
    value += UINT64_C(0x9E3779B97F4A7C15);
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

#endif
