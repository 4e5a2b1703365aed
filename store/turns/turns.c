/*
 * Accounts of suites and tenants. See turns.h.
 */
#include "store/turns/turns.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { ANY_TENANT = -1 };

void turns_finish(struct turns *turns)
{
    free(turns->suites.rows);
    free(turns->tenants.rows);
    memset(turns, 0, sizeof *turns);
}

int64_t turns_cost(enum tier tier, int64_t rollouts)
{
    int64_t units = tier == TIER_TEACHER   ? TURNS_UNITS_TEACHER
                    : tier == TIER_STUDENT ? TURNS_UNITS_STUDENT
                                           : 1;
    return units * rollouts;
}

/* ---- lists ---- */

static struct turns_account *find(const struct turns_list *list, int64_t pool, int64_t id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].pool == pool && list->rows[i].id == id) {
            return &list->rows[i];
        }
    }
    return NULL;
}

static enum status set(struct turns_list *list, const struct turns_account *now,
                       struct turns_account **out, struct error *error)
{
    struct turns_account *row = find(list, now->pool, now->id);
    if (row == NULL) {
        TRY(array_room(&list->rows, list->count, sizeof *list->rows, error));
        row = &list->rows[list->count++];
        *row = (struct turns_account){.pool = now->pool, .id = now->id};
    }
    row->tenant = now->tenant;
    row->weight = now->weight;
    *out = row;
    return STATUS_OK;
}

static bool belongs(const struct turns_account *row, int64_t pool, int64_t tenant)
{
    return row->pool == pool && (tenant == ANY_TENANT || row->tenant == tenant);
}

static struct turns_account *served_of(const struct turns_list *list, int64_t pool, int64_t tenant)
{
    for (size_t i = 0; i < list->count; i++) {
        if (belongs(&list->rows[i], pool, tenant) && list->rows[i].served) {
            return &list->rows[i];
        }
    }
    return NULL;
}

/* Drops the pool's accounts that were not seen in this pass: they have nothing to claim. */
static void prune(struct turns_list *list, int64_t pool)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].pool != pool || list->rows[i].head_cost > 0 || list->rows[i].held) {
            list->rows[kept++] = list->rows[i];
        }
    }
    list->count = kept;
}

/* ---- a round-robin ---- */

static int64_t quantum(const struct turns_account *row)
{
    return TURNS_QUANTUM * row->weight;
}

/* Visits that are needed before the next job fits: at least one. */
static int64_t rounds_needed(const struct turns_account *row)
{
    int64_t missing = row->head_cost - row->deficit;
    int64_t rounds = (missing + quantum(row) - 1) / quantum(row);
    return rounds < 1 ? 1 : rounds;
}

/* Whether the ring, going on behind `start`, meets a before b. */
static bool ring_before(int64_t start, int64_t a, int64_t b)
{
    bool a_wraps = a <= start;
    bool b_wraps = b <= start;
    return a_wraps != b_wraps ? b_wraps : a < b;
}

/* Who comes next: the one that is served, while it can pay, else who can first. NULL: none has a
 * job. *rounds: those that are played until then. */
static struct turns_account *candidate(const struct turns_list *list, int64_t pool, int64_t tenant,
                                       int64_t start, int64_t *rounds)
{
    struct turns_account *best = served_of(list, pool, tenant);

    *rounds = 0;
    if (best != NULL && best->head_cost > 0 && best->deficit >= best->head_cost) {
        return best;
    }
    best = NULL;
    for (size_t i = 0; i < list->count; i++) {
        struct turns_account *row = &list->rows[i];
        if (!belongs(row, pool, tenant) || row->head_cost == 0) {
            continue;
        }
        int64_t needed = rounds_needed(row);
        if (best == NULL || needed < *rounds ||
            (needed == *rounds && ring_before(start, row->id, best->id))) {
            best = row;
            *rounds = needed;
        }
    }
    return best;
}

/* Plays the rounds, all at once, until `best` can pay; it is served now. */
static void play(struct turns_list *list, int64_t pool, int64_t tenant, int64_t start,
                 const struct turns_account *best, int64_t rounds)
{
    for (size_t i = 0; rounds > 0 && i < list->count; i++) {
        struct turns_account *row = &list->rows[i];
        if (!belongs(row, pool, tenant)) {
            continue;
        }
        if (row->head_cost == 0) {
            row->served = false; /* this claim takes none of its jobs: it keeps its account */
        } else {
            bool visited = row == best || ring_before(start, row->id, best->id);
            row->deficit += quantum(row) * (visited ? rounds : rounds - 1);
            row->served = row == best;
        }
    }
}

static int64_t start_of(const struct turns_list *list, int64_t pool, int64_t tenant)
{
    const struct turns_account *served = served_of(list, pool, tenant);
    return served != NULL ? served->id : 0;
}

/* ---- accounts ---- */

enum status turns_suite(struct turns *turns, const struct turns_account *now, int64_t tenant_weight,
                        struct turns_account **out, struct error *error)
{
    const struct turns_account tenant = {
        .pool = now->pool, .id = now->tenant, .tenant = now->tenant, .weight = tenant_weight};
    struct turns_account *row = NULL;
    TRY(set(&turns->tenants, &tenant, &row, error));
    row->waiting = true;
    return set(&turns->suites, now, out, error);
}

struct turns_account *turns_served(struct turns *turns, int64_t pool)
{
    const struct turns_account *tenant = served_of(&turns->tenants, pool, ANY_TENANT);
    return tenant != NULL ? served_of(&turns->suites, pool, tenant->id) : NULL;
}

