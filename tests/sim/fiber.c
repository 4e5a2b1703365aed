/*
 * Fibers over ucontext. See fiber.h. AddressSanitizer is told of every change of stacks.
 */
#include "tests/sim/fiber.h"

#include "base/check.h"
#include "tests/sanitizers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef TEST_WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 512 << 10 };

struct fiber {
    ucontext_t context;
    ucontext_t caller;
    void *stack;
    void (*run)(void *argument);
    void *argument;
    bool ended;
    struct fiber_pool *pool;
    struct fiber *next_free;
    struct fiber *next;
    const void *caller_stack; /* the rest is for AddressSanitizer */
    size_t caller_stack_bytes;
    void *fake;
    void *caller_fake;
};

struct fiber_pool {
    struct fiber *free;
    struct fiber *all;
};

#ifdef TEST_WITH_ASAN
static void leave_caller(struct fiber *fiber)
{
    __sanitizer_start_switch_fiber(&fiber->caller_fake, fiber->stack, STACK_BYTES);
}

static void arrive_caller(struct fiber *fiber)
{
    __sanitizer_finish_switch_fiber(fiber->caller_fake, NULL, NULL);
}

static void leave_fiber(struct fiber *fiber)
{
    __sanitizer_start_switch_fiber(fiber->ended ? NULL : &fiber->fake, fiber->caller_stack,
                                   fiber->caller_stack_bytes);
}

static void arrive_fiber(struct fiber *fiber)
{
    __sanitizer_finish_switch_fiber(fiber->fake, &fiber->caller_stack, &fiber->caller_stack_bytes);
}

static void forget_stack(struct fiber *fiber)
{
    __asan_unpoison_memory_region(fiber->stack, STACK_BYTES);
}
#else
static void leave_caller(struct fiber *fiber)
{
    (void)fiber;
}

static void arrive_caller(struct fiber *fiber)
{
    (void)fiber;
}

static void leave_fiber(struct fiber *fiber)
{
    (void)fiber;
}

static void arrive_fiber(struct fiber *fiber)
{
    (void)fiber;
}

static void forget_stack(struct fiber *fiber)
{
    (void)fiber;
}
#endif

struct fiber_pool *fiber_pool_create(void)
{
    struct fiber_pool *pool = calloc(1, sizeof *pool);
    CHECK(pool != NULL);
    return pool;
}

void fiber_pool_destroy(struct fiber_pool *pool)
{
    while (pool->all != NULL) {
        struct fiber *fiber = pool->all;
        CHECK(fiber->ended);
        pool->all = fiber->next;
        munmap(fiber->stack, STACK_BYTES);
        free(fiber);
    }
    free(pool);
}

/* makecontext passes integers only. */
static void entry(uint32_t high, uint32_t low)
{
    struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | low);

    arrive_fiber(fiber);
    fiber->run(fiber->argument);
    fiber->ended = true;
    leave_fiber(fiber);
    setcontext(&fiber->caller);
    CHECK(false);
}

/* Apart from fiber_create: getcontext may return twice as far as a compiler knows. */
static void set_up(struct fiber *fiber)
{
    uintptr_t self = (uintptr_t)fiber;

    CHECK(getcontext(&fiber->context) == 0);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, (void (*)(void))entry, 2, (uint32_t)(self >> 32), (uint32_t)self);
}

struct fiber *fiber_create(struct fiber_pool *pool, void (*run)(void *argument), void *argument)
{
    struct fiber *fiber = pool->free;

    if (fiber != NULL) {
        pool->free = fiber->next_free;
    } else {
        fiber = calloc(1, sizeof *fiber);
        CHECK(fiber != NULL);
        fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(fiber->stack != MAP_FAILED);
        fiber->pool = pool;
        fiber->next = pool->all;
        pool->all = fiber;
    }
    fiber->run = run;
    fiber->argument = argument;
    fiber->ended = false;
    fiber->fake = NULL;
    set_up(fiber);
    return fiber;
}

void fiber_resume(struct fiber *fiber)
{
    CHECK(!fiber->ended);
    leave_caller(fiber);
    CHECK(swapcontext(&fiber->caller, &fiber->context) == 0);
    arrive_caller(fiber);
    if (fiber->ended) {
        forget_stack(fiber);
        fiber->next_free = fiber->pool->free;
        fiber->pool->free = fiber;
    }
}

void fiber_yield(struct fiber *fiber)
{
    leave_fiber(fiber);
    CHECK(swapcontext(&fiber->context, &fiber->caller) == 0);
    arrive_fiber(fiber);
}
