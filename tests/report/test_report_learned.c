/*
 * Goal: a report of learned tiers says what was generated and by what, what each tier took, what
 * was flagged and who answered, how far the teacher agrees, what a fanout cost and saved; and stays
 * well-formed, inert and whole when the evidence is missing or hostile.
 * Method: a suite is submitted to the student's tier of a real store and driven by the object world
 * under the student's and the teacher's name, with operations, a flag and audit jobs made up on the
 * way. With a path as argument the report is also written there, to be looked at.
 */
#include "report/report.h"

#include "base/check.h"
#include "base/units.h"
#include "engine/worlds/world.h"
#include "schemas/job_context.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/report/html_check.h"
#include "tests/worker/pack_all.h"
#include "worker/run/runner.h"
#include "worker/submission/submission.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STUDENT_HASH "57d3c1f00d5e"
#define TEACHER_HASH "7eac4e12beef"

enum { JOBS_MAX = 16, BRANCHES_MAX = 8 };

static char directory[] = "/tmp/swerve_learned_XXXXXX";
static const char *kept_path;
static struct store *store;
static struct submission submission;
static struct suite *suite;
static struct summary summary;
static char *plain;

/* ---- a fleet of pretence ---- */

static void submit(void)
{
    char path[512];
    struct error error;
    const struct submission_options options = {.planner = "builtin:reference",
                                               .backend = "cpu",
                                               .policy.choice = WORLD_OBJECT,
                                               .attempts_max = 2};
    snprintf(path, sizeof path, "%s/suite.json", directory);
    json_t *json = json_pack(
        "{s:s, s:[{s:s, s:s, s:{s:i}, s:f, s:[s, s]}, {s:s, s:f, s:[]}, {s:s, s:s, s:{s:s}, s:f, "
        "s:[]}, {s:s, s:f, s:[]}]}",
        "id", "learned", "scenarios", "file", "urban/occluded_jaywalker.json", "id", "fanout",
        "set", "ego_mps", 8, "horizon_s", 6.0, "branches", "brake_before_seen", "dry_day", "file",
        "urban/dog_runs.json", "horizon_s", 6.0, "branches", "file", "rural/deer.json", "id",
        "deer", "set", "light", "night", "horizon_s", 5.0, "branches", "file",
        "urban/zebra_group.json", "horizon_s", 4.0, "branches");
    EXPECT(json != NULL);
    EXPECT_INT(json_dump_file(json, path, 0), 0);
    json_decref(json);
    char library[512];
    static const char *const folders[] = {"urban", "rural", "maps"};
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        snprintf(library, sizeof library, "%s/scenarios/%s", SWERVE_SOURCE_ROOT, folders[i]);
        snprintf(path, sizeof path, "%s/%s", directory, folders[i]);
        EXPECT_INT(symlink(library, path), 0);
    }
    snprintf(path, sizeof path, "%s/suite.json", directory);
    EXPECT_OK(suite_load(path, &suite, &error), error);
    EXPECT_OK(submission_build(suite, &options, &submission, &error), error);
    for (uint32_t i = 0; i < submission.job_count; i++) {
        struct job_spec *spec = &submission.specs[i];
        spec->tier = TIER_STUDENT;
        snprintf(spec->model_hash, sizeof spec->model_hash, "%s", STUDENT_HASH);
        snprintf(spec->sampler, sizeof spec->sampler, "agents/euler2/bf16");
        snprintf(spec->escalate_pool, sizeof spec->escalate_pool, "teacher");
        spec->escalate_tier = TIER_TEACHER;
        snprintf(spec->escalate_model_hash, SHA256_HEX_BYTES, "%s", TEACHER_HASH);
        snprintf(spec->escalate_sampler, LIMIT_ID_BYTES, "agents/euler8/bf16");
    }
    EXPECT_OK(submission_send(&submission, store, 1, &error), error);
}

