/*
 * A simulated fleet, seed by seed: see tests/sim/fleet.h.
 *
 *   test_sim --tap N [--first M] [--daily] [--no-bugs]
 *                                 for TAP: N seeds hold, a seed plays the same way twice, each
 *                                 planted bug is found; --daily: other seeds each day, 64 times N
 *   test_sim --seeds N [--first M]  seeds 1 (M) and following, and what happened in them
 *   test_sim --seed N [--trace]   one seed; its log
 *   test_sim --bug NAME ..        with a bug planted (--bugs lists them, with the first seed that
 *                                 finds each)
 *
 * Exit code 1: an invariant was violated; the output says which, and how to play the seed again.
 */
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "base/units.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SKIPPED = 77, BUG_SEEDS_MAX = 200, DAYS = 64, DAY_S = 24 * 60 * 60 };

struct run {
    struct fleet_options options;
    uint64_t first;
    uint64_t count;
    bool daily;
    bool no_bugs;
    bool bugs; /* list them with the seeds that find them */
    bool tap;
    struct fleet_result result;
    struct fleet_figures sum;
};

static void say_violation(const struct run *run, FILE *out, const char *prefix)
{
    const struct bug *bug = run->options.bug;
    fprintf(out,
            "%sseed %" PRIu64 ": %s\n%splay it again: test_sim --seed %" PRIu64 " --trace%s%s\n",
            prefix, run->options.seed, run->result.why, prefix, run->options.seed,
            bug != NULL ? " --bug " : "", bug != NULL ? bug->name : "");
}

static void add_figures(struct fleet_figures *sum, const struct fleet_figures *figures)
{
    sum->events += figures->events;
    sum->requests += figures->requests;
    sum->deaths += figures->deaths;
    sum->deaths_in_calls += figures->deaths_in_calls;
    sum->intrusions += figures->intrusions;
    sum->takings += figures->takings;
    sum->claims_again += figures->claims_again;
    sum->claims_late += figures->claims_late;
    sum->asked_back += figures->asked_back;
    sum->moves += figures->moves;
    sum->trusted += figures->trusted;
    sum->answered += figures->answered;
    sum->in_flight += figures->in_flight;
    sum->processes += figures->processes;
    sum->jobs += figures->jobs;
    sum->memoised += figures->memoised;
    sum->audits += figures->audits;
    sum->shadows += figures->shadows;
    sum->shadows_done += figures->shadows_done;
    sum->attempts += figures->attempts;
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        sum->states[i] += figures->states[i];
    }
    for (int i = 0; i < END_COUNT; i++) {
        sum->ends[i] += figures->ends[i];
    }
    sum->race_max = figures->race_max > sum->race_max ? figures->race_max : sum->race_max;
}

/* Seeds until one is violated; 0: none is. */
static uint64_t play_seeds(struct run *run, uint64_t first, uint64_t count)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        run->options.seed = seed;
        fleet_play(&run->options, &run->result);
        add_figures(&run->sum, &run->result.figures);
        if (run->result.failed) {
            return seed;
        }
    }
    return 0;
}

/* ---- TAP ---- */

static bool report(int number, bool good, const char *name)
{
    printf("%sok %d - %s\n", good ? "" : "not ", number, name);
    fflush(stdout);
    return good;
}

static int run_tap(struct run *run)
{
    const struct bug *bug;
    char name[256];
    int number = 0;
    bool good = true;

    bool held = play_seeds(run, run->first, run->count) == 0;
    if (!held) {
        say_violation(run, stdout, "# ");
    }
    snprintf(name, sizeof name, "%" PRIu64 " seeds from %" PRIu64 " on hold", run->count,
             run->first);
    good = report(++number, held, name) && good;
    printf("# %" PRId64 " second openers, %" PRId64 " files moved away\n", run->sum.intrusions,
           run->sum.takings);
    good = report(++number, run->sum.intrusions > 0 && (run->sum.takings > 0 || !medium_files),
                  "strangers meddled with the server's database") &&
           good;
    printf("# %" PRId64 " claims found their leases again, %" PRId64 " came late\n",
           run->sum.claims_again, run->sum.claims_late);
    good = report(++number, run->sum.claims_again > 0 && run->sum.claims_late > 0,
                  "claims were repeated, and came late") &&
           good;
    printf("# %" PRId64 " freezes and thaws: %" PRId64 " jobs went to the teacher, %" PRId64
           " were in flight\n",
           run->sum.trusted, run->sum.answered, run->sum.in_flight);
    /* Few seeds need not have both. */
    bool few = run->count < 60;
    good = report(++number, run->sum.answered > 0 && (run->sum.in_flight > 0 || few),
                  "slices were frozen to the teacher") &&
           good;
    printf("# %" PRId64 " moves of versions\n", run->sum.moves);
    good = report(++number, run->sum.moves > 0, "versions of the student moved") && good;
    printf("# %" PRId64 " jobs of shadows, %" PRId64 " done\n", run->sum.shadows,
           run->sum.shadows_done);
    good = report(++number, run->sum.shadows_done > 0 || (few && run->sum.shadows > 0),
                  "shadows drove jobs again") &&
           good;

    bool same = true;
    for (uint64_t seed = 1; seed <= 3 && same; seed++) {
        play_seeds(run, seed, 1);
        uint64_t digest = run->result.digest;
        play_seeds(run, seed, 1);
        same = run->result.digest == digest;
    }
    good = report(++number, same, "a seed plays the same way twice") && good;

    for (size_t i = 0; !run->no_bugs && (bug = bug_at(i)) != NULL; i++) {
        if (!medium_plays(bug)) {
            continue;
        }
        run->options.bug = bug;
        uint64_t seed = bug->seed > 0 ? play_seeds(run, bug->seed, 1) : 0;
        seed = seed > 0 ? seed : play_seeds(run, 1, BUG_SEEDS_MAX);
        if (seed > 0) {
            printf("# seed %" PRIu64 ": %s\n", seed, run->result.why);
        }
        snprintf(name, sizeof name, "%s is found: %s", bug->name, bug->what);
        /* A text that the database does not understand finds nothing. */
        good = report(++number, seed > 0 && strstr(run->result.why, "SQLSTATE 42") == NULL, name) &&
               good;
    }
    printf("1..%d\n", number);
    return good ? 0 : 1;
}

