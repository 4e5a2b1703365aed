/*
 * Claiming. See claim.h for the order; the queries use the partial indexes jobs_ready and
 * jobs_affine, so a claim costs the same whatever the store has grown to.
 */
#include "store/sql/claim.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/units.h"
#include "store/door/door.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLAIM_MOVES = 256 }; /* jobs of frozen slices that one claim moves; the next goes on */

struct claim_call {
    struct sql_store *store;
    const struct store_worker *worker;
    uint32_t max;
    struct job_lease *leases;
    uint32_t count;
    bool holds;     /* tenants_hold */
    bool contended; /* a suite has jobs, but others hold them all at this moment */
    bool seen;      /* the pass of this claim knows all heads as they are now */
    uint32_t moved; /* jobs of frozen slices that went to the teacher instead, and their audits */
    int64_t claim_id;
    int64_t last_id; /* of the worker's last claim that leased jobs */
    int64_t pool;
    int64_t worker_row;
    char *without; /* the worker's list as JSON, owned; NULL: empty */
    struct tally tally;
};

/* ---- queries ---- */

/* The statement, or its variant for a worker that leaves planners alone. */
static struct query claim_query(const struct claim_call *call, enum statement plain,
                                enum statement without)
{
    return query_begin(call->tally.db, call->without == NULL ? plain : without);
}

/* The last parameter of that variant. */
static void claim_without(const struct claim_call *call, struct query *query)
{
    if (call->without != NULL) {
        query_text(query, call->without);
    }
}

/* Returns where the suite's free jobs begin, as far as this transaction has seen; NULL: not known.
 */
static struct claim_place *place_of(const struct claim_call *call, int64_t suite)
{
    struct claim_places *places = &call->store->claim_places;

    if (places->transaction != group_commit_transaction(call->store->group)) {
        return NULL;
    }
    for (uint32_t i = 0; i < places->count; i++) {
        if (places->rows[i].pool == call->pool && places->rows[i].suite == suite) {
            return &places->rows[i];
        }
    }
    return NULL;
}

/* They begin there. A claim that leaves planners alone sees too little to say so. */
static void place_set(const struct claim_call *call, int64_t suite, int64_t priority, int64_t id,
                      bool end)
{
    struct claim_places *places = &call->store->claim_places;
    int64_t transaction = group_commit_transaction(call->store->group);

    if (call->without != NULL || !db_shares(call->tally.db)) {
        return;
    }
    if (places->transaction != transaction) {
        places->transaction = transaction;
        places->count = 0;
    }
    struct claim_place *place = place_of(call, suite);
    if (place == NULL && places->count < CLAIM_PLACES) {
        place = &places->rows[places->count++];
    }
    if (place != NULL) {
        *place = (struct claim_place){
            .pool = call->pool, .suite = suite, .priority = priority, .id = id, .end = end};
    }
}

/* Takes over the limit of the suite's tenant from LIMIT_COLUMNS of a row. *again: the row has to be
 * read once more, since another process may be leasing under the limit. */
static enum status take_limit(struct claim_call *call, const struct turns_account *suite,
                              const int64_t limit[2], bool *again, struct error *error)
{
    *again = limit[0] > 0 && !call->holds && db_shares(call->tally.db);
    turns_limit(&call->store->turns, suite, limit[0], limit[1]);
    call->holds |= *again;
    return *again ? tenants_hold(call->tally.db, error) : STATUS_OK;
}