/* The suite's tenant, if others wait beside it; else NULL: its account does not count. */
static struct turns_account *tenant_of(const struct turns *turns, const struct turns_account *suite)
{
    struct turns_account *own = NULL;
    bool alone = true;
    for (size_t i = 0; i < turns->tenants.count; i++) {
        struct turns_account *row = &turns->tenants.rows[i];
        if (row->pool == suite->pool) {
            own = row->id == suite->tenant ? row : own;
            alone &= row->id == suite->tenant || !row->waiting;
        }
    }
    return alone ? NULL : own;
}

/* Is there room for a job under the tenant's limit? */
static bool has_room(const struct turns_account *tenant, int64_t cost)
{
    return tenant->units_max == 0 || tenant->units == 0 ||
           cost <= tenant->units_max - tenant->units;
}

static struct turns_account *limited(const struct turns *turns, const struct turns_account *suite)
{
    struct turns_account *own = find(&turns->tenants, suite->pool, suite->tenant);
    return own != NULL && own->units_max > 0 ? own : NULL;
}

void turns_limit(struct turns *turns, const struct turns_account *suite, int64_t units_max,
                 int64_t units)
{
    struct turns_account *own = find(&turns->tenants, suite->pool, suite->tenant);
    if (own != NULL) {
        own->units_max = units_max;
        own->units = units;
    }
}

bool turns_limited(const struct turns *turns, const struct turns_account *suite)
{
    return limited(turns, suite) != NULL;
}

bool turns_held(const struct turns *turns, int64_t pool)
{
    bool held = false;
    for (size_t i = 0; i < turns->tenants.count && !held; i++) {
        held = turns->tenants.rows[i].pool == pool && turns->tenants.rows[i].held;
    }
    return held;
}

bool turns_fits(const struct turns *turns, const struct turns_account *suite, int64_t cost)
{
    const struct turns_account *tenant = tenant_of(turns, suite);
    const struct turns_account *under = limited(turns, suite);
    return suite->deficit >= cost && (tenant == NULL || tenant->deficit >= cost) &&
           (under == NULL || has_room(under, cost));
}

bool turns_may_borrow(const struct turns *turns, const struct turns_account *suite, int64_t cost)
{
    const struct turns_account *tenant = tenant_of(turns, suite);
    const struct turns_account *under = limited(turns, suite);
    return suite->deficit > -TURNS_DEBT * quantum(suite) &&
           (tenant == NULL || tenant->deficit > -TURNS_DEBT * quantum(tenant)) &&
           (under == NULL || has_room(under, cost));
}

void turns_take(struct turns *turns, struct turns_account *suite, int64_t cost)
{
    struct turns_account *tenant = tenant_of(turns, suite);
    struct turns_account *under = limited(turns, suite);
    suite->deficit -= cost;
    if (tenant != NULL) {
        tenant->deficit -= cost;
    }
    if (under != NULL) {
        under->units += cost;
    }
}

/* ---- a pass ---- */

void turns_pass(struct turns *turns, int64_t pool)
{
    struct turns_list *lists[] = {&turns->suites, &turns->tenants};
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < lists[k]->count; i++) {
            if (lists[k]->rows[i].pool == pool) {
                lists[k]->rows[i].head_cost = 0;
            }
        }
    }
}

/* The pool's tenants get the next jobs that their suites' turns come to. Returns the one that is
 * alone with jobs, whose account is closed; NULL: there are several. */
static struct turns_account *find_heads(struct turns *turns, int64_t pool, bool whole)
{
    struct turns_account *last = NULL;
    uint32_t waiting = 0;
    for (size_t i = 0; i < turns->tenants.count; i++) {
        struct turns_account *tenant = &turns->tenants.rows[i];
        int64_t rounds = 0;
        if (tenant->pool != pool) {
            continue;
        }
        const struct turns_account *next = candidate(
            &turns->suites, pool, tenant->id, start_of(&turns->suites, pool, tenant->id), &rounds);
        tenant->held = next != NULL && !has_room(tenant, next->head_cost);
        tenant->head_cost = next != NULL && !tenant->held ? next->head_cost : 0;
        tenant->waiting = tenant->head_cost > 0 || (tenant->waiting && !whole && !tenant->held);
        waiting += tenant->waiting;
        last = tenant->head_cost > 0 ? tenant : last;
    }
    if (waiting != 1 || last == NULL) {
        return NULL;
    }
    last->deficit = 0;
    last->served = true;
    return last;
}

struct turns_account *turns_next(struct turns *turns, int64_t pool, bool whole)
{
    int64_t rounds = 0;
    int64_t start = start_of(&turns->tenants, pool, ANY_TENANT);
    struct turns_account *tenant = find_heads(turns, pool, whole);
    struct turns_account *suite = NULL;
    if (tenant == NULL) {
        tenant = candidate(&turns->tenants, pool, ANY_TENANT, start, &rounds);
        play(&turns->tenants, pool, ANY_TENANT, start, tenant, rounds);
    }
    if (tenant != NULL) {
        start = start_of(&turns->suites, pool, tenant->id);
        suite = candidate(&turns->suites, pool, tenant->id, start, &rounds);
        play(&turns->suites, pool, tenant->id, start, suite, rounds);
    }
    if (whole) {
        int64_t chosen = suite != NULL ? suite->id : 0;
        prune(&turns->suites, pool);
        prune(&turns->tenants, pool);
        suite = find(&turns->suites, pool, chosen);
    }
    return suite;
}
