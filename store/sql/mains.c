/*
 * Main lines of a suite by planner and tier, for its status: counted where the suite is asked for,
 * kept until something of it changes.
 *
 * Whoever waits for a suite asks many times a second, so an open suite is counted once a second,
 * and a large one so that counting takes a tenth of the time at most. The database groups by
 * scenario; what is held here is eight bytes for each, to count logical ones.
 */
#include "store/sql/mains.h"

#include "base/array.h"
#include "base/sha256.h"
#include "base/units.h"
#include "schemas/scenario_id.h"
#include "store/api/share.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <stdlib.h>
#include <string.h>

enum { PAUSE_TIMES = 10 }; /* counting takes a tenth of the time */

/* Sums of one planner in one tier, until the means are taken. */
struct mains_sums {
    struct share share;
    uint64_t *logical; /* owned: hashes of logical scenarios with a result; id by id, they need not
                        * follow one another */
    size_t count;
};

static uint64_t hash_of(const char *id, size_t bytes)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    uint64_t out;
    sha256_init(&hash);
    sha256_update(&hash, id, bytes);
    sha256_final(&hash, digest);
    memcpy(&out, digest, sizeof out);
    return out;
}

/* Takes one scenario's main lines, columns 2 and on. */
static enum status add_case(struct query *query, struct store_mains *mains, struct mains_sums *sums,
                            struct error *error)
{
    char id[LIMIT_ID_BYTES];
    double results = 0;
    const int64_t lines[] = {query_column_int(query, 3 + VERDICT_COUNT),
                             query_column_int(query, 4 + VERDICT_COUNT),
                             query_column_int(query, 5 + VERDICT_COUNT)};
    double lacking = (double)(lines[0] + lines[1] + lines[2]);
    query_column_text(query, 2, id, sizeof id);
    for (int v = 0; v < VERDICT_COUNT; v++) {
        int64_t ended = query_column_int(query, 3 + v);
        mains->verdicts[v] += ended;
        *(verdict_is_result((enum verdict)v) ? &results : &lacking) += (double)ended;
    }
    mains->no_answer += lines[0];
    mains->cancelled += lines[1];
    mains->waiting += lines[2];
    double passed = (double)query_column_int(query, 3 + VERDICT_PASS);
    if (!share_add(&sums->share, passed, results, lacking)) {
        return STATUS_OK;
    }
    TRY(array_room(&sums->logical, sums->count, sizeof *sums->logical, error));
    sums->logical[sums->count++] = hash_of(id, scenario_id_logical_bytes(id));
    return STATUS_OK;
}

