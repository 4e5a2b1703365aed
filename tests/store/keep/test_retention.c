/*
 * Goal: a retention policy is read strictly; of the artifacts that outcomes name it lets go exactly
 * those that no rule keeps any longer, and their absence is explained: no damage to `swerve check`,
 * "gone" to readers, also in a backup and after a restore.
 *
 * Method: a store whose jobs differ in what rules look at, with files made old; what is there
 * afterwards is compared with a list. Processes are ended after every step.
 */
#include "base/check.h"
#include "schemas/job_context.h"
#include "store/keep/backup.h"
#include "store/keep/gc.h"
#include "store/keep/keep_files.h"
#include "store/keep/retention.h"
#include "store/sql/sqlite_db.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/keep/keep_support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum job { PASS_CLEAR, FAIL_CLEAR, PASS_RAIN, PASS_CRITICAL, TWO_ROLLOUTS, JOBS };

enum { DAY_S = 86400 };

static char root[64];
static char path[128];
static char artifacts[160];
static char hashes[JOBS][SHA256_HEX_BYTES];
static struct error error;
static struct keep_gc_summary summary;
static struct retention_policy policy;
static struct keep_gc_options apply = {.apply = true, .older_than_s = DAY_S, .policy = &policy};

static const char rules[] = "{\"format\": \"swerve-retention/1\", \"rules\": ["
                            "{\"safety_critical\": true, \"keep_days\": null},"
                            "{\"verdict\": [\"pass\"], \"weather\": \"clear\", \"keep_days\": 3},"
                            "{\"verdict\": [\"pass\", \"flagged\"], \"keep_days\": 10}]}";

static enum status load(const char *text)
{
    char file[128];
    snprintf(file, sizeof file, "%s/policy.json", root);
    FILE *out = fopen(file, "w");
    CHECK(out != NULL);
    fputs(text, out);
    fclose(out);
    return retention_policy_load(file, &policy, &error);
}

static void policies_are_read_strictly(void)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"[]", "expected an object"},
        {"{\"rules\": []}", "$.format: expected"},
        {"{\"format\": \"swerve-retention/2\", \"rules\": []}", "found \"swerve-retention/2\""},
        {"{\"format\": \"swerve-retention/1\"}", "$.rules"},
        {"{\"format\": \"swerve-retention/1\", \"rules\": []}", "$.rules: expected"},
        {"{\"format\": \"swerve-retention/1\", \"rules\": [{}]}", "$.rules[0].keep_days"},
        {"{\"format\": \"swerve-retention/1\", \"rules\": [{\"keep_days\": -1}]}", "keep_days"},
        {"{\"format\": \"swerve-retention/1\", \"rules\": [{\"keep_days\": 1.5}]}", "keep_days"},
        {"{\"format\": \"swerve-retention/1\", \"rules\": [{\"keep_days\": 1, \"wether\": \"\"}]}",
         "did you mean \"weather\""},
        {"{\"format\": \"swerve-retention/1\", \"rules\": [{\"keep_days\": 1, \"light\": "
         "\"nite\"}]}",
         "$.rules[0].light: expected one of"},
        {"{\"format\": \"swerve-retention/1\", \"rules\": [{\"keep_days\": 1, \"verdict\": []}]}",
         "$.rules[0].verdict"},
        {"{\"format\": \"swerve-retention/1\", \"rules\": [{\"keep_days\": 1, \"road\": \"\"}]}",
         "$.rules[0].road: expected a value"},
        {"{\"format\": \"swerve-retention/1\", \"rules\": [{\"keep_days\": 1, \"tier\": [\"x\"]}]}",
         "$.rules[0].tier[0]: expected one of"},
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        enum status status = load(bad[i].text);
        EXPECT(status == STATUS_BAD_INPUT || status == STATUS_LIMIT);
        EXPECT_CONTAINS(error.text, bad[i].says);
        EXPECT_CONTAINS(error.text, "policy.json");
    }
    EXPECT_OK(load(rules), error);
    EXPECT_INT(policy.count, 3);
}

/* ---- a store ---- */

