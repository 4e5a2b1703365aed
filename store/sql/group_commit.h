/*
 * Group commit: one thread at a time that writes.
 *
 * Callers hand in an operation and wait. The writer takes everything that has queued up meanwhile
 * (bounded), runs it in ONE transaction with a savepoint per operation, commits once, and wakes
 * the callers. So the price of an fsync is shared by everybody who waits for one, and a failing
 * operation takes nothing with it. Who finds the writer idle is the writer for as long as its own
 * operation takes: a lone caller pays for no other thread.
 *
 * Invariants: an operation that answered OK is on the disk; one that failed left no trace. After
 * the disk has failed (I/O error, damaged file) nobody knows what is on it, so every later
 * operation is refused until the store is opened again. Nothing is acknowledged when the files have
 * been replaced meanwhile (hooks.intact).
 */
#ifndef SWERVE_STORE_SQLITE_GROUP_COMMIT_H
#define SWERVE_STORE_SQLITE_GROUP_COMMIT_H

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "store/api/store.h"
#include "store/sql/sqlite_db.h"

#include <stdbool.h>
#include <stdint.h>

struct group_commit;

/* Runs on the writer's thread inside a transaction. May run twice (when the group it was part of
 * had to be undone), so it writes only what it owns and starts afresh each time. */
typedef enum status (*group_operation)(struct db *db, void *context, struct error *error);

struct group_commit_hooks {
    void *context; /* borrowed */
    /* Work that time makes due (leases that end, backoffs that are over); called at the start of
     * each group, in a transaction of its own. Sets *next_ns to the time of the next one, INT64_MAX
     * for never. */
    enum status (*sweep)(struct db *db, void *context, int64_t now_ns, int64_t *next_ns,
                         struct error *error);
    /* After each sweep: whether what it did is in the database. NULL: not
     * asked. */
    void (*swept)(void *context, bool committed);
    /* STATUS_OK as long as what is written goes where everybody will look for it; asked before and
     * after each commit, and of what fails, with the pages that the last commit left in the log.
     * NULL: not asked. */
    enum status (*intact)(void *context, int log_pages, struct error *error);
    /* Before each commit, in its transaction. NULL: not asked. */
    enum status (*committing)(struct db *db, void *context, struct error *error);
    /* After each commit, on the writer's thread, before the callers wake. */
    void (*committed)(void *context);
    /* The writer did not listen to anybody for stalled_ns (one long group). */
    void (*stalled)(void *context, int64_t stalled_ns);
    int checkpoint_pages; /* pages of the log after which it is copied back; 0: 1,000 */
};

/* Takes over the connection for writing until destroy (which does not close it). */
enum status group_commit_create(struct db *db, const struct clock *clock,
                                const struct logger *logger, const struct group_commit_hooks *hooks,
                                struct group_commit **out, struct error *error);
/* The same without a thread: each operation is a group of its own and runs on its caller's thread,
 * so that what happens depends on the calls and the clock alone. For one thread; time that passes
 * makes nothing happen until the next operation or group_commit_tick. */
enum status group_commit_create_stepped(struct db *db, const struct clock *clock,
                                        const struct logger *logger,
                                        const struct group_commit_hooks *hooks,
                                        struct group_commit **out, struct error *error);
/* Stepped only: does what time has made due. */
void group_commit_tick(struct group_commit *group);
/* Accepts NULL. Finishes what is queued; nobody may call group_commit_run any more. */
void group_commit_destroy(struct group_commit *group);

/* Any thread but from within an operation or a hook. Returns when the operation is durable or has
 * failed. */
enum status group_commit_run(struct group_commit *group, group_operation run, void *context,
                             struct error *error);

/* The same for an operation that bears those of other processes beside it (see db_shares), in two
 * parts: `finish`, which may be NULL, does what they have to do one after the other. In a group the
 * first parts of all go in front of the second ones. `takes`: it takes rows that
 * are free, behind the operations of the group that wait for rows of their own. What it passes over
 * on the way may stay locked, another process's jobs among it; were it first, two groups could wait
 * for each other. `jobs`: that it ends. One without any is short and goes in front of those that
 * wait; of them each group takes some, however many come. A group ends so many jobs at most, so
 * that nobody waits for long. */
enum status group_commit_run_beside(struct group_commit *group, group_operation run,
                                    group_operation finish, bool takes, uint32_t jobs,
                                    void *context, struct error *error);

/* The writer, inside a transaction: runs a part of it in a savepoint of its own, so that a part
 * that fails (*status) leaves no trace and takes nothing with it. False: the transaction is gone.
 */
bool group_commit_nested(struct db *db, group_operation run, void *context, enum status *status,
                         struct error *error);

/* Number of the transaction that the writer is in or had last. The writer only. */
int64_t group_commit_transaction(const struct group_commit *group);

/* Fills the members of *out that count groups, commits and what waits; any thread. */
void group_commit_stats(struct group_commit *group, struct store_stats *out);

/* The sweep must look again at `due_ns` at the latest. The writer only (operations, hooks). */
void group_commit_sweep_by(struct group_commit *group, int64_t due_ns);

#endif
