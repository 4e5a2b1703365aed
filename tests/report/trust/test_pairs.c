/*
 * Pairs of a real store, and the gate over pairs. Goal: an audit that does not ask what the job
 * asks that it repeats, or that no teacher answered, is evidence of nothing: a hundred of them
 * freeze nothing, and they are told. Method: honest audits through the embedded store; then rows as
 * an earlier version, which did not compare, may have kept them, written into the file. Futures of
 * what a teacher that is wrong fails. Tiers of a sampler, of which one answers otherwise in rain.
 */
#include "report/trust/disagreements.h"
#include "report/trust/follow.h"
#include "report/trust/settled.h"
#include "tests/store/conformance/conformance_file.h"

#include <math.h>

enum { HONEST = 40, FORGED = 100, JOBS = HONEST + FORGED };

static void submit_jobs(void)
{
    static struct job_spec plain;
    make_specs("suite", "-", 1);
    plain = specs[0];
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job_spec *spec = &specs[2 * i];
        struct job_spec *audit = &specs[2 * i + 1];
        *spec = plain;
        spec->seed = i;
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scene_%u", (unsigned)i);
        spec->tier = TIER_STUDENT;
        strcpy(spec->model_hash, "student");
        strcpy(spec->sampler, "agents/euler2/bf16");
        job_key_make(spec, 0);
        *audit = *spec;
        audit->tier = TIER_TEACHER;
        strcpy(audit->pool, "teacher");
        strcpy(audit->model_hash, "teacher");
        memcpy(audit->audit_key, spec->key, sizeof audit->audit_key);
        job_key_make(audit, 0);
        char key[SHA256_HEX_BYTES];
        job_key_audit(audit->key, key);
        memcpy(audit->key, key, sizeof key);
    }
    submit_made("suite", 1, 2 * JOBS);
}

/* The student passes everything; the teacher fails what is to be forged. */
static void answer_all(void)
{
    const char *worker;
    for (uint32_t count = claim_any(&worker, 100); count > 0; count = claim_any(&worker, 100)) {
        for (uint32_t i = 0; i < count; i++) {
            const struct job_spec *spec = &leases[i].spec;
            bool fails = spec->tier == TIER_TEACHER && spec->seed >= HONEST;
            make_completion(i, worker, COMPLETION_DONE);
            fill_outcome(&outcomes[i], spec, fails ? VERDICT_FAIL : VERDICT_PASS);
        }
        complete(count);
    }
}

static void expect_pairs(uint32_t honest, int64_t unlike, bool frozen)
{
    struct pairs pairs = {0};
    struct table table = {0};
    struct table followed = {0};
    struct follow *follow = NULL;
    const struct trust_policy policy = trust_policy_default();
    bool end = false;
    EXPECT_OK(pairs_read(store, &pairs, &error), error);
    EXPECT_INT(pairs.count, honest);
    EXPECT_INT(pairs.unlike, unlike);
    EXPECT_INT(pairs.missing, 0);
    EXPECT_OK(table_make(&pairs, &policy, &table, &error), error);
    EXPECT_INT(table.unlike, unlike);
    EXPECT_INT(table.frozen > 0, frozen);
    EXPECT_OK(follow_create(&policy, &follow, &error), error);
    while (!end) {
        EXPECT_OK(follow_step(follow, store, 1000, &end, &error), error);
    }
    EXPECT_OK(follow_table(follow, &followed, &error), error);
    EXPECT_INT(followed.unlike, unlike);
    EXPECT_INT(followed.frozen > 0, frozen);
    table_finish(&followed);
    table_finish(&table);
    follow_destroy(follow);
    pairs_finish(&pairs);
}

