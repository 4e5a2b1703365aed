/*
 * Goal: following a store that goes on comes to what reading it whole gives: the same rows,
 * monitors and drifts, whichever side of a pair comes first, wherever steps end, also when steps
 * fail and are repeated. Method: random outcomes of students, audit jobs and takers-over that a
 * fake store shows more and more of; after each step that reaches the end, the followed table
 * against pairs_read() and table_make() of what the store shows.
 */
#include "report/trust/follow.h"

#include "base/check.h"
#include "report/trust/measures.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { JOBS = 400, OUTCOMES_MAX = 8 * JOBS };

static struct outcome *made; /* in the order of their ids */
static uint32_t made_count;
static uint32_t shown;            /* of these, what the store has now */
static int64_t memo_of[2 * JOBS]; /* by job: whose result it took over; 0: its own */
static uint64_t state;
static bool failing; /* some questions fail */
static int64_t redrives;
static size_t drifts_heard; /* by followers, over all comparisons */

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

/* As the stores do: a job's own outcomes without a filter, those that it took over with one. */
static enum status fake_outcomes(struct store *store, const struct store_outcome_filter *filter,
                                 struct outcome *out, uint32_t *count, struct error *error)
{
    (void)store;
    if (failing && draw(3) == 0) {
        return error_set(error, STATUS_BUSY, "not now");
    }
    int64_t job = filter->job_id;
    int64_t whose = job != 0 && memo_of[job] != 0 ? memo_of[job] : job;
    *count = 0;
    for (uint32_t i = 0; i < shown && *count < filter->limit; i++) {
        if (made[i].id > filter->after_id && (job == 0 || made[i].job_id == whose)) {
            out[*count] = made[i];
            out[(*count)++].job_id = job == 0 ? made[i].job_id : job;
        }
    }
    return STATUS_OK;
}

static enum status fake_trust_events(struct store *store, int64_t after_id, struct trust_event *out,
                                     uint32_t max, uint32_t *count, struct error *error)
{
    (void)store, (void)after_id, (void)out, (void)max, (void)error;
    *count = 0;
    return STATUS_OK;
}

static enum status fake_redrives(struct store *store, int64_t *count, struct error *error)
{
    (void)store, (void)error;
    *count = redrives;
    return STATUS_OK;
}

static const struct store_ops fake_ops = {.name = "fake",
                                          .outcomes = fake_outcomes,
                                          .trust_events = fake_trust_events,
                                          .redrives = fake_redrives};
static struct store fake = {&fake_ops};

/* A rollout of a job: the main line or a branch. */
static void add(int64_t job, uint32_t scenario, uint32_t branch, enum tier tier, int64_t audit_of)
{
    struct outcome *outcome = &made[made_count++];
    CHECK(made_count <= OUTCOMES_MAX);
    memset(outcome, 0, sizeof *outcome);
    outcome->id = 2 * (int64_t)made_count;
    outcome->job_id = job;
    outcome->audit_of = audit_of;
    outcome->tier = tier;
    outcome->verdict = draw(10) == 0 ? VERDICT_FLAGGED : draw(4) == 0 ? VERDICT_FAIL : VERDICT_PASS;
    outcome->safety_critical = scenario % 2 == 0;
    snprintf(outcome->scenario_id, sizeof outcome->scenario_id, "s%u/x=%u", scenario % 7, scenario);
    snprintf(outcome->scenario_hash, sizeof outcome->scenario_hash, "h%u", scenario);
    snprintf(outcome->branch_id, sizeof outcome->branch_id, "%.*s", branch > 0 ? 1 : 0, "b");
    snprintf(outcome->slice[SLICE_WEATHER], LIMIT_ID_BYTES, "w%u", scenario % 3);
    if (tier != TIER_OBJECT) {
        snprintf(outcome->model_hash, sizeof outcome->model_hash, "%s%u",
                 tier == TIER_STUDENT ? "student" : "teacher",
                 tier == TIER_STUDENT ? scenario % 2 : 0);
        snprintf(outcome->sampler, sizeof outcome->sampler, "agents/euler2");
    }
    outcome->health.measured_ticks = tier == TIER_STUDENT ? 60 : 0;
    for (int m = 0; m < MEASURE_COUNT; m++) { /* worse in the second half */
        outcome->health.mean[m] =
            (double)(made_count * 7919u % 997u) / 997.0 + (made_count > JOBS ? 1.0 : 0.0);
    }
    outcome->metrics.progress_m = draw(100);
    outcome->at_ms = draw(10) == 0 ? 0 : (19000 * 24 + outcome->id) * 3600000;
}

