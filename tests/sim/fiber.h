/*
 * Fibers: stacks that take turns on one thread, so that code that blocks (a link that waits for an
 * answer) can run inside a simulation that owns time. A fiber runs until it yields or ends.
 */
#ifndef SWERVE_TESTS_SIM_FIBER_H
#define SWERVE_TESTS_SIM_FIBER_H

struct fiber_pool;
struct fiber;

/* Keeps stacks for reuse. Aborts when memory runs out, like everything here. */
struct fiber_pool *fiber_pool_create(void);
/* No fiber may be between its start and its end. */
void fiber_pool_destroy(struct fiber_pool *pool);

/* Does not run it yet. The fiber goes back to the pool when `run` returns. */
struct fiber *fiber_create(struct fiber_pool *pool, void (*run)(void *argument), void *argument);
/* Runs it until it yields or ends; from outside of fibers only. */
void fiber_resume(struct fiber *fiber);
/* Inside the fiber: back to who resumed it. */
void fiber_yield(struct fiber *fiber);

#endif
