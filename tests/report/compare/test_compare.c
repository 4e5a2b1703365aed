/*
 * Goal: a comparison joins what belongs together, counts it right, and finds differences that are
 * there and few that are not.
 * Method: sides made in memory, without stores: first by hand, then drawn with a known effect.
 * `test_compare power` draws 1,000 suites of each kind and prints how often a difference was found.
 */
#include "report/compare/compare.h"

#include "base/check.h"
#include "base/file.h"
#include "base/rng.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROLLOUTS = 800 };

struct made {
    struct compare_side side;
    struct compare_rollout rollouts[ROLLOUTS];
};

static struct made made_a;
static struct made made_b;

static void clear(void)
{
    memset(&made_a, 0, sizeof made_a);
    memset(&made_b, 0, sizeof made_b);
    made_a.side.rollouts = made_a.rollouts;
    made_b.side.rollouts = made_b.rollouts;
}

static void add(struct made *made, const char *scenario, const char *branch, uint64_t seed,
                enum verdict verdict)
{
    struct compare_rollout *rollout = &made->rollouts[made->side.count++];
    snprintf(rollout->scenario_id, sizeof rollout->scenario_id, "%s", scenario);
    snprintf(rollout->branch_id, sizeof rollout->branch_id, "%s", branch);
    snprintf(rollout->slice[0], sizeof rollout->slice[0], "%s", scenario[0] < 'm' ? "low" : "high");
    rollout->id = made->side.count;
    rollout->seed = seed;
    rollout->tier = TIER_OBJECT;
    rollout->verdict = verdict;
    rollout->measure[COMPARE_SCORE] = verdict == VERDICT_PASS ? 0.9 : 0.4;
    rollout->measure[COMPARE_MIN_DISTANCE] = INFINITY;
}

static int order(const void *a, const void *b)
{
    return compare_rollout_order(a, b);
}

static struct compare compared(void)
{
    struct compare compare;
    struct error error;
    qsort(made_a.rollouts, made_a.side.count, sizeof *made_a.rollouts, order);
    qsort(made_b.rollouts, made_b.side.count, sizeof *made_b.rollouts, order);
    EXPECT_INT(compare_make(&made_a.side, &made_b.side, &compare, &error), STATUS_OK);
    return compare;
}

static void joins_what_belongs_together(void)
{
    clear();
    add(&made_a, "a", "", 1, VERDICT_PASS);
    add(&made_a, "a", "brake", 1, VERDICT_PASS);
    add(&made_a, "a", "", 2, VERDICT_FAIL);
    add(&made_a, "b", "", 1, VERDICT_PASS);
    add(&made_a, "c", "", 1, VERDICT_PASS);
    add(&made_a, "d", "", 1, VERDICT_PASS);
    add(&made_b, "a", "", 1, VERDICT_FAIL);
    add(&made_b, "a", "brake", 1, VERDICT_FAIL);
    add(&made_b, "a", "", 2, VERDICT_PASS);
    add(&made_b, "b", "", 1, VERDICT_FLAGGED);
    add(&made_b, "c", "", 1, VERDICT_PLANNER_ERROR);
    add(&made_b, "e", "", 1, VERDICT_PASS);
    add(&made_a, "f", "", 1, VERDICT_PASS);
    add(&made_b, "f", "", 1, VERDICT_PASS);
    snprintf(made_b.rollouts[made_b.side.count - 1].scenario_hash, 8, "other");
    struct compare compare = compared();
    EXPECT_INT(compare.pair_count, 4);
    EXPECT_INT(compare.only_a, 1);
    EXPECT_INT(compare.only_b, 1);
    EXPECT_INT(compare.no_result, 1);
    EXPECT_INT(compare.changed, 1);
    /* b is flagged, d is missing, f is another: passes of A that nothing stands beside. */
    EXPECT_INT(compare.loss_count, 3);
    EXPECT_INT(compare.losses[0].kind, COMPARE_LOST_FLAGGED);
    EXPECT_INT(compare.losses[1].kind, COMPARE_LOST_MISSING);
    EXPECT(compare.losses[1].b == UINT32_MAX);
    EXPECT_INT(compare.losses[2].kind, COMPARE_LOST_CHANGED);
    EXPECT_INT(compare.ends_a.verdicts[VERDICT_PASS], 4);
    EXPECT_INT(compare.ends_a.missing, 1);
    EXPECT_INT(compare.ends_b.verdicts[VERDICT_PASS], 2);
    EXPECT_INT(compare.ends_b.missing, 1);
    EXPECT_INT(compare.ends_b.changed, 1);
    /* Of six scenarios a half passes with B, c fails, e passes; b, d and f are not known. */
    EXPECT_NEAR(compare.ends_b.rate.value, 0.5, 1e-15);
    EXPECT_NEAR(compare.ends_b.rate.worst, 1.5 / 6, 1e-15);
    EXPECT_NEAR(compare.ends_b.rate.best, 4.5 / 6, 1e-15);
    EXPECT_INT(compare.all.mains, 3);
    EXPECT_INT(compare.all.fixed, 1);
    EXPECT_INT(compare.all.broken, 2);
    EXPECT_INT(compare.branch_broken, 1);
    EXPECT_INT(compare.flip_count, 4);
    EXPECT(compare.by_case);
    /* One of a's two seeds was fixed and one broke: a case without a change; c broke. */
    EXPECT_NEAR(compare.all.p, 1.0, 1e-15);
    EXPECT_NEAR(compare.all.a.value, 0.75, 1e-15);
    EXPECT_NEAR(compare.all.b.value, 0.25, 1e-15);
    /* Means are of a alone: the planner failed in c, so that B has no score there. */
    EXPECT_INT(compare.measures[COMPARE_SCORE].cases, 1);
    EXPECT_NEAR(compare.measures[COMPARE_SCORE].difference.value, 0, 1e-12);
    EXPECT_INT(compare.measures[COMPARE_MIN_DISTANCE].cases, 0);
    compare_finish(&compare);
}

