/*
 * The store when memory runs out.
 *
 * Method: each call of the store's table is made on a store that was just opened, with the Nth
 * allocation failing (memory.h), once or from then on: through the embedded face; through a client
 * and a server on a Unix socket in this process, where the allocations of both sides count; and
 * through both roles of the election of a path's owner. A call that fails says why; repeated with
 * memory there it succeeds; what it answers is what it answers with plenty of memory; and what it
 * changed was changed once. The address sanitizer's build watches for leaks.
 *
 * A play starts from the bytes of a database that was prepared once for its call, so that every
 * play meets the same store, however many there were before.
 *
 * Usage: test_memory embedded|http|owner|client [places|STEP [CALL]]: the first allocation of each
 * place (memory.h) fails, or, after the first few, every STEPth (default: every one); in one call
 * of the table, or "open".
 */
#include "store/store.h"
#include "tests/harness.h"
#include "tests/store/http_support.h"
#include "tests/store/invariants.h"
#include "tests/store/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    JOBS = 4,
    ROWS = 32,
    RESULT_BYTES = 1 << 20,
    FIRST_ONES = 12,
    ALLOCATIONS_MAX = 100000,
    ROUNDS_MAX = 4, /* of listing places and failing them */
    HANG_S = 100,
};

enum face { FACE_EMBEDDED = 0, FACE_HTTP, FACE_OWNER, FACE_CLIENT, FACE_COUNT };

static const char *const face_names[FACE_COUNT] = {"embedded", "http", "owner", "client"};
static enum face face;
static int64_t step = 1; /* 0: by places */
static const char *only; /* this call; NULL: all, and opening */

static char path[128];
static char socket_path[128];
static struct store *behind;
static struct store_server *server;
static struct store *store;
static struct error error;
static uint64_t plays;
static int64_t allocations; /* of calls that met no failure */
static size_t missed;       /* places that never failed */
static char playing[128];
static uint8_t *prepared; /* the database that each play starts from */
static size_t prepared_bytes;

/* The play's own names, so that plays on one file do not meet. */
static int serial;
static struct store_worker worker;
static struct job_spec specs[JOBS];
static struct store_submit_result submitted[JOBS];
static struct job_lease leases[JOBS];
static uint32_t lease_count;
static struct outcome outcomes[JOBS][2];
static struct job_completion completions[JOBS];
static struct store_completion_result completed[JOBS];
static int64_t told[2 * JOBS]; /* ids of leases that a claim answered with */
static uint32_t told_count;
static char artifact[SHA256_HEX_BYTES];
static uint8_t artifact_data[3000];
static char scenario_hash[SHA256_HEX_BYTES];
static const char scenario_body[] = "{\"id\":\"memory\"}";
static int64_t suite_jobs;           /* in the prepared database */
static uint8_t result[RESULT_BYTES]; /* what the call answered */
static uint8_t first_result[RESULT_BYTES];
static size_t result_bytes;

/* ---- faces ---- */

static enum status open_server(int listen_fd)
{
    char url[160];
    enum status status = store_sqlite_open(path, NULL, &behind, &error);

    if (status != STATUS_OK) {
        behind = NULL;
        close(listen_fd);
        return status;
    }
    snprintf(url, sizeof url, "unix:%s", socket_path);
    status = store_server_start(behind, listen_fd, NULL, &server, &error);
    if (status != STATUS_OK) {
        server = NULL;
        return status;
    }
    return store_http_open(url, NULL, &store, &error);
}

/* listen_fd: for the HTTP face, made while there was memory. */
static enum status open_all(int listen_fd)
{
    enum status status = STATUS_OK;

