/*
 * The writer. See group_commit.h.
 *
 * Queues: singly linked lists of operations that live on their callers' stacks; the mutex guards
 * the lists, the `finished` flags, `stop` and `writing`, nothing else. Everything below `writer_`
 * runs on the thread that set `writing`: the writer's own, or that of a caller who found nobody
 * writing, nothing queued and no log to be copied, which saves two hand-overs. What comes meanwhile
 * is the thread's. It copies the log: a caller who overtook it each time would let the log grow.
 */
#include "store/sql/group_commit.h"

#include "base/check.h"
#include "base/units.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GROUP_MAX = 256,         /* operations of one transaction .. */
    GROUP_PROMPT_MAX = 192,  /* .. of which so many at most go in front */
    GROUP_JOBS_MAX = 1024,   /* that the operations of one transaction end, but for its first */
    CHECKPOINT_PAGES = 1000, /* log pages after which the log is copied into the database, and
                                further ones before the next try when readers held it up */
};

#define SWEEP_RETRY_NS (1 * NS_PER_S)
#define STALL_NS (100 * NS_PER_MS)

const uint32_t store_stats_group_bounds[STORE_STATS_BUCKETS - 1] = {1,  2,  4,   8,  16,
                                                                    32, 64, 128, 255};
const int64_t store_stats_commit_bounds_ns[STORE_STATS_BUCKETS - 1] = {
    100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 50000000, 250000000};

struct operation {
    struct operation *next;
    group_operation run;
    group_operation finish; /* NULL: nothing is left to do */
    bool beside;
    bool takes;    /* see group_commit_run_beside */
    uint32_t jobs; /* the same; 0: it goes in front */
    void *context;
    enum status status;
    struct error error;
    bool finished;
    pthread_cond_t wake;
};

struct queue {
    struct operation *head;
    struct operation **tail;
};

struct group_commit {
    struct db *db;
    const struct clock *clock;
    const struct logger *logger;
    struct group_commit_hooks hooks;
    bool stepped; /* there is no thread: whoever calls is the writer */

    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    struct queue prompt; /* claims and heartbeats, which are short */
    struct queue rest;
    bool stop;
    bool writing;             /* one thread is the writer now .. */
    bool awaited;             /* .. and the writer's own waits for its end */
    bool copies;              /* the log is due to be copied */
    struct store_stats stats; /* groups and commits so far */

    /* of whoever is the writer */
    int64_t transaction; /* their number */
    int64_t sweep_ns;
    int64_t asleep_ns;    /* the sweep that the thread waits for */
    int checkpoint_pages; /* of the log, at which the next one is due */
    struct operation *group[GROUP_MAX];
};

/* ---- queues ---- */

static void queue_add(struct queue *queue, struct operation *operation)
{
    *queue->tail = operation;
    queue->tail = &operation->next;
}

static int64_t queue_count(const struct queue *queue)
{
    int64_t count = 0;
    for (const struct operation *at = queue->head; at != NULL; at = at->next) {
        count++;
    }
    return count;
}

static bool is_idle(const struct group_commit *group)
{
    return group->prompt.head == NULL && group->rest.head == NULL;
}

/* Takes operations into the group, of which `count` are there: `max` at the most, and none beyond
 * the jobs of one transaction. */
static size_t take(struct group_commit *group, struct queue *queue, size_t count, size_t max)
{
    uint32_t jobs = 0;

    while (queue->head != NULL && count < max &&
           (jobs == 0 || jobs + queue->head->jobs <= GROUP_JOBS_MAX)) {
        jobs += queue->head->jobs;
        group->group[count++] = queue->head;
        queue->head = queue->head->next;
    }
    if (queue->head == NULL) {
        queue->tail = &queue->head;
    }
    return count;
}

/* ---- one transaction ---- */

static enum status writer_usable(const struct group_commit *group, struct error *error)
{
    return !db_failed(group->db)
               ? STATUS_OK
               : error_set(error, STATUS_STORE,
                           "the store has stopped writing because its disk failed earlier; check "
                           "the disk and open the store again (what was acknowledged is kept)");
}

static enum status writer_look(struct group_commit *group, struct error *error)
{
    return group->hooks.intact != NULL
               ? group->hooks.intact(group->hooks.context, db_wal_pages(group->db), error)
               : STATUS_OK;
}

/* OK: the next transaction may be written, and the last one is where it should be. */
static enum status writer_intact(struct group_commit *group, struct error *error)
{
    TRY(writer_usable(group, error));
    return writer_look(group, error);
}