static const struct compare_limits strict = {.margin = NAN};

/* Twenty passes with A; with B the first `count` end otherwise. */
static struct compare with_ends(const enum verdict *ends, int count)
{
    clear();
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%02d", i);
        add(&made_a, id, "", 1, VERDICT_PASS);
        add(&made_b, id, "", 1, i < count ? ends[i] : VERDICT_PASS);
    }
    return compared();
}

static void regressions_are_told(void)
{
    char text[COMPARE_REGRESSION_BYTES];
    const enum verdict ends[] = {VERDICT_FAIL};
    struct compare compare = with_ends(ends, 1);
    EXPECT_TEXT(compare_regression(&compare, &strict, text),
                "1 main line passed with A and not with B: s00 (seed 1)");
    EXPECT_TEXT(compare_regression(&compare, &(struct compare_limits){.margin = 0.06}, text), "");
    EXPECT(compare_regression(&compare, &(struct compare_limits){.margin = 0.04}, text)[0] != '\0');
    EXPECT_TEXT(
        compare_words(&compare, text),
        "1 logical scenario that changed is too few to tell whether B passes more or less often: "
        "were they all for the worse, p would be 1; it takes 6");
    compare_finish(&compare);
}

/* A planner that leaves what the models hold for in place of braking is no better one. */
static void lost_passes_are_regressions(void)
{
    char text[COMPARE_REGRESSION_BYTES];
    const enum verdict ends[] = {VERDICT_INVALID, VERDICT_INVALID, VERDICT_FLAGGED,
                                 VERDICT_INVALID};
    struct compare compare = with_ends(ends, 4);
    EXPECT_INT(compare.all.broken, 0);
    EXPECT_NEAR(compare.ends_b.rate.value, 1, 0);
    EXPECT_NEAR(compare.ends_b.rate.worst, 0.8, 1e-12);
    EXPECT_TEXT(compare_regression(&compare, &strict, text),
                "4 main lines passed with A and have no result with B (3 invalid, 1 flagged): s00 "
                "(seed 1), s01 (seed 1), s02 (seed 1) and 1 more");
    struct compare_limits limits = {.margin = 0.5, .allow_invalid = 3};
    EXPECT(compare_regression(&compare, &limits, text)[0] != '\0');
    limits.allow_invalid = 4;
    EXPECT_TEXT(compare_regression(&compare, &limits, text), "");
    compare_finish(&compare);
    made_b.side.count = 5; /* a part of what A drove */
    compare = compared();
    EXPECT_INT(compare.lost[COMPARE_LOST_MISSING], 15);
    EXPECT(compare_regression(&compare, &strict, text)[0] != '\0');
    EXPECT_NEAR(compare.ends_b.rate.worst, 0.05, 1e-12);
    compare_finish(&compare);
}

/* Costs of a drive that the planner did not survive would be 0: an improvement. */
static void failed_drives_have_no_costs(void)
{
    clear();
    for (int i = 0; i < 8; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%02d", i);
        add(&made_a, id, "", 1, VERDICT_PASS);
        add(&made_b, id, "", 1, i < 6 ? VERDICT_PLANNER_ERROR : VERDICT_PASS);
        made_a.rollouts[i].measure[COMPARE_TOTAL_COST] = 100;
        made_b.rollouts[i].measure[COMPARE_TOTAL_COST] = i < 6 ? 0 : 110;
    }
    struct compare compare = compared();
    EXPECT_INT(compare.measures[COMPARE_TOTAL_COST].cases, 2);
    EXPECT_NEAR(compare.measures[COMPARE_TOTAL_COST].difference.value, 10, 1e-12);
    compare_finish(&compare);
}