/* Student and audit job of a question: both, either way round, or one of them alone. */
static void make_outcomes(uint64_t seed)
{
    state = seed;
    made_count = 0;
    memset(memo_of, 0, sizeof memo_of);
    int64_t waiting[16] = {0};
    uint32_t asked_of[JOBS] = {0}; /* scenario of a job */
    for (int64_t job = 1; job < JOBS; job++) {
        uint32_t scenario = draw(40);
        uint32_t branches = draw(3) == 0;
        bool student_first = draw(2) == 0;
        bool forged = draw(8) == 0; /* it audits another scenario */
        asked_of[job] = scenario;
        for (uint32_t b = 0; b <= branches && student_first; b++) {
            add(job, scenario, b, TIER_STUDENT, 0);
        }
        int64_t asked = job;
        if (draw(4) == 0) { /* the audit repeats a job that took this one's result over */
            asked = JOBS + job;
            memo_of[asked] = student_first ? job : 0;
        }
        for (uint32_t b = 0; b <= branches && draw(4) > 0; b++) {
            add(JOBS * 2 + job, scenario + forged, b, TIER_TEACHER, asked);
        }
        if (!student_first) { /* .. its student answers later, or never */
            int64_t *late = &waiting[draw(COUNT_OF(waiting))];
            int64_t now = *late;
            *late = job;
            for (uint32_t b = 0; b < 2 && now != 0; b++) {
                add(now, asked_of[now], b, TIER_STUDENT, 0);
            }
        }
        for (uint32_t b = 0, any = draw(3) == 0; any && b <= branches; b++) { /* a shadow's */
            add(JOBS * 4 + job, scenario, b, TIER_STUDENT, job);
            struct outcome *shadow = &made[made_count - 1];
            shadow->shadow = true;
            strcpy(shadow->model_hash, "shadow");
            strcpy(shadow->sampler, "agents/euler1");
        }
        if (draw(5) == 0) {
            add(JOBS * 3 + job, scenario, 0, TIER_OBJECT, 0);
        }
    }
}

static char *text_of(struct table *table)
{
    json_t *json = table_json(table, true);
    char *text = json_dumps(json, JSON_SORT_KEYS);
    EXPECT(text != NULL);
    json_decref(json);
    table_finish(table);
    return text;
}

static void expect_same_drift(const struct follow *follow, const struct pairs *pairs,
                              const struct trust_policy *policy)
{
    struct error error;
    struct measures_alarm *alarms = NULL;
    uint32_t count = 0;
    json_t *found = NULL;
    EXPECT_OK(measures_alarms(&pairs->drives, policy, &alarms, &count, &error), error);
    EXPECT_OK(follow_drift(follow, &found, &error), error);
    json_t *expected = measures_json(&pairs->drives, alarms, count);
    EXPECT(json_equal(found, expected));
    drifts_heard += json_array_size(found);
    json_decref(found);
    json_decref(expected);
    free(alarms);
}

static void expect_same(const struct follow *follow, const struct trust_policy *policy)
{
    struct error error;
    struct pairs pairs = {0};
    struct table whole = {0};
    struct table followed = {0};
    failing = false;
    EXPECT_OK(pairs_read(&fake, &pairs, &error), error);
    EXPECT_OK(table_make_by_day(&pairs, policy, DAY_NEVER, &whole, &error), error);
    EXPECT_OK(follow_table(follow, &followed, &error), error);
    char *expected = text_of(&whole);
    char *found = text_of(&followed);
    EXPECT_TEXT(found, expected);
    free(expected);
    free(found);
    expect_same_drift(follow, &pairs, policy);
    pairs_finish(&pairs);
}

/* Goal: shadows have rows of their own, which say how often they agree with what counted; nothing
 * is frozen for them, and no other row is another one with them than without. */
