/*
 * Goal: the figures that terminal, JSON and report share are right. Method: Wilson's interval
 * against published values, counting against a naive recount of generated outcomes that a fake
 * store hands out in pages, money against the spelling that people read; flags, audit jobs and
 * operations of learned tiers on a small suite whose figures are worked out by hand.
 */
#include "report/meters.h"
#include "report/summary.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/outcome_json.h"
#include "schemas/scenario_json.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { OUTCOMES = 431, CPU_PRICE_UUSD = 40000, CUDA_PRICE_UUSD = 2000000 };

/* ---- a store that only answers what a summary asks ---- */

static struct outcome made[OUTCOMES];
static uint32_t made_count;
static struct store_ledger_row made_ledger[8];
static uint32_t made_ledger_count;

static enum status fake_outcomes(struct store *store, const struct store_outcome_filter *filter,
                                 struct outcome *out, uint32_t *count, struct error *error)
{
    (void)store;
    (void)error;
    *count = 0;
    for (uint32_t i = 0; i < made_count && *count < filter->limit; i++) {
        if (made[i].id > filter->after_id) {
            out[(*count)++] = made[i];
        }
    }
    return STATUS_OK;
}

static enum status fake_ledger(struct store *store, const char *suite_id,
                               struct store_ledger_row *rows, uint32_t max, uint32_t *count,
                               struct error *error)
{
    (void)store;
    (void)suite_id;
    (void)error;
    EXPECT(made_ledger_count <= max);
    memcpy(rows, made_ledger, made_ledger_count * sizeof *rows);
    *count = made_ledger_count;
    return STATUS_OK;
}

static struct store_job made_dead[3];
static uint32_t made_dead_count;

static enum status fake_suite_status(struct store *store, const char *suite_id,
                                     struct store_suite_status *out, struct error *error)
{
    (void)store;
    (void)suite_id;
    (void)error;
    *out = (struct store_suite_status){.cost_uusd = 41};
    for (uint32_t i = 0; i < made_dead_count; i++) {
        out->jobs[made_dead[i].state]++;
    }
    return STATUS_OK;
}

static enum status fake_price_get(struct store *store, const char *pool, const char *device,
                                  int64_t *price_uusd_per_hour, struct error *error)
{
    (void)store;
    (void)pool;
    (void)error;
    *price_uusd_per_hour = strcmp(device, "cuda") == 0 ? CUDA_PRICE_UUSD : CPU_PRICE_UUSD;
    return STATUS_OK;
}

static enum status fake_jobs_in_state(struct store *store, const char *suite_id, const char *state,
                                      int64_t after_id, struct store_job *out, uint32_t max,
                                      uint32_t *count, struct error *error)
{
    (void)store;
    (void)suite_id;
    (void)error;
    EXPECT(after_id == 0 && max >= made_dead_count);
    *count = 0;
    for (uint32_t i = 0; i < made_dead_count; i++) {
        if (strcmp(state, job_state_names[made_dead[i].state]) == 0) {
            out[(*count)++] = made_dead[i];
        }
    }
    return STATUS_OK;
}

/* Scenarios of which nothing was driven, by their hash; NULL: the store has none. */
static const char *made_scenario;

static enum status fake_scenario_get(struct store *store, const char *hash, char **body,
                                     size_t *bytes, struct error *error)
{
    (void)store;
    if (made_scenario == NULL || strcmp(hash, "dead1") != 0) {
        return error_set(error, STATUS_NOT_FOUND, "scenario %s: there is none", hash);
    }
    *bytes = strlen(made_scenario);
    *body = strdup(made_scenario);
    EXPECT(*body != NULL);
    return STATUS_OK;
}

static const struct store_ops fake_ops = {
    .name = "fake",
    .outcomes = fake_outcomes,
    .ledger = fake_ledger,
    .suite_status = fake_suite_status,
    .jobs_in_state = fake_jobs_in_state,
    .scenario_get = fake_scenario_get,
    .price_get = fake_price_get,
};
static struct store fake = {&fake_ops};

/* Outcomes of every verdict, tier, pool and slice in a fixed pseudo-random order. */
static void make_outcomes(uint32_t count)
{
    uint64_t state = 42;
    made_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct outcome *outcome = &made[i];
        memset(outcome, 0, sizeof *outcome);
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t draw = (uint32_t)(state >> 33);
        outcome->id = 3 * (int64_t)i + 1;
        outcome->job_id = 1 + i / 3;
        outcome->verdict = (enum verdict)(draw % VERDICT_COUNT);
        outcome->seed = i;
        uint32_t scenario = draw / 256 % 6; /* three logical scenarios of two cases */
        snprintf(outcome->scenario_hash, sizeof outcome->scenario_hash, "s%u", scenario);
        snprintf(outcome->scenario_id, sizeof outcome->scenario_id, "road/l%u/at_m=%u",
                 scenario / 2, scenario % 2);
        outcome->tier = (enum tier)(draw / 8 % TIER_COUNT);
        snprintf(outcome->branch_id, sizeof outcome->branch_id, "%s", i % 3 == 0 ? "" : "b");
        snprintf(outcome->planner, sizeof outcome->planner, "builtin:p%u", draw / 32 % 2);
        /* One pool with two devices: a price belongs to both. */
        snprintf(outcome->pool, sizeof outcome->pool, "bulk");
        snprintf(outcome->backend, sizeof outcome->backend, "%s",
                 draw / 64 % 2 == 0 ? "cpu" : "cuda:sm_90");
        for (int s = 0; s < SLICE_KIND_COUNT; s++) {
            snprintf(outcome->slice[s], LIMIT_ID_BYTES, "v%u", (draw >> s) % 5);
        }
        outcome->safety_critical = draw / 128 % 2 == 0;
        outcome->ticks = 100;
        outcome->prefix_ticks = i % 3 == 0 ? 0 : draw % 110 > 106 ? 100 : draw % 90;
        outcome->metres_mm = draw % 100000;
        outcome->device_ns = draw % 10000000;
        if (outcome->tier >= TIER_STUDENT) {
            outcome->mflop = draw % 1000;
            snprintf(outcome->health_check, sizeof outcome->health_check, "%s",
                     outcome->verdict == VERDICT_FLAGGED && draw / 4 % 3 > 0 ? "frozen" : "");
        }
        outcome->audit_of = i % 17 == 16 ? 100000 : 0; /* an audit job: counts nowhere */
        outcome->metrics.intervention_count = draw % 3;
    }
}

/* ---- tests ---- */

static double usd_of(const struct outcome *outcome)
{
    double price = strcmp(outcome->backend, "cpu") == 0 ? CPU_PRICE_UUSD : CUDA_PRICE_UUSD;
    return (double)outcome->device_ns / 3600e9 * price / 1e6;
}

static bool belongs(const struct summary_row *row, const struct outcome *outcome)
{
    for (int s = 0; s < SLICE_KIND_COUNT; s++) {
        if (strcmp(row->group, slice_names[s]) == 0) {
            return strcmp(row->value, outcome->slice[s]) == 0;
        }
    }
    if (strcmp(row->group, "tier") == 0) {
        return strcmp(row->value, tier_names[outcome->tier]) == 0;
    }
    if (strcmp(row->group, "planner") == 0) {
        return strcmp(row->value, outcome->planner) == 0;
    }
    if (strcmp(row->group, "safety_critical") == 0) {
        return strcmp(row->value, outcome->safety_critical ? "true" : "false") == 0;
    }
    if (strcmp(row->group, "at_m") == 0) {
        return strcmp(row->value, strrchr(outcome->scenario_id, '=') + 1) == 0;
    }
    return strcmp(row->group, "all") == 0;
}

static bool sample(const struct outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && verdict_is_result(outcome->verdict) &&
           outcome->audit_of == 0;
}

/* The first main line of its scenario, planner and tier that ended alike. */
static uint32_t first_like(uint32_t index)
{
    const struct outcome *y = &made[index];
    for (uint32_t i = 0; i < index && sample(y); i++) {
        const struct outcome *x = &made[i];
        if (sample(x) && x->verdict == y->verdict && x->reasons == y->reasons &&
            x->tier == y->tier && strcmp(x->planner, y->planner) == 0 &&
            strcmp(x->scenario_hash, y->scenario_hash) == 0) {
            return i;
        }
    }
    return index;
}

/* The mean over scenarios of the share of drives that pass, of one planner in one tier; and what it
 * would be with those without a result as failures. */
static void expect_rate(const struct summary_row *row, const char *planner, enum tier tier)
{
    enum { SCENARIOS = 6 };
    double passed[SCENARIOS] = {0};
    double drives[SCENARIOS] = {0};
    double lacking[SCENARIOS] = {0};
    double sum = 0;
    double worst = 0;
    int cases = 0;
    int all = 0;
    for (uint32_t i = 0; i < made_count; i++) {
        const struct outcome *outcome = &made[i];
        if (belongs(row, outcome) && outcome->tier == tier && outcome->audit_of == 0 &&
            outcome->branch_id[0] == '\0' && strcmp(outcome->planner, planner) == 0) {
            int s = outcome->scenario_hash[1] - '0';
            passed[s] += outcome->verdict == VERDICT_PASS;
            drives[s] += verdict_is_result(outcome->verdict);
            lacking[s] += !verdict_is_result(outcome->verdict);
        }
    }
    for (int s = 0; s < SCENARIOS; s++) {
        double rollouts = drives[s] + lacking[s];
        cases += drives[s] > 0;
        all += rollouts > 0;
        sum += drives[s] > 0 ? passed[s] / drives[s] : 0;
        worst += rollouts > 0 ? passed[s] / rollouts : 0;
    }
    const struct summary_part *part = summary_row_part(row, planner, tier);
    EXPECT_INT(part != NULL, all > 0);
    if (part == NULL) {
        return;
    }
    struct rate_estimate at = rate_estimate(&part->rate);
    EXPECT_INT(at.cases, cases);
    EXPECT_INT(at.missing, part->lacking[SUMMARY_FLAGGED] + part->lacking[SUMMARY_INVALID]);
    EXPECT(at.logical <= 3);
    EXPECT_NEAR(at.worst, worst / all, 1e-12);
    if (cases > 0) {
        EXPECT_NEAR(at.value, sum / cases, 1e-12);
        EXPECT(at.low <= at.value && at.value <= at.high);
    }
}