static int by_hash(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Means of what has been added; the sums begin anew. */
static void end_row(struct store_mains *mains, struct mains_sums *sums)
{
    if (sums->count > 0) {
        qsort(sums->logical, sums->count, sizeof *sums->logical, by_hash);
    }
    for (size_t i = 0; i < sums->count; i++) {
        mains->logical += i == 0 || sums->logical[i] != sums->logical[i - 1];
    }
    mains->scenarios = sums->share.cases;
    mains->rate = share_value(&sums->share);
    mains->worst = share_worst(&sums->share);
    mains->best = share_best(&sums->share);
    sums->count = 0;
    sums->share = (struct share){0};
}

/* The row of the planner and tier of columns 0 and 1, which follow one another; NULL: there is no
 * room for a further one. */
static struct store_planner_mains *row_of(struct query *query, struct store_planner_mains *rows,
                                          uint32_t max, uint32_t *count, struct mains_sums *sums)
{
    struct store_planner_mains next = {.tier = TIER_REPLAY};
    struct store_planner_mains *last = *count > 0 ? &rows[*count - 1] : NULL;
    int64_t tier = query_column_int(query, 1);
    query_column_text(query, 0, next.planner, sizeof next.planner);
    next.tier = tier >= 0 && tier < TIER_COUNT ? (enum tier)tier : TIER_REPLAY;
    if (last != NULL && last->tier == next.tier && strcmp(last->planner, next.planner) == 0) {
        return last;
    }
    if (last != NULL) {
        end_row(&last->mains, sums);
    }
    if (*count == max) {
        return NULL;
    }
    rows[*count] = next;
    return &rows[(*count)++];
}

static enum status count_mains(struct db *db, int64_t suite, struct store_planner_mains *rows,
                               uint32_t max, uint32_t *count, struct error *error)
{
    struct mains_sums sums = {.count = 0};
    struct store_planner_mains *row = NULL;
    enum status status = STATUS_OK;
    struct query query = query_begin(db, STATEMENT_MAINS_OF_SUITE);
    *count = 0;
    query_int(&query, suite);
    while (status == STATUS_OK && query_row(&query) &&
           (row = row_of(&query, rows, max, count, &sums)) != NULL) {
        status = add_case(&query, &row->mains, &sums, error);
    }
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    if (row != NULL) {
        end_row(&row->mains, &sums);
    }
    free(sums.logical);
    return status == STATUS_OK ? ended : status;
}

enum status mains_rows(struct store *base, const char *suite_id, struct store_planner_mains *rows,
                       uint32_t max, uint32_t *count, struct error *error)
{
    struct db *db;
    int64_t suite = 0;
    uint32_t found = 0;
    struct sql_store *store = sql_store_of(base);
    TRY(sql_store_read_begin(base, &db, error));
    enum status status = record_find_suite(db, suite_id, &suite, error);
    THEN(status, count_mains(db, suite, rows, max, &found, error));
    sql_store_read_end(store, db);
    *count = status == STATUS_OK ? found : *count;
    return status;
}

/* ---- what is kept ---- */

/* Whatever changes main lines changes one of these. */
static void make_key(const struct store_suite_status *status, int64_t key[MAINS_KEY])
{
    key[0] = status->jobs[JOB_DEAD];
    key[1] = status->ticks;
    key[2] = status->metres_mm;
    key[3] = status->jobs[JOB_CANCELLED];
    key[4] = store_jobs_open(status);
    for (int v = 0; v < VERDICT_COUNT; v++) {
        key[5 + v] = status->rollouts[v];
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
                      (open && now_ns >= kept->at_ns && now_ns - kept->at_ns < kept->pause_ns));
        if (fresh) {
            memcpy(out, kept->mains, sizeof kept->mains);
            found = true;
        }
    }
    pthread_mutex_unlock(&store->mutex);
    return found;
}

/* begun_ns: when counting began. */
static void keep(struct sql_store *store, int64_t suite, const int64_t key[MAINS_KEY],
                 const struct store_mains mains[TIER_COUNT], int64_t begun_ns)
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
    kept->pause_ns = PAUSE_TIMES * (now_ns - begun_ns);
    kept->pause_ns = kept->pause_ns > NS_PER_S ? kept->pause_ns : NS_PER_S;
    memcpy(kept->key, key, sizeof kept->key);
    memcpy(kept->mains, mains, sizeof kept->mains);
    pthread_mutex_unlock(&store->mutex);
}

enum status mains_read(struct sql_store *store, struct db *db, int64_t suite,
                       struct store_suite_status *status, struct error *error)
{
    int64_t key[MAINS_KEY];
    uint32_t count = 0;
    int64_t begun_ns = clock_now_ns(store->clock);
    struct store_planner_mains rows[TIER_COUNT];
    if (status->planner_count != 1) {
        return STATUS_OK;
    }
    make_key(status, key);
    if (find_kept(store, suite, key, store_jobs_open(status) > 0, status->mains)) {
        return STATUS_OK;
    }
    TRY(count_mains(db, suite, rows, TIER_COUNT, &count, error));
    for (uint32_t i = 0; i < count; i++) {
        status->mains[rows[i].tier] = rows[i].mains;
    }
    keep(store, suite, key, status->mains, begun_ns);
    return STATUS_OK;
}
