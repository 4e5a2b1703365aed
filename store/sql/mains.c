/*
 * Main lines of a suite by tier, for its status: counted where the suite is asked for, kept until
 * something of it changes.
 *
 * Whoever waits for a suite asks many times a second, so an open suite is counted once a second.
 */
#include "store/sql/mains.h"

#include "base/units.h"
#include "schemas/scenario_id.h"
#include "store/sql/sql_store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One scenario's main lines in one tier. */
struct mains_case {
    enum tier tier;
    int64_t verdicts[VERDICT_COUNT];
    int64_t no_answer;
};

/* Sums over cases, until the means are taken. */
struct mains_sums {
    int64_t cases; /* also those without a result */
    double rate;
    double worst;
    double best;
};

/* Whether the case has a result. */
static bool add_case(struct store_mains *mains, struct mains_sums *sums,
                     const struct mains_case *at)
{
    double results = 0;
    double passed = (double)at->verdicts[VERDICT_PASS];
    double lacking = (double)at->no_answer;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        mains->verdicts[v] += at->verdicts[v];
        *(verdict_is_result((enum verdict)v) ? &results : &lacking) += (double)at->verdicts[v];
    }
    mains->no_answer += at->no_answer;
    mains->scenarios += results > 0;
    sums->cases++;
    sums->rate += results > 0 ? passed / results : 0;
    sums->worst += passed / (results + lacking);
    sums->best += (passed + lacking) / (results + lacking);
    return results > 0;
}

/* Names of the cases with a result, to count logical scenarios: id by id, they need not follow one
 * another. */
struct mains_names {
    char (*ids)[LIMIT_ID_BYTES];
    uint32_t count;
    uint32_t room;
};

static void add_name(struct mains_names *names, const char id[LIMIT_ID_BYTES])
{
    if (names->count < names->room) { /* a damaged store may have more than it counts */
        memcpy(names->ids[names->count++], id, LIMIT_ID_BYTES);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int64_t count_distinct(struct mains_names *names)
{
    int64_t distinct = names->count > 0;
    if (names->count > 0) {
        qsort(names->ids, names->count, sizeof *names->ids, by_text);
    }
    for (uint32_t i = 1; i < names->count; i++) {
        distinct += strcmp(names->ids[i - 1], names->ids[i]) != 0;
    }
    names->count = 0;
    return distinct;
}

static void read_case(struct query *query, struct mains_case *at, char id[LIMIT_ID_BYTES])
{
    int64_t tier = query_column_int(query, 0);
    at->tier = tier >= 0 && tier < TIER_COUNT ? (enum tier)tier : TIER_REPLAY;
    query_column_text(query, 1, id, LIMIT_ID_BYTES);
    for (int v = 0; v < VERDICT_COUNT; v++) {
        at->verdicts[v] = query_column_int(query, 2 + v);
    }
    at->no_answer = query_column_int(query, 2 + VERDICT_COUNT);
    id[scenario_id_logical_bytes(id)] = '\0';
}

/* Means of a tier whose cases have all been added. */
static void end_tier(struct store_mains *mains, struct mains_sums *sums, struct mains_names *names)
{
    mains->logical = count_distinct(names);
    mains->rate = mains->scenarios > 0 ? sums->rate / (double)mains->scenarios : (double)NAN;
    mains->worst = sums->worst / (double)sums->cases;
    mains->best = sums->best / (double)sums->cases;
    *sums = (struct mains_sums){0};
}

/* `jobs`: of the suite, each with one main line. */
static enum status count_mains(struct db *db, int64_t suite, int64_t jobs,
                               struct store_mains out[TIER_COUNT], struct error *error)
{
    struct mains_sums sums = {0};
    struct mains_names names = {.room = (uint32_t)jobs};
    struct mains_case at = {0};
    enum tier tier = TIER_REPLAY;
    names.ids = calloc((size_t)names.room + 1, sizeof *names.ids);
    TRY(memory_check(names.ids, error, "main lines: out of memory"));
    struct query query = query_begin(db, STATEMENT_MAINS_OF_SUITE);
    query_int(&query, suite);
    while (query_row(&query)) { /* by tier */
        char id[LIMIT_ID_BYTES];
        read_case(&query, &at, id);
        if (at.tier != tier && sums.cases > 0) {
            end_tier(&out[tier], &sums, &names);
        }
        tier = at.tier;
        if (add_case(&out[tier], &sums, &at)) {
            add_name(&names, id);
        }
    }
    enum status status = query_end(&query, error);
    if (sums.cases > 0) {
        end_tier(&out[tier], &sums, &names);
    }
    free(names.ids);
    return status;
}

/* ---- what is kept ---- */

/* Whatever changes main lines changes one of these. */
static void make_key(const struct store_suite_status *status, int64_t key[MAINS_KEY])
{
    key[0] = status->jobs[JOB_DEAD];
    key[1] = status->ticks;
    key[2] = status->metres_mm;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        key[3 + v] = status->rollouts[v];
    }
}

static bool find_kept(struct sql_store *store, int64_t suite, const int64_t key[MAINS_KEY],
                      bool open, struct store_mains out[TIER_COUNT])
{
    bool found = false;
    int64_t now_ns = clock_now_ns(store->clock);
    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < MAINS_KEPT && !found; i++) {
        const struct mains_kept *kept = &store->mains.kept[i];
        bool fresh = kept->suite == suite &&
                     (memcmp(kept->key, key, sizeof kept->key) == 0 ||
                      (open && now_ns >= kept->at_ns && now_ns - kept->at_ns < NS_PER_S));
        if (fresh) {
            memcpy(out, kept->mains, sizeof kept->mains);
            found = true;
        }
    }
    pthread_mutex_unlock(&store->mutex);
    return found;
}

static void keep(struct sql_store *store, int64_t suite, const int64_t key[MAINS_KEY],
                 const struct store_mains mains[TIER_COUNT])
{
    int64_t now_ns = clock_now_ns(store->clock);
    pthread_mutex_lock(&store->mutex);
    size_t at = 0;
    while (at < MAINS_KEPT && store->mains.kept[at].suite != suite) {
        at++;
    }
    at = at < MAINS_KEPT ? at : store->mains.next++ % MAINS_KEPT;
    struct mains_kept *kept = &store->mains.kept[at];
    kept->suite = suite;
    kept->at_ns = now_ns;
    memcpy(kept->key, key, sizeof kept->key);
    memcpy(kept->mains, mains, sizeof kept->mains);
    pthread_mutex_unlock(&store->mutex);
}

enum status mains_read(struct sql_store *store, struct db *db, int64_t suite,
                       struct store_suite_status *status, struct error *error)
{
    int64_t key[MAINS_KEY];
    int64_t jobs = 0;
    bool open = store_jobs_open(status) > 0;
    if (status->planner_count != 1 || status->rollouts_total > STORE_MAINS_ROLLOUTS_MAX) {
        return STATUS_OK;
    }
    make_key(status, key);
    if (find_kept(store, suite, key, open, status->mains)) {
        return STATUS_OK;
    }
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        jobs += status->jobs[state];
    }
    jobs = jobs > 0 && jobs < STORE_MAINS_ROLLOUTS_MAX ? jobs : STORE_MAINS_ROLLOUTS_MAX;
    TRY(count_mains(db, suite, jobs, status->mains, error));
    keep(store, suite, key, status->mains);
    return STATUS_OK;
}