static void shadows_are_told_apart(void)
{
    struct error error;
    struct trust_policy *policy = calloc(1, sizeof *policy);
    made = calloc(OUTCOMES_MAX, sizeof *made);
    EXPECT(policy != NULL && made != NULL);
    *policy = trust_policy_default();
    make_outcomes(7);
    shown = made_count;
    failing = false;
    int64_t same = 0;
    int64_t judged = 0;
    for (uint32_t i = 0; i < made_count; i++) {
        for (uint32_t k = 0; made[i].shadow && k < made_count; k++) {
            bool answer = made[k].job_id == made[i].audit_of && made[k].audit_of == 0 &&
                          strcmp(made[k].branch_id, made[i].branch_id) == 0;
            bool both = made[i].verdict <= VERDICT_FAIL && made[k].verdict <= VERDICT_FAIL;
            judged += answer && both;
            same += answer && both && made[i].verdict == made[k].verdict;
        }
    }
    struct pairs pairs = {0};
    struct table table = {0};
    EXPECT_OK(pairs_read(&fake, &pairs, &error), error);
    EXPECT_OK(table_make(&pairs, policy, &table, &error), error);
    EXPECT(table.unlike > 20);
    pairs_finish(&pairs);
    int64_t found = 0;
    int64_t agreed = 0;
    for (uint32_t i = 0; i < table.count; i++) {
        const struct table_row *row = &table.rows[i];
        bool whole = trust_slice_equal(&row->verdict.slice, &(struct trust_slice){0});
        EXPECT_INT(row->shadow, strcmp(row->student.hash, "shadow") == 0);
        EXPECT(!row->shadow || !row->verdict.frozen);
        EXPECT((row->teacher_sampler[0] != '\0') == row->shadow);
        found += row->shadow && whole ? row->pairs : 0;
        agreed += row->shadow && whole ? row->agree[GATE_VERDICT] : 0;
    }
    EXPECT(judged > 100);
    EXPECT_INT(found, judged);
    EXPECT_INT(agreed, same);
    table_finish(&table);
    free(made);
    free(policy);
}

static void following_comes_to_what_reading_gives(void)
{
    struct error error;
    struct trust_policy *policy = calloc(1, sizeof *policy);
    made = calloc(OUTCOMES_MAX, sizeof *made);
    EXPECT(policy != NULL && made != NULL);
    *policy = trust_policy_default();
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct follow *follow = NULL;
        uint32_t compared = 0;
        make_outcomes(seed);
        policy->evaluated_until = made[made_count / 2].id;
        EXPECT_OK(follow_create(policy, &follow, &error), error);
        for (shown = 0; shown < made_count;) {
            uint32_t more = 1 + draw(300);
            shown = more < made_count - shown ? shown + more : made_count;
            bool end = false;
            while (!end) {
                failing = true;
                int64_t before = follow_up_to(follow);
                enum status status = follow_step(follow, &fake, 1 + draw(500), &end, &error);
                EXPECT(status == STATUS_OK || (status == STATUS_BUSY && !end));
                EXPECT(follow_up_to(follow) >= before);
            }
            EXPECT_INT(follow_up_to(follow), made[shown - 1].id);
            expect_same(follow, policy);
            compared++;
        }
        EXPECT(compared > 2 && made_count > 2 * JOBS / 2);
        follow_destroy(follow);
    }
    EXPECT(drifts_heard > 0);
    free(made);
    free(policy);
}

/* Goal: outcomes that were dropped are counted no more. Method: every third job's are taken out of
 * a store that was followed to its end. */
static void dropped_outcomes_are_counted_no_more(void)
{
    struct error error;
    struct follow *follow = NULL;
    struct trust_policy *policy = calloc(1, sizeof *policy);
    bool end = false;
    uint32_t kept = 0;
    made = calloc(OUTCOMES_MAX, sizeof *made);
    EXPECT(policy != NULL && made != NULL);
    *policy = trust_policy_default();
    make_outcomes(11);
    shown = made_count;
    failing = false;
    EXPECT_OK(follow_create(policy, &follow, &error), error);
    EXPECT_OK(follow_step(follow, &fake, OUTCOMES_MAX, &end, &error), error);
    EXPECT(end);
    for (uint32_t i = 0; i < made_count; i++) {
        if (made[i].job_id % 3 != 0) {
            made[kept++] = made[i];
        }
    }
    EXPECT(kept < made_count);
    shown = made_count = kept;
    redrives++;
    EXPECT_OK(follow_step(follow, &fake, OUTCOMES_MAX, &end, &error), error);
    EXPECT(end);
    expect_same(follow, policy);
    follow_destroy(follow);
    free(made);
    free(policy);
}

int main(void)
{
    return TEST_RUN(TEST(following_comes_to_what_reading_gives),
                    TEST(dropped_outcomes_are_counted_no_more), TEST(shadows_are_told_apart));
}