    if (face == FACE_EMBEDDED) {
        status = store_sqlite_open(path, NULL, &store, &error);
    } else if (face == FACE_HTTP) {
        status = open_server(listen_fd);
    } else if (face == FACE_OWNER) {
        status = store_open(path, NULL, &store, &error);
    } else {
        status = store_open(path, NULL, &behind, &error);
        if (status == STATUS_OK) {
            status = store_open(path, NULL, &store, &error);
        } else {
            behind = NULL;
        }
    }
    if (status != STATUS_OK) {
        store = NULL;
    }
    return status;
}

static void close_all(void)
{
    if (store != NULL) {
        store->ops->close(store);
    }
    store_server_stop(server);
    if (behind != NULL) {
        behind->ops->close(behind);
    }
    store = NULL;
    server = NULL;
    behind = NULL;
}

static void open_well(void)
{
    EXPECT_OK(open_all(face == FACE_HTTP ? support_listen(socket_path) : -1), error);
}

/* ---- the file that each play starts from ---- */

static void remove_file(const char *suffix)
{
    char name[160];

    snprintf(name, sizeof name, "%s%s", path, suffix);
    unlink(name);
}

static void remove_database(void)
{
    remove_file("");
    remove_file("-wal");
    remove_file("-shm");
}

static void keep_database(void)
{
    struct stat info;
    int fd = open(path, O_RDONLY);

    free(prepared);
    prepared = NULL;
    EXPECT(fd >= 0 && fstat(fd, &info) == 0);
    prepared_bytes = (size_t)info.st_size;
    prepared = malloc(prepared_bytes);
    EXPECT(prepared != NULL);
    EXPECT_INT(read(fd, prepared, prepared_bytes), prepared_bytes);
    close(fd);
}

static void restore_database(void)
{
    remove_database();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    EXPECT(fd >= 0);
    EXPECT_INT(write(fd, prepared, prepared_bytes), prepared_bytes);
    close(fd);
}

/* The artifact's file and its directory, so that both have to be made again. */
static void remove_artifact(void)
{
    char name[256];

    snprintf(name, sizeof name, "%s.artifacts/%.2s/%s.zst", path, artifact, artifact);
    EXPECT_INT(unlink(name), 0);
    *strrchr(name, '/') = '\0';
    EXPECT_INT(rmdir(name), 0);
}

/* ---- what precedes a call ---- */

static void name_play(void)
{
    serial++;
    memset(&worker, 0, sizeof worker);
    snprintf(worker.worker_id, sizeof worker.worker_id, "worker-%d", serial);
    snprintf(worker.pool, sizeof worker.pool, "pool-%d", serial);
    strcpy(worker.device, "cpu");
    for (int i = 0; i < JOBS; i++) {
        struct job_spec *spec = &specs[i];
        memset(spec, 0, sizeof *spec);
        snprintf(spec->key, sizeof spec->key, "key-%d-%d", serial, i);
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%d", i);
        memcpy(spec->scenario_hash, scenario_hash, sizeof spec->scenario_hash);
        memcpy(spec->pool, worker.pool, sizeof spec->pool);
        strcpy(spec->planner, "builtin:reference");
        spec->tier = TIER_OBJECT;
        spec->rollout_count = i == 0 ? 2 : 1;
        spec->attempts_max = 3;
        spec->priority = JOBS - i;
    }
    told_count = 0;
}

static void nothing_before(void)
{
}

static void submit_before(void)
{
    EXPECT_OK(store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error), error);
    suite_jobs += JOBS;
}

static void claim_before(void)
{
    int64_t ttl_ms = 0;

    submit_before();
    EXPECT_OK(store->ops->claim(store, &worker, JOBS, 0, leases, &lease_count, &ttl_ms, &error),
              error);
    EXPECT_INT(lease_count, JOBS);
}