/* First suite above `after` with claimable jobs (of the prefix, when it is not 0); NULL: none. */
static enum status next_suite(struct claim_call *call, int64_t prefix, int64_t after,
                              struct turns_account **out, struct error *error)
{
    struct turns_account now = {.pool = call->pool};
    int64_t limit[2] = {0, 0};
    int64_t tenant_weight = 1;
    bool again = false;
    struct query query =
        prefix != 0
            ? claim_query(call, STATEMENT_AFFINE_SUITE_NEXT, STATEMENT_AFFINE_SUITE_NEXT_WITHOUT)
            : claim_query(call, STATEMENT_READY_SUITE_NEXT, STATEMENT_READY_SUITE_NEXT_WITHOUT);
    query_int(&query, call->pool);
    if (prefix != 0) {
        query_int(&query, prefix);
    }
    query_int(&query, after);
    claim_without(call, &query);
    *out = NULL;
    if (query_row(&query)) {
        now.id = query_take_int(&query);
        now.weight = query_take_int(&query);
        now.of_class = (enum suite_class)query_take_int(&query);
        now.tenant = query_take_int(&query);
        tenant_weight = query_take_int(&query);
        limit[0] = query_take_int(&query);
        limit[1] = query_take_int(&query);
    }
    TRY(query_end(&query, error));
    if (now.id == 0) {
        return STATUS_OK;
    }
    TRY(turns_suite(&call->store->turns, &now, tenant_weight, out, error));
    TRY(take_limit(call, *out, limit, &again, error));
    return again ? next_suite(call, prefix, after, out, error) : STATUS_OK;
}

/* Cost of the suite's next job and its tenant's limit, 0: none; of those of one priority behind a
 * place, or of all (NULL). */
static enum status read_head(struct claim_call *call, struct turns_account *suite,
                             const struct claim_place *from, int64_t limit[2], struct error *error)
{
    int64_t priority = 0;
    int64_t id = 0;
    struct query query =
        from != NULL ? query_begin(call->tally.db, STATEMENT_READY_HEAD_FROM)
                     : claim_query(call, STATEMENT_READY_HEAD, STATEMENT_READY_HEAD_WITHOUT);

    query_int(&query, call->pool);
    query_int(&query, suite->id);
    if (from != NULL) {
        query_int(&query, from->priority);
        query_int(&query, from->id);
    } else {
        claim_without(call, &query);
    }
    suite->head_cost = 0;
    if (query_row(&query)) {
        uint32_t rollouts = (uint32_t)query_take_int(&query);
        suite->head_cost = turns_cost((enum tier)query_take_int(&query), rollouts);
        limit[0] = query_take_int(&query);
        limit[1] = query_take_int(&query);
        priority = query_take_int(&query);
        id = query_take_int(&query);
    }
    TRY(query_end(&query, error));
    if (suite->head_cost > 0 || from == NULL) {
        place_set(call, suite->id, priority, id, suite->head_cost == 0);
    }
    return STATUS_OK;
}

/* Cost of the suite's next job; 0: none. */
static enum status head_cost(struct claim_call *call, struct turns_account *suite,
                             struct error *error)
{
    int64_t limit[2] = {0, 0};
    bool again = false;
    const struct claim_place *place = place_of(call, suite->id);

    suite->head_cost = 0;
    if (place != NULL && place->end) {
        return STATUS_OK;
    }
    if (place != NULL && call->without == NULL) {
        TRY(read_head(call, suite, place, limit, error));
    }
    if (suite->head_cost == 0) {
        TRY(read_head(call, suite, NULL, limit, error));
    }
    TRY(suite->head_cost > 0 ? take_limit(call, suite, limit, &again, error) : STATUS_OK);
    return again ? head_cost(call, suite, error) : STATUS_OK;
}

/* ---- when attempts were claimed ---- */

enum {
    CLOCKS_APART = 64
}; /* one machine's clock may run faster than another's by a part of this */

int64_t claim_time_ns(const struct sql_store *store)
{
    int64_t wall_ns = clock_wall_ns(store->clock);
    return wall_ns > 1 ? wall_ns : 1;
}

