/*
 * Files that the embedded store finds: newer, foreign, damaged; and that it may
 * open them again, for reading, from many threads.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/api/store.h"
#include "store/bench/bench.h"
#include "store/sql/ledger.h"
#include "store/sql/migrate.h"
#include "store/sql/sqlite_db.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/manual_clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/swerve-files-XXXXXX";
static char path[128];
static struct store *store;
static struct error error;

static void set_path(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
}

static size_t read_bytes(const char *name, uint8_t *out, size_t capacity)
{
    int fd = open(name, O_RDONLY);
    EXPECT(fd >= 0);
    ssize_t got = read(fd, out, capacity);
    close(fd);
    EXPECT(got >= 0 && (size_t)got < capacity);
    return (size_t)got;
}

static void write_bytes(const char *name, const void *data, size_t bytes)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0);
    ssize_t put = write(fd, data, bytes);
    close(fd);
    EXPECT_INT(put, bytes);
}

static void script(const char *sql)
{
    struct db *db = NULL;
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    db_close(db);
}

/* Refused with a sentence that contains `part`, and not one byte of the file is different. */
static void expect_refused(const char *part)
{
    static uint8_t before[1 << 20];
    static uint8_t after[1 << 20];
    size_t bytes = read_bytes(path, before, sizeof before);

    EXPECT(store_sqlite_open(path, NULL, &store, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, part);
    EXPECT_CONTAINS(error.text, path);
    EXPECT_INT(read_bytes(path, after, sizeof after), bytes);
    EXPECT(memcmp(before, after, bytes) == 0);
}

/* Goal: a store that a newer program wrote is left alone. */
static void newer_schemas_are_refused(void)
{
    set_path("newer.db");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    script("PRAGMA user_version = 99");
    expect_refused("schema version 99");
}

/* Goal: what another program did to the schema is named, and nothing is done to it. Method: a good
 * store, one change by script, and back. */
static void changed_schemas_are_diagnosed(void)
{
    static const struct {
        const char *change;
        const char *back;
        const char *names;
    } cases[] = {
        {"CREATE TRIGGER spy AFTER UPDATE ON jobs BEGIN DELETE FROM prices; END",
         "DROP TRIGGER spy", "trigger \"spy\""},
        {"CREATE TRIGGER jobs_ready2 AFTER INSERT ON attempts BEGIN SELECT 1; END",
         "DROP TRIGGER jobs_ready2", "trigger \"jobs_ready2\""},
        {"CREATE VIEW todo AS SELECT * FROM jobs", "DROP VIEW todo", "view \"todo\""},
        {"CREATE TABLE notes (text TEXT)", "DROP TABLE notes", "table \"notes\""},
        {"CREATE UNIQUE INDEX once ON jobs (priority)", "DROP INDEX once", "index \"once\""},
        {"DROP INDEX outcomes_by_job", "CREATE INDEX outcomes_by_job ON outcomes (job)",
         "\"outcomes_by_job\" of version 1"},
        {"PRAGMA user_version = 3", "", "\"openings\" of version 4"},
        {"PRAGMA user_version = 1", "", "\"audit\" of version 2"},
        {"PRAGMA user_version = 0", "", "\"suites\" of version 1"},
    };
    char whole[64];

    set_path("changed.db");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    snprintf(whole, sizeof whole, "PRAGMA user_version = %zu", store_migrations_count);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        script(cases[i].change);
        expect_refused(cases[i].names);
        EXPECT_CONTAINS(error.text, "Nothing was changed");
        script(cases[i].back);
        script(whole);
        EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
        store->ops->close(store);
    }
    /* A version that was raised by hand: its tables lack what it should have made. */
    set_path("raised.db");
    script(store_migrations[0].text);
    snprintf(whole, sizeof whole, "PRAGMA application_id = 1398231638; PRAGMA user_version = 3");
    script(whole);
    expect_refused("\"audit\" of version 2");
    EXPECT_CONTAINS(error.text, "is missing");
}