static void set_age(const char *hash, int days)
{
    char file[KEEP_PATH_BYTES];
    struct timespec times[2] = {{.tv_sec = time(NULL) - (time_t)days * DAY_S - 60}, {.tv_sec = 0}};
    times[1] = times[0];
    keep_artifact_path(artifacts, hash, file);
    utimensat(AT_FDCWD, file, times, 0);
}

static bool there(const char *hash)
{
    char file[KEEP_PATH_BYTES];
    keep_artifact_path(artifacts, hash, file);
    return access(file, F_OK) == 0;
}

static bool marked(const char *hash)
{
    char file[KEEP_PATH_BYTES];
    snprintf(file, sizeof file, "%s/%.2s/%s.gone", artifacts, hash, hash);
    return access(file, F_OK) == 0;
}

static struct outcome outcome_of(int job)
{
    struct outcome outcome = {.verdict = job == FAIL_CLEAR ? VERDICT_FAIL : VERDICT_PASS,
                              .reasons = job == FAIL_CLEAR ? REASON_SCORE : 0,
                              .ticks = 10,
                              .safety_critical = job == PASS_CRITICAL};
    strcpy(outcome.slice[SLICE_WEATHER], job == PASS_RAIN ? "rain" : "clear");
    return outcome;
}

/* Those of PASS_CLEAR and PASS_RAIN, which go together, share a directory: the collector marks both
 * before it takes one. */
static void put(struct store *store, int job)
{
    char text[32];
    char hash[SHA256_HEX_BYTES] = "";
    int bytes = 0;

    for (int salt = 0; salt == 0 || (job == PASS_RAIN && strncmp(hash, hashes[PASS_CLEAR], 2) != 0);
         salt++) {
        bytes = snprintf(text, sizeof text, "trace %d %d", job, salt);
        sha256_hex(text, (size_t)bytes, hash);
    }
    EXPECT_OK(store->ops->artifact_put(store, text, (size_t)bytes, hashes[job], &error), error);
}

/* Five jobs done: pass in clear weather, fail, pass in rain, a safety-critical pass, and one of two
 * rollouts, of which the failed one wants the artifact for ever. */
static struct store *make(int age_days)
{
    static struct job_spec specs[JOBS];
    static struct store_submit_result results[JOBS];
    static struct job_lease leases[JOBS];
    struct store_worker worker = {.pool = "bulk", .device = "cpu", .worker_id = "keeper"};
    int64_t ttl_ms = 0;
    uint32_t count = 0;

    EXPECT_OK(keep_remove_tree(root, &error), error);
    EXPECT_OK(keep_directory(root, &error), error);
    EXPECT_OK(load(rules), error);
    struct store *store = keep_open(path);
    memset(specs, 0, sizeof specs);
    for (int i = 0; i < JOBS; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "k-%d", i);
        snprintf(specs[i].scenario_id, sizeof specs[i].scenario_id, "s-%d", i);
        strcpy(specs[i].pool, "bulk");
        specs[i].rollout_count = i == TWO_ROLLOUTS ? 2 : 1;
        specs[i].attempts_max = 3;
    }
    EXPECT_OK(store->ops->submit(store, "suite", 1, specs, JOBS, results, &error), error);
    EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), JOBS, 0, leases, &count, &ttl_ms,
                                &error),
              error);
    EXPECT_INT(count, JOBS);
    for (uint32_t i = 0; i < count; i++) {
        int job = leases[i].spec.key[2] - '0';
        struct outcome outcomes[2] = {outcome_of(job), outcome_of(FAIL_CLEAR)};
        struct store_completion_result result = {.status = STATUS_IO};
        struct job_completion completion = {.job_id = leases[i].job_id,
                                            .epoch = leases[i].epoch,
                                            .worker_id = "keeper",
                                            .device_ns = 1,
                                            .outcomes = outcomes,
                                            .outcome_count = job == TWO_ROLLOUTS ? 2 : 1};
        put(store, job);
        job_context_copy(&leases[i].spec, &outcomes[0]);
        job_context_copy(&leases[i].spec, &outcomes[1]);
        strcpy(outcomes[1].branch_id, "brake");
        memcpy(outcomes[0].artifact_hash, hashes[job], SHA256_HEX_BYTES);
        memcpy(outcomes[1].artifact_hash, hashes[job], SHA256_HEX_BYTES);
        memcpy(completion.artifact_hash, hashes[job], SHA256_HEX_BYTES);
        EXPECT_OK(store->ops->complete(store, &completion, 1, &result, &error), error);
        EXPECT_INT(result.status, STATUS_OK);
    }
    for (int i = 0; i < JOBS; i++) {
        set_age(hashes[i], age_days);
    }
    return store;
}