/* Ends a transaction without keeping it. */
static void writer_rollback(struct group_commit *group)
{
    struct error error;

    /* SQLite ends the transaction by itself on some errors. */
    if (db_in_transaction(group->db) &&
        query_simple(group->db, STATEMENT_ROLLBACK, &error) != STATUS_OK) {
        log_event(group->logger, LOG_ERROR, "rollback: %s", error.text);
    }
}

/* A transaction that could not be undone for want of memory is undone before the next. */
static enum status writer_begin(struct group_commit *group, bool beside, struct error *error)
{
    if (db_in_transaction(group->db)) {
        TRY(query_simple(group->db, STATEMENT_ROLLBACK, error));
    }
    group->transaction++;
    return query_simple(group->db, beside ? STATEMENT_BEGIN_BESIDE : STATEMENT_BEGIN, error);
}

static void count_commit(struct group_commit *group, int64_t ns)
{
    size_t bucket = 0;

    while (bucket < STORE_STATS_BUCKETS - 1 && ns > store_stats_commit_bounds_ns[bucket]) {
        bucket++;
    }
    pthread_mutex_lock(&group->mutex);
    group->stats.commit_buckets[bucket]++;
    group->stats.commits++;
    group->stats.commit_ns += ns;
    pthread_mutex_unlock(&group->mutex);
}

static void count_group(struct group_commit *group, size_t operations)
{
    size_t bucket = 0;

    while (bucket < STORE_STATS_BUCKETS - 1 && operations > store_stats_group_bounds[bucket]) {
        bucket++;
    }
    pthread_mutex_lock(&group->mutex);
    group->stats.group_buckets[bucket]++;
    group->stats.groups++;
    group->stats.operations += (int64_t)operations;
    pthread_mutex_unlock(&group->mutex);
}

int64_t group_commit_transaction(const struct group_commit *group)
{
    return group->transaction;
}

void group_commit_stats(struct group_commit *group, struct store_stats *out)
{
    pthread_mutex_lock(&group->mutex);
    out->groups = group->stats.groups;
    out->operations = group->stats.operations;
    out->commits = group->stats.commits;
    out->commit_ns = group->stats.commit_ns;
    memcpy(out->group_buckets, group->stats.group_buckets, sizeof out->group_buckets);
    memcpy(out->commit_buckets, group->stats.commit_buckets, sizeof out->commit_buckets);
    out->waiting = 0;
    out->waiting += queue_count(&group->prompt) + queue_count(&group->rest);
    pthread_mutex_unlock(&group->mutex);
}

static enum status writer_commit(struct group_commit *group, struct error *error)
{
    int64_t start_ns = clock_now_ns(clock_system());
    enum status status = writer_intact(group, error);

    if (status == STATUS_OK && group->hooks.committing != NULL) {
        status = group->hooks.committing(group->db, group->hooks.context, error);
    }
    THEN(status, query_simple(group->db, STATEMENT_COMMIT, error));
    if (status != STATUS_OK) {
        writer_rollback(group);
        return status;
    }
    count_commit(group, clock_now_ns(clock_system()) - start_ns);
    return writer_intact(group, error);
}

static enum status run_finish(struct db *db, struct operation *operation, struct error *error)
{
    return operation->finish != NULL ? operation->finish(db, operation->context, error) : STATUS_OK;
}

/* A group_operation: both parts of one, or the first where the second waits for those of others. */
static enum status run_operation(struct db *db, void *context, struct error *error)
{
    struct operation *operation = context;
    TRY(operation->run(db, operation->context, error));
    return db_shares(db) ? STATUS_OK : run_finish(db, operation, error);
}

/* One operation in a transaction of its own. */
static void writer_run_alone(struct group_commit *group, struct operation *operation)
{
    struct error *error = &operation->error;

    operation->status = writer_usable(group, error);
    THEN(operation->status, writer_begin(group, operation->beside, error));
    THEN(operation->status, operation->run(group->db, operation->context, error));
    THEN(operation->status, run_finish(group->db, operation, error));
    if (operation->status == STATUS_OK) {
        operation->status = writer_commit(group, error);
        return;
    }
    writer_rollback(group);
    struct error lost;
    enum status found = writer_look(group, &lost);
    if (found != STATUS_OK) { /* which is why it failed, or why its answer is of no use */
        operation->status = found;
        *error = lost;
    }
}