/* The answers of two databases to a question for texts are the same; how many rows. */
static int64_t expect_same_answer(struct db *a, struct db *b, const char *sql)
{
    char text[2][8192];
    int64_t rows = 0;
    struct query one = query_begin_sql(a, sql);
    struct query other = query_begin_sql(b, sql);
    while (query_row(&one)) {
        EXPECT(query_row(&other));
        query_column_text(&one, 0, text[0], sizeof text[0]);
        query_column_text(&other, 0, text[1], sizeof text[1]);
        EXPECT_TEXT(text[0], text[1]);
        rows++;
    }
    EXPECT(!query_row(&other));
    EXPECT_OK(query_end(&one, &error), error);
    EXPECT_OK(query_end(&other, &error), error);
    return rows;
}

/* Goal: a new store, which is made whole, is the store that all migrations make. Method: both, side
 * by side: texts of tables and indexes, how many rows each table has, and the rows that are in. */
static void a_new_store_is_what_the_migrations_make(void)
{
    char sql[160];
    char table[64];
    int64_t tables = 0;
    struct db *stepped = NULL;
    struct db *made = NULL;

    set_path("stepped.db");
    unlink(path);
    for (size_t i = 0; i < store_migrations_count; i++) {
        script(store_migrations[i].text);
    }
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &stepped, &error), error);
    set_path("made.db");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &made, &error), error);
    EXPECT(expect_same_answer(stepped, made,
                              "SELECT type || ' ' || name || ' of ' || tbl_name || ': ' ||"
                              " COALESCE(sql, '') FROM sqlite_schema ORDER BY type, name") > 40);
    struct query query = query_begin_sql(stepped, "SELECT name FROM sqlite_schema WHERE type ="
                                                  " 'table' AND name NOT LIKE 'sqlite%'");
    while (query_row(&query)) {
        query_column_text(&query, 0, table, sizeof table);
        snprintf(sql, sizeof sql, "SELECT CAST(COUNT(*) AS TEXT) FROM %s", table);
        expect_same_answer(stepped, made, sql);
        tables++;
    }
    EXPECT_OK(query_end(&query, &error), error);
    EXPECT(tables > 20);
    EXPECT_INT(expect_same_answer(stepped, made,
                                  "SELECT pool || ' ' || device || ' ' || price_uusd_per_hour FROM"
                                  " prices ORDER BY pool, device"),
               6);
    db_close(stepped);
    db_close(made);
}

/* Goal: a store of the first version is brought forward with what it holds. Method: a database made
 * by the first migration alone, with a finished job in it. */