static bool result(const struct outcome *outcome)
{
    return outcome->audit_of == 0;
}

static void expect_work(const struct summary_work *found, const struct summary_work *naive)
{
    EXPECT_INT(found->ticks, naive->ticks);
    EXPECT_INT(found->metres_mm, naive->metres_mm);
    EXPECT_INT(found->device_ns, naive->device_ns);
    EXPECT_INT(found->mflop, naive->mflop);
    EXPECT_NEAR(found->usd, naive->usd, 1e-12);
}

static void expect_recount(const struct summary_row *row)
{
    struct summary_row naive = {0};
    for (uint32_t i = 0; i < made_count; i++) {
        const struct outcome *outcome = &made[i];
        if (belongs(row, outcome) && result(outcome)) {
            struct summary_work *work =
                outcome->verdict == VERDICT_FLAGGED ? &naive.flagged : &naive.work;
            naive.verdicts[outcome->verdict]++;
            naive.main_total += sample(outcome);
            naive.main_passed += sample(outcome) && outcome->verdict == VERDICT_PASS;
            work->ticks += outcome->ticks - outcome->prefix_ticks;
            work->metres_mm += outcome->metres_mm;
            work->device_ns += outcome->device_ns;
            work->mflop += outcome->mflop;
            work->usd += usd_of(outcome);
            naive.prefix_ticks += work == &naive.work ? outcome->prefix_ticks : 0;
            naive.learned += outcome->tier >= TIER_STUDENT && outcome->prefix_ticks < 100;
            naive.caught += outcome->health_check[0] != '\0' &&
                            (outcome->branch_id[0] == '\0' || outcome->prefix_ticks < 100);
        }
    }
    for (int v = 0; v < VERDICT_COUNT; v++) {
        EXPECT_INT(row->verdicts[v], naive.verdicts[v]);
    }
    EXPECT_INT(row->main_total, naive.main_total);
    EXPECT_INT(row->main_passed, naive.main_passed);
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        expect_rate(row, "builtin:p0", (enum tier)tier);
        expect_rate(row, "builtin:p1", (enum tier)tier);
    }
    EXPECT_INT(row->prefix_ticks, naive.prefix_ticks);
    EXPECT_INT(row->learned, naive.learned);
    EXPECT_INT(row->caught, naive.caught);
    expect_work(&row->work, &naive.work);
    expect_work(&row->flagged, &naive.flagged);
}

static void expect_same(const struct kept_outcome *kept, const struct outcome *outcome)
{
    struct outcome whole;
    kept_outcome_whole(kept, &whole);
    json_t *json = outcome_encode(&whole);
    json_t *expected = outcome_encode(outcome);
    EXPECT(json_equal(json, expected));
    json_decref(json);
    json_decref(expected);
}

/* Whether every member that an outcome's table has is other than that of none. */
static bool is_full(const struct outcome *outcome)
{
    const struct outcome none = {.id = 0};
    for (size_t i = 0; i < outcome_record.count; i++) {
        const struct json_field *field = &outcome_record.fields[i];
        const struct json_field_list alone = {field, 1};
        json_t *json = json_record_encode(&alone, outcome, NULL);
        json_t *zero = json_record_encode(&alone, &none, NULL);
        bool same = json_equal(json, zero);
        json_decref(json);
        json_decref(zero);
        if (same) {
            printf("# %s is that of none\n", field->name);
            return false;
        }
    }
    return true;
}

/* An outcome of which no member is like that of none; texts that are equal are kept once. */
static void a_kept_outcome_is_whole(void)
{
    static const struct outcome full = {.id = 1,
                                        .job_id = 2,
                                        .epoch = 3,
                                        .suite_id = "suite",
                                        .scenario_id = "scenario",
                                        .scenario_hash = "hash",
                                        .branch_id = "branch",
                                        .planner = "planner",
                                        .planner_hash = "planner's",
                                        .tier = TIER_TEACHER,
                                        .pool = "pool",
                                        .model_hash = "model",
                                        .sampler = "sampler",
                                        .backend = "cpu",
                                        .rig = "rig",
                                        .revision = "revision",
                                        .seed = 4,
                                        .verdict = VERDICT_FLAGGED,
                                        .reasons = 5,
                                        .metrics = {.score = 0.5, .at_fault = true},
                                        .ticks = 6,
                                        .prefix_ticks = 7,
                                        .metres_mm = 8,
                                        .device_ns = 9,
                                        .mflop = 10,
                                        .peak_mflops = 11,
                                        .pages_used_percent = 12,
                                        .trace_hash = "trace",
                                        .artifact_hash = "artifact",
                                        .slice = {"a", "b", "c", "d", "e", "a"},
                                        .safety_critical = true,
                                        .given = "route",
                                        .error = "why",
                                        .health_check = "frozen",
                                        .health_tick = 13,
                                        .health_value = 14,
                                        .health_threshold = 15,
                                        .evidence_hash = "evidence",
                                        .health = {.measured_ticks = 20, .mean = {0.5, 0.25}},
                                        .futures = {FUTURES_DRIVEN, 23, 9, 1, 2, 3, 4, 5, 6},
                                        .parent_job_id = 16,
                                        .audit_of = 17,
                                        .at_ms = 18,
                                        .shadow = true,
                                        .freeze = 19,
                                        .in_flight = true,
                                        .route_reason = ROUTE_REASON_PRICE,
                                        .route_own = 21,
                                        .route_other = 22};
    struct kept_texts texts = {.count = 0};
    struct error error;
    EXPECT(is_full(&full));
    for (int i = 0; i < 3; i++) {
        struct outcome twin = full;
        snprintf(twin.branch_id, sizeof twin.branch_id, "branch %d", i);
        struct kept_outcome kept = kept_outcome_of(&twin);
        expect_same(&kept, &twin);
        EXPECT_OK(kept_texts_take(&texts, &kept, &error), error);
        struct outcome before = twin;
        memset(&twin, 'x', sizeof twin - 1); /* nothing of it is needed any more */
        expect_same(&kept, &before);
        EXPECT(kept.slice[0] == kept.slice[5]);
        EXPECT_INT(texts.count, 23 + i);
    }
    kept_texts_finish(&texts);
}

/* Every outcome, results in their order and audit jobs behind them, is whole again, member by
 * member. */
static void expect_kept(const struct summary *summary)
{
    uint32_t results = 0;
    uint32_t audits = summary->outcome_count;
    for (uint32_t i = 0; i < OUTCOMES; i++) {
        expect_same(&summary->outcomes[made[i].audit_of != 0 ? audits++ : results++], &made[i]);
    }
}

/* More outcomes than a page, so paging must neither lose nor double one. */
static void every_row_is_what_a_recount_gives(void)
{
    struct summary summary;
    struct error error;
    make_outcomes(OUTCOMES);
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.audit_count, OUTCOMES / 17);
    EXPECT_INT(summary.outcome_count + summary.audit_count, OUTCOMES);
    expect_kept(&summary);
    expect_recount(&summary.total);
    EXPECT(summary.total.caught > 10 && summary.flag_count == summary.total.caught);
    uint32_t place[OUTCOMES]; /* of a result among the results */
    uint32_t results = 0;
    for (uint32_t i = 0; i < OUTCOMES; i++) {
        if (result(&made[i])) {
            place[i] = results;
            EXPECT_INT(summary.outcomes[results].id, made[i].id);
            EXPECT_INT(summary.same_as[results++], place[first_like(i)]);
        }
    }
    /* Six slices of five values, two of safety_critical, every tier, two planners. */
    EXPECT_INT(summary.row_count, 6 * 5 + 2 + TIER_COUNT + 2);
    double saved = 0;
    for (uint32_t i = 0; i < summary.row_count; i++) {
        const struct summary_row *row = &summary.rows[i];
        expect_recount(row);
        EXPECT(i == 0 || strcmp(row->group, summary.rows[i - 1].group) != 0 ||
               strcmp(row->value, summary.rows[i - 1].value) > 0);
        if (strcmp(row->group, "tier") == 0) {
            saved += row->work.usd * (double)row->prefix_ticks / (double)row->work.ticks;
        }
    }
    EXPECT_NEAR(summary.prefix_usd_saved, saved, 1e-12);
    EXPECT_INT(summary.parameter_count, 1);
    EXPECT_INT(summary.parameter_row_count, 2);
    expect_recount(&summary.parameter_rows[0]);
    expect_recount(&summary.parameter_rows[1]);
    EXPECT_INT(summary.prefix_ticks_saved, summary.total.prefix_ticks);
    int64_t interventions = 0; /* of main lines: branches repeat theirs */
    for (uint32_t i = 0; i < OUTCOMES; i++) {
        const struct outcome *outcome = &made[i];
        bool counts = outcome->branch_id[0] == '\0' && verdict_is_result(outcome->verdict) &&
                      outcome->audit_of == 0;
        interventions += counts ? outcome->metrics.intervention_count : 0;
    }
    EXPECT_INT(summary.interventions, interventions);
    summary_finish(&summary);
}

