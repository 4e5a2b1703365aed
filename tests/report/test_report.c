/*
 * Goal: a report is one well-formed, self-contained, inert file that repeats the summary's figures,
 * stays bounded, and survives what a store can lack. Method: a small suite with hostile texts is
 * driven for real by two planners (one dies), then reports are written from it, from stores that
 * refuse parts of it, and from summaries blown up to thousands of failures.
 */
#include "report/report.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/scenario_json.h"
#include "tests/harness.h"
#include "tests/report/html_check.h"
#include "tests/scenarios/load_file.h"
#include "worker/run/claim_loop.h"
#include "worker/submission/submission.h"

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTILE "<script>alert(\"x\")</script> & 'y'"

/* Dies in the scenario "guilty"; what follows the mode is there to be escaped. */
#define DYING_PLANNER                                                                  \
    "exec:python3 " SWERVE_SOURCE_ROOT "/tests/worker/bad_planners/moody.py crash,10 " \
    "'<b>no & no</b>'"

enum { REPORT_BYTES_MAX = 8 << 20, MANY = 6000 };

static char directory[] = "/tmp/swerve_report_XXXXXX";
static struct store *store;
static struct summary summary;
static char suite_id[LIMIT_ID_BYTES];
static char *plain; /* the report of the suite as it is */

/* ---- the suite ---- */

static char *read_text(const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return NULL;
    }
    EXPECT(getdelim(&text, &bytes, '\0', stream) > 0);
    fclose(stream);
    return text;
}

/* Writes a report of `shown` and returns its text, checked for form; owned by the caller. */
static char *report_text(struct store *from, const struct summary *shown)
{
    char path[512];
    struct error error;
    snprintf(path, sizeof path, "%s/report.html", directory);
    EXPECT_OK(report_write(from, "a store.db", suite_id, shown, NULL, NULL, path, &error), error);
    char *text = read_text(path);
    EXPECT(text != NULL);
    EXPECT(strlen(text) < REPORT_BYTES_MAX);
    html_expect_balanced(text);
    html_expect_self_contained(text);
    unlink(path);
    return text;
}

/* A library scenario, resolved, under another id and with hostile texts. */
static void write_scenario(const char *library, const char *id)
{
    char path[512];
    struct scenario_document *document = NULL;
    struct error error;
    snprintf(path, sizeof path, "%s/scenarios/%s", SWERVE_SOURCE_ROOT, library);
    EXPECT_OK(load_file(path, NULL, &document, &error), error);
    char *text;
    size_t bytes;
    EXPECT_OK(scenario_canonical_text(document, &text, &bytes, &error), error);
    json_t *json = json_loadb(text, bytes, 0, NULL);
    EXPECT(json != NULL);
    free(text);
    json_object_set_new(json, "id", json_string(id));
    json_object_set_new(json, "title", json_string(HOSTILE));
    json_object_set_new(json, "source", json_string(HOSTILE));
    json_object_set_new(json, "prompt", json_string(HOSTILE));
    snprintf(path, sizeof path, "%s/suite/%s.json", directory, id);
    EXPECT_INT(json_dump_file(json, path, 0), 0);
    json_decref(json);
    scenario_destroy(document);
}

static void submit(void)
{
    char path[512];
    struct suite *suite = NULL;
    struct submission submission = {0};
    struct error error;
    const struct submission_options options = {
        .planner = "builtin:maintain", .backend = "cpu", .seed_count = 1, .attempts_max = 1};
    snprintf(path, sizeof path, "%s/suite", directory);
    EXPECT_INT(mkdir(path, 0700), 0);
    write_scenario("urban/dog_runs.json", "guilty");
    write_scenario("urban/free_driving.json", "free");
    write_scenario("regression/log_follow_brake.json", "log");
    snprintf(path, sizeof path, "%s/suite/suite.json", directory);
    json_t *json = json_pack("{s:s, s:[s, s], s:[{s:s}, {s:s}, {s:s}]}", "id", "report_test",
                             "planners", "builtin:maintain", DYING_PLANNER, "scenarios", "file",
                             "guilty.json", "file", "free.json", "file", "log.json");
    EXPECT(json != NULL);
    EXPECT_INT(json_dump_file(json, path, 0), 0);
    json_decref(json);
    EXPECT_OK(suite_load(path, &suite, &error), error);
    EXPECT_OK(submission_build(suite, &options, &submission, &error), error);
    EXPECT_OK(submission_send(&submission, store, 1, &error), error);
    snprintf(suite_id, sizeof suite_id, "%s", submission.suite_id);
    submission_finish(&submission);
    suite_destroy(suite);
}