static void older_schemas_are_brought_forward(void)
{
    struct store_ledger_row rows[4];
    struct store_suite_status status;
    struct store_job job;
    struct store_outcome_filter filter = {.limit = 10};
    static struct outcome outcomes[10];
    uint32_t count = 0;

    set_path("older.db");
    unlink(path);
    script("PRAGMA journal_mode = WAL");
    script(store_migrations[0].text);
    script("PRAGMA application_id = 1398231638; PRAGMA user_version = 1;"
           "INSERT INTO suites (id, name, weight, jobs_done, rollouts_total, rollouts_pass)"
           " VALUES (1, 'a', 1, 1, 1, 1);"
           "INSERT INTO pools VALUES (1, 'bulk'); INSERT INTO workers VALUES (1, 'w', 1, 'cpu');"
           "INSERT INTO contexts VALUES (1, 'p', 'h', 'bulk', 1, '', '', 'cpu', 'r');"
           "INSERT INTO jobs (id, suite, pool, state, priority, rollouts, epoch, attempts, worker)"
           " VALUES (1, 1, 1, 2, 0, 1, 1, 1, 1);"
           "INSERT INTO job_specs (job, suite, key, scenario_id, context, seed, attempts_max)"
           " VALUES (1, 1, 'k', 's', 1, 7, 3);"
           "INSERT INTO attempts VALUES (1, 1, 1, 1, 'cpu', 1, 0, 3600, 50, 40000, 9, NULL, NULL,"
           " NULL);"
           "INSERT INTO ledger VALUES (1, 1, 'cpu', 1, 0, 1, 3600, 50, 9);"
           "INSERT INTO accounts VALUES (1, 'cpu', 40000, 0);"
           "INSERT INTO outcomes (job, epoch, suite, context, branch_id, verdict, reasons, ticks,"
           " prefix_ticks, metres_mm, device_ns, trace_hash, artifact_hash, weather, light, road,"
           " geography, actor, scenario_type, safety_critical, error, intervention_count,"
           " collision_count, collision_agent, collision_kind, at_fault, goal_reached)"
           " VALUES (1, 1, 1, 1, '', 0, 0, 9, 0, 50, 3600, 't', '', '', '', '', '', '', '', 0, '',"
           " 0, 0, -1, 0, 0, 1)");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    EXPECT_OK(store->ops->ledger(store, "a", rows, 4, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(rows[0].totals.cost_uusd, 9);
    EXPECT_INT(rows[0].totals.device_ns, 3600);
    EXPECT_INT(rows[0].totals.mflop, 0);
    EXPECT(!rows[0].audit);
    EXPECT_OK(store->ops->suite_status(store, "a", &status, &error), error);
    EXPECT_INT(status.rollouts[VERDICT_PASS], 1);
    EXPECT_INT(status.rollouts_audit, 0);
    EXPECT_OK(store->ops->job(store, 1, &job, &error), error);
    EXPECT_TEXT(job.spec.audit_key, "");
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].seed, 7);
    EXPECT_TEXT(outcomes[0].health_check, "");
    EXPECT_INT(outcomes[0].audit_of, 0);
    EXPECT_INT(outcomes[0].id, 1);
    EXPECT_INT(outcomes[0].ticks, 9);
    EXPECT(outcomes[0].metrics.goal_reached);
    EXPECT_INT(status.rollouts[VERDICT_INVALID], 0);
    store->ops->close(store);
    /* The table that was written again takes the verdict that there was not. */
    script("UPDATE outcomes SET verdict = 4; SELECT invalid_total FROM (SELECT rollouts_invalid AS"
           " invalid_total FROM suites)");
}

/* Goal: a row that is no outcome keeps nobody from a store of an earlier version: it stays what it
 * is, and what is whole is brought forward. Method: the schema before outcomes said what their
 * planners were given, with a partial outcome of each sort. */
static void damaged_partials_are_brought_forward(void)
{
    enum { BEFORE_GIVEN = 13 };
    char version[64];

    set_path("partials.db");
    unlink(path);
    script("PRAGMA journal_mode = WAL");
    for (size_t i = 0; i < BEFORE_GIVEN; i++) {
        script(store_migrations[i].text);
    }
    snprintf(version, sizeof version,
             "PRAGMA application_id = 1398231638; PRAGMA user_version = %d", BEFORE_GIVEN);
    script(version);
    script("PRAGMA foreign_keys = OFF;"
           "INSERT INTO partial_outcomes VALUES (1, 'a', 1, '{\"seed\":1}', x'00'),"
           " (1, 'b', 1, '{\"seed', x'00')");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    script(
        "CREATE TEMP TABLE good (ok CHECK (ok));"
        "INSERT INTO good SELECT outcome = '{\"seed\":1,\"given\":\"\"}' FROM partial_outcomes"
        " WHERE branch_id = 'a';"
        "INSERT INTO good SELECT outcome = '{\"seed' FROM partial_outcomes WHERE branch_id = 'b'");
}