static void expect_there(bool clear, bool fail, bool rain, bool critical, bool shared)
{
    const bool expected[JOBS] = {clear, fail, rain, critical, shared};
    for (int i = 0; i < JOBS; i++) {
        EXPECT_INT(there(hashes[i]), expected[i]);
        EXPECT_INT(marked(hashes[i]), !expected[i]);
    }
    EXPECT_INT(keep_faults(path, NULL, NULL), 0);
}

static void the_first_rule_decides(void)
{
    struct keep_gc_options dry = apply;
    dry.apply = false;

    struct store *store = make(2);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error); /* beside the store's owner */
    expect_there(true, true, true, true, true);
    for (int i = 0; i < JOBS; i++) {
        set_age(hashes[i], 5);
    }
    EXPECT_OK(keep_gc(path, &dry, &summary, &error), error);
    EXPECT_INT(summary.expired.files, 1);
    static const int64_t met[] = {1, 2, 1, 2}; /* outcomes by rule, and of none */
    for (size_t i = 0; i < COUNT_OF(met); i++) {
        EXPECT_INT(summary.met[i], met[i]);
    }
    expect_there(true, true, true, true, true);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    EXPECT_INT(summary.taken.files, 1);
    expect_there(false, true, true, true, true);
    for (int i = 0; i < JOBS; i++) {
        set_age(hashes[i], 4000);
    }
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    EXPECT_INT(summary.taken.files, 1);
    expect_there(false, true, false, true, true);
    apply.policy = NULL;
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    apply.policy = &policy;
    expect_there(false, true, false, true, true);
    store->ops->close(store);
}

static void audited_drives_stay(void)
{
    struct db *db = NULL;

    struct store *store = make(4000);
    store->ops->close(store);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(
        sqlite_db_script(db, "UPDATE job_specs SET audit_key = 'k-0' WHERE key = 'k-2'", &error),
        error);
    db_close(db);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    EXPECT_INT(summary.taken.files, 0);
    EXPECT(there(hashes[0]) && there(hashes[2]));
}

static void found(void *context, const struct store_check_finding *finding)
{
    (void)context;
    EXPECT(finding->note);
}

static void what_went_is_said_and_can_come_back(void)
{
    char backup[128];
    char again[128];
    void *data = NULL;
    size_t bytes = 0;
    struct keep_options options = {.found = found};
    struct keep_summary copied;

    struct store *store = make(4000);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    EXPECT_INT(store->ops->artifact_get(store, hashes[0], &data, &bytes, &error), STATUS_GONE);
    EXPECT_CONTAINS(error.text, "retention let the artifact go on 2");
    snprintf(backup, sizeof backup, "%s/backup", root);
    snprintf(again, sizeof again, "%s/again.db", root);
    EXPECT_OK(keep_backup(path, backup, &options, &copied, &error), error);
    EXPECT_OK(keep_restore(backup, again, &options, &copied, &error), error);
    EXPECT_INT(copied.check.let_go, 2);
    EXPECT_INT(keep_faults(again, NULL, NULL), 0);
    put(store, 0);
    expect_there(true, true, false, true, true);
    EXPECT_OK(keep_backup(path, backup, &options, &copied, &error), error);
    EXPECT_INT(copied.check.let_go, 1);
    store->ops->close(store);
}

