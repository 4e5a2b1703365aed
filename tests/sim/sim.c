/*
 * Time, chance and order. See sim.h.
 */
#include "tests/sim/sim.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_init(struct sim *sim, uint64_t seed, bool trace)
{
    memset(sim, 0, sizeof *sim);
    sim->seed = seed;
    sim->random = rng_mix(seed);
    sim->digest = UINT64_C(0xcbf29ce484222325);
    sim->trace = trace;
}

void sim_finish(struct sim *sim)
{
    free(sim->heap);
    sim->heap = NULL;
}

uint64_t sim_draw(struct sim *sim, uint64_t bound)
{
    sim->random++;
    return (rng_mix(sim->random) >> 16) % bound;
}

int64_t sim_between(struct sim *sim, int64_t low, int64_t high)
{
    return low + (int64_t)sim_draw(sim, (uint64_t)(high - low) + 1);
}

bool sim_chance(struct sim *sim, double probability)
{
    return (double)sim_draw(sim, 1000000) < probability * 1e6;
}

static bool before(const struct sim_entry *a, const struct sim_entry *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void sim_at(struct sim *sim, int64_t at_ns, sim_event run, void *context, int64_t argument)
{
    if (sim->count == sim->capacity) {
        sim->capacity = sim->capacity == 0 ? 256 : sim->capacity * 2;
        sim->heap = realloc(sim->heap, sim->capacity * sizeof *sim->heap);
        CHECK(sim->heap != NULL);
    }
    struct sim_entry entry = {at_ns > sim->now_ns ? at_ns : sim->now_ns, sim->order++, run, context,
                              argument};
    size_t i = sim->count++;
    while (i > 0 && before(&entry, &sim->heap[(i - 1) / 2])) {
        sim->heap[i] = sim->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    sim->heap[i] = entry;
}

bool sim_step(struct sim *sim)
{
    if (sim->count == 0) {
        return false;
    }
    struct sim_entry next = sim->heap[0];
    struct sim_entry last = sim->heap[--sim->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= sim->count) {
            break;
        }
        if (child + 1 < sim->count && before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (!before(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[i] = sim->heap[child];
        i = child;
    }
    sim->heap[i] = last;
    sim->now_ns = next.at_ns;
    sim->events++;
    next.run(next.context, next.argument);
    return true;
}

void sim_log(struct sim *sim, const char *who, const char *format, ...)
{
    char text[512];
    va_list args;
    int bytes = snprintf(text, sizeof text, "%11.6f %-10s ", (double)sim->now_ns / 1e9, who);

    va_start(args, format);
    vsnprintf(text + bytes, sizeof text - (size_t)bytes, format, args);
    va_end(args);
    for (const char *at = text; *at != '\0'; at++) {
        sim->digest = (sim->digest ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    }
    if (sim->trace) {
        printf("%s\n", text);
    }
}

void sim_violation(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (sim->failed) {
        return;
    }
    sim->failed = true;
    va_start(args, format);
    vsnprintf(sim->why, sizeof sim->why, format, args);
    va_end(args);
    sim_log(sim, "VIOLATION", "%s", sim->why);
}

/* ---- clocks ---- */

int64_t sim_clock_now(const struct sim_clock *clock)
{
    int64_t now_ns = clock->sim->now_ns;
    return now_ns + now_ns / 1000000 * clock->drift_ppm + clock->offset_ns;
}

static int64_t read_clock(void *context)
{
    struct sim_clock *clock = context;
    int64_t stall_ns = clock->stall_reads > 0 ? clock->stall_ns : 0;
    clock->stall_reads++;
    return sim_clock_now(clock) + stall_ns;
}

void sim_clock_init(struct sim_clock *clock, const struct sim *sim, int64_t offset_ns,
                    int64_t drift_ppm)
{
    *clock = (struct sim_clock){
        .clock = {read_clock, read_clock, read_clock, clock},
        .sim = sim,
        .offset_ns = offset_ns,
        .drift_ppm = drift_ppm,
    };
}