/* The same question to the teacher, for two of the jobs. */
static void submit_audits(void)
{
    static const char *const audited[] = {"deer", "fanout"};
    struct error error;
    for (uint32_t i = 0; i < submission.job_count; i++) {
        for (size_t k = 0; k < COUNT_OF(audited); k++) {
            struct store_submit_result result;
            struct job_spec audit = submission.specs[i];
            if (strcmp(audit.scenario_id, audited[k]) != 0) {
                continue;
            }
            memcpy(audit.audit_key, audit.key, sizeof audit.audit_key);
            job_escalation_clear(&audit);
            snprintf(audit.key, sizeof audit.key, "twin-%u", i);
            snprintf(audit.pool, sizeof audit.pool, "teacher");
            snprintf(audit.model_hash, sizeof audit.model_hash, "%s", TEACHER_HASH);
            snprintf(audit.sampler, sizeof audit.sampler, "agents/euler8/bf16");
            audit.tier = TIER_TEACHER;
            EXPECT_OK(store->ops->submit(store, submission.suite_id, 1, &audit, 1, &result, &error),
                      error);
        }
    }
}

static const struct scenario *scenario_of(const char *id)
{
    for (uint32_t i = 0; i < submission.job_count; i++) {
        if (strcmp(submission.documents[i]->scenario.id, id) == 0) {
            return &submission.documents[i]->scenario;
        }
    }
    CHECK(!"a job of the suite");
    return NULL;
}

static struct job_run *drive(const struct job_lease *lease)
{
    struct world_ops ops = world_object_ops;
    struct prepared *prepared = NULL;
    struct runner *runner = NULL;
    struct job_run *job = NULL;
    struct error error;
    ops.tier = lease->spec.tier;
    const struct runner_config config = {.world = &ops,
                                         .planner = lease->spec.planner,
                                         .planner_config = {.tick_deadline_ms = 2000},
                                         .slot_count = 4,
                                         .clock = clock_system()};
    EXPECT_OK(prepared_create(scenario_of(lease->spec.scenario_id), &prepared, &error), error);
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    EXPECT_OK(job_run_create(lease, prepared, &job, &error), error);
    EXPECT_OK(runner_add(runner, job, ROLLOUT_ALL, &error), error);
    while ((job = runner_take(runner)) == NULL) {
        runner_tick(runner);
    }
    runner_destroy(runner);
    prepared_unref(prepared);
    return job;
}

/* A PNG as evidence looks; the picture is whatever. */
static void put_snapshot(char hash[SHA256_HEX_BYTES])
{
    static uint8_t rgb[256 * 288 * 3];
    struct error error;
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = 288, .height = 256, .format = PNG_FORMAT_RGB};
    for (size_t i = 0; i < sizeof rgb; i++) {
        rgb[i] = (uint8_t)(i / 97);
    }
    png_alloc_size_t bytes = 0;
    EXPECT(png_image_write_to_memory(&image, NULL, &bytes, 0, rgb, 0, NULL));
    uint8_t *png = malloc(bytes);
    EXPECT(png != NULL);
    EXPECT(png_image_write_to_memory(&image, png, &bytes, 0, rgb, 0, NULL));
    EXPECT_OK(store->ops->artifact_put(store, png, bytes, hash, &error), error);
    free(png);
}