int64_t claim_billable_ns(struct sql_store *store, int64_t job_id, int64_t claimed_ns,
                          int64_t asked_ns)
{
    bool known = claimed_ns > 0;
    int64_t age_ns = known ? claim_time_ns(store) - claimed_ns : 0;
    age_ns = age_ns > 0 ? age_ns : 0;
    int64_t most_ns = known ? age_ns + age_ns / CLOCKS_APART + store->bill_slack_ns : 0;
    if (asked_ns <= most_ns) {
        return asked_ns;
    }
    store->bills_capped++;
    if ((store->bills_capped & (store->bills_capped - 1)) == 0) { /* the 1st, 2nd, 4th, 8th .. */
        log_event(store->logger, LOG_WARNING,
                  "job %" PRId64 ": its worker asked for %.3f s of device time %.3f s after it had "
                  "claimed the job%s; no more than that is charged (so far for %" PRIu64 " bills)",
                  job_id, (double)asked_ns / (double)NS_PER_S, (double)age_ns / (double)NS_PER_S,
                  known ? "" : " at a time that is not known", store->bills_capped);
    }
    return most_ns;
}

static enum status lease_row(struct claim_call *call, const struct job_lease *lease,
                             struct error *error)
{
    struct query query = query_begin(call->tally.db, STATEMENT_JOB_LEASE);

    query_int(&query, lease->job_id);
    query_int(&query, lease->epoch);
    query_int(&query, lease->attempt);
    query_int(&query, call->worker_row);
    query_int(&query, call->claim_id);
    query_int(&query, claim_time_ns(call->store));
    return query_send(&query, error);
}

/* A row of STATEMENT_READY_RUN, and of those with the same columns. */
static void lease_read(struct query *query, struct job_lease *lease)
{
    memset(lease, 0, sizeof *lease);
    record_read(query, RECORD_LEASE, lease);
}

/* So many units of the suite's jobs are leased now: see tenants_units. */
static enum status count_units(struct claim_call *call, const struct turns_account *suite,
                               int64_t units, struct error *error)
{
    if (units > 0 && turns_limited(&call->store->turns, suite)) {
        return tenants_units(call->tally.db, suite->tenant, false, units, error);
    }
    return tenants_count(&call->tally, suite->tenant, false, units, error);
}

/* In the suite's turn, while its deficit covers them and the prefix stays that of the first; of one
 * prefix, into debt; or for whom others made way, whatever the accounts say. */
enum taking { TAKE_TURN, TAKE_AFFINE, TAKE_OWED };

/* Takes the suite's next jobs, in order of priority and age, as long as it may. *prefix: of the
 * last one taken. */
static enum status take_run(struct claim_call *call, struct turns_account *row, int64_t *prefix,
                            enum taking how, struct error *error)
{
    const struct turns *turns = &call->store->turns;
    const bool affine = how == TAKE_AFFINE;
    uint32_t first = call->count;
    int64_t head_cost = 0; /* of the first job that is left */
    struct claim_place *from = affine || call->without != NULL ? NULL : place_of(call, row->id);
    struct query query =
        affine         ? claim_query(call, STATEMENT_AFFINE_RUN, STATEMENT_AFFINE_RUN_WITHOUT)
        : from != NULL ? query_begin(call->tally.db, STATEMENT_READY_RUN_FROM)
                       : claim_query(call, STATEMENT_READY_RUN, STATEMENT_READY_RUN_WITHOUT);