static void complete_before(void)
{
    static const enum completion_kind kinds[JOBS] = {COMPLETION_DONE, COMPLETION_FLAGGED,
                                                     COMPLETION_FAILED, COMPLETION_RELEASED};

    claim_before();
    EXPECT_OK(
        store->ops->artifact_put(store, artifact_data, sizeof artifact_data, artifact, &error),
        error);
    for (int i = 0; i < JOBS; i++) {
        struct job_completion *completion = &completions[i];
        memset(completion, 0, sizeof *completion);
        memset(outcomes[i], 0, sizeof outcomes[i]);
        completion->job_id = leases[i].job_id;
        completion->epoch = leases[i].epoch;
        memcpy(completion->worker_id, worker.worker_id, sizeof worker.worker_id);
        completion->kind = kinds[i];
        completion->device_ns = 1000000;
        if (i < 2) {
            completion->outcomes = outcomes[i];
            completion->outcome_count = leases[i].spec.rollout_count;
            memcpy(completion->artifact_hash, artifact, sizeof artifact);
            memcpy(outcomes[i][0].artifact_hash, artifact, sizeof artifact);
            strcpy(outcomes[i][1].branch_id, "braked");
        }
    }
    strcpy(completions[1].escalate_pool, "teacher");
    completions[1].escalate_tier = TIER_TEACHER;
    strcpy(outcomes[1][0].health_check, "frozen");
    outcomes[1][0].verdict = VERDICT_FLAGGED;
}

/* ---- the calls ---- */

static void answer(const void *data, size_t bytes)
{
    EXPECT(result_bytes + bytes <= sizeof result);
    memcpy(result + result_bytes, data, bytes);
    result_bytes += bytes;
}

static enum status put_scenario(void)
{
    return store->ops->scenario_put(store, scenario_hash, scenario_body, sizeof scenario_body - 1,
                                    &error);
}

static enum status get_scenario(void)
{
    char *body = NULL;
    size_t bytes = 0;
    enum status status = store->ops->scenario_get(store, scenario_hash, &body, &bytes, &error);

    if (status == STATUS_OK) {
        answer(body, bytes);
        free(body);
    }
    return status;
}

static enum status submit(void)
{
    return store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error);
}

static enum status heartbeat(void)
{
    struct store_progress progress = {
        .job_id = leases[0].job_id, .epoch = leases[0].epoch, .device_ns = 5, .metres_mm = 7};
    int64_t cancelled[1];
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    return store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &count, &ttl_ms, &error);
}

static enum status claim(void)
{
    int64_t ttl_ms = 0;
    uint32_t count = 0;
    enum status status =
        store->ops->claim(store, &worker, JOBS, 0, leases, &count, &ttl_ms, &error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        EXPECT(told_count < 2 * JOBS);
        told[told_count++] = leases[i].job_id;
    }
    return status;
}

static enum status complete(void)
{
    return store->ops->complete(store, completions, JOBS, completed, &error);
}

static enum status worker_gone(void)
{
    return store->ops->worker_gone(store, worker.worker_id, &error);
}

static enum status worker_leases(void)
{
    uint32_t count = 0;
    struct job_lease found[JOBS];
    enum status status =
        store->ops->worker_leases(store, worker.worker_id, 0, found, JOBS, &count, &error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(&found[i].job_id, sizeof found[i].job_id);
        answer(found[i].spec.key, strlen(found[i].spec.key));
        answer(found[i].spec.planner, strlen(found[i].spec.planner));
    }
    return status;
}

static enum status suite_status(void)
{
    struct store_suite_status status;
    enum status answered = store->ops->suite_status(store, "suite", &status, &error);

    if (answered == STATUS_OK) {
        answer(&status, sizeof status);
    }
    return answered;
}

static enum status suites(void)
{
    char ids[4][LIMIT_ID_BYTES];
    uint32_t count = 0;
    enum status status = store->ops->suites(store, ids, 4, &count, &error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(ids[i], strlen(ids[i]));
    }
    return status;
}

static enum status look_outcomes(void)
{
    static struct outcome found[ROWS];
    struct store_outcome_filter filter = {.limit = ROWS};
    uint32_t count = 0;
    enum status status;