static void json_repeats_the_rows(void)
{
    struct summary summary;
    struct error error;
    make_outcomes(OUTCOMES);
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    json_t *json = summary_json(&summary);
    EXPECT(json != NULL);
    EXPECT_INT(json_integer_value(json_object_get(json, "rollouts")), OUTCOMES - OUTCOMES / 17);
    EXPECT_INT(json_array_size(json_object_get(json, "outcomes")), OUTCOMES - OUTCOMES / 17);
    EXPECT_INT(json_integer_value(json_object_get(json, "audit_rollouts")), OUTCOMES / 17);
    EXPECT_INT(json_array_size(json_object_get(json, "flags")), summary.flag_count);
    EXPECT_NEAR(json_real_value(json_object_get(json, "billed_usd")), 0.000041, 1e-12);
    for (uint32_t i = 0; i < summary.row_count; i++) {
        const struct summary_row *row = &summary.rows[i];
        const json_t *group = strcmp(row->group, "tier") == 0 ? json_object_get(json, "by_tier")
                              : strcmp(row->group, "planner") == 0
                                  ? json_object_get(json, "by_planner")
                                  : json_object_get(json_object_get(json, "by_slice"), row->group);
        const json_t *found = json_object_get(group, row->value);
        EXPECT(found != NULL);
        EXPECT_INT(json_integer_value(json_object_get(found, "passed")),
                   row->verdicts[VERDICT_PASS]);
        EXPECT_INT(json_integer_value(json_object_get(found, "main_rollouts")), row->main_total);
        /* Two planners: their rows alone have rates that are not named after one. */
        bool own = strcmp(row->group, "planner") == 0;
        const struct summary_part *part =
            summary_row_part(row, own ? NULL : "builtin:p1", TIER_STUDENT);
        const json_t *rates = json_object_get(found, "pass_rates");
        EXPECT_INT(json_object_get(found, "pass_rates_by_planner") != NULL, !own);
        rates =
            own ? rates
                : json_object_get(json_object_get(found, "pass_rates_by_planner"), "builtin:p1");
        const json_t *rate = json_object_get(rates, "student");
        struct rate_estimate at = {.cases = 0};
        at = part != NULL ? rate_estimate(&part->rate) : at;
        EXPECT_INT(json_integer_value(json_object_get(rate, "scenarios")), at.cases);
        EXPECT_INT(json_object_get(found, "pass_rate") != NULL, own && summary_row_rates(row) == 1);
        EXPECT_NEAR(json_real_value(json_object_get(found, "miles")), summary_miles(row), 1e-12);
    }
    json_decref(json);
    summary_finish(&summary);
}

static void grid_outcome(const char *scenario_id, enum verdict verdict)
{
    struct outcome *outcome = &made[made_count++];
    *outcome = (struct outcome){.id = made_count, .job_id = made_count, .verdict = verdict};
    snprintf(outcome->scenario_id, sizeof outcome->scenario_id, "%s", scenario_id);
    snprintf(outcome->scenario_hash, sizeof outcome->scenario_hash, "%u", made_count);
}

/* Two grids that share a parameter; one that never varies; one that is a range. */
static void values_of_grids_are_slices(void)
{
    static const struct {
        const char *group, *value;
        int64_t passed, mains;
    } expected[] = {
        {"gap_m", "9", 0, 2}, /* by size, not by letters */
        {"gap_m", "10.5", 2, 3},
        {"side", "left", 1, 2},
        {"side", "right", 1, 1},
    };
    struct summary summary;
    struct error error;
    char id[LIMIT_ID_BYTES];
    make_outcomes(0);
    grid_outcome("cut/gap_m=10.5,side=left", VERDICT_PASS);
    grid_outcome("cut/gap_m=9,side=left", VERDICT_FAIL);
    grid_outcome("cut/gap_m=10.5,side=right", VERDICT_PASS);
    grid_outcome("follow/gap_m=9", VERDICT_FAIL);
    grid_outcome("follow/gap_m=10.5", VERDICT_FAIL);
    grid_outcome("plain/lanes=2", VERDICT_PASS);
    for (int i = 0; i <= SUMMARY_PARAMETER_VALUES_MAX; i++) {
        snprintf(id, sizeof id, "drawn/speed_mps=%d", i);
        grid_outcome(id, VERDICT_PASS);
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.parameter_row_count, COUNT_OF(expected));
    json_t *json = summary_json(&summary);
    const json_t *by_parameter = json_object_get(json, "by_parameter");
    for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
        const struct summary_row *row = &summary.parameter_rows[i];
        EXPECT_TEXT(row->group, expected[i].group);
        EXPECT_TEXT(row->value, expected[i].value);
        EXPECT_INT(row->main_passed, expected[i].passed);
        EXPECT_INT(row->main_total, expected[i].mains);
        const json_t *found =
            json_object_get(json_object_get(by_parameter, row->group), row->value);
        EXPECT_INT(json_integer_value(json_object_get(found, "main_rollouts")), row->main_total);
    }
    /* A range is named without rows; what never varies is not. */
    EXPECT_INT(summary.parameter_count, 3);
    EXPECT_TEXT(summary.parameters[2].name, "speed_mps");
    EXPECT_INT(summary.parameters[2].count, 0);
    EXPECT_INT(json_object_size(by_parameter), 3);
    EXPECT_INT(json_object_size(json_object_get(by_parameter, "speed_mps")), 0);
    json_decref(json);
    summary_finish(&summary);
}

static void a_suite_without_outcomes_has_empty_tables(void)
{
    struct summary summary;
    struct error error;
    make_outcomes(0);
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.outcome_count, 0);
    EXPECT_INT(summary.row_count, 0);
    json_t *json = summary_json(&summary);
    EXPECT(json != NULL);
    EXPECT(json_object_get(json, "pass_rate") == NULL);
    EXPECT(json_object_get(json, "usd_per_mile") == NULL);
    json_decref(json);
    summary_finish(&summary);
}

static char *printed(const struct summary *summary, bool failures)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    EXPECT(stream != NULL);
    if (failures) {
        summary_print_failures(summary, stream);
    } else {
        summary_print(summary, stream);
    }
    fclose(stream);
    return text;
}

static struct outcome *plain_outcome(const char *scenario, uint64_t seed, enum verdict verdict)
{
    struct outcome *outcome = &made[made_count++];
    *outcome = (struct outcome){.id = made_count,
                                .job_id = made_count,
                                .seed = seed,
                                .tier = TIER_OBJECT,
                                .verdict = verdict};
    snprintf(outcome->scenario_id, sizeof outcome->scenario_id, "%s", scenario);
    snprintf(outcome->scenario_hash, sizeof outcome->scenario_hash, "%s", scenario);
    return outcome;
}

/* Ten drives of one scenario weigh as much as one of another, whether or not they differ. */
static void each_scenario_counts_once(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    plain_outcome("alone", 1, VERDICT_PASS);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct outcome *outcome = plain_outcome("often", seed, VERDICT_PLANNER_ERROR);
        outcome->metrics.distance_m = 40 + (double)seed;
        snprintf(outcome->error, sizeof outcome->error, "died of it\ntraceback");
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.total.main_total, 11);
    struct rate_estimate at =
        rate_estimate(&summary_row_part(&summary.total, NULL, TIER_OBJECT)->rate);
    EXPECT_NEAR(at.value, 0.5, 1e-12);
    EXPECT_INT(at.cases, 2);
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "10 drives of 1 scenario under several seeds: each scenario counts once, "
                          "with its mean; in 1 of them every seed gave the same verdict.");
    EXPECT_CONTAINS(text, "object: main lines of 2 scenarios, of 2 logical scenarios");
    EXPECT_CONTAINS(text, "it is not a probability of failure on the road");
    EXPECT_CONTAINS(text, "holds it in 94 to 100%");
    free(text);
    text = printed(&summary, true);
    EXPECT_CONTAINS(text, "seed 1 (and 9 alike): died of it\n");
    EXPECT(strstr(text, "seed 2") == NULL);
    free(text);
    summary_finish(&summary);
}

/* Goal: a death that did not repeat itself is told of, though the drive passed. */
static void a_planner_that_died_once_is_told_of(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    plain_outcome("well", 1, VERDICT_PASS);
    snprintf(
        plain_outcome("odd", 1, VERDICT_PASS)->error, OUTCOME_ERROR_BYTES,
        "tick 5: run again alone, since its planner died here: no answer\nstderr: so\nlast words");
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "the planner died in 1 drive, run again alone and counted as they ended "
                          "then; the first: 2 odd: tick 5: ");
    EXPECT_CONTAINS(text, "last words");
    EXPECT(strstr(text, "varies") == NULL);
    free(text);
    summary_finish(&summary);
    made_count = 1;
    for (uint64_t seed = 2; seed <= 3; seed++) {
        snprintf(plain_outcome("fork", seed, VERDICT_FAIL)->error, OUTCOME_ERROR_BYTES,
                 "tick 7: " OUTCOME_VARIES ": drive 0 otherwise");
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    text = printed(&summary, false);
    EXPECT_CONTAINS(text, "the planner varies: 2 branches were driven from tick 0, and would be "
                          "another result each time; the first: 2 fork: tick 7: " OUTCOME_VARIES);
    EXPECT(strstr(text, "the planner died") == NULL);
    free(text);
    summary_finish(&summary);
    made_count = 1;
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    text = printed(&summary, false);
    EXPECT(strstr(text, "the planner died") == NULL);
    free(text);
    summary_finish(&summary);
}

/* Forty points of one grid are one logical scenario: their interval is as wide as that of one. */
static void points_of_a_grid_are_one_draw(void)
{
    struct summary summary;
    struct error error;
    char id[LIMIT_ID_BYTES];
    for (int grid = 0; grid < 2; grid++) {
        made_count = 0;
        for (int i = 0; i < 40; i++) {
            snprintf(id, sizeof id, grid ? "cut_in/gap_m=%d,light=day" : "scene_%d", i);
            plain_outcome(id, 1, VERDICT_PASS);
        }
        EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
        struct rate_estimate at =
            rate_estimate(&summary_row_part(&summary.total, NULL, TIER_OBJECT)->rate);
        EXPECT_INT(at.cases, 40);
        EXPECT_INT(at.logical, grid ? 1 : 40);
        EXPECT(grid ? at.low < 0.1 : at.low > 0.88);
        summary_finish(&summary);
    }
}