/* Goal: files that are no stores are not turned into one. */
static void foreign_files_are_refused(void)
{
    set_path("other.db");
    script("CREATE TABLE notes (text)");
    expect_refused("not a job store");
    set_path("text.db");
    static char text[8192];
    memset(text, 'x', sizeof text);
    write_bytes(path, text, sizeof text);
    expect_refused("not a job store");
    set_path("byte.db"); /* SQLite itself takes it for an empty file */
    write_bytes(path, text, 1);
    expect_refused("not a job store");
    set_path("numbered.db");
    script("PRAGMA application_id = 7");
    expect_refused("not a job store");
    set_path("versioned.db");
    script("PRAGMA user_version = 3");
    expect_refused("not a job store");
    set_path("missing/store.db");
    EXPECT(store_sqlite_open(path, NULL, &store, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, path);
    EXPECT_INT(mkdir((set_path("folder.db"), path), 0700), 0);
    EXPECT(store_sqlite_open(path, NULL, &store, &error) != STATUS_OK);
    EXPECT(store_sqlite_open("", NULL, &store, &error) != STATUS_OK);
}

/* Goal: a damaged database is refused with advice and left as it is, closed cleanly or not. Method:
 * every page but the first in turn is overwritten; the store is empty, so every page is a root. */
static void damaged_databases_are_refused(void)
{
    static uint8_t whole[1 << 20];
    static uint8_t file[1 << 20];
    char log_path[160];
    int refused = 0;

    set_path("damaged.db");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    size_t size = read_bytes(path, whole, sizeof whole);
    size_t page = (size_t)whole[16] << 8 | whole[17];
    EXPECT(page >= 512 && size >= 4 * page);
    for (size_t at = page; at < size; at += page) {
        memcpy(file, whole, size);
        memset(file + at, 0xa5, page);
        write_bytes(path, file, size);
        expect_refused("damaged");
        EXPECT_INT(error.status, STATUS_STORE);
        EXPECT_CONTAINS(error.text, ".recover");
        refused++;
        snprintf(log_path, sizeof log_path, "%s-wal", path);
        unlink(log_path);
        snprintf(log_path, sizeof log_path, "%s-shm", path);
        unlink(log_path);
    }
    EXPECT(refused > 3);
    write_bytes(path, whole, size);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
}

/* Goal: a path is a path, never an SQLite URI or a database in memory. */
static void paths_are_only_paths(void)
{
    char here[256];

    EXPECT(getcwd(here, sizeof here) != NULL);
    EXPECT_INT(chdir(directory), 0);
    EXPECT_OK(store_sqlite_open("file:x?mode=memory", NULL, &store, &error), error);
    store->ops->close(store);
    EXPECT_INT(access("file:x?mode=memory", F_OK), 0);
    EXPECT_OK(store_sqlite_open(":memory:", NULL, &store, &error), error);
    store->ops->close(store);
    EXPECT_INT(access(":memory:", F_OK), 0);
    EXPECT_INT(chdir(here), 0);
}

/* Goal: an artifact with any byte changed or cut off is reported as damaged, never handed out. */
static void damaged_artifacts_are_reported(void)
{
    static const char text[] = "the same few words, the same few words, the same few words";
    static uint8_t file[4096];
    char hash[SHA256_HEX_BYTES];
    char name[256];
    void *data = NULL;
    size_t bytes = 0;

    set_path("artifacts.db");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    EXPECT_OK(store->ops->artifact_put(store, text, sizeof text, hash, &error), error);
    snprintf(name, sizeof name, "%s.artifacts/%.2s/%s.zst", path, hash, hash);
    size_t size = read_bytes(name, file, sizeof file);
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            file[i] ^= (uint8_t)(1 << bit);
            write_bytes(name, file, size);
            file[i] ^= (uint8_t)(1 << bit);
            enum status status = store->ops->artifact_get(store, hash, &data, &bytes, &error);
            if (status == STATUS_OK) { /* a bit that means nothing to zstd */
                bool same = bytes == sizeof text && memcmp(data, text, bytes) == 0;
                free(data);
                EXPECT(same);
            } else {
                EXPECT_INT(status, STATUS_IO);
                EXPECT_CONTAINS(error.text, "damaged");
            }
        }
    }
    EXPECT_CONTAINS((write_bytes(name, file, size / 2),
                     store->ops->artifact_get(store, hash, &data, &bytes, &error), error.text),
                    "delete this file and give the command again that made it (run, "
                    "golden make, model add)");
    /* An empty one counts as absent: the same contents are written again. */
    write_bytes(name, file, 0);
    EXPECT_OK(store->ops->artifact_put(store, text, sizeof text, hash, &error), error);
    EXPECT_OK(store->ops->artifact_get(store, hash, &data, &bytes, &error), error);
    free(data);
    for (size_t cut = 0; cut < size; cut++) {
        write_bytes(name, file, cut);
        EXPECT_INT(store->ops->artifact_get(store, hash, &data, &bytes, &error), STATUS_IO);
    }
    /* A name that is no file: neither waited for nor read. */
    for (int kind = 0; kind < 3; kind++) {
        struct artifact_reader *reader = NULL;
        bool packed = kind == 1;
        EXPECT_INT(unlink(name), 0);
        EXPECT_INT(kind == 0   ? mkfifo(name, 0600)
                   : kind == 1 ? symlink("/dev/zero", name)
                               : mkdir(name, 0700),
                   0);
        EXPECT_INT(store->ops->artifact_get(store, hash, &data, &bytes, &error), STATUS_IO);
        EXPECT_CONTAINS(error.text, "it is no file");
        EXPECT_INT(store->ops->artifact_read(store, hash, &packed, &reader, &bytes, &error),
                   STATUS_IO);
        EXPECT_INT(kind == 2 ? rmdir(name) : unlink(name), 0);
        write_bytes(name, file, size);
    }
    /* One that claims to be larger than any artifact may be. */
    static const uint8_t bomb[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0};
    write_bytes(name, bomb, sizeof bomb);
    EXPECT_INT(store->ops->artifact_get(store, hash, &data, &bytes, &error), STATUS_IO);
    EXPECT_CONTAINS(error.text, "limit");
    write_bytes(name, file, size);
    EXPECT_OK(store->ops->artifact_get(store, hash, &data, &bytes, &error), error);
    free(data);
    store->ops->close(store);
}