    strcpy(filter.suite_id, "suite");
    status = store->ops->outcomes(store, &filter, found, &count, &error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(&found[i].id, sizeof found[i].id);
        answer(found[i].artifact_hash, strlen(found[i].artifact_hash));
        answer(found[i].branch_id, strlen(found[i].branch_id));
        answer(found[i].planner, strlen(found[i].planner));
        answer(found[i].health_check, strlen(found[i].health_check));
        answer(found[i].suite_id, strlen(found[i].suite_id));
    }
    return status;
}

static enum status look_job(void)
{
    static struct store_job job;
    enum status status = store->ops->job(store, 1, &job, &error);

    if (status == STATUS_OK) {
        answer(&job.state, sizeof job.state);
        answer(job.spec.key, strlen(job.spec.key));
        answer(job.spec.planner, strlen(job.spec.planner));
        answer(job.worker_id, strlen(job.worker_id));
    }
    return status;
}

static enum status look_dead(void)
{
    static struct store_job jobs[4];
    uint32_t count = 0;
    enum status status = store->ops->dead_jobs(store, "suite", 0, jobs, 4, &count, &error);

    answer(&count, sizeof count);
    return status;
}

static enum status look_ledger(void)
{
    static struct store_ledger_row rows[200];
    uint32_t count = 0;
    enum status status = store->ops->ledger(store, NULL, rows, 200, &count, &error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(rows[i].pool, strlen(rows[i].pool));
        answer(rows[i].end, strlen(rows[i].end));
        answer(&rows[i].totals, sizeof rows[i].totals);
    }
    return status;
}

static enum status set_price(void)
{
    return store->ops->price_set(store, "bulk", "cpu", 1234567, &error);
}

static enum status get_price(void)
{
    int64_t price = 0;
    enum status status = store->ops->price_get(store, "bulk", "cpu", &price, &error);

    answer(&price, sizeof price);
    return status;
}

static enum status cancel(void)
{
    int64_t count = 0;
    return store->ops->cancel(store, "suite", &count, &error);
}

static enum status put_artifact(void)
{
    return store->ops->artifact_put(store, artifact_data, sizeof artifact_data, artifact, &error);
}

static enum status get_artifact(void)
{
    void *data = NULL;
    size_t bytes = 0;
    enum status status = store->ops->artifact_get(store, artifact, &data, &bytes, &error);

    if (status == STATUS_OK) {
        answer(data, bytes);
        free(data);
    }
    return status;
}

/* ---- what follows it ---- */

static void nothing_after(void)
{
}

static void submitted_once(void)
{
    struct store_suite_status status;
    int64_t jobs = 0;

    EXPECT_OK(store->ops->suite_status(store, "suite", &status, &error), error);
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        jobs += status.jobs[i];
    }
    EXPECT_INT(jobs, suite_jobs + JOBS);
}

/* Everything that is leased to the worker, it was told of. */
static void told_of_every_lease(void)
{
    struct job_lease found[2 * JOBS];
    uint32_t count = 0;

    EXPECT_OK(
        store->ops->worker_leases(store, worker.worker_id, 0, found, 2 * JOBS, &count, &error),
        error);
    EXPECT_INT(count, JOBS);
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t j = 0; j < told_count; j++) {
            known = known || told[j] == found[i].job_id;
        }
        if (!known) {
            TEST_FAIL("job %" PRId64 " is leased to a worker that was not told", found[i].job_id);
        }
    }
}

static void completed_once(void)
{
    static const enum job_state states[JOBS] = {JOB_DONE, JOB_FLAGGED, JOB_QUEUED, JOB_QUEUED};
    static struct outcome found[ROWS];
    static struct store_job job;

    EXPECT(completed[1].escalated_job_id > 0);
    for (int i = 0; i < JOBS; i++) {
        struct store_outcome_filter filter = {.limit = ROWS, .job_id = completions[i].job_id};
        uint32_t count = 0;
        EXPECT_INT(completed[i].status, STATUS_OK);
        EXPECT_OK(store->ops->job(store, completions[i].job_id, &job, &error), error);
        EXPECT_INT(job.state, states[i]);
        EXPECT_OK(store->ops->outcomes(store, &filter, found, &count, &error), error);
        EXPECT_INT(count, completions[i].outcome_count);
    }
}