    query_int(&query, call->pool);
    query_int(&query, row->id);
    query_int(&query, call->max - call->count);
    if (affine) {
        query_int(&query, *prefix);
    }
    if (from != NULL) {
        query_int(&query, from->priority);
        query_int(&query, from->id);
    }
    claim_without(call, &query);
    while (call->count < call->max && query_row(&query)) {
        struct job_lease *lease = &call->leases[call->count];
        lease_read(&query, lease);
        int64_t own_prefix = query_take_int(&query);
        int64_t cost = turns_cost(lease->spec.tier, lease->spec.rollout_count);
        bool fits = affine             ? turns_may_borrow(turns, row, cost)
                    : how == TAKE_OWED ? turns_has_room(turns, row, cost)
                                       : turns_fits(turns, row, cost);
        if (!fits || (how == TAKE_TURN && call->count > first && own_prefix != *prefix)) {
            head_cost = cost;
            break;
        }
        lease->epoch++;
        lease->attempt++;
        turns_take(&call->store->turns, row, cost);
        *prefix = own_prefix;
        call->count++;
        if (from != NULL) {
            from->id = lease->job_id + 1;
        }
    }
    row->head_cost = head_cost;
    int64_t suite = row->id;
    int64_t units = 0;
    uint32_t taken = call->count;
    call->count = first;
    TRY(query_end(&query, error));
    for (uint32_t i = first; i < taken; i++) {
        bool gone = false;
        struct job_lease *lease = &call->leases[call->count];
        *lease = call->leases[i];
        int64_t cost = turns_cost(lease->spec.tier, lease->spec.rollout_count);
        TRY(freezes_obey(call->store, &call->tally, lease->job_id, &lease->spec, &gone, error));
        if (gone) { /* nobody's yet: it waits where teachers claim; or an audit of such a one */
            call->moved++;
            call->seen = false;
            turns_take(&call->store->turns, row, -cost);
            continue;
        }
        call->count++;
        units += turns_cost(lease->spec.tier, lease->spec.rollout_count);
        TRY(lease_row(call, lease, error));
        TRY(tally_move(&call->tally, suite, call->pool, JOB_QUEUED, JOB_LEASED, error));
        pace_lease(&call->store->paces, suite, call->pool, lease->spec.tier, 1,
                   clock_now_ns(call->store->clock));
    }
    return count_units(call, row, units, error);
}

/* ---- order ---- */

static enum status take_affine(struct claim_call *call, int64_t prefix, struct error *error)
{
    struct turns_account *row = NULL;
    TRY(next_suite(call, prefix, 0, &row, error));
    call->seen &= row == NULL;

    while (row != NULL && call->count < call->max && call->moved < CLAIM_MOVES) {
        TRY(take_run(call, row, &prefix, TAKE_AFFINE, error));
        TRY(next_suite(call, prefix, row->id, &row, error));
    }
    return STATUS_OK;
}

/* Takes no look at the suite's next job: there is no limit, and nobody else leases. */
static bool pays_alone(const struct claim_call *call, const struct turns_account *suite)
{
    return suite->tenant == 0 && !db_shares(call->tally.db);
}

/* The suite whose turn it is; NULL: nothing is claimable. */
static enum status choose_suite(struct claim_call *call, struct turns_account **chosen,
                                struct error *error)
{
    struct turns *turns = &call->store->turns;
    struct turns_account *row = turns_served(turns, call->pool);

    if (call->seen) {
        *chosen = turns_next(turns, call->pool, call->without == NULL);
        return STATUS_OK;
    }
    if (row != NULL && !pays_alone(call, row)) {
        TRY(head_cost(call, row, error));
        if (row->head_cost > 0 && turns_fits(turns, row, row->head_cost)) {
            *chosen = row;
            return STATUS_OK;
        }
    }
    turns_pass(turns, call->pool);
    TRY(next_suite(call, 0, 0, &row, error));
    while (row != NULL) {
        TRY(head_cost(call, row, error));
        call->contended |= row->head_cost == 0;
        TRY(next_suite(call, 0, row->id, &row, error));
    }
    call->seen = !db_shares(call->tally.db);
    /* Others may find what this claim does not see, where it leaves planners alone. */
    *chosen = turns_next(turns, call->pool, call->without == NULL);
    return STATUS_OK;
}

/* Takes what the suite that is being served can pay for, of one that pays alone. */
static enum status take_served(struct claim_call *call, int64_t *prefix, struct error *error)
{
    struct turns_account *row = call->seen ? NULL : turns_served(&call->store->turns, call->pool);
    return row != NULL && pays_alone(call, row) && turns_fits(&call->store->turns, row, 1)
               ? take_run(call, row, prefix, TAKE_TURN, error)
               : STATUS_OK;
}

