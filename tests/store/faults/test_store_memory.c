/*
 * The store when memory runs out.
 *
 * Method: each call of the store's table (memory_calls.h) is made on a store that was just opened,
 * with the Nth allocation failing (memory.h), once or from then on: through the embedded backend;
 * through a client and a server on a Unix socket in this process, where the allocations of both
 * sides count; and through both roles of ownership of a path's owner (memory_backends.h). A call
 * that fails says why; repeated with memory there it succeeds; what it answers is what it answers
 * with plenty of memory; and what it changed was changed once. The address sanitizer's build
 * watches for leaks.
 *
 * A play starts from the bytes of a database that was prepared once for its call, so that every
 * play meets the same store, however many there were before.
 *
 * Usage: test_store_memory embedded|http|owner|client [places[/PARTS[:PART]]|STEP [CALL]]: the
 * first allocation of each place (memory.h) fails, or of every PARTSth place from PART on, which
 * turns with the day if it is not given; or, after the first few, every STEPth (default: every
 * one); in one call of the table, or "open".
 */
#include "tests/harness.h"
#include "tests/store/faults/invariants.h"
#include "tests/store/faults/memory.h"
#include "tests/store/faults/memory_backends.h"
#include "tests/store/faults/memory_calls.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST_ONES = 12,
    ALLOCATIONS_MAX = 100000,
    ROUNDS_MAX = 16, /* of listing places and failing them */
    HANG_S = 100,
    DAY_S = 24 * 60 * 60,
};

static int64_t step = 1; /* 0: by places */
static size_t parts = 1; /* of the places: all */
static size_t part;      /* below `parts`: the one that is played */
static const char *only; /* this call; NULL: all, and opening */

static struct memory_bench bench;
static struct memory_caller caller;
static struct error error;
static uint64_t plays;
static int64_t allocations; /* of calls that met no failure */
static size_t missed;       /* places that never failed */
static char playing[128];

/* ---- a play ---- */

static void open_well(void)
{
    EXPECT_OK(memory_bench_open(&bench, memory_bench_listen(&bench), &error), error);
    caller.store = bench.store;
}

static void close_all(void)
{
    memory_bench_close(&bench);
    caller.store = NULL;
}

/* A refusal names its reason; memory is not confused with a broken disk or a damaged file. */
static void expect_refusal(enum status status)
{
    bool waited =
        bench.backend != MEMORY_EMBEDDED && (status == STATUS_TIMEOUT || status == STATUS_BUSY);

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
    return bench.store->ops->price_set(bench.store, "settled", "cpu", 1, &error);
}