/* Completes one lease as the student or the teacher would have. */
static void complete(const char *worker, const struct job_lease *lease)
{
    struct outcome outcomes[BRANCHES_MAX];
    struct job_completion completion = {.job_id = lease->job_id, .epoch = lease->epoch};
    struct store_completion_result result;
    struct error error;
    uint8_t *data = NULL;
    size_t bytes = 0;
    bool teacher = lease->spec.tier == TIER_TEACHER;
    struct job_run *job = drive(lease);
    EXPECT(job->rollout_count <= BRANCHES_MAX);
    EXPECT_OK(pack_all(job, &data, &bytes, &error), error);
    EXPECT_OK(store->ops->artifact_put(store, data, bytes, completion.artifact_hash, &error),
              error);
    free(data);
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        outcome_build(job, i, &outcomes[i]);
        memcpy(outcomes[i].artifact_hash, completion.artifact_hash, SHA256_HEX_BYTES);
        int64_t own = (int64_t)outcomes[i].ticks - outcomes[i].prefix_ticks;
        outcomes[i].device_ns = own * (teacher ? 2 * NS_PER_MS : 300000);
        outcomes[i].mflop = own * (teacher ? 400 : 30);
        outcomes[i].peak_mflops = 400000; /* 400 GFLOP/s */
        completion.device_ns += outcomes[i].device_ns;
        completion.metres_mm += outcomes[i].metres_mm;
        completion.mflop += outcomes[i].mflop;
    }
    if (!teacher && strcmp(lease->spec.scenario_id, "dog_runs") == 0) {
        completion.kind = COMPLETION_FLAGGED;
        outcomes[0].verdict = VERDICT_FLAGGED;
        snprintf(outcomes[0].health_check, LIMIT_ID_BYTES, "mass_high");
        outcomes[0].health_tick = 23;
        outcomes[0].health_value = 2.5;
        outcomes[0].health_threshold = 1.25;
        put_snapshot(outcomes[0].evidence_hash);
    }
    if (teacher && strcmp(lease->spec.scenario_id, "deer") == 0) {
        bool fails = outcomes[0].verdict == VERDICT_PASS; /* the teacher disagrees */
        outcomes[0].verdict = fails ? VERDICT_FAIL : VERDICT_PASS;
        outcomes[0].reasons = fails ? REASON_COLLISION : 0;
        outcomes[0].metrics.collision_count = 1; /* of which ego is not at fault */
        outcomes[0].metrics.at_fault = false;
        outcomes[0].metrics.no_at_fault_collision = 1;
        outcomes[0].metrics.score = metrics_score(&outcomes[0].metrics);
    }
    snprintf(completion.worker_id, sizeof completion.worker_id, "%s", worker);
    completion.outcomes = outcomes;
    completion.outcome_count = job->rollout_count;
    EXPECT_OK(store->ops->complete(store, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_OK);
    job_run_destroy(job);
}

static void work(const char *pool)
{
    struct store_worker worker = {.device = "cpu"};
    struct error error;
    uint32_t count = 0;
    int64_t ttl_ms;
    snprintf(worker.worker_id, sizeof worker.worker_id, "worker-%s", pool);
    snprintf(worker.pool, sizeof worker.pool, "%s", pool);
    EXPECT_OK(store->ops->heartbeat(store, &worker, NULL, 0, NULL, NULL, &ttl_ms, &error), error);
    do {
        struct job_lease lease;
        EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, &lease, &count, &ttl_ms,
                                    &error),
                  error);
        if (count > 0) {
            complete(worker.worker_id, &lease);
        }
    } while (count > 0);
}

static char *report_text(void)
{
    char path[512];
    struct error error;
    char *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/report.html", directory);
    EXPECT_OK(
        report_write(store, "demo.db", submission.suite_id, &summary, NULL, NULL, path, &error),
        error);
    FILE *stream = fopen(path, "rb");
    EXPECT(stream != NULL && getdelim(&text, &bytes, '\0', stream) > 0);
    fclose(stream);
    html_expect_balanced(text);
    html_expect_self_contained(text);
    return text;
}