/* Takes the jobs for which others made way. */
static enum status take_owed(struct claim_call *call, struct error *error)
{
    struct handback_owed *owed = call->store->owed;
    struct handback_owed *at = handback_owed_next(owed, call->pool, NULL);
    const uint32_t max = call->max;
    enum status status = STATUS_OK;
    for (; at != NULL && status == STATUS_OK && call->count < max && call->moved < CLAIM_MOVES;
         at = handback_owed_next(owed, call->pool, at)) {
        struct turns_account *row = NULL;
        int64_t prefix = 0;
        uint32_t before = call->count;
        call->max = at->jobs < max - before ? before + (uint32_t)at->jobs : max;
        status = next_suite(call, 0, at->suite - 1, &row, error);
        if (status == STATUS_OK && row != NULL && row->id == at->suite) {
            status = take_run(call, row, &prefix, TAKE_OWED, error);
        }
        at->jobs = call->count > before ? at->jobs - (call->count - before) : 0;
    }
    call->max = max;
    return status;
}

static enum status take_jobs(struct claim_call *call, int64_t *prefix, struct error *error)
{
    int64_t tried = 0;
    enum status status = take_owed(call, error);
    while (status == STATUS_OK && call->count < call->max && call->moved < CLAIM_MOVES) {
        if (*prefix != 0 && *prefix != tried) {
            tried = *prefix;
            status = take_affine(call, *prefix, error);
            continue;
        }
        struct turns_account *row = NULL;
        uint32_t before = call->count + call->moved;
        status = take_served(call, prefix, error);
        if (status != STATUS_OK || call->count + call->moved > before) {
            continue;
        }
        status = choose_suite(call, &row, error);
        if (status != STATUS_OK || row == NULL) {
            break;
        }
        status = take_run(call, row, prefix, TAKE_TURN, error);
        /* Beside others the suite's next job may be another one by now, and a dearer one. */
        CHECK(status != STATUS_OK || call->count + call->moved > before ||
              db_shares(call->tally.db));
    }
    call->store->held |= turns_held(&call->store->turns, call->pool);
    return status;
}

/* Jobs of shadows, the oldest first. No suite's account pays for them. */
static enum status take_shadows(struct claim_call *call, struct error *error)
{
    struct query query = claim_query(call, STATEMENT_SHADOW_RUN, STATEMENT_SHADOW_RUN_WITHOUT);
    query_int(&query, call->pool);
    query_int(&query, call->max);
    claim_without(call, &query);
    for (; call->count < call->max && query_row(&query); call->count++) {
        lease_read(&query, &call->leases[call->count]);
        call->leases[call->count].epoch++;
        call->leases[call->count].attempt++;
    }
    TRY(query_end(&query, error));
    for (uint32_t i = 0; i < call->count; i++) {
        TRY(lease_row(call, &call->leases[i], error));
    }
    return STATUS_OK;
}

/* Leases new jobs, and keeps the claim's id with them. */
static enum status take_new(struct claim_call *call, int64_t *prefix, struct error *error)
{
    enum status status = take_jobs(call, prefix, error);

    THEN(status, call->count == 0 ? take_shadows(call, error) : STATUS_OK);

    if (status == STATUS_OK && call->count > 0) {
        struct query query = query_begin(call->tally.db, STATEMENT_WORKER_CLAIM);
        query_int(&query, call->worker_row);
        query_int(&query, call->claim_id);
        status = query_send(&query, error);
        call->last_id = call->claim_id;
    }
    return status;
}

/* The leases that the claim made and that have not ended. */
static enum status find_leases(struct claim_call *call, struct error *error)
{
    bool more = false;
    struct query query = query_begin(call->tally.db, STATEMENT_CLAIM_LEASES);