static void expect_invariants(void)
{
    char why[256];

    if (!invariants_hold(bench.path, why, sizeof why)) {
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

/* Call that is being played: one, or opening. at 0: nothing fails, places are listed. False: no
 * failure was met. */
struct game {
    const char *name;
    const struct memory_call *call; /* NULL: opening */
    bool fresh;                     /* opens a store that does not exist yet */
};

__attribute__((noipa)) static bool play_call(const struct game *game, int64_t at, bool forever)
{
    static uint8_t first_result[MEMORY_RESULT_BYTES];
    const struct memory_call *call = game->call;

    EXPECT_OK(memory_bench_restore(&bench, &error), error);
    open_well();
    EXPECT_OK(settle(), error);
    memory_caller_listen(&caller);
    error.text[0] = '\0';
    begin_failing(at, forever);
    enum status status = call->run(&caller, &error);
    int64_t failures = memory_is_well();
    size_t first_bytes = caller.result_bytes;
    memcpy(first_result, caller.result, first_bytes);
    if (status != STATUS_OK) {
        EXPECT(failures > 0);
        expect_refusal(status);
    }
    caller.result_bytes = 0;
    EXPECT_OK(call->run(&caller, &error), error);
    if (status == STATUS_OK && (first_bytes != caller.result_bytes ||
                                memcmp(caller.result, first_result, first_bytes) != 0)) {
        TEST_FAIL("%s: not what it answers with plenty of memory", playing);
    }
    EXPECT_OK(call->after(&caller, &error), error);
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
        memory_bench_remove(&bench);
    } else {
        EXPECT_OK(memory_bench_restore(&bench, &error), error);
    }
    int fd = memory_bench_listen(&bench);
    error.text[0] = '\0';
    begin_failing(at, forever);
    enum status status = memory_bench_open(&bench, fd, &error);
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
    enum status answered = bench.store->ops->suite_status(bench.store, "suite", &found, &error);
    EXPECT_INT(answered, game->fresh ? STATUS_NOT_FOUND : STATUS_OK);
    for (int i = 0; i < JOB_STATE_COUNT && !game->fresh; i++) {
        jobs += found.jobs[i];
    }
    EXPECT_INT(jobs, game->fresh ? 0 : caller.suite_jobs);
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
    return at < test_rounds(FIRST_ONES, 4) ? at + 1 : at + step;
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
 * in the same way; so the list is made again until all of it has failed. A part of the places is
 * taken from the first list alone. */
static void play_places(const struct game *game, bool forever)
{
    static int64_t numbers[ALLOCATIONS_MAX];
    size_t count = 1;
    int rounds = parts == 1 ? ROUNDS_MAX : 1;

    memory_forget();
    for (int round = 0; round < rounds && count > 0; round++) {
        bool last = round + 1 == ROUNDS_MAX;
        for (size_t i = 0; i == 0 || (i <= count && !last); i = i == 0 ? 1 + part : i + parts) {
            play(game, i == 0 ? 0 : numbers[i - 1], forever);
            if (i == 0) {
                allocations += round == 0 ? memory_count() : 0;
                count = memory_listed(numbers, ALLOCATIONS_MAX);
                EXPECT(count <= ALLOCATIONS_MAX);
            }
        }
    }
    missed += parts == 1 ? count : 0;
}

/* "places", then the part that is wanted: "/4" today's quarter, "/4:3" the last one. */
static bool parse_places(const char *text)
{
    if (strncmp(text, "places", 6) != 0) {
        return false;
    }
    step = 0;
    if (text[6] == '/') {
        char *end;
        parts = strtoul(text + 7, &end, 10);
        parts = parts > 0 ? parts : 1;
        part = (*end == ':' ? strtoul(end + 1, NULL, 10) : (size_t)(time(NULL) / DAY_S)) % parts;
    }
    return true;
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
static void prepare(enum status (*before)(struct memory_caller *, struct error *))
{
    enum memory_backend played = bench.backend;

    close_all(); /* a failed test left it open */
    memory_bench_remove(&bench);
    bench.backend = MEMORY_EMBEDDED;
    open_well();
    EXPECT_OK(memory_caller_begin(&caller, &error), error);
    EXPECT_OK(before(&caller, &error), error);
    close_all();
    bench.backend = played;
    EXPECT_OK(memory_bench_keep(&bench, &error), error);
}

static void begin(const char *name)
{
    memory_bench_name(&bench, name);
    caller.path = bench.path;
    plays = 0;
    allocations = 0;
    missed = 0;
}

static void end(void)
{
    alarm(0);
    printf("# %" PRId64 " allocations, %" PRIu64 " plays", allocations, plays);
    if (parts > 1) {
        printf(", part places/%zu:%zu", parts, part);
    }
    printf(step == 0 && parts == 1 ? ", %zu places did not fail\n" : "\n", missed);
}

/* Goal: no call loses, doubles or invents anything for want of memory. */
static void calls_without_memory(void)
{
    begin("calls");
    for (size_t i = 0; i < memory_call_count; i++) {
        struct game game = {.name = memory_calls[i].name, .call = &memory_calls[i]};
        if (only != NULL && strcmp(only, memory_calls[i].name) != 0) {
            continue;
        }
        prepare(memory_calls[i].before);
        play_all(&game);
    }
    end();
}

/* Goal: nor does opening or closing, of a new store or of one with jobs in it. */
static void opening_without_memory(void)
{
    begin("open");
    prepare(memory_nothing);
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

    while (argc > 1 && bench.backend < MEMORY_BACKEND_COUNT &&
           strcmp(argv[1], memory_backend_names[bench.backend]) != 0) {
        bench.backend++;
    }
    if (argc < 2 || bench.backend == MEMORY_BACKEND_COUNT) {
        fprintf(stderr,
                "usage: %s embedded|http|owner|client [places[/PARTS[:PART]]|STEP [CALL]]\n",
                argv[0]);
        return 2;
    }
    if (argc > 2 && !parse_places(argv[2])) {
        step = strtoll(argv[2], NULL, 10);
    }
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