/* Goal: what an interrupted write left behind goes away. */
static void unfinished_artifacts_are_removed(void)
{
    char name[256];

    set_path("unfinished.db");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    snprintf(name, sizeof name, "%s.artifacts/unfinished/half", path);
    write_bytes(name, "x", 1);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    EXPECT(access(name, F_OK) != 0);
}

/* Goal: an artifact is kept where somebody has tidied the folder of unfinished ones away. */
static void a_folder_that_was_tidied_away_is_made_again(void)
{
    char name[256];
    char hash[SHA256_HEX_BYTES];

    set_path("tidied.db");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    snprintf(name, sizeof name, "%s.artifacts/unfinished", path);
    EXPECT_INT(rmdir(name), 0);
    EXPECT_OK(store->ops->artifact_put(store, "x", 1, hash, &error), error);
    store->ops->close(store);
}

/* Goal: a log whose database is missing or empty is no reason for a new store: SQLite would remove
 * it. Both are left as they are, and with its database the log counts again. */
static void a_log_without_its_database_is_kept(void)
{
    char log[160];
    char aside[160];
    struct stat info;

    set_path("torn.db");
    snprintf(log, sizeof log, "%s-wal", path);
    snprintf(aside, sizeof aside, "%s.aside", path);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    EXPECT_INT(rename(path, aside), 0);
    write_bytes(log, "log", 3);
    for (int empty = 0; empty <= 1; empty++) {
        if (empty) {
            write_bytes(path, "", 0);
        }
        EXPECT_INT(store_sqlite_open(path, NULL, &store, &error), STATUS_STORE);
        EXPECT_CONTAINS(error.text, log);
        EXPECT_CONTAINS(error.text, empty ? "its database is empty" : "its database is not");
        EXPECT(stat(log, &info) == 0 && info.st_size == 3);
        EXPECT(empty || access(path, F_OK) != 0);
    }
    EXPECT_INT(unlink(log), 0);
    EXPECT_INT(rename(aside, path), 0);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
}

