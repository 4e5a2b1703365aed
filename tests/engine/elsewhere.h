/*
 * A device for tests of the page pool: the part of every page that lies elsewhere. Copies are done
 * in the order in which they were started, and as late as the pool's rules allow: a buffer that is
 * read or written before `wait` gives other bytes. Pages begin with their serial, here and
 * elsewhere, so that the device knows whose copy a fault costs.
 */
#ifndef SWERVE_TESTS_ENGINE_ELSEWHERE_H
#define SWERVE_TESTS_ENGINE_ELSEWHERE_H

#include "base/check.h"
#include "base/rng.h"
#include "engine/learned/pages.h"

#include <stdlib.h>
#include <string.h>

enum { ELSEWHERE_BYTES = 64, ELSEWHERE_COPIES = 64 };

struct elsewhere_copy {
    uint32_t frame;
    void *out;      /* save */
    const void *in; /* load */
};

struct elsewhere {
    uint8_t (*frames)[ELSEWHERE_BYTES];
    uint8_t *staging; /* [buffers][page_bytes + ELSEWHERE_BYTES] */
    struct elsewhere_copy copies[ELSEWHERE_COPIES];
    uint32_t copy_count;
    uint32_t unwaited;                  /* copies since the last wait: a buffer each */
    uint64_t leaving[ELSEWHERE_COPIES]; /* whose pages were saved since then */
    uint32_t leaving_count;
    uint32_t buffers;
    uint32_t save_fail_percent, load_fail_percent, wait_fail_percent;
    uint64_t random;
    uint32_t failures, starts, waits;
    void (*lose)(void *context, uint64_t serial); /* NULL: nobody asks */
    void *context;
};

static inline uint64_t elsewhere_serial(const void *data)
{
    uint64_t serial;
    memcpy(&serial, data, sizeof serial);
    return serial;
}

static inline bool elsewhere_strikes(struct elsewhere *device, uint32_t percent, uint64_t serial)
{
    device->random = rng_mix(device->random + 1);
    if (device->random % 100 >= percent) {
        return false;
    }
    device->failures++;
    if (device->lose != NULL && serial != UINT64_MAX) {
        device->lose(device->context, serial);
    }
    return true;
}

/* Does the copies that were started: before somebody looks at the frames, as the device's own work
 * is ordered behind them. */
static inline void elsewhere_arrive(struct elsewhere *device)
{
    for (uint32_t i = 0; i < device->copy_count; i++) {
        const struct elsewhere_copy *copy = &device->copies[i];
        if (copy->out != NULL) {
            memcpy(copy->out, device->frames[copy->frame], ELSEWHERE_BYTES);
        } else {
            memcpy(device->frames[copy->frame], copy->in, ELSEWHERE_BYTES);
        }
    }
    device->copy_count = 0;
}

static inline void elsewhere_start(struct elsewhere *device, struct elsewhere_copy copy)
{
    CHECK(device->unwaited++ < device->buffers && device->copy_count < ELSEWHERE_COPIES);
    device->copies[device->copy_count++] = copy;
}

static inline bool elsewhere_save(void *context, uint32_t frame, void *out)
{
    struct elsewhere *device = context;
    for (uint32_t i = 0; i < device->copy_count; i++) {
        if (device->copies[i].frame == frame) {
            elsewhere_arrive(device); /* so that its serial can be read */
        }
    }
    memset(out, 0xEE, ELSEWHERE_BYTES);
    uint64_t serial = elsewhere_serial(device->frames[frame]);
    if (elsewhere_strikes(device, device->save_fail_percent, serial)) {
        return false;
    }
    device->leaving[device->leaving_count++] = serial;
    elsewhere_start(device, (struct elsewhere_copy){.frame = frame, .out = out});
    return true;
}

static inline bool elsewhere_load(void *context, uint32_t frame, const void *page,
                                  const void *bytes)
{
    struct elsewhere *device = context;
    CHECK(elsewhere_serial(page) == elsewhere_serial(bytes)); /* both of the same page */
    if (elsewhere_strikes(device, device->load_fail_percent, elsewhere_serial(page))) {
        return false;
    }
    elsewhere_start(device, (struct elsewhere_copy){.frame = frame, .in = bytes});
    return true;
}

static inline void elsewhere_begin(void *context)
{
    struct elsewhere *device = context;
    device->starts++;
}

/* A wait that fails costs the pages on their way out. Copies to the device are done: one that loses
 * those has no use for the pool any more. */
static inline bool elsewhere_wait(void *context)
{
    struct elsewhere *device = context;
    bool fails = elsewhere_strikes(device, device->wait_fail_percent, UINT64_MAX);
    elsewhere_arrive(device);
    for (uint32_t i = 0; fails && i < device->leaving_count && device->lose != NULL; i++) {
        device->lose(device->context, device->leaving[i]);
    }
    device->unwaited = device->leaving_count = 0;
    device->waits++;
    return !fails;
}

/* page_bytes: of the pool, a multiple of PAGE_ALIGN. */
static inline struct page_backing elsewhere_init(struct elsewhere *device, uint32_t frames,
                                                 uint32_t buffers, size_t page_bytes)
{
    *device = (struct elsewhere){.buffers = buffers};
    device->frames = calloc(frames, sizeof *device->frames);
    device->staging = aligned_alloc(PAGE_ALIGN, buffers * (page_bytes + ELSEWHERE_BYTES));
    CHECK(buffers <= ELSEWHERE_COPIES && device->frames != NULL && device->staging != NULL);
    return (struct page_backing){
        .context = device,
        .bytes = ELSEWHERE_BYTES,
        .staging = device->staging,
        .buffers = buffers,
        .save = elsewhere_save,
        .load = elsewhere_load,
        .start = elsewhere_begin,
        .wait = elsewhere_wait,
    };
}

static inline void elsewhere_finish(struct elsewhere *device)
{
    free(device->frames);
    free(device->staging);
}

#endif