static void setup(void)
{
    char path[512];
    struct error error;
    EXPECT(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/store.db", directory);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    submit();
    submit_audits();
    work("bulk");
    work("teacher");
    EXPECT_OK(summary_load(store, submission.suite_id, &summary, &error), error);
    plain = report_text();
    if (kept_path != NULL) {
        FILE *stream = fopen(kept_path, "wb");
        EXPECT(stream != NULL && fputs(plain, stream) >= 0 && fclose(stream) == 0);
    }
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
    submission_finish(&submission);
    suite_destroy(suite);
    store->ops->close(store);
    EXPECT_INT(nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- tests ---- */

/* Student: fanout, deer, zebra pass or fail by themselves; the flagged dog is the teacher's. */
static void every_tier_has_its_account(void)
{
    const struct summary_row *student = summary_tier(&summary, TIER_STUDENT);
    const struct summary_row *teacher = summary_tier(&summary, TIER_TEACHER);
    char expected[256];
    char money[SUMMARY_MONEY_BYTES];
    EXPECT(student != NULL && teacher != NULL);
    EXPECT_INT(student->verdicts[VERDICT_FLAGGED], 1);
    EXPECT_INT(summary.audit_count, 4);
    EXPECT_HAS(plain, "<td><b>student</b></td>");
    EXPECT_HAS(plain, "<td><b>teacher</b></td>");
    EXPECT_INT(html_count(plain, "<td><b>object</b></td>"), 0);
    /* 30 MFLOP in 0.3 ms are a quarter of 400 GFLOP/s; 400 in 2 half of it. */
    EXPECT_HAS(plain, "<td class=\"n\">25%</td>");
    EXPECT_HAS(plain, "<td class=\"n\">50%</td>");
    struct summary_overhead over = summary_overhead(&summary, TIER_STUDENT);
    EXPECT(over.flagged_usd > 0);
    snprintf(expected, sizeof expected, "<td class=\"n\">%s</td>",
             summary_uusd_text(over.flagged_uusd, money));
    EXPECT_HAS(plain, expected);
    EXPECT_HAS(plain, "student 57d3c1f00d5e agents/euler2/bf16");
    EXPECT_HAS(plain, "teacher 7eac4e12beef agents/euler8/bf16");
}

/* A cell of the ledger's table for every row, and one for their sum: the bill to the last digit. */
static void the_ledger_adds_up_to_the_bill(void)
{
    char expected[256];
    char money[SUMMARY_MONEY_BYTES];
    int64_t sum = 0;
    const char *table = strstr(plain, "The store's ledger");
    EXPECT(table != NULL && summary.ledger_count > 3);
    for (uint32_t i = 0; i < summary.ledger_count; i++) {
        sum += summary.ledger[i].totals.cost_uusd;
        snprintf(expected, sizeof expected, "<td class=\"n\">%s</td>",
                 summary_uusd_text(summary.ledger[i].totals.cost_uusd, money));
        EXPECT_HAS(table, expected);
    }
    EXPECT_INT(sum, summary.status.cost_uusd);
    EXPECT(sum > 0);
    const char *total = strstr(table, "<tr class=\"total\">");
    EXPECT(total != NULL);
    snprintf(expected, sizeof expected, "<td class=\"n\">%s</td>", summary_uusd_text(sum, money));
    EXPECT_HAS(total, expected);
    snprintf(expected, sizeof expected, "<p>The bill is %s.</p>", money);
    EXPECT_HAS(total, expected);
    /* Less than a cent is in no headline. */
    snprintf(expected, sizeof expected, "the bill is %s</span>", money);
    EXPECT((strstr(plain, expected) != NULL) == (sum >= 10000));
}

/* Without a result of its own the teacher still has what its audit jobs cost. */
static void a_tier_that_only_audits_has_a_row(void)
{
    struct summary few = summary;
    struct summary_row *rows = calloc(summary.row_count, sizeof *rows);
    char money[SUMMARY_MONEY_BYTES];
    EXPECT(rows != NULL);
    few.rows = rows;
    few.row_count = 0;
    for (uint32_t i = 0; i < summary.row_count; i++) {
        if (strcmp(summary.rows[i].value, "teacher") != 0) {
            rows[few.row_count++] = summary.rows[i];
        }
    }
    const struct summary full = summary;
    summary = few;
    char *text = report_text();
    summary = full;
    free(rows);
    const char *row = strstr(text, "<td><b>teacher</b></td>");
    EXPECT(row != NULL);
    struct summary_overhead over = summary_overhead(&summary, TIER_TEACHER);
    EXPECT(over.audit_uusd > 0);
    EXPECT_HAS(row, summary_uusd_text(over.audit_uusd, money));
    free(text);
}

static void a_flag_leads_to_its_answer(void)
{
    EXPECT_INT(summary.flag_count, 1);
    EXPECT(summary.flags[0].answer >= 0);
    EXPECT_INT(html_count(plain, "class=\"card flagcard\""), 1);
    EXPECT_HAS(plain, "<span class=\"chip flagged\">mass high</span> at 2.3 s");
    EXPECT_HAS(plain, "measured 2.5, bound 1.25");
    EXPECT_HAS(plain, "Requeued to the teacher, job ");
    EXPECT_INT(html_count(plain, "alt=\"the flagged frame\""), 1);
    EXPECT_HAS(plain, "<b>1</b> job was flagged");
    /* The flagged drive itself is no failure: the teacher's is. */
    char card[64];
    snprintf(card, sizeof card, "<article class=\"card\" id=\"o%lld\">",
             (long long)summary.outcomes[summary.flags[0].outcome].id);
    EXPECT_INT(html_count(plain, card), 0);
}

static void the_audit_shows_where_the_teacher_differs(void)
{
    EXPECT_INT(summary.pair_count, 4);
    EXPECT_HAS(plain, "<h2 id=\"audit\">");
    EXPECT_HAS(plain, "3/4 <span class=\"soft\">[2&ndash;98%]</span>");
    EXPECT_HAS(plain, "<b>3 of 4</b> audited rollouts of 2 jobs (95% interval 2&ndash;98%)");
    EXPECT_HAS(plain, "Verdicts that differ:");
    EXPECT_HAS(plain, "<a href=\"#audit\">");
}

static void an_audit_without_a_pair_claims_no_rate(void)
{
    const struct summary full = summary;
    struct summary_agreement all = {.group = "all", .value = "all", .agreement = {.incomplete = 4}};
    summary.agreement = &all;
    summary.agreement_count = 1;
    char *text = report_text();
    summary = full;
    EXPECT_HAS(text, "nothing to compare yet");
    EXPECT_HAS(text, "Nothing can be said: of 4 rollouts");
    EXPECT_INT(html_count(text, "0 of 0"), 0);
    free(text);
}

static void fanouts_show_generated_frames_and_money(void)
{
    EXPECT_HAS(plain, "alt=\"front camera, generated\"");
    EXPECT_INT(html_count(plain, "alt=\"front camera\""), 0);
    EXPECT_INT(html_count(plain, "alt=\"left camera\""), 0);
    EXPECT_HAS(plain, ": it cost $");
    EXPECT_HAS(plain, "sharing the past saved $");
    EXPECT_HAS(plain, " s of device time, $");
    EXPECT_HAS(plain, "student world (its submitter named it (--world)), model "
                      "<code>57d3c1f00d5e</code> agents/euler2/bf16");
    EXPECT(html_expect_pictures(plain) > 20);
    /* Whom it is about is on the map, with a path, and named below. */
    const char *section = strstr(plain, "<h2 id=\"branches\">");
    EXPECT(section != NULL);
    EXPECT_HAS(section, "<rect class=\"box other\"");
    EXPECT_HAS(section, "<path class=\"path other\"");
    EXPECT_HAS(section, "<span class=\"key other\"></span>");
}

/* ---- evidence that is not there, or not a picture ---- */

static const char *snapshot_text; /* NULL: gone */

static enum status snapshot_get(struct store *from, const char *hash, void **data, size_t *bytes,
                                struct error *error)
{
    (void)from;
    if (strcmp(hash, summary.outcomes[summary.flags[0].outcome].evidence_hash) != 0 ||
        snapshot_text == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "gone");
    }
    *bytes = strlen(snapshot_text);
    *data = strdup(snapshot_text);
    return STATUS_OK;
}

static void evidence_may_be_missing_or_hostile(void)
{
    static const char *const texts[] = {NULL, "", "<script>alert(1)</script>", "\x89PNG\r\n\x1a\n"};
    struct store_ops ops = *store->ops;
    const struct store_ops *real = store->ops;
    ops.artifact_get = snapshot_get;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        snapshot_text = texts[i];
        store->ops = &ops;
        char *text = report_text();
        store->ops = real;
        EXPECT_HAS(text, "The picture of the frame cannot be shown.");
        EXPECT_INT(html_count(text, "alert(1)"), 0);
        EXPECT_HAS(text, "Requeued to the teacher");
        free(text);
    }
}

int main(int argc, char **argv)
{
    kept_path = argc > 1 ? argv[1] : NULL;
    return TEST_RUN(
        TEST(setup), TEST(every_tier_has_its_account), TEST(the_ledger_adds_up_to_the_bill),
        TEST(a_tier_that_only_audits_has_a_row), TEST(a_flag_leads_to_its_answer),
        TEST(the_audit_shows_where_the_teacher_differs),
        TEST(an_audit_without_a_pair_claims_no_rate), TEST(fanouts_show_generated_frames_and_money),
        TEST(evidence_may_be_missing_or_hostile), TEST(teardown));
}