bool group_commit_nested(struct db *db, group_operation run, void *context, enum status *status,
                         struct error *error)
{
    struct error ignored;

    *status = query_simple(db, STATEMENT_SAVEPOINT, error);
    if (*status != STATUS_OK) {
        return false;
    }
    *status = run(db, context, error);
    if (db_failed(db) || !db_in_transaction(db)) {
        return false;
    }
    if (*status != STATUS_OK && query_simple(db, STATEMENT_ROLLBACK_TO, &ignored) != STATUS_OK) {
        return false;
    }
    return query_simple(db, STATEMENT_RELEASE, &ignored) == STATUS_OK;
}

/* All operations in one transaction. False: it had to be undone, none of them counts. */
static bool writer_run_together(struct group_commit *group, size_t count, struct error *error)
{
    bool beside = true;

    for (size_t i = 0; i < count; i++) {
        beside &= group->group[i]->beside;
    }
    if (writer_begin(group, beside, error) != STATUS_OK) {
        return false;
    }
    for (size_t i = 0; i < 2 * count; i++) {
        struct operation *operation = group->group[i % count];
        bool last = operation->takes && db_shares(group->db);
        if (last == (i >= count) && !group_commit_nested(group->db, run_operation, operation,
                                                         &operation->status, &operation->error)) {
            *error = operation->error;
            writer_rollback(group);
            return false;
        }
    }
    for (size_t i = 0; i < count && db_shares(group->db); i++) {
        struct operation *operation = group->group[i];
        if (operation->status == STATUS_OK &&
            run_finish(group->db, operation, error) != STATUS_OK) {
            writer_rollback(group);
            return false;
        }
    }
    return writer_commit(group, error) == STATUS_OK;
}

static void writer_run_group(struct group_commit *group, size_t count)
{
    struct error error = {.status = STATUS_OK};

    if (count > 1 && !db_failed(group->db)) {
        if (writer_run_together(group, count, &error)) {
            return;
        }
        log_event(group->logger, LOG_WARNING, "a group of %zu operations was undone: %s", count,
                  error.text);
    }
    /* Alone, each gets its own answer. After a disk failure that is a refusal. */
    for (size_t i = 0; i < count; i++) {
        writer_run_alone(group, group->group[i]);
    }
}

/* ---- time ---- */

struct sweep_call {
    struct group_commit *group;
    int64_t now_ns;
    int64_t next_ns;
};

static enum status run_sweep(struct db *db, void *context, struct error *error)
{
    struct sweep_call *call = context;
    struct group_commit_hooks *hooks = &call->group->hooks;

    call->next_ns = INT64_MAX;
    return hooks->sweep(db, hooks->context, call->now_ns, &call->next_ns, error);
}

static void writer_sweep(struct group_commit *group)
{
    int64_t now_ns = clock_now_ns(group->clock);
    struct sweep_call call = {.group = group, .now_ns = now_ns};
    struct operation operation = {.run = run_sweep, .context = &call};

    if (now_ns < group->sweep_ns || db_failed(group->db)) {
        return;
    }
    group->sweep_ns = INT64_MAX; /* before the call: it may lower it */
    writer_run_alone(group, &operation);
    if (group->hooks.swept != NULL) {
        group->hooks.swept(group->hooks.context, operation.status == STATUS_OK);
    }
    if (operation.status == STATUS_OK) {
        group_commit_sweep_by(group, call.next_ns);
        group->hooks.committed(group->hooks.context);
    } else {
        log_event(group->logger, LOG_ERROR, "sweep: %s", operation.error.text);
        group_commit_sweep_by(group, now_ns + SWEEP_RETRY_NS);
    }
}

void group_commit_sweep_by(struct group_commit *group, int64_t due_ns)
{
    if (due_ns < group->sweep_ns) {
        group->sweep_ns = due_ns;
    }
}

/* Whether writer_checkpoint has something to do. */
static bool checkpoint_due(const struct group_commit *group)
{
    int pages = db_wal_pages(group->db);
    int step = group->hooks.checkpoint_pages;
    return pages < step ? group->checkpoint_pages != step : pages >= group->checkpoint_pages;
}

static void writer_checkpoint(struct group_commit *group)
{
    struct error error;
    int pages = db_wal_pages(group->db);
    int step = group->hooks.checkpoint_pages;

    if (pages < step) {
        group->checkpoint_pages = step; /* the log was reset */
        return;
    }
    if (pages < group->checkpoint_pages || writer_intact(group, &error) != STATUS_OK) {
        return;
    }
    group->checkpoint_pages = pages + step;
    if (db_checkpoint(group->db, &error) != STATUS_OK) {
        log_event(group->logger, LOG_ERROR, "checkpoint: %s", error.text);
    }
}

