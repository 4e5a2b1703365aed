/*
 * The store under loss of power.
 *
 * Method: callers play at random on a recorded disk (disk.h) while the log is checkpointed often,
 * the store is closed, opened and killed, and syncs fail. The power is then cut at random moments
 * of the record (power.h), and the product's own open meets what is left. Each time everything
 * acknowledged must be there, nothing half (power_told.h), every invariant of the file must hold,
 * and the store must go on working. Some recordings start from what such a loss left behind.
 *
 * So that this proves something, a second test makes syncs lie, one kind after another, and must
 * see the loss.
 *
 * Usage: test_store_power [POINTS [RECORDINGS [SEED]]]
 */
#include "base/rng.h"
#include "schemas/job_context.h"
#include "store/api/store.h"
#include "store/log/log_scan.h"
#include "store/sql/migrate.h"
#include "store/sql/sqlite_db.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/faults/disk.h"
#include "tests/store/faults/invariants.h"
#include "tests/store/faults/power.h"
#include "tests/store/faults/power_play.h"
#include "tests/store/faults/power_told.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPERATIONS = 70,
    CHECKPOINT_PAGES = 40,
    BY_PATH_EVERY = 32,
    WHY_BYTES = 1400,
    OLD_JOBS = 40
};

enum shape { SHAPE_ALONE, SHAPE_TOGETHER, SHAPE_FAULTS, SHAPE_COUNT, SHAPE_SYNC };

static char live[96]; /* the recorded disk */
static char cut[96];  /* what a loss of power left */
static char live_path[128];
static char cut_path[128];
static uint64_t points = 240;
static uint64_t recordings = 6;
static uint64_t seed = 1;

static struct told told;
static struct player players[TOLD_CLIENTS];
static char why[WHY_BYTES];
static struct error error;
static bool faulty; /* the store that is open may have met a fault */

/* Counts of what was tried, for the reader of the test's output. */
static struct {
    uint64_t points;
    uint64_t operations;
    uint64_t entries;
    uint64_t faults;
    uint64_t kills;
    uint64_t reopened;
    uint64_t in_doubt; /* logs whose last commit was there in part */
} tally;

/* ---- directories ---- */

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    return where->level > 0 ? remove(path) : 0;
}

