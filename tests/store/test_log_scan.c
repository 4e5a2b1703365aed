/*
 * Damaged write-ahead logs: what they took away is said.
 *
 * Method: a store is killed with suites in its log (its files are copied while it is open). Every
 * bit of the log's header and many others are flipped, one at a time, the log is cut off anywhere,
 * or what it holds has been copied into the database before. Each time the store is opened: what is
 * missing must have been announced, kept in the store, and the log kept; what is not missing must
 * not be called lost.
 */
#include "base/check.h"
#include "base/rng.h"
#include "store/api/store.h"
#include "store/log/log_scan.h"
#include "store/sql/sqlite_db.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SUITES = 8,
    OTHER_COMMITS = 2,
    JOBS = 6,
    FLIPS = 160,
    CUTS = 80,
    HEADER_BITS = 32 * 8,
    BYTES_MAX = 1 << 22
};

struct bytes {
    uint8_t data[BYTES_MAX];
    size_t count;
};

static struct bytes database; /* of the killed store */
static struct bytes log_file;
static struct bytes damaged;
static char path[160];
static struct error error;

static void read_bytes(const char *suffix, const char *of, struct bytes *out)
{
    char name[200];

    snprintf(name, sizeof name, "%s%s", of, suffix);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    ssize_t got = read(fd, out->data, BYTES_MAX);
    close(fd);
    EXPECT(got >= 0 && got < BYTES_MAX);
    out->count = (size_t)got;
}

static void write_bytes(const char *suffix, const struct bytes *bytes)
{
    char name[200];

    snprintf(name, sizeof name, "%s%s", path, suffix);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT(fd >= 0 && write(fd, bytes->data, bytes->count) == (ssize_t)bytes->count);
    close(fd);
}

static void submit(struct store *store, int number)
{
    struct job_spec specs[JOBS];
    struct store_submit_result results[JOBS];
    char name[32];

    memset(specs, 0, sizeof specs);
    snprintf(name, sizeof name, "suite-%d", number);
    for (int i = 0; i < JOBS; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "key-%d-%d", number, i);
        strcpy(specs[i].scenario_id, "s");
        strcpy(specs[i].pool, "bulk");
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 1;
    }
    EXPECT_OK(store->ops->submit(store, name, 1, specs, JOBS, results, &error), error);
}

/* A store that is killed with SUITES suites in its log; the first `copied` of these also in the
 * database. */
static void make_killed_store(int copied)
{
    char live[160];
    struct db *copier = NULL;
    struct store *store = NULL;
    int64_t value = 0;
    struct store_config config = {.checkpoint_pages = 1000000};

    static int serial;
    snprintf(live, sizeof live, "%s/live-%d.db", support_directory(), serial++);
    /* Twice, so that the log holds hardly anything but the suites. */
    EXPECT_OK(store_sqlite_open(live, &config, &store, &error), error);
    store->ops->close(store);
    EXPECT_OK(store_sqlite_open(live, &config, &store, &error), error);
    EXPECT_OK(sqlite_db_open(live, SQLITE_DB_WRITER, &copier, &error), error);
    for (int i = 0; i < SUITES; i++) {
        submit(store, i);
        if (i + 1 == copied) {
            EXPECT_OK(sqlite_db_scalar(copier, "PRAGMA wal_checkpoint(PASSIVE)", &value, &error),
                      error);
        }
    }
    db_close(copier);
    read_bytes("", live, &database);
    read_bytes("-wal", live, &log_file);
    store->ops->close(store);
    EXPECT(log_file.count > 4096);
    snprintf(path, sizeof path, "%s/killed.db", support_directory());
}

/* The killed store's files, with this log. */
static void place(const struct bytes *log)
{
    static const char *const others[] = {"-shm", "-wal-damaged"};
    char name[200];

    write_bytes("", &database);
    write_bytes("-wal", log);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, others[i]);
        unlink(name);
    }
}

static struct log_scan scan(void)
{
    struct log_scan found = {.frames = -1};
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    EXPECT(fd >= 0);
    EXPECT_OK(log_scan(path, fd, &found, &error), error);
    close(fd);
    return found;
}

/* Result of an opening of the placed files came to. */
struct opening {
    enum status status;
    int missing; /* suites */
    int64_t rows;
    int64_t lost; /* of the last row */
    char said[2048];
};