/* ---- the thread ---- */

/* Real time until the sweep is due by the store's clock, as an absolute CLOCK_MONOTONIC time. */
static struct timespec sweep_deadline(const struct group_commit *group)
{
    int64_t wait_ns = group->sweep_ns - clock_now_ns(group->clock);

    wait_ns = wait_ns < 0 ? 0 : wait_ns > 3600 * NS_PER_S ? 3600 * NS_PER_S : wait_ns;
    return clock_moment_in(wait_ns);
}

/* Waits for work or time, while nobody else writes. Returns how many operations were taken; *stop:
 * none will come. */
static size_t writer_take(struct group_commit *group, bool *stop)
{
    size_t count = 0;

    pthread_mutex_lock(&group->mutex);
    while (group->writing || (is_idle(group) && !group->stop && !group->copies)) {
        if (group->writing) {
            group->awaited = true;
            pthread_cond_wait(&group->work, &group->mutex);
            continue;
        }
        struct timespec at = sweep_deadline(group);
        group->asleep_ns = group->sweep_ns;
        if (pthread_cond_timedwait(&group->work, &group->mutex, &at) != 0 && !group->writing) {
            break;
        }
    }
    group->writing = true;
    group->copies = false;
    count = take(group, &group->prompt, count, GROUP_PROMPT_MAX);
    count = take(group, &group->rest, count, GROUP_MAX);
    *stop = group->stop && count == 0;
    pthread_mutex_unlock(&group->mutex);
    return count;
}

/* Wakes the thread only where there is something for it to do. */
static void writer_leave(struct group_commit *group, bool copies)
{
    pthread_mutex_lock(&group->mutex);
    group->writing = false;
    group->copies |= copies;
    if (!is_idle(group) || group->stop || group->copies || group->awaited ||
        group->sweep_ns < group->asleep_ns) {
        pthread_cond_signal(&group->work);
    }
    group->awaited = false;
    pthread_mutex_unlock(&group->mutex);
}

static void writer_wake(struct group_commit *group, size_t count)
{
    pthread_mutex_lock(&group->mutex);
    for (size_t i = 0; i < count; i++) {
        group->group[i]->finished = true;
        pthread_cond_signal(&group->group[i]->wake);
    }
    pthread_mutex_unlock(&group->mutex);
}

/* A stretch in which the writer listens to nobody, by the store's clock and by the machine's: they
 * differ where time is simulated, and then the smaller one counts. */
struct stretch {
    int64_t start_ns;
    int64_t start_real_ns;
};

static struct stretch stretch_begin(const struct group_commit *group)
{
    return (struct stretch){.start_ns = clock_now_ns(group->clock),
                            .start_real_ns = group->stepped ? 0 : clock_now_ns(clock_system())};
}

static void stretch_end(struct group_commit *group, const struct stretch *stretch)
{
    int64_t ns = clock_now_ns(group->clock) - stretch->start_ns;
    int64_t real_ns = group->stepped ? ns : clock_now_ns(clock_system()) - stretch->start_real_ns;
    int64_t stalled_ns = ns < real_ns ? ns : real_ns;

    if (stalled_ns > STALL_NS) {
        group->hooks.stalled(group->hooks.context, stalled_ns);
    }
}

static void writer_work(struct group_commit *group, size_t count, bool sweep)
{
    struct stretch working = stretch_begin(group);

    if (sweep) {
        writer_sweep(group);
    }
    if (count > 0) {
        writer_run_group(group, count);
        count_group(group, count);
        group->hooks.committed(group->hooks.context);
    }
    stretch_end(group, &working);
}

static void writer_copy(struct group_commit *group)
{
    struct stretch copying = stretch_begin(group);

    writer_checkpoint(group);
    stretch_end(group, &copying);
}

static void *writer_main(void *context)
{
    struct group_commit *group = context;
    bool stop = false;

    while (!stop) {
        size_t count = writer_take(group, &stop);
        writer_work(group, count, !stop);
        writer_wake(group, count);
        writer_copy(group);
        writer_leave(group, false);
    }
    return NULL;
}

static struct group_commit *create(struct db *db, const struct clock *clock,
                                   const struct logger *logger,
                                   const struct group_commit_hooks *hooks, bool stepped,
                                   struct error *error)
{
    struct group_commit *group = calloc(1, sizeof *group);

