/*
 * Accounts of suites and tenants. See turns.h.
 */
#include "store/turns/turns.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { NOBODY = 0 }; /* whose ring tenants are in */

/* A mine may have a hundred thousand jobs: whoever waits at a screen passes by it, and it goes on.
 */
static const struct {
    int64_t weight;
    int64_t wait;
} classes[SUITE_CLASS_COUNT] = {
    [SUITE_REGRESSION] = {4, 96},
    [SUITE_INTERACTIVE] = {8, 48},
    [SUITE_MINING] = {1, 256},
};

static enum suite_class class_of(enum suite_class said)
{
    return said > SUITE_CLASS_SAME && said < SUITE_CLASS_COUNT ? said : SUITE_REGRESSION;
}

int64_t turns_class_weight(enum suite_class of)
{
    return classes[class_of(of)].weight;
}

int64_t turns_class_wait(enum suite_class of)
{
    return classes[class_of(of)].wait;
}

void turns_finish(struct turns *turns)
{
    free(turns->suites.rows);
    free(turns->classes.rows);
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
    row->ring = now->ring;
    row->of_class = now->of_class;
    row->weight = now->weight;
    *out = row;
    return STATUS_OK;
}

static bool belongs(const struct turns_account *row, int64_t pool, int64_t ring)
{
    return row->pool == pool && row->ring == ring;
}