/* Its name is known, but it is not there. */
static void new_artifact(void)
{
    EXPECT_OK(put_artifact(), error);
    remove_artifact();
}

static void put_before(void)
{
    EXPECT_OK(put_artifact(), error);
}

static void artifact_is_there(void)
{
    result_bytes = 0;
    EXPECT_OK(get_artifact(), error);
    EXPECT(result_bytes == sizeof artifact_data &&
           memcmp(result, artifact_data, result_bytes) == 0);
    remove_artifact();
}

/* ---- playing ---- */

struct call {
    const char *name;
    void (*before)(void);
    enum status (*run)(void);
    void (*after)(void);
    bool reads; /* changes nothing */
};

static const struct call calls[] = {
    {"scenario_put", nothing_before, put_scenario, nothing_after, false},
    {"scenario_get", nothing_before, get_scenario, nothing_after, true},
    {"submit", nothing_before, submit, submitted_once, false},
    {"claim", submit_before, claim, told_of_every_lease, false},
    {"heartbeat", claim_before, heartbeat, nothing_after, false},
    {"complete", complete_before, complete, completed_once, false},
    {"worker_gone", claim_before, worker_gone, nothing_after, false},
    {"worker_leases", claim_before, worker_leases, nothing_after, true},
    {"suite_status", nothing_before, suite_status, nothing_after, true},
    {"suites", nothing_before, suites, nothing_after, true},
    {"outcomes", nothing_before, look_outcomes, nothing_after, true},
    {"job", nothing_before, look_job, nothing_after, true},
    {"dead_jobs", nothing_before, look_dead, nothing_after, true},
    {"ledger", nothing_before, look_ledger, nothing_after, true},
    {"price_set", nothing_before, set_price, nothing_after, false},
    {"price_get", nothing_before, get_price, nothing_after, true},
    {"cancel", nothing_before, cancel, nothing_after, false},
    {"artifact_put", new_artifact, put_artifact, artifact_is_there, false},
    {"artifact_get", put_before, get_artifact, nothing_after, true},
};

/* A refusal names its reason; memory is not confused with a broken disk or a damaged file. */
static void expect_refusal(enum status status)
{
    bool waited = face != FACE_EMBEDDED && (status == STATUS_TIMEOUT || status == STATUS_BUSY);

    if (status != STATUS_NO_MEMORY && !waited) {
        TEST_FAIL("%s: status %s: %s", playing,
                  status < STATUS_COUNT ? status_name(status) : "of the transport", error.text);
    }
    EXPECT(strlen(error.text) > 5);
}

/* Of this process, but for events: libmicrohttpd keeps that of a server that it could not start. */
static int count_descriptors(void)
{
    char name[300];
    char target[64];
    int found = 0;
    DIR *directory = opendir("/proc/self/fd");

    EXPECT(directory != NULL);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
        ssize_t bytes = readlink(name, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        found += strcmp(target, "anon_inode:[eventfd]") != 0;
    }
    closedir(directory);
    return found;
}

/* Waits for the writer, whose first act is to look for leases that ended. */
static enum status settle(void)
{
    return store->ops->price_set(store, "settled", "cpu", 1, &error);
}

static void expect_invariants(void)
{
    char why[256];

    if (!invariants_hold(path, why, sizeof why)) {
        TEST_FAIL("%s: %s", playing, why);
    }
}

/* Neither this nor the plays are inlined or cloned, lest the compiler make two calls of one, which
 * would be two places. */
__attribute__((noipa)) static void begin_failing(int64_t at, bool forever)
{
    if (at == 0) {
        memory_list();
    } else {
        memory_fail(at, forever);
    }
}