static void forged_audits_count_nowhere(void)
{
    static const char *const forgeries[] = {
        /* of another seed, scenario, planner, revision; by a student */
        "UPDATE job_specs SET seed = seed + 1000 WHERE",
        "UPDATE job_specs SET scenario_id = 'other' WHERE",
        "INSERT INTO contexts (planner, planner_hash, pool, tier, model_hash, sampler, backend,"
        " revision) SELECT 'exec:rival', planner_hash, pool, tier, model_hash, sampler, backend,"
        " revision FROM contexts WHERE tier = 3 LIMIT 1;"
        "UPDATE outcomes SET context = (SELECT MAX(id) FROM contexts) WHERE",
        "INSERT INTO contexts (planner, planner_hash, pool, tier, model_hash, sampler, backend,"
        " revision) SELECT planner, planner_hash, pool, tier, model_hash, sampler, backend,"
        " 'old' FROM contexts WHERE tier = 3 LIMIT 1;"
        "UPDATE outcomes SET context = (SELECT MAX(id) FROM contexts) WHERE",
        "INSERT INTO contexts (planner, planner_hash, pool, tier, model_hash, sampler, backend,"
        " revision) SELECT planner, planner_hash, pool, 2, 'rival', sampler, backend,"
        " revision FROM contexts WHERE tier = 3 LIMIT 1;"
        "UPDATE outcomes SET context = (SELECT MAX(id) FROM contexts) WHERE"};
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        char sql[1024];
        open_store(true);
        submit_jobs();
        answer_all();
        expect_pairs(JOBS, 0, true);
        close_store();
        snprintf(sql, sizeof sql,
                 "%s job IN (SELECT job FROM job_specs WHERE audit_key IS NOT NULL AND seed >= %d)",
                 forgeries[i], HONEST);
        file_write(sql);
        open_store(false);
        expect_pairs(HONEST, FORGED, false);
        close_store();
    }
}

/* ---- futures ---- */

/* Of every job of which the teacher says something else. */
static void submit_futures(void)
{
    static struct job_spec plain;
    make_specs("suite", "-", 1);
    plain = specs[0];
    for (uint32_t i = 0; i < FORGED; i++) {
        struct job_spec *spec = &specs[i];
        char key[SHA256_HEX_BYTES];
        *spec = plain;
        spec->seed = HONEST + i;
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scene_%u", (unsigned)spec->seed);
        struct job_spec student = *spec;
        student.tier = TIER_STUDENT;
        strcpy(student.model_hash, "student");
        strcpy(student.sampler, "agents/euler2/bf16");
        job_key_make(&student, 0);
        memcpy(spec->audit_key, student.key, sizeof spec->audit_key);
        job_futures_put(30, 16, spec);
        job_key_make(spec, 0);
        job_key_audit(spec->key, key);
        memcpy(spec->key, key, sizeof key);
    }
    submit_made("suite", 1, FORGED);
}

/* Of each model `failed` of 16 draws; the drive itself passes. */
static void answer_futures(uint32_t failed)
{
    const char *worker;
    for (uint32_t count = claim_any(&worker, 100); count > 0; count = claim_any(&worker, 100)) {
        for (uint32_t i = 0; i < count; i++) {
            make_completion(i, worker, COMPLETION_DONE);
            fill_outcome(&outcomes[i], &leases[i].spec, VERDICT_PASS);
            const uint32_t passed = 16 - failed;
            outcomes[i].futures = (struct outcome_futures){
                FUTURES_DRIVEN, 30, 16, passed, failed, passed, failed, passed, failed};
        }
        complete(count);
    }
}

/* A hundred verdicts of a wrong teacher freeze the student, and are believed no longer once futures
 * that all pass arbitrate; those that are undecided change nothing, nor those that fail while the
 * drive itself passes, and neither do any unasked. */
static void a_wrong_teacher_is_not_believed(void)
{
    for (uint32_t failed = 0; failed <= 16; failed += 8) {
        const struct trust_policy policy = trust_policy_default();
        struct pairs pairs = {0};
        struct table table = {0};
        open_store(true);
        submit_jobs();
        answer_all();
        submit_futures();
        answer_futures(failed);
        expect_pairs(JOBS, 0, true);
        EXPECT_OK(pairs_read(store, &pairs, &error), error);
        const struct settled settled = settled_count(&pairs);
        EXPECT_INT(settled.disagreements, FORGED);
        EXPECT_INT(settled.driven, FORGED);
        EXPECT_INT(settled.student_right, failed == 0 ? FORGED : 0);
        EXPECT_INT(settled.undecided, failed == 0 ? 0 : FORGED);
        EXPECT_INT(settled.teacher_right, 0);
        EXPECT_INT(settled.contradicted, failed == 16 ? FORGED : 0);
        pairs_arbitrate(&pairs);
        EXPECT_OK(table_make(&pairs, &policy, &table, &error), error);
        EXPECT_INT(table.frozen > 0, failed > 0);
        EXPECT_INT(table.rows[0].optimistic, failed == 0 ? 0 : FORGED);
        table_finish(&table);
        pairs_finish(&pairs);
        close_store();
    }
}

/* ---- tiers ---- */