    query_int(&query, call->worker_row);
    query_int(&query, call->claim_id);
    while (!more && query_row(&query)) {
        more = call->count == call->max;
        if (!more) {
            lease_read(&query, &call->leases[call->count++]);
        }
    }
    enum status status = query_end(&query, error);
    if (status == STATUS_OK && more) {
        status = error_set(error, STATUS_CONFLICT,
                           "claim %" PRId64 " of worker \"%s\" leased more jobs than %" PRIu32
                           "; it is repeated for as many as before",
                           call->claim_id, call->worker->worker_id, call->max);
    }
    return status;
}

/* ---- the call ---- */

static enum status worker_row(struct claim_call *call, struct db *db, struct error *error)
{
    const struct store_worker *worker = call->worker;
    char device[LIMIT_ID_BYTES] = "";
    struct store_holder holder = {.known = false};
    int64_t pool = 0;
    int64_t price = 0;
    struct query query = query_begin(db, STATEMENT_WORKER_FIND);

    call->worker_row = 0;
    call->last_id = 0;
    query_text(&query, worker->worker_id);
    if (query_row(&query)) {
        call->worker_row = query_take_int(&query);
        pool = query_take_int(&query);
        query_take_text(&query, device, sizeof device);
        call->last_id = query_take_int(&query);
        lease_holder_read(&query, 4, &holder);
    }
    TRY(query_end(&query, error));
    if (call->worker_row != 0) {
        if (pool != call->pool || strcmp(device, worker->device) != 0) {
            return error_set(error, STATUS_CONFLICT,
                             "worker \"%s\" is known with another pool or device (%s); each worker "
                             "process needs an id of its own",
                             worker->worker_id, device);
        }
        return lease_holder_check(worker, &holder, error);
    }
    /* Its later work has to be billed. */
    TRY(ledger_price(db, worker->pool, worker->device, &price, error));
    struct query insert = query_begin(db, STATEMENT_WORKER_INSERT);
    query_text(&insert, worker->worker_id);
    query_int(&insert, call->pool);
    query_text(&insert, worker->device);
    query_text(&insert, worker->holder_name);
    query_text(&insert, worker->host);
    query_text(&insert, worker->holder);
    enum status status = query_run(&insert, error);
    call->worker_row = db_last_id(db);
    return status;
}

static enum status claim_op(struct db *db, void *context, struct error *error)
{
    struct claim_call *call = context;
    struct sql_store *store = call->store;
    int64_t until_ns = clock_now_ns(store->clock) + store->lease_ttl_ns;
    struct lease *lease = NULL;

    call->count = call->moved = 0;
    call->holds = call->contended = call->seen = false;
    freezes_begin(store);
    tally_init(&call->tally, db, store->clock);
    TRY(record_pool_id(db, call->worker->pool, &call->pool, error));
    TRY(worker_row(call, db, error));
    bool again = call->claim_id <= call->last_id;
    if (again) {
        TRY(find_leases(call, error));
    }
    TRY(lease_renew(store, db, call->worker, until_ns, &lease, error));
    group_commit_sweep_by(store->group, until_ns);
    enum status status = again ? STATUS_OK : take_new(call, &lease->prefix, error);
    if (status != STATUS_OK) { /* what it took is free again */
        store->claim_places.transaction = 0;
    }
    return status;
}

static enum status claim_finish(struct db *db, void *context, struct error *error)
{
    struct claim_call *call = context;

    (void)db;
    return tally_flush(&call->tally, error);
}

/* NULL: the list is empty, or memory ran out. */
static char *without_text(const struct store_worker *worker)
{
    json_t *list = worker->without_count > 0 ? json_array() : NULL;
    for (uint32_t i = 0; list != NULL && i < worker->without_count; i++) {
        const struct store_planner *one = &worker->without[i];
        json_array_append_new(list, one->in_world
                                        ? json_pack("[ssissss]", one->planner, one->planner_hash,
                                                    (int)one->tier, one->model_hash, one->sampler,
                                                    one->backend, one->revision)
                                        : json_pack("[ss]", one->planner, one->planner_hash));
    }
    char *text = list != NULL && json_array_size(list) == worker->without_count
                     ? json_dumps(list, JSON_COMPACT)
                     : NULL;
    json_decref(list);
    return text;
}