/* What is being played: a call, or opening. at 0: nothing fails, places are listed. False: no
 * failure was met. */
struct game {
    const char *name;
    const struct call *call; /* NULL: opening */
    bool fresh;              /* opens a store that does not exist yet */
};

__attribute__((noipa)) static bool play_call(const struct game *game, int64_t at, bool forever)
{
    const struct call *call = game->call;

    restore_database();
    open_well();
    EXPECT_OK(settle(), error);
    told_count = 0;
    result_bytes = 0;
    error.text[0] = '\0';
    begin_failing(at, forever);
    enum status status = call->run();
    int64_t failures = memory_is_well();
    size_t first_bytes = result_bytes;
    memcpy(first_result, result, result_bytes);
    if (status != STATUS_OK) {
        EXPECT(failures > 0);
        expect_refusal(status);
    }
    result_bytes = 0;
    EXPECT_OK(call->run(), error);
    if (status == STATUS_OK &&
        (first_bytes != result_bytes || memcmp(result, first_result, result_bytes) != 0)) {
        TEST_FAIL("%s: not what it answers with plenty of memory", playing);
    }
    call->after();
    close_all();
    if (!call->reads) {
        expect_invariants();
    }
    return failures > 0;
}

/* Opens, with the writer's first transaction; closes again without memory, too, when all fail. */
__attribute__((noipa)) static bool play_opening(const struct game *game, int64_t at, bool forever)
{
    int64_t jobs = 0;

    if (game->fresh) {
        remove_database();
    } else {
        restore_database();
    }
    int fd = face == FACE_HTTP ? support_listen(socket_path) : -1;
    error.text[0] = '\0';
    begin_failing(at, forever);
    enum status status = open_all(fd);
    if (status == STATUS_OK) {
        status = settle();
    }
    int64_t failures = forever ? memory_failures() : memory_is_well();
    close_all();
    memory_is_well();
    if (status != STATUS_OK) {
        EXPECT(failures > 0);
        expect_refusal(status);
    }
    open_well();
    struct store_suite_status found;
    enum status answered = store->ops->suite_status(store, "suite", &found, &error);
    EXPECT_INT(answered, game->fresh ? STATUS_NOT_FOUND : STATUS_OK);
    for (int i = 0; i < JOB_STATE_COUNT && !game->fresh; i++) {
        jobs += found.jobs[i];
    }
    EXPECT_INT(jobs, game->fresh ? 0 : suite_jobs);
    close_all();
    expect_invariants();
    return failures > 0;
}

static bool play(const struct game *game, int64_t at, bool forever)
{
    snprintf(playing, sizeof playing, "%s, allocation %" PRId64 "%s\n", game->name, at,
             forever ? " and on" : "");
    alarm(HANG_S);
    plays += at > 0;
    return game->call != NULL ? play_call(game, at, forever)
                              : play_opening(game, at, forever && at > 0);
}

static int64_t next(int64_t at)
{
    return at < FIRST_ONES ? at + 1 : at + step;
}

static void play_steps(const struct game *game, bool forever)
{
    int64_t at = 1;

    while (at < ALLOCATIONS_MAX && play(game, at, forever)) {
        at = next(at);
    }
    EXPECT(at < ALLOCATIONS_MAX);
    allocations += at - 1;
}

/* Lists the places, then fails them; plays are made in one line of code because that is part of a
 * place. A failure may meet another place than was listed, because threads do not always take turns
 * in the same way; so the list is made again until all of it has failed. */
static void play_places(const struct game *game, bool forever)
{
    static int64_t numbers[ALLOCATIONS_MAX];
    size_t count = 1;

    memory_forget();
    for (int round = 0; round < ROUNDS_MAX && count > 0; round++) {
        bool last = round + 1 == ROUNDS_MAX;
        for (size_t i = 0; i == 0 || (i <= count && !last); i++) {
            play(game, i == 0 ? 0 : numbers[i - 1], forever);
            if (i == 0) {
                allocations += round == 0 ? memory_count() : 0;
                count = memory_listed(numbers, ALLOCATIONS_MAX);
                EXPECT(count <= ALLOCATIONS_MAX);
            }
        }
    }
    missed += count;
}