enum { SCENES = 80, SAMPLERS = 5, OLDER_SCENES = 60 };

/* Each scene by two steps, one and none; the first also by ticks of several, and by one step in a
 * conditioning in which nobody took two. */
static void submit_tiers(void)
{
    static const char *const samplers[SAMPLERS] = {"agents/euler2/bf16", "agents/euler1/bf16",
                                                   "agents/euler0/bf16", "agents/euler0-2/bf16",
                                                   "foresee/euler1/bf16"};
    static struct job_spec plain;
    uint32_t count = 0;
    make_specs("suite", "-", 1);
    plain = specs[0];
    for (uint32_t i = 0; i < SCENES; i++) {
        for (uint32_t k = 0; k < (i == 0 ? SAMPLERS : 3); k++) {
            struct job_spec *spec = &specs[count++];
            *spec = plain;
            spec->seed = i;
            snprintf(spec->scenario_id, sizeof spec->scenario_id, "scene_%u", (unsigned)i);
            spec->tier = TIER_STUDENT;
            strcpy(spec->model_hash, "student");
            strcpy(spec->sampler, samplers[k]);
            job_key_make(spec, 0);
        }
    }
    for (uint32_t i = 0; i < OLDER_SCENES; i++) { /* another model, which takes one step */
        struct job_spec *spec = &specs[count++];
        *spec = plain;
        spec->seed = i;
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scene_%u", (unsigned)i);
        spec->tier = TIER_STUDENT;
        strcpy(spec->model_hash, "older");
        strcpy(spec->sampler, samplers[1]);
        job_key_make(spec, 0);
    }
    submit_made("suite", 1, count);
}

/* All pass, but for what is drawn in rain, and what the older model makes of every other scene. */
static void answer_tiers(void)
{
    const char *worker;
    for (uint32_t count = claim_any(&worker, 100); count > 0; count = claim_any(&worker, 100)) {
        for (uint32_t i = 0; i < count; i++) {
            const struct job_spec *spec = &leases[i].spec;
            bool rain = spec->seed % 3 == 0;
            bool drawn = strcmp(spec->sampler, "agents/euler0/bf16") == 0;
            bool odd = strcmp(spec->model_hash, "older") == 0 && spec->seed % 2 == 1;
            make_completion(i, worker, COMPLETION_DONE);
            fill_outcome(&outcomes[i], spec, (rain && drawn) || odd ? VERDICT_FAIL : VERDICT_PASS);
            strcpy(outcomes[i].slice[SLICE_WEATHER], rain ? "rain" : "clear");
        }
        complete(count);
    }
}

/* Goal: answers of a model that is named as the previous one stand beside the others' by all steps,
 * never the other way round, and the rows without it are as they were. */
static void the_previous_model_is_a_tier(const struct trust_policy *policy)
{
    static const char *const previous[] = {"older", "old", "student", "nobody"};
    for (int i = 0; i < 4; i++) {
        struct pairs pairs = {0};
        struct table table = {0};
        bool named = i < 2;
        uint32_t wholes = 0;
        EXPECT_OK(pairs_read_tiers(store, previous[i], &pairs, &error), error);
        /* All of the student's, drawn ones too, beside the older model's one step. */
        uint32_t more = i == 2 ? 3 * OLDER_SCENES : named ? OLDER_SCENES : 0;
        EXPECT_INT(pairs.count, 2 * SCENES + more);
        EXPECT_OK(table_make_judged(&pairs, policy, &table, &error), error);
        for (uint32_t k = 0; k < table.count && named; k++) {
            const struct table_row *row = &table.rows[k];
            const struct trust_slice all = {.safety_critical = false};
            if (strcmp(row->student.hash, "older") == 0 &&
                trust_slice_equal(&row->verdict.slice, &all)) {
                wholes++;
                EXPECT_TEXT(row->student.sampler, "agents/euler1/bf16");
                EXPECT_TEXT(row->teacher_hash, "student");
                EXPECT_TEXT(row->answer_sampler, "agents/euler2/bf16");
                EXPECT_INT(row->pairs, OLDER_SCENES);
                EXPECT_INT(row->agree[GATE_VERDICT], OLDER_SCENES / 2);
                EXPECT_INT(row->judgement.result, GATE_BELOW);
            } else {
                EXPECT(strcmp(row->teacher_hash, "student") == 0);
            }
        }
        EXPECT_INT(wholes, named);
        /* All are of one scenario, as far as the store knows. */
        uint32_t count = 0;
        char folder[256];
        snprintf(folder, sizeof folder, "%s/differ", file_directory);
        EXPECT_OK(disagreements_write(&pairs, store, folder, &count, &error), error);
        EXPECT_INT(count, 1);
        table_finish(&table);
        pairs_finish(&pairs);
    }
}