/* Goal: names that no JSON can carry are refused, lest nobody can ask for them. */
static void names_are_utf8(void)
{
    static const char *const names[] = {"\xff", "a\xc3", "\xed\xa0\x80"};

    set_path("names.db");
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct tenant tenant = {.weight = 1};
        snprintf(tenant.name, sizeof tenant.name, "%s", names[i]);
        EXPECT_INT(store->ops->tenant_set(store, &tenant, TENANT_SETTINGS, &error),
                   STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "UTF-8");
        EXPECT_INT(store->ops->submit(store, names[i], 1, NULL, 0, NULL, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "UTF-8");
        EXPECT_INT(store->ops->submit_as(store, names[i], "suite", 1, SUITE_CLASS_SAME, 0, NULL, 0,
                                         NULL, &error),
                   STATUS_BAD_INPUT);
    }
    EXPECT_OK(store->ops->submit(store, "s\xc3\xa4tze", 1, NULL, 0, NULL, &error), error);
    store->ops->close(store);
}

enum { READERS = 6, READS = 20 };

static pthread_barrier_t barrier;

static void *read_often(void *context)
{
    bool *ok = context;
    struct error own;
    char ids[4][LIMIT_ID_BYTES];
    uint32_t count = 1;

    pthread_barrier_wait(&barrier);
    *ok = true;
    for (int i = 0; i < READS; i++) {
        *ok = *ok && store->ops->suites(store, ids, 4, &count, &own) == STATUS_OK && count == 0;
    }
    return NULL;
}

/* Goal: the first reads of a store, which open its readers, may come from many threads at once.
 * Method: all start together, several times; the thread sanitizer watches. */
static void first_reads_come_together(void)
{
    pthread_t threads[READERS];
    bool ok[READERS];

    for (int round = 0; round < 20; round++) {
        set_path("readers.db");
        EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
        pthread_barrier_init(&barrier, NULL, READERS);
        for (int i = 0; i < READERS; i++) {
            EXPECT(pthread_create(&threads[i], NULL, read_often, &ok[i]) == 0);
        }
        for (int i = 0; i < READERS; i++) {
            pthread_join(threads[i], NULL);
            EXPECT(ok[i]);
        }
        pthread_barrier_destroy(&barrier);
        store->ops->close(store);
    }
}

/* ---- leases across openings ---- */

enum { OPENING_MS = 4000 }; /* long enough to count, shorter than a lease */

static void open_again(const struct store_config *config)
{
    store->ops->close(store);
    EXPECT_OK(store_sqlite_open(path, config, &store, &error), error);
}

static enum job_state state_of(int64_t job_id)
{
    static struct store_job job;
    EXPECT_OK(store->ops->job(store, job_id, &job, &error), error);
    return job.state;
}

/* Goal: a lease keeps its age: what an opening has heard nothing of it, in fifths, is not waited
 * for again by the next. Method: an opening of three fifths, and one of a little more than the
 * rest. */
static void leases_keep_their_age(void)
{
    struct manual_clock manual;
    const struct store_config config = {.clock = &manual.clock, .lease_ttl_ms = 15000};
    const struct store_worker dead = {.worker_id = "dead", .pool = "bulk", .device = "cpu"};
    const struct store_worker other = {.worker_id = "o", .pool = "bulk", .device = "cpu"};
    struct job_spec spec = {.key = "key",
                            .suite_id = "s",
                            .scenario_id = "a",
                            .planner = "p",
                            .pool = "bulk",
                            .backend = "cpu",
                            .rollout_count = 1,
                            .attempts_max = 1};
    struct store_submit_result result;
    struct store_awaited awaited;
    static struct job_lease lease;
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    manual_clock_init(&manual);
    set_path("age.db");
    EXPECT_OK(store_sqlite_open(path, &config, &store, &error), error);
    EXPECT_OK(store->ops->submit(store, "s", 1, &spec, 1, &result, &error), error);
    EXPECT_OK(
        store->ops->claim(store, &dead, fresh_claim_id(), 1, 0, &lease, &count, &ttl_ms, &error),
        error);
    EXPECT(count == 1);
    for (int opening = 0; opening < 3; opening++) {
        open_again(&config);
        EXPECT_OK(store->ops->awaited(store, &other, 0, &awaited, &error), error);
        EXPECT_INT(awaited.silent_ms, opening == 0 ? 15000 : 6000);
        manual_clock_advance(&manual, (opening == 0   ? 9500
                                       : opening == 1 ? 2500
                                                      : 6000) *
                                          NS_PER_MS);
        EXPECT_OK(store->ops->heartbeat(store, &other, NULL, 0, NULL, NULL, &ttl_ms, &error),
                  error);
        EXPECT((state_of(lease.job_id) == JOB_QUEUED) == (opening == 2));
    }
    store->ops->close(store);
}