static void empty_directory(const char *path)
{
    EXPECT_INT(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- recording ---- */

static enum status open_live(struct store **store)
{
    struct store_config config = {.lease_ttl_ms = 1000000000,
                                  .backoff_ms = 1,
                                  .checkpoint_pages = CHECKPOINT_PAGES,
                                  .bill_slack_ms = 1000000000};
    return store_sqlite_open(live_path, &config, store, &error);
}

static bool fail(const char *what)
{
    char text[WHY_BYTES];
    snprintf(text, sizeof text, "%s: %.1000s", what, error.text);
    memcpy(why, text, sizeof why);
    return false;
}

/* Opens the live store for every player. */
static bool open_and_greet(void)
{
    struct store *store = NULL;

    if (open_live(&store) != STATUS_OK) {
        return fail("open");
    }
    for (int i = 0; i < TOLD_CLIENTS; i++) {
        players[i].store = store;
        if (!play_greet(&players[i])) {
            error = players[i].error;
            store->ops->close(store);
            return fail("a heartbeat after open");
        }
    }
    tally.reopened++;
    return true;
}

static bool open_for(struct player *player)
{
    bool opened = open_and_greet();

    if (!opened && disk_fail_hits() > 0) {
        tally.faults++;
        disk_is_well();
        opened = open_and_greet();
    }
    if (!opened) {
        player->store = NULL;
    }
    return opened;
}

static void close_or_kill(struct player *player, bool killed)
{
    if (player->store == NULL) {
        return;
    }
    disk_kill(killed);
    player->store->ops->close(player->store);
    disk_kill(false);
    faulty = false;
    tally.kills += killed;
}

static bool play_recovering(struct player *player, uint64_t draws)
{
    bool killed = draws % 2 == 0;

    if (play_one(player)) {
        if (draws % 29 != 0) {
            return true;
        }
        close_or_kill(player, killed);
        return open_for(player);
    }
    if (!faulty && disk_fail_hits() == 0) {
        error = player->error;
        return fail("an operation without a fault");
    }
    tally.faults++;
    disk_is_well();
    close_or_kill(player, killed);
    if (!open_for(player) || !play_recover(player)) {
        error = player->error.text[0] != '\0' ? player->error : error;
        return fail("recovering from a fault");
    }
    return true;
}

static void *play_thread(void *context)
{
    struct player *player = context;

    for (int i = 0; i < OPERATIONS; i++) {
        if (!play_one(player)) {
            return player;
        }
    }
    return NULL;
}

static bool play_together(struct store *store)
{
    pthread_t threads[TOLD_CLIENTS];
    bool played = true;

    for (int i = 0; i < TOLD_CLIENTS; i++) {
        players[i].store = store;
        EXPECT_INT(pthread_create(&threads[i], NULL, play_thread, &players[i]), 0);
    }
    for (int i = 0; i < TOLD_CLIENTS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        if (failed != NULL) {
            error = players[i].error;
            played = fail("playing together");
        }
    }
    tally.operations += TOLD_CLIENTS * OPERATIONS;
    return played;
}

static bool play_alone(struct player *player, bool faults, uint64_t key)
{
    for (uint64_t i = 0; i < OPERATIONS; i++) {
        uint64_t draws = rng_mix(key + i);
        if (faults && i % 8 == 0) {
            faulty = faulty || disk_fail_hits() > 0;
            disk_fail(draws % 4 == 0 ? DISK_CALL_WRITE : DISK_CALL_SYNC,
                      1 + (int64_t)(draws / 7 % 9), false, draws % 3 == 0 ? ENOSPC : EIO);
        }
        if (!play_recovering(player, draws / 1000)) {
            return false;
        }
    }
    disk_is_well();
    tally.operations += OPERATIONS;
    return true;
}

/* The `at`th sync fails, the process is killed where that stops the store, the next one goes on.
 * Moments before the fault are left to others. */
static bool play_failed_sync(struct player *player, int64_t at, size_t *first)
{
    bool played = true;

    for (int i = 0; i < 20 && played; i++) {
        if (i == 8) {
            disk_fail(DISK_CALL_SYNC, at, false, EIO);
            *first = disk_position();
        }
        played = play_recovering(player, 2);
    }
    close_or_kill(player, true);
    disk_is_well();
    return played;
}

/* Plays on what the live disk holds; what was in doubt at `position` of an earlier record is looked
 * up first. */
static bool record(enum shape shape, uint64_t key, size_t position, size_t *first)
{
    disk_record(first);
    disk_fail(0, 0, false, EIO);
    faulty = false;
    for (int i = 0; i < TOLD_CLIENTS; i++) {
        play_begin(&players[i], &told, i, key);
    }
    if (!open_for(&players[0])) {
        return false;
    }
    struct store *store = players[0].store;
    for (int i = 0; i < TOLD_CLIENTS; i++) {
        if (!play_resume(&players[i], position)) {
            error = players[i].error;
            return fail("resuming");
        }
    }
    if (shape == SHAPE_SYNC) {
        return play_failed_sync(&players[0], (int64_t)key, first);
    }
    if (shape == SHAPE_TOGETHER) {
        bool played = play_together(store);
        store->ops->close(store);
        return played;
    }
    bool played = play_alone(&players[0], shape == SHAPE_FAULTS, key);
    close_or_kill(&players[0], key % 2 == 0);
    return played;
}

/* ---- after the loss ---- */

static bool call_failed(enum status status, const char *what)
{
    return status != STATUS_OK && !fail(what);
}

/* A job goes through the store from end to end. */
static bool works(struct store *store)
{
    static const struct store_worker worker = {
        .worker_id = "after", .pool = "after", .device = "cpu"};
    static struct job_lease lease;
    static struct outcome outcome;
    static struct store_job job;
    struct job_spec spec = {.key = "after", .scenario_id = "s", .pool = "after"};
    struct job_completion completion = {.kind = COMPLETION_DONE, .worker_id = "after"};
    struct store_submit_result submitted;
    struct store_completion_result completed;
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    spec.rollout_count = 1;
    spec.attempts_max = 1;
    if (call_failed(store->ops->submit(store, "after", 1, &spec, 1, &submitted, &error),
                    "submitting afterwards") ||
        call_failed(store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, &lease, &count,
                                      &ttl_ms, &error),
                    "claiming afterwards") ||
        call_failed(store->ops->artifact_put(store, "after", 5, completion.artifact_hash, &error),
                    "an artifact afterwards")) {
        return false;
    }
    memset(&outcome, 0, sizeof outcome);
    job_context_copy(&lease.spec, &outcome);
    memcpy(outcome.artifact_hash, completion.artifact_hash, sizeof outcome.artifact_hash);
    completion.job_id = lease.job_id;
    completion.epoch = lease.epoch;
    completion.outcomes = &outcome;
    completion.outcome_count = 1;
    if (call_failed(store->ops->complete(store, &completion, 1, &completed, &error),
                    "completing afterwards") ||
        call_failed(store->ops->job(store, submitted.job_id, &job, &error), "looking afterwards")) {
        return false;
    }
    if (count != 1 || completed.status != STATUS_OK || job.state != JOB_DONE) {
        snprintf(why, sizeof why, "afterwards a new job is not claimed and done");
        return false;
    }
    return true;
}

/* Shared memory does not outlive the power; what a file system keeps of it is anything. */
static void leave_shared_memory(uint64_t key)
{
    char path[160];
    uint8_t junk[32768];

    snprintf(path, sizeof path, "%s-shm", cut_path);
    for (size_t i = 0; i < sizeof junk; i++) {
        junk[i] = (uint8_t)rng_mix(key + i);
    }
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    EXPECT(fd >= 0 && write(fd, junk, sizeof junk) == (ssize_t)sizeof junk);
    close(fd);
}

/* Damage that a loss of power alone did to the log is never taken for acknowledged commits that are
 * lost.
 */
static bool log_is_believed(void)
{
    struct log_scan scan = {.frames = 0};
    int fd = open(cut_path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return true;
    }
    enum status status = log_scan(cut_path, fd, &scan, &error);
    close(fd);
    if (status != STATUS_OK) {
        return fail("scanning the log");
    }
    if (scan.lost_commits > 0) {
        snprintf(why, sizeof why,
                 "the log is said to have lost %d commits: %d frames, bad at %d, %d discarded",
                 (int)scan.lost_commits, (int)scan.frames, (int)scan.first_bad,
                 (int)scan.discarded);
        return false;
    }
    tally.in_doubt += scan.in_doubt;
    return true;
}

static bool survives(const struct power *power, size_t position, uint64_t key)
{
    struct store *store = NULL;

    empty_directory(cut);
    power_image(power, key, cut);
    if (key % 3 == 0) {
        leave_shared_memory(key);
    }
    if (!log_is_believed()) {
        return false;
    }
    enum status status = key % BY_PATH_EVERY == 0
                             ? store_open(cut_path, NULL, &store, &error)
                             : store_sqlite_open(cut_path, NULL, &store, &error);
    if (status != STATUS_OK) {
        return fail("open after the loss");
    }
    bool held = told_holds(&told, store, position, key, why, sizeof why) && works(store);
    store->ops->close(store);
    return held && invariants_hold(cut_path, why, sizeof why);
}

static int by_position(const void *left, const void *right)
{
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    return (a > b) - (a < b);
}

/* Cuts the power at `count` moments of the record. False: at *at something was lost. */
static bool cut_often(size_t first, uint64_t count, uint64_t key, size_t *at)
{
    const struct disk_log *log = disk_record_end();
    size_t *positions = calloc(count, sizeof *positions);
    struct power *power = power_create(log);
    bool survived = true;

    EXPECT(positions != NULL && log->count > first);
    for (uint64_t i = 0; i < count; i++) {
        positions[i] = first + rng_mix(key + i) % (log->count - first + 1);
    }
    qsort(positions, count, sizeof *positions, by_position);
    tally.entries += log->count - first;
    for (uint64_t i = 0; i < count && survived; i++) {
        power_advance(power, positions[i]);
        *at = positions[i];
        survived = survives(power, positions[i], rng_mix(key ^ i));
        tally.points++;
    }
    power_destroy(power);
    free(positions);
    return survived;
}

/* The live disk becomes what a loss of power at `position` leaves. */
static void lose_power(size_t position, uint64_t key)
{
    struct power *power = power_create(disk_record_end());

    power_advance(power, position);
    disk_mount(NULL);
    empty_directory(live);
    power_image(power, key, live);
    power_destroy(power);
    disk_mount(live);
}

static void start_afresh(void)
{
    disk_mount(NULL);
    empty_directory(live);
    told_finish(&told);
    disk_mount(live);
}

/* Goal: whatever the loss of power takes, what was acknowledged is there, nothing is half there,
 * and the store goes on. */
static void nothing_acknowledged_is_lost(void)
{
    size_t position = 0;

    memset(&tally, 0, sizeof tally);
    for (uint64_t i = 0; i < recordings; i++) {
        uint64_t key = rng_mix(seed * 1000 + i);
        enum shape shape = (enum shape)(i % SHAPE_COUNT);
        size_t first = 0;
        size_t at = 0;

        if (i % 4 == 0) {
            start_afresh();
            position = 0;
        } else {
            lose_power(position, key);
        }
        if (!record(shape, key, position, &first)) {
            TEST_FAIL("recording %d: %s", (int)i, why);
        }
        if (!cut_often(first, points / recordings, key, &at)) {
            TEST_FAIL("recording %d (seed %d), power lost at %d of %d: %s", (int)i, (int)seed,
                      (int)at, (int)disk_position(), why);
        }
        position = first + rng_mix(key) % (disk_position() - first + 1);
    }
    printf("# %d losses of power in %d recordings: %d calls, %d steps of the disk, %d opens,"
           " %d kills, %d faults met, %d last commits in part\n",
           (int)tally.points, (int)recordings, (int)tally.operations, (int)tally.entries,
           (int)tally.reopened, (int)tally.kills, (int)tally.faults, (int)tally.in_doubt);
}

/* Goal: a sync that failed is not forgotten: neither a transaction whose fsync failed and which the
 * next process finds in the page cache, nor a directory that exists but may not be on the disk. */
static void failed_syncs_are_not_forgotten(void)
{
    for (int64_t at = 1; at <= 12; at++) {
        size_t first = 0;
        size_t moment = 0;
        start_afresh();
        if (!record(SHAPE_SYNC, (uint64_t)at, 0, &first)) {
            TEST_FAIL("sync %d fails: %s", (int)at, why);
        }
        if (!cut_often(first, 12, seed + (uint64_t)at, &moment)) {
            TEST_FAIL("sync %d fails, power lost at %d: %s", (int)at, (int)moment, why);
        }
    }
}

/* Goal: this test sees a store that does not sync. Method: syncs of some files do nothing. */
static void syncs_that_lie_are_seen(void)
{
    static const char *const lies[] = {"*-wal", "*/jobs.db", "*/unfinished/*", "*.artifacts/??",
                                       "*.artifacts"};

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        bool seen = false;
        size_t at = 0;
        memset(&tally, 0, sizeof tally);
        for (uint64_t try = 0; try < 6 && !seen; try++) {
            size_t first = 0;
            start_afresh();
            disk_lie(lies[i]);
            bool recorded = record(SHAPE_ALONE, rng_mix(seed + try), 0, &first);
            disk_lie(NULL);
            EXPECT(recorded);
            seen = !cut_often(first, 40, seed + try, &at);
        }
        if (!seen) {
            TEST_FAIL("syncs of %s did nothing, and nobody noticed", lies[i]);
        }
        printf("# %s not synced: seen at loss %d: %.120s\n", lies[i], (int)tally.points, why);
    }
}