static void mark(const char *hash, bool directory)
{
    char file[KEEP_PATH_BYTES];
    snprintf(file, sizeof file, "%s/%.2s/%s.gone", artifacts, hash, hash);
    EXPECT_INT(directory ? mkdir(file, 0777) : mknod(file, S_IFREG | 0666, 0), 0);
}

/* A mark beside an artifact that stays would excuse its loss. */
static void marks_stand_for_what_went_alone(void)
{
    char backup[128];
    struct keep_options options = {.found = found, .replace = true};
    struct keep_summary copied;

    struct store *store = make(4000);
    mark(hashes[FAIL_CLEAR], false); /* of a collector that ended, say */
    snprintf(backup, sizeof backup, "%s/backup", root);
    EXPECT_OK(keep_backup(path, backup, &options, &copied, &error), error);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    expect_there(false, true, false, true, true);
    store->ops->close(store);
    EXPECT_OK(keep_restore(backup, path, &options, &copied, &error), error); /* brings all back */
    expect_there(true, true, true, true, true);

    EXPECT_OK(keep_remove_tree(backup, &error), error);
    store = make(4000);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    EXPECT_OK(keep_backup(path, backup, &options, &copied, &error), error);
    put(store, PASS_CLEAR); /* is back since */
    store->ops->close(store);
    EXPECT_OK(keep_restore(backup, path, &options, &copied, &error), error);
    expect_there(true, true, false, true, true);
}

static void what_cannot_be_marked_stays(void)
{
    struct store *store = make(4000);
    mark(hashes[PASS_CLEAR], true);
    mark(hashes[PASS_RAIN], true);
    EXPECT_INT(keep_gc(path, &apply, &summary, &error), STATUS_IO);
    EXPECT_CONTAINS(error.text, "cannot mark an artifact");
    EXPECT(there(hashes[PASS_CLEAR]) && there(hashes[PASS_RAIN]));
    store->ops->close(store);
}

/* ---- in the middle of it ---- */

static void end(void *context)
{
    int *left = context;
    if (--*left == 0) {
        _exit(9);
    }
}

static void one_that_ends_leaves_nothing_unexplained(void)
{
    for (int steps = 1; steps <= 2; steps++) {
        int left = steps;
        int state = 0;
        struct store *store = make(4000);
        store->ops->close(store);
        pid_t child = fork();
        if (child == 0) {
            struct keep_gc_options options = apply;
            options.step = end;
            options.context = &left;
            keep_gc(path, &options, &summary, &error);
            _exit(0);
        }
        EXPECT(child > 0 && waitpid(child, &state, 0) == child);
        EXPECT(WIFEXITED(state) && WEXITSTATUS(state) == 9);
        EXPECT_INT(keep_faults(path, NULL, NULL), 0);
        EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
        expect_there(false, true, false, true, true);
    }
}

static void touch(void *context)
{
    (void)context;
    set_age(hashes[0], 0);
    set_age(hashes[2], 0);
}

static void one_that_is_asked_for_in_the_last_moment_stays(void)
{
    struct keep_gc_options options = apply;
    struct store *store = make(4000);

    options.step = touch;
    EXPECT_OK(keep_gc(path, &options, &summary, &error), error);
    EXPECT_INT(summary.expired.files, 2); /* both were marked */
    EXPECT_INT(summary.taken.files, 0);
    expect_there(true, true, true, true, true); /* nor does a mark excuse what happens later */
    store->ops->close(store);
}

int main(void)
{
    snprintf(root, sizeof root, "%s", keep_directory_new());
    snprintf(path, sizeof path, "%s/store.db", root);
    snprintf(artifacts, sizeof artifacts, "%s/store.db.artifacts", root);
    return TEST_RUN(TEST(policies_are_read_strictly), TEST(the_first_rule_decides),
                    TEST(audited_drives_stay), TEST(what_went_is_said_and_can_come_back),
                    TEST(marks_stand_for_what_went_alone), TEST(what_cannot_be_marked_stays),
                    TEST(one_that_ends_leaves_nothing_unexplained),
                    TEST(one_that_is_asked_for_in_the_last_moment_stays));
}