static void setup(void)
{
    char path[512];
    struct error error;
    struct claim_loop_stats stats;
    static atomic_bool stop;
    EXPECT(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/store.db", directory);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    submit();
    const struct claim_loop_config config = {
        .store = store,
        .worker = {.worker_id = "test", .pool = "bulk", .device = "cpu"},
        .slot_count = 4,
        .drain = true,
        .planner_config = {.tick_deadline_ms = 2000},
        .stop = &stop,
    };
    EXPECT_OK(claim_loop_run(&config, &stats, &error), error);
    EXPECT_OK(summary_load(store, suite_id, &summary, &error), error);
    EXPECT(summary.total.verdicts[VERDICT_PASS] > 0);
    EXPECT(summary.total.verdicts[VERDICT_FAIL] > 0);
    EXPECT(summary.total.verdicts[VERDICT_PLANNER_ERROR] > 0);
    for (uint32_t i = 0; i < summary.outcome_count; i++) {
        if (summary.outcomes[i].verdict == VERDICT_PLANNER_ERROR) {
            summary.outcomes[i].error = "died: " HOSTILE;
        }
    }
    plain = report_text(store, &summary);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static void teardown(void)
{
    free(plain);
    summary_finish(&summary);
    store->ops->close(store);
    EXPECT_INT(nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- tests ---- */

static void a_report_is_well_formed_with_pictures_that_decode(void)
{
    EXPECT(html_expect_pictures(plain) > 12);
    EXPECT(html_count(plain, "<svg class=\"map\"") > 1);
}

static void texts_from_outside_are_inert(void)
{
    EXPECT_INT(html_count(plain, "<script>alert"), 0);
    EXPECT_HAS(plain, "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;y&#39;");
    /* The planner's name and its last words. */
    EXPECT_INT(html_count(plain, "<b>no"), 0);
    EXPECT_HAS(plain, "&lt;b&gt;no &amp; no&lt;/b&gt;");
    EXPECT_HAS(plain, "<pre>died: &lt;script&gt;alert");
    /* A store path with a blank is quoted in commands. */
    EXPECT_HAS(plain, "--store 'a store.db'");
}

static void figures_are_those_of_the_json(void)
{
    char expected[256];
    char money[SUMMARY_MONEY_BYTES];
    json_t *json = summary_json(&summary);
    EXPECT(json != NULL);
    const char *group;
    json_t *values;
    json_object_foreach (json_object_get(json, "by_slice"), group, values) {
        const char *value;
        json_t *row;
        json_object_foreach (values, value, row) {
            if (json_object_size(values) == 1) { /* no table repeats the total */
                snprintf(expected, sizeof expected, "%s <b>%s</b>", group,
                         value[0] != '\0' ? value : "(none)");
                EXPECT_HAS(plain, strcmp(group, "model") == 0 ? "" : expected);
                continue;
            }
            long long passed = json_integer_value(json_object_get(row, "main_passed"));
            long long total = json_integer_value(json_object_get(row, "main_rollouts"));
            char share[64] = "&ndash;"; /* branches alone */
            if (total > 0) {
                snprintf(share, sizeof share, "%lld/%lld", passed, total);
            }
            snprintf(expected, sizeof expected, "<td class=\"name\">%s</td><td class=\"n%s\">%s",
                     value[0] != '\0' ? value : "(none)", passed < total ? " bad" : "", share);
            EXPECT_HAS(plain, expected);
            double miles = json_real_value(json_object_get(row, "miles"));
            snprintf(expected, sizeof expected, "<td class=\"n\">%.2f</td><td class=\"n\">%s</td>",
                     miles,
                     summary_rate_text(json_real_value(json_object_get(row, "usd")), miles, money));
            EXPECT_HAS(plain, expected);
        }
    }
    snprintf(expected, sizeof expected, "<b>%.2f</b><span>miles driven",
             json_real_value(json_object_get(json, "miles")));
    EXPECT_HAS(plain, expected);
    snprintf(expected, sizeof expected, "he bill is %s", summary_bill_text(&summary, money));
    EXPECT_HAS(plain, expected);
    long long missed = json_integer_value(json_object_get(json, "main_rollouts")) -
                       json_integer_value(json_object_get(json, "main_passed"));
    snprintf(expected, sizeof expected, "<dt>Failures</dt><dd><b>%lld</b> main line", missed);
    EXPECT_HAS(plain, expected);
    /* One row per outcome, one card per failure. */
    EXPECT_INT(html_count(plain, "<tr id=\"r"), json_array_size(json_object_get(json, "outcomes")));
    EXPECT_INT(html_count(plain, "<article class=\"card\" id=\"o"), missed);
    json_decref(json);
}

/* A card for each parameter that has rows, in their order; one that is a range is named. */
static void values_of_grids_have_tables(void)
{
    struct summary_parameter parameters[] = {{.name = "gap_m", .count = 2}, {.name = "speed_mps"}};
    struct summary_row rows[] = {
        {.group = "gap_m", .value = "9", .main_total = 4, .main_passed = 4},
        {.group = "gap_m", .value = "<b>", .main_total = 3, .main_passed = 1},
    };
    struct summary grid = summary;
    EXPECT_INT(html_count(plain, "By what the grids vary"), 0);
    grid.parameters = parameters;
    grid.parameter_count = COUNT_OF(parameters);
    grid.parameter_rows = rows;
    grid.parameter_row_count = COUNT_OF(rows);
    char *text = report_text(store, &grid);
    EXPECT_HAS(text, "<th>gap_m</th>");
    const char *first = strstr(text, "<td class=\"name\">9</td><td class=\"n\">4/4");
    const char *second = strstr(text, "<td class=\"name\">&lt;b&gt;</td><td class=\"n bad\">1/3");
    EXPECT(first != NULL && second != NULL && first < second);
    EXPECT_HAS(text, "<b>speed_mps</b>: more than 64 values");
    free(text);
}

/* Criteria of a failure are listed, and exactly as many broken as there are reasons. */
static void broken_criteria_match_the_reasons(void)
{
    size_t reasons = 0;
    for (uint32_t i = 0; i < summary.outcome_count; i++) {
        bool card =
            summary.outcomes[i].branch_id[0] == '\0' && summary.outcomes[i].verdict != VERDICT_PASS;
        for (int bit = 0; card && bit < REASON_BIT_COUNT; bit++) {
            reasons += (summary.outcomes[i].reasons >> bit) & 1u;
        }
    }
    EXPECT(reasons > 0);
    EXPECT_INT(html_count(plain, "<tr class=\"broken\">"), reasons);
    /* The drive that its planner cut short neither met nor broke any. */
    EXPECT_HAS(plain, ">not judged<");
}

static struct kept_outcome *failing_main_line(void)
{
    for (uint32_t i = 0; i < summary.outcome_count; i++) {
        if (summary.outcomes[i].verdict == VERDICT_FAIL &&
            summary.outcomes[i].branch_id[0] == '\0') {
            return &summary.outcomes[i];
        }
    }
    TEST_FAIL("no main line failed");
}

/* Text that a chart writes lies within it: "12 s" at the right edge, "10.1 m/s" at the left one. */
static void labels_of_charts_are_not_cut_off(void)
{
    const double letter = 5.5; /* of 9.5 px, generously */
    size_t labels = 0;
    for (const char *at = plain; (at = strstr(at, "<svg class=\"speed\"")) != NULL; at++) {
        const char *end = strstr(at, "</svg>");
        EXPECT(end != NULL);
        for (at = strstr(at, "<text "); at != NULL && at < end; at = strstr(at + 1, "<text ")) {
            double x;
            double y;
            char anchor[16];
            char label[32];
            EXPECT_INT(sscanf(at, "<text x=\"%lf\" y=\"%lf\" text-anchor=\"%15[a-z]\">%31[^<]", &x,
                              &y, anchor, label),
                       4);
            double width = letter * (double)strlen(label);
            double left = strcmp(anchor, "end") == 0 ? x - width : x - width / 2;
            if (left < 0 || left + width > 520) {
                TEST_FAIL("\"%s\" reaches from %.1f to %.1f", label, left, left + width);
            }
            labels++;
        }
        at = end;
    }
    EXPECT(labels > 10);
}

/* Thousands of failing main lines: the file stays small and says what it leaves out. */
static void a_long_suite_stays_bounded(void)
{
    const struct kept_outcome *failing = failing_main_line();
    struct summary many = summary;
    many.outcome_count = MANY;
    many.outcome_usd = NULL;
    many.same_as = NULL;
    many.outcomes = malloc(MANY * sizeof *many.outcomes);
    EXPECT(many.outcomes != NULL);
    for (uint32_t i = 0; i < MANY; i++) {
        many.outcomes[i] = *failing;
        many.outcomes[i].id = 1 + i;
        many.outcomes[i].job_id = 1 + i;
    }
    char *text = report_text(store, &many);
    EXPECT_INT(html_count(text, "<article"), 60);
    EXPECT_INT(html_count(text, "<tr id=\"r"), 5000);
    EXPECT_HAS(text, "5940 more failures have no card");
    EXPECT_HAS(text, "5700 more in the table");
    EXPECT_HAS(text, "5000 of 6000 rollouts");
    free(text);
    free(many.outcomes);
}

/* Three seeds that fail alike: one card and one row that list the seeds. */
static void seeds_that_fail_alike_share_a_card(void)
{
    const struct kept_outcome *failing = failing_main_line();
    struct kept_outcome outcomes[3];
    uint32_t same_as[3] = {0, 0, 0};
    struct summary three = summary;
    for (uint32_t i = 0; i < COUNT_OF(outcomes); i++) {
        outcomes[i] = *failing;
        outcomes[i].id = 1 + i;
        outcomes[i].job_id = 1 + i;
        outcomes[i].seed = 7 + i;
    }
    three.outcomes = outcomes;
    three.outcome_usd = NULL;
    three.outcome_count = COUNT_OF(outcomes);
    three.same_as = same_as;
    three.seeded_cases = 1;
    three.seeded_still = 1;
    three.seeded_drives = 3;
    char *text = report_text(store, &three);
    EXPECT_INT(html_count(text, "<article"), 1);
    EXPECT_INT(html_count(text, "seeds 7, 8, 9: ended alike"), 2);
    EXPECT_HAS(text, "3 drives of 1 scenario under several seeds: each scenario counts once");
    EXPECT_HAS(text, "it is not a probability of failure on the road");
    EXPECT_HAS(text, "holds it in 94 to 100%");
    EXPECT_HAS(text, "<dt>Failures</dt><dd><b>3</b> main lines");
    EXPECT_INT(html_count(text, "more failures have no card"), 0);
    free(text);
}

/* Every kind of contact is told in words, not by the name that it has in records. */
static void contacts_are_told_in_words(void)
{
    uint32_t crash = 0;
    while (crash < summary.outcome_count &&
           summary.outcomes[crash].metrics.collision_kind == COLLISION_NONE) {
        crash++;
    }
    EXPECT(crash < summary.outcome_count);
    for (int kind = COLLISION_NONE + 1; kind < COLLISION_KIND_COUNT; kind++) {
        struct kept_outcome outcome = summary.outcomes[crash];
        struct summary one = summary;
        one.outcomes = &outcome;
        one.outcome_usd = NULL;
        one.outcome_count = 1;
        one.same_as = NULL;
        outcome.metrics.collision_kind = (enum collision_kind)kind;
        outcome.branch_id = "";
        outcome.verdict = VERDICT_FAIL;
        outcome.metrics.collision_tick = 10;
        char *text = report_text(store, &one);
        EXPECT_HAS(text, "<b>1.0 s: contact ");
        EXPECT_HAS(text, "</b>: the ");
        EXPECT_INT(html_count(text, "stopped_"), 0);
        free(text);
    }
}

static void an_empty_suite_has_a_report(void)
{
    const struct summary empty = {0};
    char *text = report_text(store, &empty);
    EXPECT_HAS(text, "No rollout of this suite has finished yet");
    EXPECT_INT(html_expect_pictures(text), 0);
    free(text);
}

/* A main line without a result did not pass. */
static void nothing_failed_is_said_of_results_alone(void)
{
    struct kept_outcome outcome = *failing_main_line();
    struct summary one = summary;
    memset(one.status.jobs, 0, sizeof one.status.jobs);
    one.outcomes = &outcome;
    one.outcome_usd = NULL;
    one.outcome_count = 1;
    one.same_as = NULL;
    outcome.verdict = VERDICT_PASS;
    outcome.reasons = 0;
    char *text = report_text(store, &one);
    EXPECT_HAS(text, "Every main line passed.");
    free(text);
    one.status.jobs[JOB_QUEUED] = 1;
    text = report_text(store, &one);
    EXPECT_HAS(text, "Every main line that has a result passed.");
    free(text);
    one.status.jobs[JOB_QUEUED] = 0;
    one.total.main_total = 0;
    outcome.verdict = VERDICT_FLAGGED;
    text = report_text(store, &one);
    EXPECT_INT(html_count(text, "Every main line"), 0);
    EXPECT_HAS(text, "No main line has a result.");
    free(text);
}

/* Goldens and clips that a suite makes are charged and not judged. */
static void goldens_and_clips_are_said_to_be_made(void)
{
    struct kept_outcome outcome = *failing_main_line();
    struct summary one = {.audit_count = 1};
    outcome.audit_of = outcome.job_id;
    one.outcomes = &outcome;
    char *text = report_text(store, &one);
    EXPECT_HAS(text, "1 rollouts made goldens or clips, none is judged");
    EXPECT_HAS(text, "record goldens or training data");
    EXPECT_INT(html_count(text, "No rollout of this suite has finished yet"), 0);
    free(text);
}

/* ---- stores that lack something ---- */

static enum status no_artifact(struct store *from, const char *hash, void **data, size_t *bytes,
                               struct error *error)
{
    (void)from;
    (void)data;
    (void)bytes;
    return error_set(error, STATUS_NOT_FOUND, "artifact %.8s <gone>", hash);
}

static enum status broken_scenario_get(struct store *from, const char *hash, char **body,
                                       size_t *bytes, struct error *error)
{
    (void)from;
    (void)hash;
    (void)body;
    (void)bytes;
    return error_set(error, STATUS_STORE, "the store is gone");
}

/* 130 dead jobs. */
static enum status many_dead(struct store *from, const char *suite, int64_t after_id,
                             struct store_job *out, uint32_t max, uint32_t *count,
                             struct error *error)
{
    (void)from;
    (void)suite;
    (void)error;
    *count = 0;
    for (int64_t id = after_id + 1; id <= 130 && *count < max; id++) {
        struct store_job *job = &out[(*count)++];
        memset(job, 0, sizeof *job);
        job->id = id;
        job->attempts = 3;
        snprintf(job->error, sizeof job->error, "<i>out of luck</i>");
    }
    return STATUS_OK;
}

static void lost_traces_become_notes(void)
{
    struct store_ops ops = *store->ops;
    const struct store_ops *real = store->ops;
    ops.artifact_get = no_artifact;
    store->ops = &ops;
    char *text = report_text(store, &summary);
    store->ops = real;
    EXPECT_HAS(text, "Cannot be redrawn: artifact ");
    EXPECT_HAS(text, "&lt;gone&gt;");
    EXPECT_INT(html_expect_pictures(text), 0);
    /* The part that does not need the trace is still there. */
    EXPECT_HAS(text, "<tr class=\"broken\">");
    free(text);
}

static void dead_jobs_are_listed_up_to_a_cap(void)
{
    struct store_ops ops = *store->ops;
    const struct store_ops *real = store->ops;
    struct summary dead = {0};
    dead.status.jobs[JOB_DEAD] = 130;
    dead.status.memoised_jobs = 7;
    ops.dead_jobs = many_dead;
    store->ops = &ops;
    char *text = report_text(store, &dead);
    store->ops = real;
    EXPECT_INT(html_count(text, "&lt;i&gt;out of luck&lt;/i&gt;"), 100);
    EXPECT_HAS(text, "30 more dead jobs");
    EXPECT_HAS(text, "<b>7</b> jobs were known");
    free(text);
}

static size_t entries(const char *path)
{
    size_t count = 0;
    DIR *stream = opendir(path);
    EXPECT(stream != NULL);
    while (readdir(stream) != NULL) {
        count++;
    }
    closedir(stream);
    return count;
}

/* Neither a store that fails nor a path that cannot be written leaves a file behind. */
static void a_failure_leaves_no_file(void)
{
    char path[512];
    struct error error = {0};
    struct store_ops ops = *store->ops;
    const struct store_ops *real = store->ops;
    size_t before = entries(directory);
    snprintf(path, sizeof path, "%s/report.html", directory);
    ops.scenario_get = broken_scenario_get;
    store->ops = &ops;
    enum status status = report_write(store, NULL, suite_id, &summary, NULL, NULL, path, &error);
    store->ops = real;
    EXPECT_INT(status, STATUS_STORE);
    EXPECT_INT(entries(directory), before);

    const struct summary empty = {0};
    snprintf(path, sizeof path, "%s/checked.html", directory);
    EXPECT_OK(report_check(path, &error), error);
    EXPECT_INT(entries(directory), before);
    snprintf(path, sizeof path, "%s/missing/report.html", directory);
    EXPECT_INT(report_check(path, &error), STATUS_BAD_INPUT);
    EXPECT_INT(report_write(store, NULL, suite_id, &empty, NULL, NULL, path, &error),
               STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "missing/report.html");
    /* A directory in the way: written beside it, then not renamed over it. */
    snprintf(path, sizeof path, "%s/suite", directory);
    EXPECT_INT(report_check(path, &error), STATUS_BAD_INPUT);
    EXPECT_INT(report_write(store, NULL, suite_id, &empty, NULL, NULL, path, &error), STATUS_IO);
    EXPECT_INT(entries(directory), before);
}

static void credentials_do_not_travel(void)
{
    char path[512];
    struct error error;
    struct summary few = summary;
    few.outcomes = failing_main_line();
    few.outcome_count = 1;
    snprintf(path, sizeof path, "%s/report.html", directory);
    EXPECT_OK(report_write(store, "postgres://me:secret@host/db", suite_id, &few, NULL, NULL, path,
                           &error),
              error);
    char *text = read_text(path);
    EXPECT(text != NULL);
    EXPECT_INT(html_count(text, "secret"), 0);
    EXPECT_HAS(text, "<code>swerve replay ");
    free(text);
    unlink(path);
}

int main(void)
{
    return TEST_RUN(TEST(setup), TEST(a_report_is_well_formed_with_pictures_that_decode),
                    TEST(texts_from_outside_are_inert), TEST(figures_are_those_of_the_json),
                    TEST(values_of_grids_have_tables), TEST(broken_criteria_match_the_reasons),
                    TEST(labels_of_charts_are_not_cut_off), TEST(contacts_are_told_in_words),
                    TEST(a_long_suite_stays_bounded), TEST(seeds_that_fail_alike_share_a_card),
                    TEST(an_empty_suite_has_a_report),
                    TEST(nothing_failed_is_said_of_results_alone),
                    TEST(goldens_and_clips_are_said_to_be_made), TEST(lost_traces_become_notes),
                    TEST(dead_jobs_are_listed_up_to_a_cap), TEST(a_failure_leaves_no_file),
                    TEST(credentials_do_not_travel), TEST(teardown));
}