/* A store of an earlier schema version with OLD_JOBS queued jobs, on the live disk. */
static void make_old(size_t version)
{
    struct db *db = NULL;
    char sql[512];

    EXPECT_OK(sqlite_db_open(live_path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_use_wal(db, &error), error);
    for (size_t i = 0; i < version; i++) {
        EXPECT_OK(sqlite_db_script(db, store_migrations[i].text, &error), error);
        if (i > 0) {
            continue;
        }
        snprintf(sql, sizeof sql,
                 "INSERT INTO suites (id, name, weight, jobs_queued, rollouts_total)"
                 " VALUES (1, 'old', 1, %d, %d); INSERT INTO pools VALUES (1, 'bulk');"
                 "INSERT INTO contexts VALUES (1, 'p', 'h', 'bulk', 1, '', '', 'cpu', 'r');",
                 OLD_JOBS, OLD_JOBS);
        EXPECT_OK(sqlite_db_script(db, sql, &error), error);
        for (int job = 1; job <= OLD_JOBS; job++) {
            snprintf(
                sql, sizeof sql,
                "INSERT INTO jobs (id, suite, pool, state, priority, rollouts)"
                " VALUES (%d, 1, 1, 0, 0, 1); INSERT INTO job_specs (job, suite, key,"
                " scenario_id, context, seed, attempts_max) VALUES (%d, 1, 'key-%d', 's', 1, 0, 3)",
                job, job, job);
            EXPECT_OK(sqlite_db_script(db, sql, &error), error);
        }
    }
    snprintf(sql, sizeof sql, "PRAGMA application_id = 1398231638; PRAGMA user_version = %zu",
             version);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    db_close(db);
}

/* The old store's jobs are all there, and it is brought forward. */
static bool old_survives(const struct power *power, uint64_t key)
{
    struct store *store = NULL;
    struct store_suite_status status;

    empty_directory(cut);
    power_image(power, key, cut);
    if (store_sqlite_open(cut_path, NULL, &store, &error) != STATUS_OK) {
        return fail("open after the loss");
    }
    bool there = store->ops->suite_status(store, "old", &status, &error) == STATUS_OK &&
                 status.jobs[JOB_QUEUED] == OLD_JOBS;
    store->ops->close(store);
    if (!there) {
        return fail("jobs of the old store are gone");
    }
    return invariants_hold(cut_path, why, sizeof why);
}

/* Goal: a store of any earlier version survives a loss of power (and so a kill) at any moment at
 * which it is brought forward. Method: each step of the disk in the long mode, else a few. */
static void stores_survive_being_brought_forward(void)
{
    uint64_t losses = 0;
    const uint64_t few = points < 10000 ? 1 + points / 60 : UINT64_MAX;

    for (size_t version = 1; version < store_migrations_count; version++) {
        struct store *store = NULL;
        size_t first = 0;
        start_afresh();
        make_old(version);
        disk_record(&first);
        EXPECT_OK(open_live(&store), error);
        store->ops->close(store);
        const struct disk_log *log = disk_record_end();
        struct power *power = power_create(log);
        uint64_t steps = log->count - first + 1;
        uint64_t count = few < steps ? few : steps;
        for (uint64_t i = 0; i < count; i++) {
            size_t position =
                first + (size_t)((i * steps + rng_mix(seed + version) % steps) / count);
            position = position < log->count ? position : log->count;
            power_advance(power, position);
            if (!old_survives(power, rng_mix(seed * 100 + i))) {
                TEST_FAIL("version %d, power lost at %d of %d: %s", (int)version,
                          (int)(position - first), (int)steps, why);
            }
            losses++;
        }
        power_destroy(power);
    }
    printf("# %d losses of power while %d earlier versions were brought forward\n", (int)losses,
           (int)store_migrations_count - 1);
}

int main(int argc, char **argv)
{
    char directory[64];

    points = argc > 1 ? strtoull(argv[1], NULL, 10) : points;
    recordings = argc > 2 ? strtoull(argv[2], NULL, 10) : recordings;
    seed = argc > 3 ? strtoull(argv[3], NULL, 10) : seed;
    strcpy(directory, access("/dev/shm", W_OK) == 0 ? "/dev/shm/swerve-power-XXXXXX"
                                                    : "/tmp/swerve-power-XXXXXX");
    if (mkdtemp(directory) == NULL || recordings == 0) {
        perror("test_store_power");
        return 1;
    }
    snprintf(live, sizeof live, "%s/live", directory);
    snprintf(cut, sizeof cut, "%s/cut", directory);
    snprintf(live_path, sizeof live_path, "%s/jobs.db", live);
    snprintf(cut_path, sizeof cut_path, "%s/jobs.db", cut);
    if (mkdir(live, 0700) != 0 || mkdir(cut, 0700) != 0) {
        perror("mkdir");
        return 1;
    }
    int failed =
        TEST_RUN(TEST(nothing_acknowledged_is_lost), TEST(failed_syncs_are_not_forgotten),
                 TEST(syncs_that_lie_are_seen), TEST(stores_survive_being_brought_forward));
    disk_mount(NULL);
    told_finish(&told);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) == 0 ? failed : 1;
}