/* Goal: a store that is opened again and again before any lease ends takes back the jobs of workers
 * that are gone, and of no others; openings too short to hear of anybody change nothing. Method: a
 * clock of our own, on which each opening lasts for less than a lease; one of two workers sends a
 * heartbeat in every opening but the short ones. The sweep comes before the heartbeat. */
static void the_dead_do_not_live_by_restarts(void)
{
    struct manual_clock manual;
    const struct store_config config = {.clock = &manual.clock};
    const struct store_worker workers[2] = {
        {.worker_id = "living", .pool = "bulk", .device = "cpu"},
        {.worker_id = "dead", .pool = "bulk", .device = "cpu"}};
    struct job_spec specs[2];
    struct store_submit_result results[2];
    static struct job_lease leases[2];
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    manual_clock_init(&manual);
    set_path("restarts.db");
    EXPECT_OK(store_sqlite_open(path, &config, &store, &error), error);
    for (int i = 0; i < 2; i++) {
        memset(&specs[i], 0, sizeof specs[i]);
        snprintf(specs[i].key, sizeof specs[i].key, "key-%d", i);
        strcpy(specs[i].suite_id, "s");
        strcpy(specs[i].scenario_id, "a");
        strcpy(specs[i].planner, "p");
        strcpy(specs[i].pool, "bulk");
        strcpy(specs[i].backend, "cpu");
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 1;
    }
    EXPECT_OK(store->ops->submit(store, "s", 1, specs, 2, results, &error), error);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(store->ops->heartbeat(store, &workers[i], NULL, 0, NULL, NULL, &ttl_ms, &error),
                  error);
        EXPECT_OK(store->ops->claim(store, &workers[i], fresh_claim_id(), 1, 0, &leases[i], &count,
                                    &ttl_ms, &error),
                  error);
        EXPECT(count == 1);
    }
    for (int opening = 1; opening <= 8; opening++) {
        for (int quick = 0; quick < 5; quick++) {
            open_again(&config);
        }
        manual_clock_advance(&manual, OPENING_MS * NS_PER_MS);
        EXPECT_OK(store->ops->heartbeat(store, &workers[0], NULL, 0, NULL, NULL, &ttl_ms, &error),
                  error);
        EXPECT(state_of(leases[0].job_id) == JOB_LEASED);
        EXPECT((state_of(leases[1].job_id) == JOB_QUEUED) == (opening > 4));
    }
    store->ops->close(store);
}

/* Goal: a worker that was heard of is not counted among the dead at the next opening, although it
 * held jobs through others before. Method: its first job goes back after three openings without a
 * word from it. */
static void the_living_are_not_taken_for_dead(void)
{
    struct manual_clock manual;
    const struct store_config config = {.clock = &manual.clock};
    const struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    const struct store_worker other = {.worker_id = "o", .pool = "bulk", .device = "cpu"};
    struct job_spec spec = {.key = "key",
                            .suite_id = "s",
                            .scenario_id = "a",
                            .planner = "p",
                            .pool = "bulk",
                            .backend = "cpu",
                            .rollout_count = 1,
                            .attempts_max = 1};
    struct store_submit_result result;
    static struct job_lease lease;
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    manual_clock_init(&manual);
    set_path("living.db");
    EXPECT_OK(store_sqlite_open(path, &config, &store, &error), error);
    EXPECT_OK(store->ops->submit(store, "s", 1, &spec, 1, &result, &error), error);
    for (int round = 0; round < 2; round++) {
        EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, &lease, &count, &ttl_ms,
                                    &error),
                  error);
        EXPECT(count == 1);
        for (int opening = 0; opening < (round == 0 ? 3 : 1); opening++) {
            open_again(&config);
            manual_clock_advance(&manual, OPENING_MS * NS_PER_MS);
            EXPECT_OK(store->ops->heartbeat(store, &other, NULL, 0, NULL, NULL, &ttl_ms, &error),
                      error);
        }
        EXPECT(state_of(lease.job_id) == JOB_LEASED);
        EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
        open_again(&config); /* nothing in memory of it, and it holds nothing */
    }
    store->ops->close(store);
}