/* One scenario in two worlds: two rates, no sum of both, and a gate looks at the lower one. */
static void tiers_are_not_mixed(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    for (int i = 0; i < 4; i++) {
        char id[LIMIT_ID_BYTES];
        snprintf(id, sizeof id, "scene%d", i);
        plain_outcome(id, 1, VERDICT_PASS);
        plain_outcome(id, 1, i == 0 ? VERDICT_FAIL : VERDICT_PASS)->tier = TIER_STUDENT;
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary_row_rates(&summary.total), 2);
    EXPECT_INT(summary_row_lowest(&summary.total)->tier, TIER_STUDENT);
    EXPECT_NEAR(rate_estimate(&summary_row_part(&summary.total, NULL, TIER_STUDENT)->rate).value,
                0.75, 1e-12);
    EXPECT_NEAR(rate_estimate(&summary_row_part(&summary.total, NULL, TIER_OBJECT)->rate).value,
                1.0, 0);
    char *text = printed(&summary, false);
    EXPECT(strstr(text, "87.5%") == NULL);
    EXPECT_CONTAINS(text, "object     100.0% [");
    EXPECT_CONTAINS(text, "student     75.0% [");
    free(text);
    json_t *json = summary_json(&summary);
    EXPECT(json_object_get(json, "pass_rate") == NULL);
    EXPECT_INT(json_object_size(json_object_get(json, "pass_rates")), 2);
    json_decref(json);
    summary_finish(&summary);
}

/* A rollout that a health check took away is no sample; the rate says what it might have been. */
static void flagged_main_lines_give_a_range(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    plain_outcome("a", 1, VERDICT_PASS);
    plain_outcome("b", 1, VERDICT_FAIL);
    plain_outcome("b", 2, VERDICT_FLAGGED);
    plain_outcome("c", 1, VERDICT_FLAGGED);
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    char text[SUMMARY_SEEDS_BYTES];
    EXPECT_TEXT(summary_range_text(summary_row_part(&summary.total, NULL, TIER_OBJECT), text),
                "object: 2 of 4 main lines have no result (2 flagged): the rate "
                "would be 33.3% had they all failed, 83.3% had they all passed.");
    EXPECT_NEAR(rate_estimate(&summary_row_part(&summary.total, NULL, TIER_OBJECT)->rate).value,
                0.5, 1e-12);
    summary_finish(&summary);
}

/* Two planners in one suite: two rates, no sum of both; what a gate asks is asked of the lower. */
static void planners_are_not_mixed(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    for (int i = 0; i < 4; i++) {
        char id[LIMIT_ID_BYTES];
        snprintf(id, sizeof id, "scene%d", i);
        struct outcome *good = plain_outcome(id, 1, VERDICT_PASS);
        snprintf(good->planner, sizeof good->planner, "good");
        snprintf(good->slice[0], sizeof good->slice[0], "fog");
        struct outcome *bad = plain_outcome(id, 1, i == 0 ? VERDICT_PASS : VERDICT_FAIL);
        snprintf(bad->planner, sizeof bad->planner, "bad");
        snprintf(bad->slice[0], sizeof bad->slice[0], "fog");
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_TEXT(summary_row_lowest(&summary.total)->planner, "bad");
    EXPECT_NEAR(rate_estimate(&summary_row_lowest(&summary.total)->rate).value, 0.25, 1e-12);
    char *text = printed(&summary, false);
    EXPECT(strstr(text, "62.5%") == NULL);
    EXPECT_CONTAINS(text, "good, object 100.0% [");
    EXPECT_CONTAINS(text, "bad, object  25.0% [");
    free(text);
    json_t *json = summary_json(&summary);
    EXPECT(json_object_get(json, "pass_rate") == NULL);
    EXPECT_INT(json_object_size(json_object_get(json, "pass_rates")), 0);
    EXPECT_INT(json_object_size(json_object_get(json, "pass_rates_by_planner")), 2);
    json_decref(json);
    summary_finish(&summary);
}

/* Dead jobs have no outcome: the range knows of them, audits' apart. */
static void dead_jobs_are_in_the_range(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    plain_outcome("a", 1, VERDICT_PASS);
    plain_outcome("b", 1, VERDICT_PASS);
    made_dead_count = 3;
    for (uint32_t i = 0; i < made_dead_count; i++) {
        made_dead[i] =
            (struct store_job){.id = 10 + i, .state = JOB_DEAD, .spec = {.tier = TIER_OBJECT}};
        snprintf(made_dead[i].spec.scenario_hash, SHA256_HEX_BYTES, "dead%u", i);
    }
    snprintf(made_dead[2].spec.audit_key, SHA256_HEX_BYTES, "key");
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    made_dead_count = 0;
    EXPECT_INT(summary.undriven_count, 2);
    EXPECT_INT(summary_lacking(&summary, NULL), 2);
    struct rate_estimate at =
        rate_estimate(&summary_row_part(&summary.total, NULL, TIER_OBJECT)->rate);
    EXPECT_NEAR(at.value, 1, 0);
    EXPECT_NEAR(at.worst, 0.5, 1e-12);
    EXPECT_INT(at.missing, 2);
    summary_finish(&summary);
}

/* A slice's row tells of main lines without an answer: those of a case that was driven have the
 * slices of what was, those of another the ones of their scenario; of one that the store has not,
 * only the whole knows. */
static void slices_tell_what_was_not_driven(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    struct outcome *driven = plain_outcome("a", 1, VERDICT_PASS);
    snprintf(driven->slice[SLICE_WEATHER], LIMIT_ID_BYTES, "rain");
    made_dead_count = 3;
    for (uint32_t i = 0; i < made_dead_count; i++) {
        made_dead[i] = (struct store_job){
            .id = 10 + i, .state = JOB_DEAD, .spec = {.tier = TIER_OBJECT, .seed = 2 + i}};
        snprintf(made_dead[i].spec.scenario_hash, SHA256_HEX_BYTES, "dead%u", i);
        snprintf(made_dead[i].spec.planner, LIMIT_SPEC_BYTES, "%s", driven->planner);
    }
    memcpy(made_dead[0].spec.scenario_hash, driven->scenario_hash, SHA256_HEX_BYTES);
    made_scenario =
        "{\"id\":\"fog\",\"map\":{\"lanes\":[{\"id\":\"e\",\"centre_line\":[[0,0],[90,0]]}]},"
        "\"ego\":{\"pose\":{\"x_m\":9,\"y_m\":0,\"heading_rad\":0},\"route\":[\"e\"],\"speed_mps\":"
        "5},\"horizon_s\":3,"
        "\"slices\":{\"weather\":\"fog\"}}";
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    made_dead_count = 0;
    made_scenario = NULL;
    const struct summary_row *rain = summary_row_find(&summary, "weather", "rain");
    const struct summary_row *fog = summary_row_find(&summary, "weather", "fog");
    EXPECT(rain != NULL && fog != NULL);
    EXPECT_INT(rain->parts[0].lacking[SUMMARY_NO_ANSWER], 1);
    EXPECT_NEAR(rate_estimate(&rain->parts[0].rate).worst, 0.5, 1e-12);
    EXPECT_INT(fog->parts[0].lacking[SUMMARY_NO_ANSWER], 1);
    EXPECT_INT(summary.total.parts[0].lacking[SUMMARY_NO_ANSWER], 3);
    json_t *json = summary_row_json(fog);
    EXPECT_INT(json_integer_value(json_object_get(
                   json_object_get(json_object_get(json, "pass_rates"), "object"), "no_answer")),
               1);
    json_decref(json);
    char *text = printed(&summary, false);
    const char *row = strstr(text, "\n  fog ");
    EXPECT(row != NULL);
    EXPECT_CONTAINS(strndupa(row, 1 + strcspn(row + 1, "\n") + 60), "and 1 without an answer\n");
    EXPECT_CONTAINS(text, "and 3 without an answer\n");
    free(text);
    summary_finish(&summary);
}

/* Of a scenario of three seeds one passed and two are dead: a third of it, not a scenario and a
 * dead one; the same under another planner, or in another tier, is another case. */
static void dead_seeds_are_their_scenarios(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    plain_outcome("a", 1, VERDICT_PASS);
    made_dead_count = 3;
    for (uint32_t i = 0; i < made_dead_count; i++) {
        made_dead[i] = (struct store_job){
            .id = 10 + i, .state = JOB_DEAD, .spec = {.tier = TIER_OBJECT, .seed = 2 + i}};
        snprintf(made_dead[i].spec.scenario_hash, SHA256_HEX_BYTES, "%s", made[0].scenario_hash);
        snprintf(made_dead[i].spec.planner, LIMIT_SPEC_BYTES, "%s", made[0].planner);
    }
    made_dead[2].spec.tier = TIER_STUDENT;
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    made_dead_count = 0;
    struct rate_estimate at =
        rate_estimate(&summary_row_part(&summary.total, made[0].planner, TIER_OBJECT)->rate);
    EXPECT_NEAR(at.value, 1, 0);
    EXPECT_NEAR(at.worst, 1.0 / 3.0, 1e-12);
    EXPECT_NEAR(at.best, 1, 0);
    EXPECT_INT(at.missing, 2);
    at = rate_estimate(&summary_row_part(&summary.total, made[0].planner, TIER_STUDENT)->rate);
    EXPECT_NEAR(at.worst, 0, 0);
    EXPECT_INT(at.missing, 1);
    summary_finish(&summary);
}

/* Cancelled and waiting jobs are in the range too, seeds of a scenario as one; a teacher's job that
 * was cancelled and the flagged line that it was to answer are one main line. */
static void what_was_not_driven_is_in_the_range(void)
{
    struct summary summary;
    struct error error;
    char text[SUMMARY_SEEDS_BYTES];
    int64_t lacking[SUMMARY_LACK_COUNT];
    made_count = 0;
    plain_outcome("a", 1, VERDICT_PASS);
    struct outcome *flagged = plain_outcome("b", 1, VERDICT_FLAGGED);
    made_dead_count = 3;
    for (uint32_t i = 0; i < made_dead_count; i++) {
        made_dead[i] = (struct store_job){.id = 10 + i,
                                          .state = i == 1 ? JOB_QUEUED : JOB_CANCELLED,
                                          .spec = {.tier = TIER_OBJECT}};
        snprintf(made_dead[i].spec.scenario_hash, SHA256_HEX_BYTES, "same");
    }
    made_dead[2].spec.tier = TIER_TEACHER;
    made_dead[2].spec.parent_job_id = flagged->job_id;
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    made_dead_count = 0;
    EXPECT_INT(summary_lacking(&summary, lacking), 3);
    EXPECT_INT(lacking[SUMMARY_FLAGGED], 0);
    EXPECT_INT(lacking[SUMMARY_CANCELLED], 2);
    EXPECT_INT(lacking[SUMMARY_WAITING], 1);
    EXPECT_TEXT(summary_range_text(summary_row_part(&summary.total, NULL, TIER_OBJECT), text),
                "object: 3 of 4 main lines have no result (1 flagged, 1 cancelled, 1 not "
                "finished): the rate would be 33.3% had they all failed, 100.0% had they all "
                "passed.");
    json_t *json = summary_json(&summary);
    json_t *part = json_object_get(json_object_get(json, "pass_rates"), "object");
    EXPECT_INT(json_integer_value(json_object_get(part, "cancelled")), 1);
    EXPECT_INT(json_integer_value(json_object_get(part, "waiting")), 1);
    json_decref(json);
    summary_finish(&summary);
}

/* A flagged job that nobody was to answer for is dead, and one main line. */
static void a_flagged_job_that_is_dead_counts_once(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    plain_outcome("a", 1, VERDICT_PASS);
    plain_outcome("b", 1, VERDICT_PASS);
    plain_outcome("c", 1, VERDICT_PASS);
    struct outcome *flagged = plain_outcome("d", 1, VERDICT_FLAGGED);
    made_dead_count = 1;
    made_dead[0] =
        (struct store_job){.id = flagged->job_id, .state = JOB_DEAD, .spec = {.tier = TIER_OBJECT}};
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    made_dead_count = 0;
    char text[SUMMARY_SEEDS_BYTES];
    EXPECT_TEXT(summary_range_text(summary_row_part(&summary.total, NULL, TIER_OBJECT), text),
                "object: 1 of 4 main lines have no result (1 flagged): the rate "
                "would be 75.0% had they all failed, 100.0% had they all passed.");
    EXPECT_INT(summary_lacking(&summary, NULL), 1);
    summary_finish(&summary);
}

/* The tick alone does not say what a planner raised there. */
static void a_planner_that_raised_is_quoted(void)
{
    static const struct {
        const char *error;
        const char *line;
    } cases[] = {
        {"tick 2: failed\nstderr: Traceback\n  File x\nKeyError: 'a'\n \n",
         ": tick 2: failed; stderr ends: KeyError: 'a'\n"},
        {"tick 2: failed\nstderr: one line", ": tick 2: failed; stderr ends: one line\n"},
        {"tick 2: failed\nstderr: \n\n", ": tick 2: failed\n"},
        {"tick 2: failed\nby its own words", ": tick 2: failed\n"},
    };
    struct summary summary;
    struct error error;
    made_count = 1;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        made[0] = (struct outcome){.id = 1, .job_id = 1, .verdict = VERDICT_PLANNER_ERROR};
        snprintf(made[0].error, sizeof made[0].error, "%s", cases[i].error);
        EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
        char *text = printed(&summary, true);
        EXPECT_CONTAINS(text, cases[i].line);
        free(text);
        summary_finish(&summary);
    }
}