    if (group == NULL) {
        error_set(error, STATUS_NO_MEMORY, "out of memory for the store's writer");
        return NULL;
    }
    group->db = db;
    group->clock = clock;
    group->logger = logger;
    group->hooks = *hooks;
    group->stepped = stepped;
    group->prompt.tail = &group->prompt.head;
    group->rest.tail = &group->rest.head;
    group->sweep_ns = 0; /* once at the start */
    if (group->hooks.checkpoint_pages == 0) {
        group->hooks.checkpoint_pages = CHECKPOINT_PAGES;
    }
    group->checkpoint_pages = group->hooks.checkpoint_pages;
    pthread_mutex_init(&group->mutex, NULL);
    clock_condition_init(&group->work);
    return group;
}

static void destroy(struct group_commit *group)
{
    pthread_cond_destroy(&group->work);
    pthread_mutex_destroy(&group->mutex);
    free(group);
}

enum status group_commit_create(struct db *db, const struct clock *clock,
                                const struct logger *logger, const struct group_commit_hooks *hooks,
                                struct group_commit **out, struct error *error)
{
    struct group_commit *group = create(db, clock, logger, hooks, false, error);

    if (group == NULL) {
        return STATUS_NO_MEMORY;
    }
    *out = group; /* before the thread: its hooks may look at it */
    if (pthread_create(&group->thread, NULL, writer_main, group) != 0) {
        *out = NULL;
        destroy(group);
        return error_set(error, STATUS_NO_MEMORY, "cannot start the store's writer thread");
    }
    return STATUS_OK;
}

enum status group_commit_create_stepped(struct db *db, const struct clock *clock,
                                        const struct logger *logger,
                                        const struct group_commit_hooks *hooks,
                                        struct group_commit **out, struct error *error)
{
    struct group_commit *group = create(db, clock, logger, hooks, true, error);

    if (group == NULL) {
        return STATUS_NO_MEMORY;
    }
    *out = group;
    return STATUS_OK;
}

void group_commit_tick(struct group_commit *group)
{
    CHECK(group->stepped);
    writer_work(group, 0, true);
    writer_copy(group);
}

void group_commit_destroy(struct group_commit *group)
{
    if (group == NULL) {
        return;
    }
    if (!group->stepped) {
        pthread_mutex_lock(&group->mutex);
        group->stop = true;
        pthread_cond_signal(&group->work);
        pthread_mutex_unlock(&group->mutex);
        pthread_join(group->thread, NULL);
    }
    destroy(group);
}

/* Runs the operation where nobody is writing; else queues it and waits for its end, so it may live
 * on its caller's stack. */
static void run_or_wait(struct group_commit *group, struct operation *operation)
{
    pthread_mutex_lock(&group->mutex);
    CHECK(!group->stop);
    if (!group->writing && is_idle(group) && !group->copies) {
        group->writing = true;
        pthread_mutex_unlock(&group->mutex);
        group->group[0] = operation;
        writer_work(group, 1, true);
        writer_leave(group, checkpoint_due(group));
        return;
    }
    queue_add(operation->jobs == 0 ? &group->prompt : &group->rest, operation);
    pthread_cond_signal(&group->work);
    while (!operation->finished) {
        pthread_cond_wait(&operation->wake, &group->mutex);
    }
    pthread_mutex_unlock(&group->mutex);
}

static enum status run_queued(struct group_commit *group, struct operation operation,
                              struct error *error)
{

    if (group->stepped) {
        group->group[0] = &operation;
        writer_work(group, 1, true);
        writer_copy(group);
    } else {
        pthread_cond_init(&operation.wake, NULL);
        run_or_wait(group, &operation);
        pthread_cond_destroy(&operation.wake);
    }
    if (operation.status != STATUS_OK && error != NULL) {
        *error = operation.error;
    }
    return operation.status;
}

enum status group_commit_run(struct group_commit *group, group_operation run, void *context,
                             struct error *error)
{
    return run_queued(group, (struct operation){.run = run, .context = context, .jobs = 1}, error);
}

enum status group_commit_run_beside(struct group_commit *group, group_operation run,
                                    group_operation finish, bool takes, uint32_t jobs,
                                    void *context, struct error *error)
{
    return run_queued(group,
                      (struct operation){.run = run,
                                         .finish = finish,
                                         .beside = true,
                                         .takes = takes,
                                         .jobs = jobs,
                                         .context = context},
                      error);
}