static void equal_sides_have_no_flips(void)
{
    clear();
    for (int i = 0; i < 200; i++) {
        char id[32];
        snprintf(id, sizeof id, "s%02d/x=%d", i / 10, i % 10);
        add(&made_a, id, "", 1, i % 3 != 0 ? VERDICT_PASS : VERDICT_FAIL);
        add(&made_b, id, "", 1, i % 3 != 0 ? VERDICT_PASS : VERDICT_FAIL);
    }
    char text[COMPARE_REGRESSION_BYTES];
    struct compare compare = compared();
    EXPECT_INT(compare.flip_count, 0);
    EXPECT(!compare.by_case);
    EXPECT_NEAR(compare.all.p, 1.0, 0);
    EXPECT_TEXT(compare_regression(&compare, &strict, text), "");
    EXPECT_TEXT(compare_words(&compare, text), "no logical scenario changed");
    for (int m = 0; m < COMPARE_MEASURE_COUNT; m++) {
        EXPECT(compare.measures[m].cases == 0 || compare.measures[m].difference.high == 0);
    }
    compare_finish(&compare);
}

/* Eight scenarios of which five change: the interval of a score stays within what scores can do. */
static void intervals_stay_within_the_possible(void)
{
    clear();
    for (int i = 0; i < 8; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%02d", i);
        add(&made_a, id, "", 1, VERDICT_PASS);
        add(&made_b, id, "", 1, i < 5 ? VERDICT_FAIL : VERDICT_PASS);
        made_a.rollouts[i].measure[COMPARE_SCORE] = 0.96;
        made_b.rollouts[i].measure[COMPARE_SCORE] = i < 5 ? 0.0 : 0.99;
    }
    struct compare compare = compared();
    struct paired_mean score = compare.measures[COMPARE_SCORE].difference;
    EXPECT_NEAR(score.value, (5 * -0.96 + 3 * 0.03) / 8, 1e-12);
    EXPECT(score.low >= -1.0 && score.low < score.value);
    EXPECT(score.high <= 1.0 && score.high > score.value);
    compare_finish(&compare);
}

static double draw(uint32_t a, uint32_t b)
{
    return rng_uniform(21, RNG_STREAM_TEST, a, b);
}

/* Share of differences that are found in `repeats` drawn pairs of suites: 60 logical scenarios of 1
 * to 6 cases, whose changes go together; `worse` of the logical scenarios got worse, and in a tenth
 * things changed either way by chance. slices: a slice that is significant counts as found. */
static double found(uint32_t repeats, double worse, bool slices)
{
    uint32_t hits = 0;
    for (uint32_t r = 0; r < repeats; r++) {
        clear();
        for (uint32_t s = 0; s < 60; s++) {
            uint32_t at = 1000 * r + s;
            uint32_t cases = 1 + (uint32_t)(draw(at, 0) * 6);
            bool changed = draw(at, 1) < 0.1;
            bool direction = draw(at, 2) < 0.5;
            bool broken = draw(at, 3) < worse;
            for (uint32_t k = 0; k < cases; k++) {
                char id[32];
                bool passes = draw(at, 10 + k) < 0.8;
                bool moved = draw(at, 30 + k) < 0.8; /* cases resemble each other */
                bool a = changed && moved ? !direction : passes;
                bool b = broken && moved ? false : changed && moved ? direction : passes;
                snprintf(id, sizeof id, "%c%02u/x=%u", s < 30 ? 'a' : 'z', s, k);
                add(&made_a, id, "", 1, a ? VERDICT_PASS : VERDICT_FAIL);
                add(&made_b, id, "", 1, b ? VERDICT_PASS : VERDICT_FAIL);
            }
        }
        struct compare compare = compared();
        bool hit = !slices && compare.all.p < 0.05;
        bool reaches = compare.all.difference.low <= 0 && compare.all.difference.high >= 0;
        EXPECT(reaches || compare.all.p < 0.05);
        for (uint32_t i = 0; i < compare.row_count && slices; i++) {
            hit = hit || compare.rows[i].p < 0.05;
        }
        hits += hit;
        compare_finish(&compare);
    }
    return (double)hits / repeats;
}

static void errors_are_rare_and_effects_found(void)
{
    EXPECT(found(60, 0, false) <= 0.15);
    EXPECT(found(40, 0.4, false) >= 0.9);
}