static struct opening open_placed(void)
{
    struct opening opening = {.rows = 0};
    struct store_suite_status status;
    struct store *store = NULL;
    struct db *db = NULL;
    char name[32];
    int pipe_fds[2];

    EXPECT_INT(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
    const struct logger logger = {pipe_fds[1], LOG_ERROR, "test"};
    const struct store_config config = {.logger = &logger};
    opening.status = store_sqlite_open(path, &config, &store, &error);
    if (opening.status == STATUS_OK) {
        for (int i = 0; i < SUITES; i++) {
            snprintf(name, sizeof name, "suite-%d", i);
            opening.missing +=
                store->ops->suite_status(store, name, &status, &error) == STATUS_NOT_FOUND;
        }
        store->ops->close(store);
        EXPECT_OK(sqlite_db_open(path, SQLITE_DB_READER, &db, &error), error);
        EXPECT_OK(sqlite_db_scalar(db, "SELECT COUNT(*) FROM log_losses", &opening.rows, &error),
                  error);
        EXPECT_OK(sqlite_db_scalar(db, "SELECT lost FROM log_losses", &opening.lost, &error),
                  error);
        db_close(db);
    }
    ssize_t got = read(pipe_fds[0], opening.said, sizeof opening.said - 1);
    opening.said[got > 0 ? got : 0] = '\0';
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return opening;
}

/* With the damaged log in place. */
static void expect_nothing_in_silence(const char *what, size_t at)
{
    struct bytes *kept = malloc(sizeof *kept);

    place(&damaged);
    struct log_scan found = scan();
    struct opening opening = open_placed();
    CHECK(kept != NULL);
    if (opening.status != STATUS_OK) { /* refused, which is said */
        EXPECT_CONTAINS(error.text, "damaged");
        free(kept);
        return;
    }
    bool said = strstr(opening.said, "were discarded") != NULL;
    if ((opening.missing > 0 && !said) || (opening.missing == 0 && found.lost_commits > 0) ||
        said != found.in_doubt || opening.rows != said || opening.lost != found.lost_commits ||
        found.lost_commits > opening.missing + OTHER_COMMITS) {
        free(kept);
        TEST_FAIL("%s %zu: %d suites missing, said \"%s\"; %" PRId64 " rows, scan: %" PRId64
                  " frames, bad at %" PRId64 ", %" PRId64 " discarded with %" PRId64
                  " commits, %" PRId64 " lost, in doubt: %d",
                  what, at, opening.missing, opening.said, opening.rows, found.frames,
                  found.first_bad, found.discarded, found.discarded_commits, found.lost_commits,
                  found.in_doubt);
    }
    if (said) {
        read_bytes("-wal-damaged", path, kept);
        EXPECT(kept->count == damaged.count && memcmp(kept->data, damaged.data, kept->count) == 0);
    }
    free(kept);
}

static void flip(size_t bit)
{
    memcpy(&damaged, &log_file, sizeof damaged);
    damaged.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

/* ---- the tests ---- */

/* Goal: a whole log is not called damaged. */
static void whole_logs_are_whole(void)
{
    make_killed_store(0);
    place(&log_file);
    struct log_scan found = scan();
    EXPECT(found.commits >= SUITES);
    EXPECT_INT(found.first_bad, 0);
    EXPECT_INT(found.discarded, 0);
    EXPECT(!found.in_doubt);
    struct opening opening = open_placed();
    EXPECT_OK(opening.status, error);
    EXPECT_INT(opening.missing, 0);
    EXPECT_INT(opening.rows, 0);
    EXPECT_TEXT(opening.said, "");
}

/* Goal: no flipped bit takes a commit away in silence, wherever it is. */
static void flipped_bits_are_noticed(void)
{
    make_killed_store(0);
    for (size_t bit = 0; bit < HEADER_BITS; bit += 3) {
        flip(bit);
        expect_nothing_in_silence("bit of the header", bit);
    }
    for (uint64_t i = 0; i < FLIPS; i++) {
        /* In one case of four near the end: the last commit. */
        size_t bits = log_file.count * 8;
        size_t first = i % 4 == 0 ? bits - 4000 * 8 : HEADER_BITS;
        flip(first + rng_mix(i) % (bits - first));
        expect_nothing_in_silence("flip", i);
    }
}

/* Goal: the same when some of the log, or all, is in the database already; then a damaged header
 * takes nothing away, and nothing is said. */
static void flipped_bits_of_copied_logs_are_noticed(void)
{
    for (int copied = SUITES / 2; copied <= SUITES; copied += SUITES / 2) {
        make_killed_store(copied);
        for (uint64_t i = 0; i < FLIPS / 4; i++) {
            size_t bits = log_file.count * 8;
            flip(HEADER_BITS + rng_mix(1000 + i) % (bits - HEADER_BITS));
            expect_nothing_in_silence("flip in a copied log", i);
        }
        for (size_t bit = 0; bit < HEADER_BITS; bit += 19) {
            flip(bit);
            place(&damaged);
            EXPECT(scan().in_doubt == (copied < SUITES));
            expect_nothing_in_silence("bit of a copied log's header", bit);
        }
    }
}

/* Goal: a log that ends early, within a transaction or behind one, is what a killed process leaves,
 * and not called damaged. */
static void logs_that_end_early_are_no_damage(void)
{
    make_killed_store(0);
    for (uint64_t i = 0; i < CUTS; i++) {
        memcpy(&damaged, &log_file, sizeof damaged);
        damaged.count = rng_mix(i) % log_file.count;
        place(&damaged);
        struct log_scan found = scan();
        EXPECT(!found.in_doubt);
        EXPECT_INT(found.discarded_commits, 0);
    }
}

/* Goal: frames that were discarded once do not lie behind later ones, where they would look like
 * damage after the next interruption. Method: the last transaction is spoilt, the store is opened
 * and killed. */
static void discarded_frames_do_not_stay(void)
{
    struct store *store = NULL;
    struct log_scan found = {.discarded = 0};

    make_killed_store(0);
    for (size_t bit = log_file.count * 8 - 1; found.discarded < 2; bit -= 4096 * 8) {
        flip(bit);
        place(&damaged);
        found = scan();
    }
    EXPECT_INT(found.discarded_commits, 1);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    read_bytes("", path, &database);
    read_bytes("-wal", path, &log_file);
    store->ops->close(store);
    place(&log_file);
    found = scan();
    EXPECT(found.frames > 0);
    EXPECT_INT(found.discarded, 0);
}

/* The log of the killed store after one more transaction; its frames begin at log_file.count. */
static void go_on(const char *sql, struct bytes *log)
{
    struct db *db = NULL;

    place(&log_file);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    read_bytes("-wal", path, log);
    db_close(db);
    EXPECT(log->count > log_file.count && memcmp(log->data, log_file.data, log_file.count) == 0);
}

/* Goal: a transaction that a full disk ended leaves frames behind the shorter one that took its
 * place; when the power fails in that one, nobody says that acknowledged work is gone. Method: both
 * logs are made by SQLite from the same store; the long one's last page was never written, and one
 * page of the short one is lost. */
static void what_a_full_disk_left_is_no_damage(void)
{
    enum { FRAME = 24 + 4096 };
    static struct bytes ended;

    make_killed_store(0);
    go_on("CREATE TABLE long_one AS WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n"
          " WHERE i < 12) SELECT randomblob(3000) AS x FROM n",
          &ended);
    go_on("CREATE TABLE short_one (x)", &damaged);
    EXPECT(ended.count >= damaged.count + 4 * (size_t)FRAME);
    size_t end = damaged.count;
    memcpy(damaged.data + end, ended.data + end, ended.count - end);
    memset(damaged.data + ended.count - 4096, 0, 4096);
    damaged.count = ended.count;
    for (size_t lost = log_file.count; lost < end; lost += FRAME) {
        memset(damaged.data + lost + 24, 0, 4096);
        place(&damaged);
        struct log_scan found = scan();
        EXPECT_INT(found.discarded_commits, 2);
        EXPECT_INT(found.lost_commits, 0);
        EXPECT(found.in_doubt);
        struct opening opening = open_placed();
        EXPECT_OK(opening.status, error);
        EXPECT_INT(opening.missing, 0);
        EXPECT_INT(opening.lost, 0);
    }
}

int main(void)
{
    return TEST_RUN(TEST(whole_logs_are_whole), TEST(flipped_bits_are_noticed),
                    TEST(flipped_bits_of_copied_logs_are_noticed),
                    TEST(logs_that_end_early_are_no_damage), TEST(discarded_frames_do_not_stay),
                    TEST(what_a_full_disk_left_is_no_damage));
}