/* Goal: verdicts by fewer steps are compared with those by all, question by question, and the gate
 * refuses the tier and the slice that differ alone. */
static void tiers_are_compared_with_all_steps(void)
{
    struct pairs pairs = {0};
    struct table table = {0};
    const struct trust_policy policy = trust_policy_default();
    uint32_t refused = 0;
    uint32_t refused_rain = 0;
    open_store(true);
    submit_tiers();
    answer_tiers();
    EXPECT_OK(pairs_read_tiers(store, "", &pairs, &error), error);
    EXPECT_INT(pairs.count, 2 * SCENES);
    EXPECT_OK(table_make_judged(&pairs, &policy, &table, &error), error);
    for (uint32_t i = 0; i < table.count; i++) {
        const struct table_row *row = &table.rows[i];
        bool drawn = strcmp(row->student.sampler, "agents/euler0/bf16") == 0;
        const struct trust_slice *slice = &row->verdict.slice;
        bool clear = strcmp(slice->value[SLICE_WEATHER], "clear") == 0;
        bool whole = trust_slice_equal(slice, &(struct trust_slice){.safety_critical = false});
        EXPECT(drawn || strcmp(row->student.sampler, "agents/euler1/bf16") == 0);
        EXPECT_TEXT(row->answer_sampler, "agents/euler2/bf16");
        EXPECT(row->shadow && table.tiers);
        EXPECT_INT(row->judgement.result == GATE_BELOW, drawn && !clear);
        EXPECT_INT(table_refuses(&row->judgement), drawn && !clear);
        EXPECT(!whole || drawn || row->judgement.result == GATE_PASSED);
        refused += table_refuses(&row->judgement);
        refused_rain +=
            table_refuses(&row->judgement) && strcmp(slice->value[SLICE_WEATHER], "rain") == 0;
    }
    EXPECT(refused > 1);
    EXPECT_INT(refused_rain, 1);
    table_finish(&table);
    pairs_finish(&pairs);
    the_previous_model_is_a_tier(&policy);
    close_store();
}

/* ---- the gate over pairs ---- */

enum { SCENARIOS = 240, WET = 3 }; /* every third in rain */

/* Pairs of a student that answers as its teacher does, two seeds of each scenario. */
static struct pairs copy_of_the_teacher(void)
{
    struct pairs pairs = {.pairs = calloc(2 * SCENARIOS, sizeof *pairs.pairs)};
    for (uint32_t i = 0; i < 2 * SCENARIOS; i++) {
        struct pairs_pair *pair = &pairs.pairs[pairs.count++];
        enum verdict verdict = i / 2 % 7 == 0 ? VERDICT_FAIL : VERDICT_PASS;
        *pair = (struct pairs_pair){.job_id = i + 1, .seed = i % 2, .safety_critical = i / 2 % 2};
        snprintf(pair->scenario_id, sizeof pair->scenario_id, "s%u", (unsigned)(i / 2));
        strcpy(pair->slice[SLICE_WEATHER], i / 2 % WET == 0 ? "rain" : "clear");
        strcpy(pair->student_hash, "student");
        strcpy(pair->teacher_hash, "teacher");
        pair->student = (struct pairs_side){.outcome_id = 2 * i + 1, .verdict = verdict};
        pair->teacher = (struct pairs_side){.outcome_id = 2 * i + 2, .verdict = verdict};
    }
    return pairs;
}

/* Finding of the gate about a slice: all, safety-critical, or a weather. */
static enum gate_result judge(const struct pairs *pairs, const char *name, struct table_row *out)
{
    struct trust_policy policy = trust_policy_default();
    struct table table = {0};
    enum gate_result result = GATE_RESULT_COUNT;
    policy.property_band[GATE_COLLISION] = 0.9;
    EXPECT_OK(table_make_judged(pairs, &policy, &table, &error), error);
    for (uint32_t i = 0; i < table.count; i++) {
        char text[TRUST_SLICE_TEXT_BYTES];
        const struct table_row *row = &table.rows[i];
        const struct gate_bands bands = trust_gate_bands(&policy);
        struct gate_agreement slice = {.safety_critical = row->verdict.slice.safety_critical,
                                       .optimistic = row->optimistic,
                                       .incumbent = NAN};
        enum gate_property property;
        if (strcmp(trust_slice_text(&row->verdict.slice, text), name) == 0) {
            memcpy(slice.measure, row->measure, sizeof slice.measure);
            result = gate_judge(&bands, &slice, &property);
            *out = *row;
        }
    }
    table_finish(&table);
    return result;
}