static enum status fake_dead(struct store *store, const char *suite_id, int64_t after_id,
                             struct store_job *out, uint32_t max, uint32_t *count,
                             struct error *error)
{
    (void)store;
    (void)suite_id;
    (void)after_id;
    (void)error;
    for (*count = 0; *count < max && *count < 12; (*count)++) {
        out[*count] = (struct store_job){.id = *count + 1};
        snprintf(out[*count].spec.scenario_id, LIMIT_ID_BYTES, "scene%u", *count);
        snprintf(out[*count].error, OUTCOME_ERROR_BYTES, "no such map\nsecond line");
    }
    return STATUS_OK;
}

static void dead_jobs_are_named_up_to_ten(void)
{
    struct store_ops ops = fake_ops;
    struct store store = {&ops};
    struct summary summary = {0};
    struct error error;
    char *text = NULL;
    size_t bytes = 0;
    ops.dead_jobs = fake_dead;
    FILE *stream = open_memstream(&text, &bytes);
    EXPECT(stream != NULL);
    EXPECT_OK(summary_print_dead(&store, "suite", &summary, stream, &error), error);
    fflush(stream);
    EXPECT_INT(bytes, 0);
    summary.status.jobs[JOB_DEAD] = 12;
    EXPECT_OK(summary_print_dead(&store, "suite", &summary, stream, &error), error);
    fclose(stream);
    EXPECT_CONTAINS(text, "12 jobs have no answer:\n  scene0 no such map\n  scene1");
    EXPECT_CONTAINS(text, "scene9 no such map\n  .. and 2 more\n");
    EXPECT(strstr(text, "second line") == NULL);
    free(text);
}

/* Figures of a part of a suite are not to be taken for those of the whole. */
static void jobs_without_figures_are_counted(void)
{
    struct summary summary;
    struct error error;
    make_outcomes(1);
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    memset(summary.status.jobs, 0, sizeof summary.status.jobs);
    char *text = printed(&summary, false);
    EXPECT(strstr(text, "cancelled") == NULL && strstr(text, "not finished") == NULL);
    free(text);
    summary.status.jobs[JOB_QUEUED] = 2;
    summary.status.jobs[JOB_LEASED] = 1;
    summary.status.jobs[JOB_CANCELLED] = 1;
    text = printed(&summary, false);
    EXPECT_CONTAINS(text, "3 jobs are not finished: what is above covers the others\n");
    EXPECT_CONTAINS(text, "1 job was cancelled: what is above covers the others\n");
    free(text);
    json_t *json = summary_json(&summary);
    EXPECT_INT(json_integer_value(json_object_get(json, "unfinished_jobs")), 3);
    EXPECT_INT(json_integer_value(json_object_get(json, "cancelled_jobs")), 1);
    json_decref(json);
    summary_finish(&summary);
}