static struct turns_account *served_of(const struct turns_list *list, int64_t pool, int64_t ring)
{
    for (size_t i = 0; i < list->count; i++) {
        if (belongs(&list->rows[i], pool, ring) && list->rows[i].served) {
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
static struct turns_account *candidate(const struct turns_list *list, int64_t pool, int64_t ring,
                                       int64_t start, int64_t *rounds)
{
    struct turns_account *best = served_of(list, pool, ring);

    *rounds = 0;
    if (best != NULL && best->head_cost > 0 && best->deficit >= best->head_cost) {
        return best;
    }
    best = NULL;
    for (size_t i = 0; i < list->count; i++) {
        struct turns_account *row = &list->rows[i];
        if (!belongs(row, pool, ring) || row->head_cost == 0) {
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
static void play(const struct turns_list *list, int64_t pool, int64_t ring, int64_t start,
                 const struct turns_account *best, int64_t rounds)
{
    for (size_t i = 0; rounds > 0 && i < list->count; i++) {
        struct turns_account *row = &list->rows[i];
        if (!belongs(row, pool, ring)) {
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

static int64_t start_of(const struct turns_list *list, int64_t pool, int64_t ring)
{
    const struct turns_account *served = served_of(list, pool, ring);
    return served != NULL ? served->id : 0;
}

/* ---- accounts ---- */

/* Suites and classes of different tenants have different ids. */
static int64_t class_id(int64_t tenant, enum suite_class of)
{
    return tenant * SUITE_CLASS_COUNT + (int64_t)of;
}

enum status turns_suite(struct turns *turns, const struct turns_account *now, int64_t tenant_weight,
                        struct turns_account **out, struct error *error)
{
    enum suite_class of = class_of(now->of_class);
    const struct turns_account tenant = {.pool = now->pool,
                                         .id = now->tenant,
                                         .tenant = now->tenant,
                                         .ring = NOBODY,
                                         .weight = tenant_weight};
    const struct turns_account class = {.pool = now->pool,
                                        .id = class_id(now->tenant, of),
                                        .tenant = now->tenant,
                                        .ring = now->tenant,
                                        .of_class = of,
                                        .weight = turns_class_weight(of)};
    struct turns_account suite = *now;
    struct turns_account *row = NULL;
    suite.of_class = of;
    suite.ring = class.id;
    TRY(set(&turns->tenants, &tenant, &row, error));
    row->waiting = true;
    bool comes = find(&turns->classes, now->pool, class.id) == NULL;
    TRY(set(&turns->classes, &class, &row, error));
    row->passed = comes && of == SUITE_INTERACTIVE ? turns_class_wait(of) : row->passed;
    row->waiting = true;
    row->barred = false;
    return set(&turns->suites, &suite, out, error);
}

struct turns_account *turns_served(struct turns *turns, int64_t pool)
{
    const struct turns_account *tenant =
        turns->news ? NULL : served_of(&turns->tenants, pool, NOBODY);
    const struct turns_account *class =
        tenant != NULL ? served_of(&turns->classes, pool, tenant->id) : NULL;
    return class != NULL ? served_of(&turns->suites, pool, class->id) : NULL;
}

/* The account of this id, if others of its ring wait beside it; else NULL: it does not count. */
static struct turns_account *beside_others(const struct turns_list *list, int64_t pool,
                                           int64_t ring, int64_t id)
{
    struct turns_account *own = NULL;
    bool alone = true;
    for (size_t i = 0; i < list->count; i++) {
        struct turns_account *row = &list->rows[i];
        if (belongs(row, pool, ring)) {
            own = row->id == id ? row : own;
            alone &= row->id == id || !row->waiting;
        }
    }
    return alone ? NULL : own;
}

static struct turns_account *tenant_of(const struct turns *turns, const struct turns_account *suite)
{
    return beside_others(&turns->tenants, suite->pool, NOBODY, suite->tenant);
}

static struct turns_account *class_beside(const struct turns *turns,
                                          const struct turns_account *suite)
{
    return beside_others(&turns->classes, suite->pool, suite->tenant, suite->ring);
}

/* The class of a tenant that has waited its bound, the longest beyond it; NULL: none has. */
static struct turns_account *overdue(const struct turns *turns, int64_t pool, int64_t tenant)
{
    struct turns_account *first = NULL;
    int64_t most = -1;
    for (size_t i = 0; i < turns->classes.count; i++) {
        struct turns_account *row = &turns->classes.rows[i];
        int64_t beyond = row->passed - turns_class_wait(row->of_class);
        if (belongs(row, pool, tenant) && row->waiting && !row->barred && beyond > most) {
            first = row;
            most = beyond;
        }
    }
    return first;
}

/* Whether another class of its tenant may wait no longer. */
static bool gives_way(const struct turns *turns, const struct turns_account *suite)
{
    const struct turns_account *first = overdue(turns, suite->pool, suite->tenant);
    return first != NULL && first->id != suite->ring;
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

/* Whether somebody of its tenant waits at a screen who could be served: nobody passes by him out of
 * turn. */
static bool is_awaited(const struct turns *turns, const struct turns_account *suite)
{
    const struct turns_list *list = &turns->classes;
    bool awaited = false;
    for (size_t i = 0; i < list->count && suite->of_class != SUITE_INTERACTIVE; i++) {
        const struct turns_account *row = &list->rows[i];
        awaited |= belongs(row, suite->pool, suite->tenant) && row->waiting && !row->barred &&
                   row->of_class == SUITE_INTERACTIVE && row->deficit > 0;
    }
    return awaited;
}

bool turns_has_room(const struct turns *turns, const struct turns_account *suite, int64_t cost)
{
    const struct turns_account *under = limited(turns, suite);
    return under == NULL || has_room(under, cost);
}

bool turns_fits(const struct turns *turns, const struct turns_account *suite, int64_t cost)
{
    const struct turns_account *tenant = tenant_of(turns, suite);
    const struct turns_account *class = class_beside(turns, suite);
    return suite->deficit >= cost && (class == NULL || class->deficit >= cost) &&
           (tenant == NULL || tenant->deficit >= cost) && turns_has_room(turns, suite, cost) &&
           !gives_way(turns, suite);
}

bool turns_may_borrow(const struct turns *turns, const struct turns_account *suite, int64_t cost)
{
    const struct turns_account *tenant = tenant_of(turns, suite);
    const struct turns_account *class = class_beside(turns, suite);
    return suite->deficit > -TURNS_DEBT * quantum(suite) &&
           (class == NULL || class->deficit > -TURNS_DEBT * quantum(class)) &&
           (tenant == NULL || tenant->deficit > -TURNS_DEBT * quantum(tenant)) &&
           turns_has_room(turns, suite, cost) && !turns->news && !is_awaited(turns, suite) &&
           !gives_way(turns, suite);
}

/* Counts a job that passed by the tenant's other classes, or (`back`) that did not after all. */
static void pass_by(struct turns *turns, const struct turns_account *suite, bool back)
{
    for (size_t i = 0; i < turns->classes.count; i++) {
        struct turns_account *row = &turns->classes.rows[i];
        if (!belongs(row, suite->pool, suite->tenant)) {
            continue;
        }
        if (row->id == suite->ring) {
            row->passed = 0;
        } else if (row->waiting) {
            row->passed += back ? -(row->passed > 0) : 1;
        }
    }
}

void turns_take(struct turns *turns, struct turns_account *suite, int64_t cost)
{
    struct turns_account *tenant = tenant_of(turns, suite);
    struct turns_account *class = class_beside(turns, suite);
    struct turns_account *under = limited(turns, suite);
    suite->deficit -= cost;
    pass_by(turns, suite, cost < 0);
    if (class != NULL) {
        class->deficit -= cost;
    }
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
    struct turns_list *lists[] = {&turns->suites, &turns->classes, &turns->tenants};
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < lists[k]->count; i++) {
            if (lists[k]->rows[i].pool == pool) {
                lists[k]->rows[i].head_cost = 0;
            }
        }
    }
}

/* The class that a tenant's turn comes to, which may be one that has waited its bound. */
static struct turns_account *class_next(const struct turns *turns, int64_t pool, int64_t tenant,
                                        int64_t *rounds)
{
    const struct turns_list *list = &turns->classes;
    struct turns_account *first = overdue(turns, pool, tenant);
    *rounds = 0;
    return first != NULL ? first
                         : candidate(list, pool, tenant, start_of(list, pool, tenant), rounds);
}

static void find_class_heads(struct turns *turns, int64_t pool, bool whole)
{
    const struct turns_list *suites = &turns->suites;
    for (size_t i = 0; i < turns->classes.count; i++) {
        struct turns_account *class = &turns->classes.rows[i];
        int64_t rounds = 0;
        if (class->pool != pool) {
            continue;
        }
        const struct turns_account *next =
            candidate(suites, pool, class->id, start_of(suites, pool, class->id), &rounds);
        class->head_cost = next != NULL ? next->head_cost : 0;
        class->waiting = class->head_cost > 0 || (class->waiting && !whole);
        class->barred = class->head_cost == 0;
        class->passed = class->waiting ? class->passed : 0;
    }
}

static void find_tenant_heads(struct turns *turns, int64_t pool, bool whole)
{
    for (size_t i = 0; i < turns->tenants.count; i++) {
        struct turns_account *tenant = &turns->tenants.rows[i];
        int64_t rounds = 0;
        if (tenant->pool != pool) {
            continue;
        }
        const struct turns_account *next = class_next(turns, pool, tenant->id, &rounds);
        tenant->held = next != NULL && !has_room(tenant, next->head_cost);
        tenant->head_cost = next != NULL && !tenant->held ? next->head_cost : 0;
        tenant->waiting = tenant->head_cost > 0 || (tenant->waiting && !whole && !tenant->held);
    }
}

/* The one that is alone with jobs in its ring, whose account is closed; NULL: there are several. */
static struct turns_account *alone(const struct turns_list *list, int64_t pool, int64_t ring)
{
    struct turns_account *last = NULL;
    uint32_t waiting = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct turns_account *row = &list->rows[i];
        if (belongs(row, pool, ring)) {
            waiting += row->waiting;
            last = row->head_cost > 0 ? row : last;
        }
    }
    if (waiting != 1 || last == NULL) {
        return NULL;
    }
    last->deficit = 0;
    last->served = true;
    return last;
}

/* Whose turn it is in a ring, its next job paid for; NULL: none has a job. */
static struct turns_account *play_ring(const struct turns_list *list, int64_t pool, int64_t ring)
{
    int64_t rounds = 0;
    int64_t start = start_of(list, pool, ring);
    struct turns_account *next = candidate(list, pool, ring, start, &rounds);
    play(list, pool, ring, start, next, rounds);
    return next;
}

/* Serves a class that has waited its bound: it has its visit now, and on credit that nobody asks
 * back what its next job costs beyond that. */
static struct turns_account *serve_overdue(struct turns *turns, int64_t pool, int64_t tenant)
{
    struct turns_account *first = overdue(turns, pool, tenant);
    if (first == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < turns->classes.count; i++) {
        struct turns_account *row = &turns->classes.rows[i];
        row->served = belongs(row, pool, tenant) ? row == first : row->served;
    }
    first->deficit += quantum(first);
    first->deficit = first->deficit > first->head_cost ? first->deficit : first->head_cost;
    return first;
}

struct turns_account *turns_next(struct turns *turns, int64_t pool, bool whole)
{
    struct turns_account *class = NULL;
    struct turns_account *suite = NULL;
    find_class_heads(turns, pool, whole);
    find_tenant_heads(turns, pool, whole);
    struct turns_account *tenant = alone(&turns->tenants, pool, NOBODY);
    if (tenant == NULL) {
        tenant = play_ring(&turns->tenants, pool, NOBODY);
    }
    if (tenant != NULL) {
        class = alone(&turns->classes, pool, tenant->id);
        class = class != NULL ? class : serve_overdue(turns, pool, tenant->id);
        class = class != NULL ? class : play_ring(&turns->classes, pool, tenant->id);
    }
    suite = class != NULL ? play_ring(&turns->suites, pool, class->id) : NULL;
    turns->news = false;
    if (whole) {
        int64_t chosen = suite != NULL ? suite->id : 0;
        prune(&turns->suites, pool);
        prune(&turns->classes, pool);
        prune(&turns->tenants, pool);
        suite = find(&turns->suites, pool, chosen);
    }
    return suite;
}