/* Goal: a copy of the teacher passes everywhere; a student that is damaged in one slice fails there
 * and passes where it is not; and what the teacher gets wrong judges the teacher. */
static void what_is_damaged_fails_and_nothing_else(void)
{
    struct table_row row;
    struct pairs pairs = copy_of_the_teacher();
    EXPECT_INT(judge(&pairs, "all", &row), GATE_PASSED);
    EXPECT_INT(row.measure[GATE_VERDICT].draws, SCENARIOS);
    EXPECT_INT(judge(&pairs, "safety critical", &row), GATE_PASSED);
    EXPECT_INT(judge(&pairs, "weather=rain", &row), GATE_PASSED);
    EXPECT_INT(judge(&pairs, "weather=clear", &row), GATE_PASSED);
    for (uint32_t i = 0; i < pairs.count; i++) { /* one seed of each in rain */
        bool wet = strcmp(pairs.pairs[i].slice[SLICE_WEATHER], "rain") == 0;
        pairs.pairs[i].student.verdict =
            wet && i % 2 == 0 ? VERDICT_FAIL : pairs.pairs[i].teacher.verdict;
    }
    EXPECT_INT(judge(&pairs, "weather=rain", &row), GATE_BELOW);
    EXPECT(row.verdict.monitor.bad > 50);
    EXPECT(row.measure[GATE_VERDICT].value < 0.6 && row.measure[GATE_VERDICT].value > 0.5);
    EXPECT_INT(judge(&pairs, "weather=clear", &row), GATE_PASSED);
    EXPECT(judge(&pairs, "all", &row) != GATE_PASSED);
    for (uint32_t i = 0; i < pairs.count; i++) { /* the same, and it is the teacher who errs */
        pairs.pairs[i].object = pairs.pairs[i].student;
    }
    EXPECT_INT(judge(&pairs, "weather=rain", &row), GATE_PASSED);
    EXPECT_INT(row.verdict.monitor.bad, 0);
    EXPECT_INT(row.teacher_wrong, row.pessimistic);
    EXPECT(row.teacher_wrong > 50 && row.optimistic == 0);
    for (uint32_t i = 0; i < pairs.count; i++) { /* .. or passes what the student does not */
        struct pairs_pair *pair = &pairs.pairs[i];
        pair->student.verdict = i == 14 ? VERDICT_PASS : pair->teacher.verdict;
        pair->object = (struct pairs_side){.outcome_id = 0};
    }
    EXPECT_INT(pairs.pairs[14].teacher.verdict, VERDICT_FAIL);
    EXPECT_INT(judge(&pairs, "safety critical", &row), GATE_OPTIMISTIC);
    pairs.pairs[14].object = pairs.pairs[14].student;
    EXPECT_INT(judge(&pairs, "safety critical", &row), GATE_PASSED);
    EXPECT_INT(row.teacher_wrong, 1);
    pairs.pairs[14].object.verdict = VERDICT_FAIL;
    EXPECT_INT(judge(&pairs, "safety critical", &row), GATE_OPTIMISTIC);
    EXPECT_INT(row.teacher_wrong, 0);
    for (uint32_t i = 0; i < pairs.count; i++) { /* same verdicts, other contacts */
        pairs.pairs[i].student = pairs.pairs[i].teacher;
        pairs.pairs[i].student.collided = i / 2 % 3 == 1;
    }
    EXPECT_INT(judge(&pairs, "all", &row), GATE_BELOW);
    EXPECT_INT(judge(&pairs, "weather=rain", &row), GATE_PASSED);
    free(pairs.pairs);
}

int main(void)
{
    return file_begin() ? file_finish(TEST_RUN(TEST(forged_audits_count_nowhere),
                                               TEST(a_wrong_teacher_is_not_believed),
                                               TEST(tiers_are_compared_with_all_steps),
                                               TEST(what_is_damaged_fails_and_nothing_else)))
                        : 1;
}