/* Jobs that others lock while they claim, and leave, are free when that ends; nobody is told. */
#define CONTENDED_WAIT_NS (50 * NS_PER_MS)

/* Until jobs became claimable since *generation, or `until_ns`. False: the store is closing. */
static bool wait_ready(struct sql_store *store, uint64_t *generation, int64_t until_ns)
{
    struct timespec at = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    bool waiting = true;

    pthread_mutex_lock(&store->mutex);
    while (waiting && store->ready_generation == *generation && !store->closing) {
        waiting = pthread_cond_timedwait(&store->ready, &store->mutex, &at) == 0;
    }
    *generation = store->ready_generation;
    bool closing = store->closing;
    pthread_mutex_unlock(&store->mutex);
    return !closing;
}

void claim_claimable_wait(struct store *base, uint64_t *generation, int64_t wait_ms)
{
    struct sql_store *store = sql_store_of(base);

    if (sql_store_enter(store, NULL) == STATUS_OK) {
        wait_ready(store, generation, wait_ms > 0 ? clock_monotonic_ns() + wait_ms * NS_PER_MS : 0);
        sql_store_leave(store);
    }
}

enum status claim_jobs(struct store *base, const struct store_worker *worker, int64_t *claim_id,
                       uint32_t max, int64_t wait_ms, struct job_lease *leases, uint32_t *count,
                       int64_t *ttl_ms, struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    struct claim_call call = {.store = store, .worker = worker, .leases = leases};
    enum status status = door_worker(worker, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (max < 1 || wait_ms < 0) {
        return error_set(error, STATUS_BAD_INPUT, "a claim is for at least one job");
    }
    if (*claim_id < 1 || *claim_id == INT64_MAX) {
        return error_set(error, STATUS_BAD_INPUT,
                         "a worker counts its claims from 1, found claim %" PRId64, *claim_id);
    }
    call.claim_id = *claim_id;
    call.max = max < LIMIT_CLAIM_JOBS ? max : LIMIT_CLAIM_JOBS;
    wait_ms = wait_ms < 24 * 3600 * 1000 ? wait_ms : 24 * 3600 * 1000;
    int64_t deadline_ns = clock_monotonic_ns() + wait_ms * NS_PER_MS;
    TRY(sql_store_enter(store, error));
    call.without = without_text(worker);
    if (call.without == NULL && worker->without_count > 0) {
        sql_store_leave(store);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a claim");
    }
    uint64_t generation = 0;
    wait_ready(store, &generation, 0);
    for (int tries = 0;; tries++) {
        status = sql_store_run_beside(store, claim_op, claim_finish, true, 0, &call, error);
        int64_t now_ns = clock_monotonic_ns();
        bool late = now_ns >= deadline_ns && (tries > 0 || !call.contended);
        if (status != STATUS_OK || call.last_id >= call.claim_id || late) {
            break;
        }
        /* Short of the deadline, a third of the lease: then the next try renews it. */
        int64_t until_ns = now_ns + (call.contended ? CONTENDED_WAIT_NS : store->lease_ttl_ns / 3);
        until_ns = now_ns < deadline_ns && deadline_ns < until_ns ? deadline_ns : until_ns;
        if (!wait_ready(store, &generation, until_ns)) {
            break;
        }
    }
    sql_store_leave(store);
    free(call.without);
    if (status == STATUS_OK) {
        *count = call.count;
        *claim_id = call.last_id >= call.claim_id ? call.last_id + 1 : call.claim_id;
        *ttl_ms = store->lease_ttl_ns / NS_PER_MS;
    }
    return status;
}