static void money_is_spelled_for_people(void)
{
    static const struct {
        double usd;
        const char *text;
    } amounts[] = {
        {0, "$0.00"},          {0.000041, "$0.0000410"}, {0.0000001, "$0.000000100"},
        {0.00234, "$0.00234"}, {0.24, "$0.24"},          {36.5, "$36.50"},
        {1234.5, "$1234.50"},
    };
    static const struct {
        double usd, miles;
        const char *text;
    } rates[] = {
        {0.24, 1, "$240"},
        {0.000234, 2, "$0.117"},
        {41e-6, 39.5, "$0.00104"},
        {0.0000009, 1, "$0.000900"},
        {0.000001, 1, "$0.00100"},
        {0, 2, "$0.00"},
        {0.5, 0, "-"},
    };
    static const struct {
        double value;
        const char *text;
    } numbers[] = {
        {0.0412, "0.0412"}, {33.12, "33.1"}, {1234.5, "1234"}, {0, "0.00"}, {NAN, "-"},
    };
    static const struct {
        int64_t uusd;
        const char *text;
    } booked[] = {{0, "$0.000000"}, {821, "$0.000821"}, {12345678, "$12.345678"}};
    static const struct {
        int64_t uusd;
        const char *text;
    } set[] = {{1, "$0.000001"},
               {0, "$0.00"},
               {10000, "$0.01"},
               {15000, "$0.015000"},
               {25000000, "$25.00"}};
    char text[SUMMARY_MONEY_BYTES];
    for (size_t i = 0; i < COUNT_OF(set); i++) {
        EXPECT_TEXT(summary_amount_text(set[i].uusd, text), set[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(amounts); i++) {
        EXPECT_TEXT(summary_usd_text(amounts[i].usd, text), amounts[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        EXPECT_TEXT(summary_rate_text(rates[i].usd, rates[i].miles, text), rates[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        EXPECT_TEXT(summary_number_text(numbers[i].value, text), numbers[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(booked); i++) {
        EXPECT_TEXT(summary_uusd_text(booked[i].uusd, text), booked[i].text);
    }
    /* The smallest and the largest still fit. */
    summary_rate_text(1e-30, 1.0, text);
    summary_usd_text(1e18, text);
    summary_uusd_text(INT64_MAX, text);
}

/* A bill is whole micro-dollars; one that fell short of the first is not nothing. */
static void a_bill_below_a_micro_dollar_is_not_nothing(void)
{
    double usd = 0;
    struct store_ledger_row row = {0};
    struct summary summary = {.ledger = &row, .ledger_usd = &usd, .ledger_count = 1};
    char text[SUMMARY_MONEY_BYTES];
    EXPECT_TEXT(summary_bill_text(&summary, text), "$0.000000");
    usd = 4e-7;
    EXPECT_TEXT(summary_bill_text(&summary, text), "under $0.000001");
    summary.status.cost_uusd = 3;
    EXPECT_TEXT(summary_bill_text(&summary, text), "$0.000003");
}

/* Lines below a row that has rates in several tiers or of several planners. */
static uint32_t rate_lines(const struct summary_row *row)
{
    int rates = summary_row_rates(row);
    return rates > 1 || row->planners ? (uint32_t)rates : 0;
}

/* The terminal's tables: a line per row, and the total. */
static void the_terminal_shows_every_row(void)
{
    struct summary summary;
    struct error error;
    char *text = NULL;
    size_t bytes = 0;
    make_outcomes(OUTCOMES);
    snprintf(made[0].model_hash, sizeof made[0].model_hash, "0123456789abcdef");
    snprintf(made[0].sampler, sizeof made[0].sampler,
             "agents/euler2/bf16-and-more-that-is-not-cut-off");
    made[0].pages_used_percent = 93; /* the others say nothing of pages */
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    FILE *stream = open_memstream(&text, &bytes);
    EXPECT(stream != NULL);
    summary_print(&summary, stream);
    fclose(stream);
    uint32_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        lines += strncmp(at + 1, "  ", 2) == 0;
    }
    /* Rows and the total, with their tiers' rates; tiers once more; meters; twenty flags and a line
     * about the others; what is invalid, here of one check. */
    EXPECT_INT(summary.agreement_count, 0);
    struct meter *meters = NULL;
    uint32_t meter_count = 0;
    EXPECT_OK(meters_of(&summary, &meters, &meter_count, &error), error);
    EXPECT(meter_count > TIER_COUNT); /* one of them names another model */
    for (uint32_t i = 0; i < meter_count; i++) {
        bool own = strcmp(meters[i].model_hash, made[0].model_hash) == 0;
        EXPECT_INT(meter_pages_short(&meters[i]), own);
        EXPECT(own ? fabs(meters[i].pages_free_min - 0.07) < 1e-12
                   : isnan(meters[i].pages_free_min));
    }
    EXPECT_CONTAINS(text, "7% were free at the fullest, under 10%");
    free(meters);
    uint32_t tiers = rate_lines(&summary.total);
    for (uint32_t i = 0; i < summary.row_count; i++) {
        tiers += rate_lines(&summary.rows[i]);
    }
    EXPECT_INT(lines, summary.row_count + 1 + tiers + TIER_COUNT + meter_count + 21 + 1);
    EXPECT(summary.flag_count > 20);
    EXPECT_CONTAINS(text, " agents/euler2/bf16-and-more-that-is-not-cut-off ");
    EXPECT_CONTAINS(text, "$/1000 miles");
    EXPECT_CONTAINS(text, "bill: $0.000041");
    EXPECT(strstr(text, "u000a") == NULL); /* a line feed that text_print spelled out */
    free(text);
    summary_finish(&summary);
}

/* A branch whose main line ended before its fork is a rollout of its meter, and in no figure of it.
 */
static void what_never_began_is_counted(void)
{
    struct summary summary;
    struct error error;
    struct meter *meters = NULL;
    uint32_t count = 0;
    double figures[2];
    for (int late = 0; late < 2; late++) {
        made_count = 0;
        struct outcome *drive = plain_outcome("a", 1, VERDICT_FAIL);
        drive->ticks = 42;
        drive->device_ns = 42000;
        if (late) {
            struct outcome *branch = plain_outcome("a", 1, VERDICT_FAIL);
            strcpy(branch->branch_id, "late");
            branch->ticks = branch->prefix_ticks = 42;
            branch->device_ns = 0;
        }
        EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
        EXPECT_OK(meters_of(&summary, &meters, &count, &error), error);
        EXPECT_INT(count, 1);
        EXPECT_INT(meters[0].rollouts, late + 1);
        figures[late] = meters[0].tick_ms[0];
        free(meters);
        summary_finish(&summary);
    }
    EXPECT_NEAR(figures[0], figures[1], 0);
    EXPECT_NEAR(figures[0], 0.001, 1e-12);
}

/* A count and a rate of it look alike: of 20 km, 5 drives at fault are 250 per 1,000 km. */
static void drives_at_fault_stand_beside_their_rate(void)
{
    static const struct outcome passed = {.tier = TIER_OBJECT, .verdict = VERDICT_PASS};
    struct kept_outcome drives[20];
    struct summary_part part = {.planner = "", .tier = TIER_OBJECT};
    struct summary summary = {.outcomes = drives,
                              .outcome_count = COUNT_OF(drives),
                              .total = {.parts = &part, .part_count = 1}};
    char *text = NULL;
    size_t bytes = 0;
    for (uint32_t i = 0; i < COUNT_OF(drives); i++) {
        drives[i] = kept_outcome_of(&passed);
        drives[i].metrics.distance_m = 1000;
        drives[i].metrics.total_cost = NAN;
        drives[i].metrics.collision_count = i < 7;
        drives[i].metrics.at_fault = i < 5;
    }
    FILE *stream = open_memstream(&text, &bytes);
    EXPECT(stream != NULL);
    summary_print_field(&summary, stream);
    fclose(stream);
    EXPECT_CONTAINS(text, "7 collisions in 20 km: 350 per 1,000 km of these scenarios "
                          "(5 drives at fault: 250)\n");
    free(text);
}

/* Drives whose lane keeping was never measured do not count in EPDMS, and where none has it nothing
 * is said of it; verdicts that are no results count nowhere. */
static void extended_scores_are_means_of_those_that_have_one(void)
{
    static const double keeping[] = {1, NAN, 0, 1};
    static const struct outcome driven = {.tier = TIER_OBJECT};
    struct kept_outcome drives[COUNT_OF(keeping)];
    struct summary_part part = {.planner = "", .tier = TIER_OBJECT};
    struct summary summary = {.outcomes = drives,
                              .outcome_count = COUNT_OF(keeping),
                              .total = {.parts = &part, .part_count = 1}};
    for (uint32_t i = 0; i < COUNT_OF(keeping); i++) {
        drives[i] = kept_outcome_of(&driven);
        drives[i].verdict = i == 3 ? VERDICT_PLANNER_ERROR : VERDICT_FAIL;
        drives[i].metrics = (struct metrics){.no_at_fault_collision = 1,
                                             .drivable_area = 1,
                                             .driving_direction = 1,
                                             .progress = 1,
                                             .ttc = 1,
                                             .comfort = 1,
                                             .distance_m = 1000,
                                             .lane_keeping = keeping[i],
                                             .extended_comfort = NAN,
                                             .stage_distance_m = NAN,
                                             .traffic_light = 1,
                                             .total_cost = NAN};
    }
    for (int none = 0; none < 2; none++) {
        char *text = NULL;
        size_t bytes = 0;
        struct summary_field rows[TIER_COUNT];
        FILE *stream = open_memstream(&text, &bytes);
        EXPECT(stream != NULL);
        summary_print_field(&summary, stream);
        fclose(stream);
        summary_field(&summary, "", rows);
        json_t *json = summary_field_json(&summary);
        const json_t *mean = json_object_get(json_object_get(json, "object"), "epdms");
        EXPECT_NEAR(rows[TIER_OBJECT].pdms, 1, 1e-12);
        EXPECT_INT(rows[TIER_OBJECT].extended, none ? 0 : 2);
        EXPECT(none ? json_is_null(mean) : fabs(json_real_value(mean) - 13.0 / 14) < 1e-12);
        EXPECT((strstr(text, "PDMS 1.000, EPDMS 0.929, 0 collisions") != NULL) == !none);
        EXPECT((strstr(text, "EPDMS") != NULL) == !none);
        json_decref(json);
        free(text);
        drives[0].metrics.lane_keeping = drives[2].metrics.lane_keeping = NAN;
    }
}

/* ---- learned tiers ---- */

static struct outcome *learned_outcome(enum tier tier, const char *scenario, enum verdict verdict)
{
    struct outcome *outcome = &made[made_count++];
    *outcome = (struct outcome){.id = made_count,
                                .job_id = made_count,
                                .tier = tier,
                                .verdict = verdict,
                                .ticks = 100,
                                .metres_mm = 160934400, /* 100 miles */
                                .device_ns = INT64_C(3600) * NS_PER_S,
                                .mflop = INT64_C(7200000000)};
    snprintf(outcome->scenario_id, sizeof outcome->scenario_id, "%s", scenario);
    snprintf(outcome->scenario_hash, sizeof outcome->scenario_hash, "%s", scenario);
    snprintf(outcome->trace_hash, sizeof outcome->trace_hash, "t%u", made_count);
    snprintf(outcome->model_hash, sizeof outcome->model_hash, "%s0123456789abcdef",
             tier == TIER_STUDENT ? "5" : "7");
    snprintf(outcome->sampler, sizeof outcome->sampler, "agents/euler%d/bf16",
             tier == TIER_STUDENT ? 2 : 8);
    snprintf(outcome->backend, sizeof outcome->backend, "cpu");
    snprintf(outcome->slice[SLICE_WEATHER], LIMIT_ID_BYTES, "%s",
             strcmp(scenario, "dog") == 0 ? "rain" : "clear");
    outcome->metrics.min_distance_m = made_count;
    return outcome;
}

static void ledger_row(enum tier tier, const char *end, bool audit, int64_t attempts)
{
    struct store_ledger_row *row = &made_ledger[made_ledger_count++];
    *row = (struct store_ledger_row){.tier = tier, .audit = audit};
    snprintf(row->device, sizeof row->device, "cpu");
    snprintf(row->end, sizeof row->end, "%s", end);
    row->totals.attempts = attempts;
    row->totals.device_ns = attempts * INT64_C(3600) * NS_PER_S; /* $0.04 each */
    row->totals.cost_uusd = attempts * CPU_PRICE_UUSD;
}

/* Student: dog passes, cat is flagged and fails with the teacher, owl is flagged for good; dog and
 * fox have audit jobs, one of which disagrees. */
static void make_learned(void)
{
    made_count = 0;
    made_ledger_count = 0;
    learned_outcome(TIER_STUDENT, "dog", VERDICT_PASS)->peak_mflops = 8000000;
    struct outcome *cat = learned_outcome(TIER_STUDENT, "cat", VERDICT_FLAGGED);
    snprintf(cat->health_check, sizeof cat->health_check, "bloom");
    cat->health_tick = 41;
    struct outcome *owl = learned_outcome(TIER_STUDENT, "owl", VERDICT_FLAGGED);
    snprintf(owl->health_check, sizeof owl->health_check, "frozen");
    learned_outcome(TIER_STUDENT, "fox", VERDICT_PASS)->peak_mflops = 4000000;
    learned_outcome(TIER_TEACHER, "cat", VERDICT_FAIL)->parent_job_id = 2;
    learned_outcome(TIER_TEACHER, "dog", VERDICT_PASS)->audit_of = 1;
    learned_outcome(TIER_TEACHER, "fox", VERDICT_FAIL)->audit_of = 4;
    made[6].metrics.collision_count = 1;
    ledger_row(TIER_STUDENT, "done", false, 2);
    ledger_row(TIER_STUDENT, "flagged", false, 2);
    ledger_row(TIER_STUDENT, "lost", false, 3);
    ledger_row(TIER_TEACHER, "done", false, 1);
    ledger_row(TIER_TEACHER, "done", true, 2);
}

static void learned_tiers_are_accounted_for(void)
{
    struct summary summary;
    struct error error;
    make_learned();
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.outcome_count, 5);
    EXPECT_INT(summary.audit_count, 2);
    EXPECT_INT(summary.total.verdicts[VERDICT_PASS], 2);
    EXPECT_INT(summary.total.verdicts[VERDICT_FLAGGED], 2);
    EXPECT_INT(summary.total.main_total, 3); /* dog, fox, and cat by the teacher */
    EXPECT_INT(summary.total.learned, 5);
    EXPECT_INT(summary.total.caught, 2);
    const struct summary_row *student = summary_tier(&summary, TIER_STUDENT);
    const struct summary_row *teacher = summary_tier(&summary, TIER_TEACHER);
    EXPECT(student != NULL && teacher != NULL && summary_tier(&summary, TIER_OBJECT) == NULL);
    EXPECT_NEAR(summary_miles(student), 200.0, 1e-6);
    EXPECT_NEAR(student->work.usd, 0.08, 1e-12);
    EXPECT_NEAR(student->flagged.usd, 0.08, 1e-12);
    /* 7.2e15 operations in an hour are 2e12 a second: a quarter of one machine's peak and half of
     * the other's; nothing is said of who drove where none was measured. */
    EXPECT_NEAR(summary_mfu(&student->work), 1.0 / 3, 1e-9);
    EXPECT(isnan(summary_mfu(&teacher->work)));
    struct summary_overhead over = summary_overhead(&summary, TIER_STUDENT);
    EXPECT_NEAR(over.flagged_usd, 0.08, 1e-12);
    EXPECT_NEAR(over.failed_usd, 0.12, 1e-12);
    EXPECT_NEAR(over.audit_usd, 0.0, 0.0);
    EXPECT_NEAR(summary_overhead(&summary, TIER_TEACHER).audit_usd, 0.08, 1e-12);
    summary_finish(&summary);
}

/* A job was handed back and driven to its end by another attempt, which had little left to do: both
 * are paid for once, though the rollouts that the first one kept are results of the second. What
 * another suite drove is paid for as it was. */
static void an_attempt_is_paid_for_once(void)
{
    struct summary summary;
    struct summary_tier_cost cost;
    struct error error;
    made_count = 0;
    made_ledger_count = 0;
    learned_outcome(TIER_STUDENT, "dog", VERDICT_PASS)->at_ms = 5000;
    learned_outcome(TIER_STUDENT, "cat", VERDICT_PASS)->at_ms = 6000;
    ledger_row(TIER_STUDENT, "released", false, 1);
    ledger_row(TIER_STUDENT, "done", false, 1);
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT(summary_tier_cost(&summary, TIER_STUDENT, &cost));
    EXPECT_NEAR(cost.row->work.usd, 0.08, 1e-12);
    EXPECT_NEAR(cost.with_retries_usd, 0.08, 1e-12);
    summary.status.memoised_jobs = 1;
    summary.status.submitted_s = 6;
    EXPECT(summary_tier_cost(&summary, TIER_STUDENT, &cost));
    EXPECT_NEAR(cost.with_retries_usd, 0.12, 1e-12);
    summary_finish(&summary);
}

/* A teacher that drove nothing but audit jobs has no result, and yet a row: it is on the bill. */
static void a_tier_that_only_audits_has_a_row(void)
{
    struct summary summary;
    struct summary_tier_cost cost;
    struct error error;
    make_learned();
    made[4].audit_of = 2;
    made_ledger[3].audit = true;
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT(summary_tier(&summary, TIER_TEACHER) == NULL);
    EXPECT(summary_tier_cost(&summary, TIER_TEACHER, &cost));
    EXPECT_NEAR(cost.over.audit_usd, 0.12, 1e-12);
    EXPECT_INT(cost.row->work.ticks, 0);
    EXPECT(!summary_tier_cost(&summary, TIER_OBJECT, &cost));
    char *text = printed(&summary, false);
    const char *teacher = strstr(text, "\n  teacher ");
    EXPECT(teacher != NULL);
    EXPECT_CONTAINS(strndupa(teacher + 1, strcspn(teacher + 1, "\n")), " $0.120000");
    EXPECT(strstr(text, "\n  object ") == NULL);
    free(text);
    json_t *json = summary_json(&summary);
    const json_t *tier = json_object_get(json_object_get(json, "by_tier"), "teacher");
    EXPECT_NEAR(json_real_value(json_object_get(tier, "audit_usd")), 0.12, 1e-12);
    EXPECT_INT(json_integer_value(json_object_get(tier, "rollouts")), 0);
    EXPECT(json_object_get(json_object_get(json, "by_tier"), "object") == NULL);
    json_decref(json);
    summary_finish(&summary);
}

/* A logged scene that no world believes is no learned world's flag, and nobody answers in its
 * place.
 */
static void a_flag_of_boxes_is_not_of_learned_worlds(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    made_ledger_count = 0;
    struct outcome *jump = learned_outcome(TIER_REPLAY, "jump", VERDICT_FLAGGED);
    snprintf(jump->health_check, sizeof jump->health_check, "teleport");
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "flagged: 1 rollout in worlds without a model, discarded; no teacher "
                          "is asked; health checks caught 1\n");
    EXPECT_CONTAINS(text, "replay: teleport at tick 0; no answer\n");
    EXPECT(strstr(text, "in learned worlds") == NULL);
    free(text);
    summary_finish(&summary);
    made_count = 0;
    struct outcome *lone = learned_outcome(TIER_STUDENT, "lone", VERDICT_FLAGGED);
    snprintf(lone->health_check, sizeof lone->health_check, "mass");
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    text = printed(&summary, false);
    EXPECT_CONTAINS(text, "in learned worlds, discarded; nobody has answered instead; health "
                          "checks caught 1 of 1\n");
    free(text);
    summary_finish(&summary);
}

/* Invalid drives are in no rate and no list of failures; told by check, the most frequent first. */
static void invalid_drives_are_told_apart(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    made_ledger_count = 0;
    static const char *const checks[4] = {"overlap", "friction_use", "friction_use", ""};
    for (int i = 0; i < 4; i++) {
        struct outcome *drive = learned_outcome(TIER_OBJECT, i < 3 ? "slide" : "sound",
                                                i < 3 ? VERDICT_INVALID : VERDICT_PASS);
        snprintf(drive->health_check, sizeof drive->health_check, "%s", checks[i]);
        snprintf(drive->error, sizeof drive->error, "%s", i < 3 ? "invalid: it slid" : "");
        snprintf(drive->branch_id, sizeof drive->branch_id, "%s", i == 2 ? "late" : "");
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.total.verdicts[VERDICT_INVALID], 3);
    EXPECT_INT(summary.total.main_total, 1);
    EXPECT_INT(summary.total.main_passed, 1);
    EXPECT_INT(summary.flag_count, 0);
    struct summary_invalid found[SUMMARY_INVALID_MAX];
    EXPECT_INT(summary_invalid_checks(&summary, found), 2);
    EXPECT_TEXT(found[0].check, "friction_use");
    EXPECT_INT(found[0].rollouts, 2);
    EXPECT_INT(found[0].mains, 1);
    EXPECT_INT(found[1].rollouts, 1);
    EXPECT_INT(summary_invalid_mains(&summary), 2);
    EXPECT_INT(summary_lacking(&summary, NULL), 2);
    char range[SUMMARY_SEEDS_BYTES];
    EXPECT_TEXT(summary_range_text(summary_row_part(&summary.total, NULL, TIER_OBJECT), range),
                "object: 2 of 3 main lines have no result (2 invalid): the rate would be 50.0% had "
                "they all failed, 100.0% had they all passed.");
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "in no rate: 3 rollouts, of them 2 main lines");
    EXPECT_CONTAINS(text, "invalid: it slid");
    free(text);
    text = printed(&summary, true);
    EXPECT(strstr(text, "slide") == NULL);
    free(text);
    summary_finish(&summary);
}

/* Main lines that the planner failed in with the same words, at whatever tick, are one row. */
static void an_error_is_told_once(void)
{
    static const char *const errors[5] = {"tick 3: act: no map", "reset: no memory",
                                          "tick 12: act: no map", "tick 4: act: no map", ""};
    struct summary summary;
    struct error error;
    char id[16];
    made_count = 0;
    made_ledger_count = 0;
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "scene%d", i);
        struct outcome *drive =
            learned_outcome(TIER_OBJECT, id, i < 4 ? VERDICT_PLANNER_ERROR : VERDICT_PASS);
        snprintf(drive->error, sizeof drive->error, "%s", errors[i]);
        snprintf(drive->branch_id, sizeof drive->branch_id, "%s", i == 3 ? "late" : "");
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    struct summary_error found[SUMMARY_ERRORS_MAX];
    EXPECT_INT(summary_errors(&summary, found), 2);
    EXPECT_TEXT(found[0].words, "act: no map");
    EXPECT_INT(found[0].mains, 2);
    EXPECT_INT(found[1].mains, 1);
    EXPECT(summary_error_of(&summary, found, 2, 2) == &found[0]);
    EXPECT(summary_error_of(&summary, found, 1, 1) == NULL);
    EXPECT(summary_error_of(&summary, found, 2, 4) == NULL);
    char *text = printed(&summary, true);
    EXPECT_CONTAINS(text, "(and 1 more with the same words): tick 3: act: no map\n");
    EXPECT_CONTAINS(text, "reset: no memory\n");
    EXPECT(strstr(text, "scene2") == NULL && strstr(text, "tick 12") == NULL);
    free(text);
    summary_finish(&summary);
}

/* A branch is flagged with the main line that was caught: text and JSON count both, checks one, and
 * the table of main lines one. */
static void a_job_is_flagged_as_a_whole(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    made_ledger_count = 0;
    struct outcome *main_line = learned_outcome(TIER_STUDENT, "cat", VERDICT_FLAGGED);
    snprintf(main_line->health_check, sizeof main_line->health_check, "bloom");
    struct outcome *branch = learned_outcome(TIER_STUDENT, "cat", VERDICT_FLAGGED);
    snprintf(branch->branch_id, sizeof branch->branch_id, "brake");
    branch->job_id = main_line->job_id;
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.total.verdicts[VERDICT_FLAGGED], 2);
    EXPECT_INT(summary.total.mains[VERDICT_FLAGGED], 1);
    EXPECT_INT(summary.total.caught, 1);
    json_t *json = summary_row_json(&summary.total);
    EXPECT_INT(json_integer_value(json_object_get(json, "flagged")), 2);
    json_decref(json);
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "\nflagged: 2 rollouts in learned worlds, discarded; nobody has answered "
                          "instead; health checks caught 1 of ");
    free(text);
    summary_finish(&summary);
}

static void flags_lead_to_who_answered(void)
{
    struct summary summary;
    struct error error;
    make_learned();
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.flag_count, 2);
    EXPECT_TEXT(summary.outcomes[summary.flags[0].outcome].scenario_id, "cat");
    EXPECT_INT(summary.outcomes[summary.flags[0].answer].tier, TIER_TEACHER);
    EXPECT_INT(summary.flags[1].answer, -1);
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "flagged: 2 rollouts in learned worlds, discarded; another world has "
                          "answered for some; health checks caught 2 of 5\n");
    EXPECT(strstr(text, "without a model") == NULL);
    EXPECT_CONTAINS(text, "student: bloom at tick 41; teacher: fail\n");
    EXPECT_CONTAINS(text, "student: frozen at tick 0; no answer\n");
    free(text);
    /* A flagged rollout did not fail: the teacher's answer did. */
    text = printed(&summary, true);
    EXPECT_CONTAINS(text, "  5  cat ");
    EXPECT(strstr(text, "owl") == NULL && strstr(text, "  2  cat ") == NULL);
    free(text);
    summary_finish(&summary);
}