/* ---- by hand ---- */

static int run_bugs(struct run *run)
{
    const struct bug *bug;
    int missed = 0;

    for (size_t i = 0; (bug = bug_at(i)) != NULL; i++) {
        if (!medium_plays(bug)) {
            continue;
        }
        run->options.bug = bug;
        uint64_t seed = play_seeds(run, 1, run->count);
        if (seed > 0) {
            printf("%-20s seed %3" PRIu64 "  %s\n", bug->name, seed, bug->what);
            printf("%-30s%.160s\n", "", run->result.why);
        } else {
            printf("%-20s not found in %" PRIu64 " seeds: %s\n", bug->name, run->count, bug->what);
            missed++;
        }
        fflush(stdout);
    }
    return missed > 0 ? 1 : 0;
}

static int run_seeds(struct run *run)
{
    uint64_t failed = 0;

    for (uint64_t done = 0; done < run->count && failed == 0;) {
        uint64_t part = run->count - done < 1000 ? run->count - done : 1000;
        failed = play_seeds(run, run->first + done, part);
        done += part;
        if (run->count > 1000 && failed == 0) {
            fprintf(stderr, "%" PRIu64 " seeds\n", done);
        }
    }
    if (failed != 0) {
        say_violation(run, stdout, "");
        return 1;
    }
    const struct fleet_figures *sum = &run->sum;
    printf("%" PRIu64 " seeds, 0 violations: %" PRId64 " events, %" PRId64 " requests, %" PRId64
           " processes, %" PRId64 " deaths of the server, %" PRId64 " of them in a call\n",
           run->count, sum->events, sum->requests, sum->processes, sum->deaths,
           sum->deaths_in_calls);
    printf("%" PRId64 " jobs: %" PRId64 " done (%" PRId64 " memoised), %" PRId64
           " flagged, %" PRId64 " dead, %" PRId64 " cancelled; %" PRId64
           " of all are audit jobs, %" PRId64 " jobs of shadows (%" PRId64 " done)\n",
           sum->jobs, sum->states[JOB_DONE], sum->memoised, sum->states[JOB_FLAGGED],
           sum->states[JOB_DEAD], sum->states[JOB_CANCELLED], sum->audits, sum->shadows,
           sum->shadows_done);
    printf("%" PRId64 " attempts: %" PRId64 " done, %" PRId64 " flagged, %" PRId64
           " failed, %" PRId64 " released, %" PRId64 " lost, %" PRId64 " stale\n",
           sum->attempts, sum->ends[END_DONE], sum->ends[END_FLAGGED], sum->ends[END_FAILED],
           sum->ends[END_RELEASED], sum->ends[END_LOST], sum->ends[END_STALE]);
    printf("%" PRId64 " claims found their leases again, %" PRId64 " came late; %" PRId64
           " moves of versions; %" PRId64 " attempts were asked for by a higher class\n",
           sum->claims_again, sum->claims_late, sum->moves, sum->asked_back);
    printf("largest lead of a suite: %" PRId64 " of cost per weight\n", sum->race_max);
    return 0;
}

/* ---- the program ---- */

static int usage(void)
{
    fprintf(stderr, "usage: test_sim --seeds N [--first M] | --seed N | --bugs | --tap N  [--bug "
                    "NAME] [--trace] "
                    "[--daily] [--no-bugs]\n");
    return 2;
}

static bool parse(struct run *run, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "--trace") == 0) {
            run->options.trace = true;
        } else if (strcmp(argv[i], "--bugs") == 0) {
            run->bugs = true;
        } else if (strcmp(argv[i], "--bug") == 0 && value) {
            run->options.bug = bug_named(argv[++i]);
            if (run->options.bug == NULL) {
                return false;
            }
        } else if (strcmp(argv[i], "--daily") == 0) {
            run->daily = true;
        } else if (strcmp(argv[i], "--no-bugs") == 0) {
            run->no_bugs = true;
        } else if (strcmp(argv[i], "--seeds") == 0 && value) {
            run->count = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--tap") == 0 && value) {
            run->count = strtoull(argv[++i], NULL, 10);
            run->tap = true;
        } else if (strcmp(argv[i], "--first") == 0 && value) {
            run->first = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0 && value) {
            run->first = strtoull(argv[++i], NULL, 10);
            run->count = 1;
        } else {
            return false;
        }
    }
    if (run->daily) {
        run->first += (uint64_t)(time(NULL) / DAY_S) % DAYS * run->count;
    }
    return run->count > 0;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

int main(int argc, char **argv)
{
    char directory[64];
    struct run run = {.first = 1, .count = BUG_SEEDS_MAX};

    if (!parse(&run, argc, argv)) {
        return usage();
    }
    /* Memory, where there is such a place: the simulation is about order, not about disks. */
    snprintf(directory, sizeof directory, "%s/swerve-sim-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(directory) != NULL);
    run.options.directory = directory;
    run.options.fibers = fiber_pool_create();
    int code = !medium_prepare(directory) ? SKIPPED
               : run.tap                  ? run_tap(&run)
               : run.bugs                 ? run_bugs(&run)
                                          : run_seeds(&run);
    medium_finish();
    fiber_pool_destroy(run.options.fibers);
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return code;
}