static int print_power(void)
{
    static const double worse[] = {0, 0.05, 0.1, 0.2, 0.4};
    printf("share of logical scenarios that got worse: found overall, in any slice after Holm\n");
    for (size_t i = 0; i < sizeof worse / sizeof *worse; i++) {
        printf("%4.2f  %.3f  %.3f\n", worse[i], found(1000, worse[i], false),
               found(1000, worse[i], true));
    }
    return 0;
}

static void rewritten_planners_are_told(void)
{
    static const struct {
        const char *planner;
        const char *hash_b; /* A's is "a" */
        const char *command;
    } rows[] = {
        {"exec:python3 plan.py", "b", "swerve show 7"},
        {"guarded+exec:python3 plan.py", "b", "swerve show 7"},
        {"seen+exec:python3 plan.py", "b", "swerve show 7"},
        {"guarded+seen+plugin:a+b.so", "b", "swerve show 7"},
        {"exec:python3 plan.py", "a", "swerve replay 7"},
        {"seen+builtin:idm", "b", "swerve replay 7"},
        {"egodriver:rf", "b", "swerve replay 7"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct compare compare = {.a = &made_a.side, .b = &made_b.side};
        char command[COMPARE_COMMAND_BYTES];
        clear();
        for (int side = 0; side < 2; side++) {
            struct compare_side *of = side == 0 ? &made_a.side : &made_b.side;
            snprintf(of->planner, sizeof of->planner, "%s", rows[i].planner);
            snprintf(of->planner_hash, sizeof of->planner_hash, "%s",
                     side == 0 ? "a" : rows[i].hash_b);
        }
        EXPECT_TEXT(compare_command(&compare, false, 7, command), rows[i].command);
        EXPECT_TEXT(compare_command(&compare, true, 7, command), "swerve replay 7");
    }
}

/* The text that a writer makes, less what a form spells otherwise: quotes, and the ends of lines.
 */
static char *plain(char *text)
{
    static const char *const marks[] = {"&quot;", "&#34;", "&#39;", "\\", "\"", "'", "\n"};
    for (size_t m = 0; m < COUNT_OF(marks); m++) {
        for (char *at = strstr(text, marks[m]); at != NULL; at = strstr(at, marks[m])) {
            memmove(at, at + strlen(marks[m]), strlen(at + strlen(marks[m])) + 1);
        }
    }
    return text;
}

/* Each note is in the text, in the page and in the Markdown. */
static void every_writer_has_every_note(void)
{
    enum { WRITERS = 3 };
    struct error error;
    struct compare_notes notes;
    char path[] = "/tmp/swerve-compare-XXXXXX";
    char *written[WRITERS] = {NULL};
    size_t bytes = 0;
    clear();
    made_a.side.store_url = made_b.side.store_url = "s.db";
    for (int side = 0; side < 2; side++) {
        struct made *made = side == 0 ? &made_a : &made_b;
        add(made, "a", "", 1, VERDICT_PASS);
        snprintf(made->side.planner, sizeof made->side.planner, "exec:p");
        snprintf(made->side.planner_hash, SHA256_HEX_BYTES, "hash%d", side);
        snprintf(made->side.revision, SHA256_HEX_BYTES, "revision%d", side);
        made->side.undriven = 3 + side;
    }
    struct compare compare = compared();
    compare_note(&compare, &notes);
    EXPECT_INT(notes.count, COMPARE_NOTES_MAX);
    FILE *out = open_memstream(&written[0], &bytes);
    compare_print(&compare, out);
    EXPECT_INT(fclose(out), 0);
    out = open_memstream(&written[1], &bytes);
    compare_markdown(&compare, "", out);
    EXPECT_INT(fclose(out), 0);
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && close(fd) == 0);
    EXPECT_OK(compare_html(&compare, path, &error), error);
    EXPECT_OK(file_read(path, 16 << 20, &written[2], &bytes, &error), error);
    unlink(path);
    for (int w = 0; w < WRITERS; w++) {
        plain(written[w]);
        for (uint32_t i = 0; i < notes.count; i++) {
            char note[COMPARE_NOTE_BYTES];
            memcpy(note, notes.text[i], sizeof note);
            EXPECT_CONTAINS(written[w], plain(note));
        }
        free(written[w]);
    }
    compare_finish(&compare);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "power") == 0) {
        return print_power();
    }
    return TEST_RUN(TEST(joins_what_belongs_together), TEST(regressions_are_told),
                    TEST(lost_passes_are_regressions), TEST(failed_drives_have_no_costs),
                    TEST(equal_sides_have_no_flips), TEST(intervals_stay_within_the_possible),
                    TEST(errors_are_rare_and_effects_found), TEST(rewritten_planners_are_told),
                    TEST(every_writer_has_every_note));
}