static void audits_give_agreement_by_slice(void)
{
    struct summary summary;
    struct error error;
    make_learned();
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.pair_count, 2);
    const struct summary_agreement *all = &summary.agreement[summary.agreement_count - 1];
    EXPECT_TEXT(all->group, "all");
    EXPECT_INT(all->agreement.pairs, 2);
    EXPECT_INT(all->agreement.verdict.pairs, 1);
    EXPECT_INT(all->agreement.jobs, 2);
    EXPECT_INT(all->agreement.student_only_passes, 1);
    json_t *json = summary_json(&summary);
    const json_t *weather = json_object_get(json_object_get(json, "audit"), "weather");
    const json_t *rain = json_object_get(weather, "rain");
    const json_t *clear = json_object_get(weather, "clear");
    EXPECT_INT(json_integer_value(json_object_get(json_object_get(rain, "verdict"), "agree")), 1);
    EXPECT_INT(json_integer_value(json_object_get(json_object_get(clear, "verdict"), "agree")), 0);
    EXPECT_INT(json_integer_value(json_object_get(clear, "student_only_passes")), 1);
    EXPECT_NEAR(json_real_value(json_object_get(rain, "distance_difference_m")), 5.0, 1e-12);
    json_t *tier = json_object_get(json_object_get(json, "by_tier"), "student");
    EXPECT_NEAR(json_real_value(json_object_get(tier, "tflop")), 14400.0, 1e-9);
    EXPECT_NEAR(json_real_value(json_object_get(tier, "mfu")), 1.0 / 3, 1e-9);
    EXPECT(json_object_get(json_object_get(json, "by_model"),
                           "student 50123456789a agents/euler2/bf16") != NULL);
    json_decref(json);
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "audit: the same drive by the teacher; each scenario counts once");
    EXPECT_CONTAINS(text, "  50% [  2- 98]");
    free(text);
    summary_finish(&summary);
    made_ledger_count = 0;
}