/* Goal: a ledger that holds the largest numbers still takes the next attempt, so leases end. */
static void a_full_ledger_ends_leases(void)
{
    const struct store_config config = {.bill_slack_ms = 1000000000};
    const struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    struct job_spec spec = {.key = "key",
                            .suite_id = "s",
                            .scenario_id = "a",
                            .planner = "p",
                            .pool = "bulk",
                            .backend = "cpu",
                            .rollout_count = 1,
                            .attempts_max = 9};
    struct store_submit_result submitted;
    struct store_completion_result result;
    static struct job_lease lease;
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    set_path("full-ledger.db");
    EXPECT_OK(store_sqlite_open(path, &config, &store, &error), error);
    EXPECT_OK(store->ops->submit(store, "s", 1, &spec, 1, &submitted, &error), error);
    for (int round = 0; round < 2; round++) {
        EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, &lease, &count, &ttl_ms,
                                    &error),
                  error);
        EXPECT_INT(count, 1);
        struct job_completion completion = {.job_id = lease.job_id,
                                            .epoch = lease.epoch,
                                            .worker_id = "w",
                                            .kind = COMPLETION_RELEASED,
                                            .device_ns = LEDGER_ATTEMPT_NS_MAX,
                                            .metres_mm = LEDGER_ATTEMPT_MM_MAX,
                                            .mflop = LEDGER_ATTEMPT_MFLOP_MAX};
        EXPECT_OK(store->ops->complete(store, &completion, 1, &result, &error), error);
        EXPECT_INT(result.status, STATUS_OK);
        EXPECT(state_of(lease.job_id) == JOB_QUEUED);
        if (round == 0) {
            store->ops->close(store);
            script("UPDATE ledger SET device_ns = 9223372036854775000;"
                   "UPDATE ledger_totals SET device_ns = 9223372036854775000, mflop = device_ns");
            EXPECT_OK(store_sqlite_open(path, &config, &store, &error), error);
        }
    }
    store->ops->close(store);
}

/* Goal: the benchmark's bare side runs the store's statements, with as many parameters as they
 * have: it is changed with them. */
static void the_benchmark_keeps_up_with_the_statements(void)
{
    struct store_bench_result result;
    EXPECT_OK(store_bench(&(struct bench_place){.directory = directory}, 8, 4, &result, &error),
              error);
    EXPECT(result.store_jobs_per_s > 0 && result.bare_jobs_per_s > 0);
}

int main(void)
{
    char command[128];

    if (mkdtemp(directory) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    int failed = TEST_RUN(
        TEST(newer_schemas_are_refused), TEST(changed_schemas_are_diagnosed),
        TEST(a_new_store_is_what_the_migrations_make), TEST(older_schemas_are_brought_forward),
        TEST(damaged_partials_are_brought_forward), TEST(foreign_files_are_refused),
        TEST(damaged_databases_are_refused), TEST(paths_are_only_paths),
        TEST(damaged_artifacts_are_reported), TEST(unfinished_artifacts_are_removed),
        TEST(a_folder_that_was_tidied_away_is_made_again), TEST(a_log_without_its_database_is_kept),
        TEST(names_are_utf8), TEST(first_reads_come_together), TEST(leases_keep_their_age),
        TEST(the_dead_do_not_live_by_restarts), TEST(the_living_are_not_taken_for_dead),
        TEST(a_full_ledger_ends_leases), TEST(the_benchmark_keeps_up_with_the_statements));
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) == 0 ? failed : 1;
}