static void play_all(const struct game *game)
{
    int fds = count_descriptors();
    uint64_t plays_before = plays;
    int64_t allocations_before = allocations;

    for (int forever = 0; forever < 2; forever++) {
        if (step == 0) {
            play_places(game, forever == 1);
        } else {
            play_steps(game, forever == 1);
        }
    }
    EXPECT_INT(count_descriptors(), fds);
    printf("# %s: %" PRId64 " allocations, %" PRIu64 " plays\n", game->name,
           allocations - allocations_before, plays - plays_before);
}

/* A database with a history, and with what precedes the call. */
static void prepare(void (*before)(void))
{
    enum face played = face;

    close_all(); /* a failed test left it open */
    remove_database();
    face = FACE_EMBEDDED;
    suite_jobs = 0;
    open_well();
    EXPECT_OK(put_scenario(), error);
    name_play();
    complete_before();
    EXPECT_OK(complete(), error);
    suite_jobs++; /* the teacher's */
    name_play();
    before();
    close_all();
    face = played;
    keep_database();
}

static void begin(const char *name)
{
    snprintf(path, sizeof path, "%s/%s.db", support_directory(), name);
    snprintf(socket_path, sizeof socket_path, "%s/s.sock", support_directory());
    sha256_hex(scenario_body, sizeof scenario_body - 1, scenario_hash);
    plays = 0;
    allocations = 0;
    missed = 0;
}

static void end(void)
{
    alarm(0);
    printf("# %" PRId64 " allocations, %" PRIu64 " plays", allocations, plays);
    printf(step == 0 ? ", %zu places did not fail\n" : "\n", missed);
}

/* Goal: no call loses, doubles or invents anything for want of memory. */
static void calls_without_memory(void)
{
    begin("calls");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct game game = {.name = calls[i].name, .call = &calls[i]};
        if (only != NULL && strcmp(only, calls[i].name) != 0) {
            continue;
        }
        prepare(calls[i].before);
        play_all(&game);
    }
    end();
}

/* Goal: nor does opening or closing, of a new store or of one with jobs in it. */
static void opening_without_memory(void)
{
    begin("open");
    prepare(nothing_before);
    play_all(&(struct game){.name = "open"});
    play_all(&(struct game){.name = "open a new one", .fresh = true});
    end();
}

/* Says what was being played when the program dies or hangs. */
static void tell(int signal_number)
{
    ssize_t ignored = write(STDOUT_FILENO, "# ended in: ", 12);
    ignored = write(STDOUT_FILENO, playing, strlen(playing));
    (void)ignored;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

int main(int argc, char **argv)
{
    static const int signals[] = {SIGALRM, SIGABRT, SIGSEGV};

    while (argc > 1 && face < FACE_COUNT && strcmp(argv[1], face_names[face]) != 0) {
        face++;
    }
    if (argc < 2 || face == FACE_COUNT) {
        fprintf(stderr, "usage: %s embedded|http|owner|client [places|STEP [CALL]]\n", argv[0]);
        return 2;
    }
    step = argc < 3 ? 1 : strtoll(argv[2], NULL, 10);
    only = argc < 4 ? NULL : argv[3];
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (signal(signals[i], tell) != SIG_DFL) {
            signal(signals[i], SIG_DFL);
        }
    }
    if (only != NULL && strcmp(only, "open") == 0) {
        return TEST_RUN(TEST(opening_without_memory));
    }
    if (only != NULL) {
        return TEST_RUN(TEST(calls_without_memory));
    }
    return TEST_RUN(TEST(calls_without_memory), TEST(opening_without_memory));
}