/* A job with branches is one draw of the audit: six pairs that agree are one job. */
static void branches_of_an_audit_are_one_draw(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    for (int audit = 0; audit < 2; audit++) {
        for (int i = 0; i < 6; i++) {
            struct outcome *outcome =
                learned_outcome(audit ? TIER_TEACHER : TIER_STUDENT, "dog", VERDICT_PASS);
            outcome->job_id = 1 + audit;
            outcome->audit_of = audit;
            snprintf(outcome->branch_id, sizeof outcome->branch_id, "%.*s", i, "bbbbbb");
        }
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    const struct agreement *all = &summary.agreement[summary.agreement_count - 1].agreement;
    EXPECT_INT(all->pairs, 6);
    EXPECT_INT(all->jobs, 1);
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "     1      6  100% [  5-100]");
    free(text);
    json_t *json = summary_json(&summary);
    const json_t *verdict =
        json_object_get(json_object_get(json_object_get(json, "audit"), "all"), "verdict");
    EXPECT_INT(json_integer_value(json_object_get(verdict, "agree")), 6);
    EXPECT_NEAR(json_real_value(json_object_get(verdict, "rate")), 1.0, 0.0);
    EXPECT_NEAR(json_real_value(json_object_get(verdict, "low")), 0.0546, 1e-4);
    json_decref(json);
    summary_finish(&summary);
}

/* Audited seeds of one scenario count once, though another job lies between them. */
static void audited_seeds_count_once(void)
{
    static const char *const scenarios[] = {"dog", "fox", "dog"};
    struct summary summary;
    struct error error;
    made_count = 0;
    for (uint32_t i = 0; i < 6; i++) {
        bool audit = i >= 3;
        struct outcome *outcome =
            learned_outcome(audit ? TIER_TEACHER : TIER_STUDENT, scenarios[i % 3],
                            i == 4 ? VERDICT_FAIL : VERDICT_PASS);
        outcome->audit_of = audit ? i - 2 : 0;
    }
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    const struct agreement *all = &summary.agreement[summary.agreement_count - 1].agreement;
    EXPECT_INT(all->pairs, 3);
    EXPECT_INT(all->jobs, 3);
    struct rate_estimate at = rate_estimate(&all->verdict.rate);
    EXPECT_INT(at.cases, 2);
    EXPECT_NEAR(at.value, 0.5, 1e-12);
    summary_finish(&summary);
}

/* Audit jobs of which none can be compared: no rate of nothing, and no interval. */
static void an_audit_without_a_pair_says_so(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    learned_outcome(TIER_STUDENT, "dog", VERDICT_PLANNER_ERROR);
    learned_outcome(TIER_TEACHER, "dog", VERDICT_PASS)->audit_of = 1;
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.pair_count, 1);
    char *text = printed(&summary, false);
    EXPECT_CONTAINS(text, "audit: nothing to compare yet: of 1 rollout that");
    EXPECT(strstr(text, "pass/fail") == NULL);
    free(text);
    summary_finish(&summary);
}

/* A planner that dies before its first tick was driven by nobody. */
static void a_rollout_without_a_tick_was_not_driven(void)
{
    struct summary summary;
    struct error error;
    made_count = 0;
    for (int i = 0; i < 5; i++) {
        learned_outcome(TIER_STUDENT, "dog", VERDICT_PLANNER_ERROR)->ticks = 0;
    }
    learned_outcome(TIER_STUDENT, "fox", VERDICT_PASS);
    EXPECT_OK(summary_load(&fake, "suite", &summary, &error), error);
    EXPECT_INT(summary.total.learned, 1);
    EXPECT_INT(summary_tier(&summary, TIER_STUDENT)->learned, 1);
    EXPECT_INT(summary.total.verdicts[VERDICT_PLANNER_ERROR], 5);
    summary_finish(&summary);
}

int main(void)
{
    return TEST_RUN(
        TEST(a_kept_outcome_is_whole), TEST(every_row_is_what_a_recount_gives),
        TEST(values_of_grids_are_slices), TEST(json_repeats_the_rows),
        TEST(a_suite_without_outcomes_has_empty_tables), TEST(money_is_spelled_for_people),
        TEST(a_bill_below_a_micro_dollar_is_not_nothing), TEST(the_terminal_shows_every_row),
        TEST(each_scenario_counts_once), TEST(a_planner_that_died_once_is_told_of),
        TEST(points_of_a_grid_are_one_draw), TEST(tiers_are_not_mixed),
        TEST(planners_are_not_mixed), TEST(dead_jobs_are_in_the_range),
        TEST(dead_seeds_are_their_scenarios), TEST(slices_tell_what_was_not_driven),
        TEST(what_never_began_is_counted), TEST(what_was_not_driven_is_in_the_range),
        TEST(a_flagged_job_that_is_dead_counts_once), TEST(flagged_main_lines_give_a_range),
        TEST(dead_jobs_are_named_up_to_ten), TEST(jobs_without_figures_are_counted),
        TEST(a_planner_that_raised_is_quoted), TEST(learned_tiers_are_accounted_for),
        TEST(drives_at_fault_stand_beside_their_rate),
        TEST(extended_scores_are_means_of_those_that_have_one),
        TEST(a_tier_that_only_audits_has_a_row), TEST(an_attempt_is_paid_for_once),
        TEST(invalid_drives_are_told_apart), TEST(an_error_is_told_once),
        TEST(flags_lead_to_who_answered), TEST(a_job_is_flagged_as_a_whole),
        TEST(a_flag_of_boxes_is_not_of_learned_worlds), TEST(audits_give_agreement_by_slice),
        TEST(branches_of_an_audit_are_one_draw), TEST(audited_seeds_count_once),
        TEST(an_audit_without_a_pair_says_so), TEST(a_rollout_without_a_tick_was_not_driven));
}
