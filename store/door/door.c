/*
 * Looks at what clients send. See door.h.
 */
#include "store/door/door.h"

#include "base/text.h"
#include "store/door/invariants.h"

#include <inttypes.h>
#include <string.h>

/* ---- completions ---- */

static enum status check_artifact(const struct artifacts *artifacts, int64_t job_id,
                                  const char *hash, struct error *error)
{
    bool exists = false;
    enum status status = artifacts_exists(artifacts, hash, &exists, error);

    if (status == STATUS_OK && !exists) {
        return error_set(error, STATUS_CONFLICT,
                         "job %" PRId64 ": artifact %s is not in the store; put it there before "
                         "completing",
                         job_id, hash);
    }
    return status;
}

static enum status outcome_fail(const struct job_completion *completion, uint32_t index,
                                const char *why, struct error *error)
{
    return error_set(error, STATUS_BAD_INPUT, "job %" PRId64 ", outcome %" PRIu32 ": %s",
                     completion->job_id, index, why);
}

static enum status check_outcome(const struct artifacts *artifacts,
                                 const struct job_completion *completion, uint32_t index,
                                 struct error *error)
{
    const struct outcome *outcome = &completion->outcomes[index];
    struct error why;
    enum status status = invariants_check(&invariants_outcome, outcome, &why);

    THEN(status, invariants_outcome_agrees(outcome, &why));
    if (status == STATUS_OK && outcome->branch_id[0] != '\0') {
        status = text_name_check("branch_id", outcome->branch_id, sizeof outcome->branch_id, &why);
    }
    if (status != STATUS_OK) {
        return error_set(error, status, "job %" PRId64 ", outcome %" PRIu32 ": %.900s",
                         completion->job_id, index, why.text);
    }
    if (completion->kind != COMPLETION_FLAGGED && outcome->verdict == VERDICT_FLAGGED) {
        return outcome_fail(completion, index, "a flagged rollout cannot be part of a finished job",
                            error);
    }
    if (completion->kind == COMPLETION_PARTIAL && outcome->trace_hash[0] != '\0' &&
        outcome->artifact_hash[0] == '\0') {
        return outcome_fail(completion, index,
                            "a partial outcome with a trace needs the artifact that it is in",
                            error);
    }
    if (outcome->artifact_hash[0] != '\0' &&
        strcmp(outcome->artifact_hash, completion->artifact_hash) != 0) {
        TRY(check_artifact(artifacts, completion->job_id, outcome->artifact_hash, error));
    }
    if (outcome->evidence_hash[0] != '\0') {
        return check_artifact(artifacts, completion->job_id, outcome->evidence_hash, error);
    }
    return STATUS_OK;
}

enum status door_completion(const struct artifacts *artifacts,
                            const struct job_completion *completion, struct error *error)
{
    bool with_outcomes = completion->kind == COMPLETION_DONE ||
                         completion->kind == COMPLETION_FLAGGED ||
                         completion->kind == COMPLETION_PARTIAL;

    struct error why;
    enum status status = invariants_check(&invariants_completion, completion, &why);

    if (status == STATUS_OK && completion->escalate_pool[0] != '\0') {
        status = text_name_check("escalate_pool", completion->escalate_pool,
                                 sizeof completion->escalate_pool, &why);
    }
    if (status != STATUS_OK) {
        return error_set(error, STATUS_BAD_INPUT, "the completion of job %" PRId64 ": %.900s",
                         completion->job_id, why.text);
    }
    if (completion->outcome_count > 1 + LIMIT_BRANCHES ||
        (!with_outcomes && completion->outcome_count > 0)) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "job %" PRId64 ": a completion of kind %s cannot bring %" PRIu32 " outcomes",
            completion->job_id, completion_kind_names[completion->kind], completion->outcome_count);
    }
    if (completion->artifact_hash[0] != '\0') {
        TRY(check_artifact(artifacts, completion->job_id, completion->artifact_hash, error));
    }
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        TRY(check_outcome(artifacts, completion, i, error));
    }
    return STATUS_OK;
}

/* ---- rollouts of a completion ---- */

static enum status check_count(const struct job_completion *completion, uint32_t rollout_count,
                               struct error *error)
{
    uint32_t least = completion->kind == COMPLETION_DONE      ? rollout_count
                     : completion->kind == COMPLETION_FLAGGED ? 1
                                                              : 0;
    if (completion->outcome_count >= least && completion->outcome_count <= rollout_count) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_CONFLICT,
                     "job %" PRId64 " has %" PRIu32 " rollouts, its %s completion brings %" PRIu32
                     " outcomes; expected %" PRIu32 " to %" PRIu32,
                     completion->job_id, rollout_count, completion_kind_names[completion->kind],
                     completion->outcome_count, least, rollout_count);
}

/* Which of the job's rollouts has that name: 0 the main line; `*found` false: none. */
static uint32_t rollout_of(const struct door_scenario *branches, const char *branch_id,
                           uint32_t guess, bool *found)
{
    *found = true;
    if (branch_id[0] == '\0') {
        return 0;
    }
    if (guess > 0 && guess <= branches->count &&
        strcmp(branches->names[guess - 1], branch_id) == 0) {
        return guess; /* as they are sent: in order */
    }
    for (uint32_t i = 0; i < branches->count; i++) {
        if (strcmp(branches->names[i], branch_id) == 0) {
            return i + 1;
        }
    }
    *found = false;
    return 0;
}

static enum status fail_rollout(const struct job_completion *completion, uint32_t index,
                                const char *why, struct error *error)
{
    return error_set(error, STATUS_CONFLICT,
                     "job %" PRId64 ", outcome %" PRIu32 ": branch \"%s\" %s", completion->job_id,
                     index, completion->outcomes[index].branch_id, why);
}

static enum status check_known(const struct job_completion *completion,
                               const struct door_scenario *branches, struct error *error)
{
    bool seen[1 + LIMIT_BRANCHES] = {false};
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        bool found;
        uint32_t at = rollout_of(branches, completion->outcomes[i].branch_id, i, &found);
        if (!found) {
            return fail_rollout(completion, i, "is none of the scenario's", error);
        }
        if (seen[at]) {
            return fail_rollout(completion, i, "has another outcome in this completion", error);
        }
        seen[at] = true;
    }
    return STATUS_OK;
}

/* Of a scenario that does not name its branches: no two outcomes of one rollout, and of a finished
 * job one of the main line. */
static enum status check_distinct(const struct job_completion *completion, struct error *error)
{
    bool main_line = completion->kind != COMPLETION_DONE;
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        const char *branch_id = completion->outcomes[i].branch_id;
        main_line |= branch_id[0] == '\0';
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(completion->outcomes[k].branch_id, branch_id) == 0) {
                return fail_rollout(completion, i, "has another outcome in this completion", error);
            }
        }
    }
    return main_line ? STATUS_OK
                     : error_set(error, STATUS_CONFLICT,
                                 "job %" PRId64 ": its completion brings no outcome of the main "
                                 "line",
                                 completion->job_id);
}

/* A flag is what some check says: it stands with the outcome that it is about. */
static enum status check_flag(const struct job_completion *completion, struct error *error)
{
    bool evidence = false;
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        const struct outcome *outcome = &completion->outcomes[i];
        evidence |= outcome->verdict == VERDICT_FLAGGED && outcome->health_check[0] != '\0';
    }
    return evidence ? STATUS_OK
                    : error_set(error, STATUS_CONFLICT,
                                "job %" PRId64 " is flagged: expected an outcome of the verdict "
                                "flagged with the health check that fired, found none",
                                completion->job_id);
}

/* Against what the scenario says: no outcome is longer, and none that is at fault has passed where
 * that is a criterion. */
static enum status check_facts(const struct job_completion *completion,
                               const struct door_facts *facts, struct error *error)
{
    for (uint32_t i = 0; facts != NULL && i < completion->outcome_count; i++) {
        const struct outcome *outcome = &completion->outcomes[i];
        if (facts->no_fault && outcome->verdict == VERDICT_PASS && outcome->metrics.at_fault) {
            return error_set(error, STATUS_CONFLICT,
                             "job %" PRId64 ", outcome %" PRIu32
                             ": pass: its scenario asks for no collision at fault, found one",
                             completion->job_id, i);
        }
        if (outcome->ticks > facts->horizon_ticks) {
            return error_set(error, STATUS_CONFLICT,
                             "job %" PRId64 ", outcome %" PRIu32
                             ": expected ticks of at most %" PRIu32
                             ", which its scenario lasts, found %" PRIu32,
                             completion->job_id, i, facts->horizon_ticks, outcome->ticks);
        }
    }
    return STATUS_OK;
}

enum status door_rollouts(const struct job_completion *completion, uint32_t rollout_count,
                          const struct door_scenario *scenario, struct error *error)
{
    static const struct door_scenario none = {.known = true};
    if (completion->kind != COMPLETION_DONE && completion->kind != COMPLETION_FLAGGED &&
        completion->kind != COMPLETION_PARTIAL) {
        return STATUS_OK;
    }
    const struct door_scenario *branches = rollout_count == 1 ? &none : scenario;
    TRY(check_facts(completion, scenario->facts, error));
    TRY(check_count(completion, rollout_count, error));
    TRY(branches->known ? check_known(completion, branches, error)
                        : check_distinct(completion, error));
    return completion->kind == COMPLETION_FLAGGED ? check_flag(completion, error) : STATUS_OK;
}

const struct slices *door_slices(const struct door_scenario *scenario, const char *branch_id)
{
    const struct door_facts *facts = scenario->facts;
    if (facts == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; facts->of_branch != NULL && i < facts->branch_count; i++) {
        if (strcmp(scenario->names[i], branch_id) == 0) {
            return &facts->of_branch[i];
        }
    }
    return &facts->slices;
}

bool door_has_slice(const struct door_facts *facts, const struct trust_slice *slice)
{
    bool has = trust_find_slice(slice, 1, &facts->slices) != NULL;
    for (uint32_t i = 0; !has && facts->of_branch != NULL && i < facts->branch_count; i++) {
        has = trust_find_slice(slice, 1, &facts->of_branch[i]) != NULL;
    }
    return has;
}

/* ---- jobs and workers ---- */

enum status door_suite(const char *suite_id, struct error *error)
{
    struct error why;
    return text_name_check("suite", suite_id, LIMIT_ID_BYTES, &why) == STATUS_OK
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "%.900s", why.text);
}

enum status door_budget(const char *suite_id, int64_t budget_uusd, struct error *error)
{
    if (budget_uusd >= 0 && budget_uusd <= STORE_BUDGET_UUSD_MAX) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "suite \"%s\": expected a budget of 1 to %" PRId64
                     " micro-dollars, or 0 for none, found %" PRId64,
                     suite_id, STORE_BUDGET_UUSD_MAX, budget_uusd);
}

enum status door_class(const char *suite_id, enum suite_class of_class, struct error *error)
{
    if (of_class < SUITE_CLASS_COUNT) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT, "suite \"%s\": expected a class of 0 to %d, found %d",
                     suite_id, SUITE_CLASS_COUNT - 1, (int)of_class);
}

static enum status check_names(const struct job_spec *spec, struct error *error)
{
    TRY(text_name_check("scenario_id", spec->scenario_id, sizeof spec->scenario_id, error));
    return text_name_check("pool", spec->pool, sizeof spec->pool, error);
}

/* Goldens go to the world that generated them, all others to a teacher, who is the last. */
static enum status check_escalation(const struct job_spec *spec, uint32_t index,
                                    struct error *error)
{
    if (spec->escalate_pool[0] == '\0') {
        return spec->escalate_tier == TIER_REPLAY && spec->escalate_model_hash[0] == '\0' &&
                       spec->escalate_sampler[0] == '\0'
                   ? STATUS_OK
                   : error_set(error, STATUS_BAD_INPUT,
                               "job %" PRIu32 " says who answers if it is flagged, but not in "
                               "which pool",
                               index);
    }
    if (spec->tier == TIER_TEACHER || spec->audit_key[0] != '\0' || spec->makes[0] != '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 " is %s, which escalates no further; it names pool \"%s\"",
                         index,
                         spec->tier == TIER_TEACHER   ? "a teacher's"
                         : spec->audit_key[0] != '\0' ? "an audit"
                                                      : "one that makes something",
                         spec->escalate_pool);
    }
    if (spec->escalate_tier != TIER_TEACHER &&
        (spec->tier != TIER_GOLDEN || spec->escalate_tier != TIER_STUDENT)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 " escalates from tier %s: expected to teacher%s, found %s",
                         index, tier_names[spec->tier],
                         spec->tier == TIER_GOLDEN ? " or student" : "",
                         tier_names[spec->escalate_tier]);
    }
    return STATUS_OK;
}

/* Futures are of the object world, and of a drive that is there. */
static enum status check_futures(const struct job_spec *spec, uint32_t index, struct error *error)
{
    if (spec->audit_key[0] != '\0' && spec->tier == TIER_OBJECT && !spec->evaluates &&
        !spec->follows && spec->parent_job_id == 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "job %" PRIu32 " makes \"%s\": expected the key of the job whose futures they "
                     "are, and tier object, found %s and tier %s%s",
                     index, spec->makes, spec->audit_key[0] != '\0' ? "one" : "none",
                     tier_names[spec->tier],
                     spec->evaluates || spec->follows || spec->parent_job_id != 0
                         ? ", of a job that evaluates, follows or answers for another"
                         : "");
}

/* A golden has frames that a model generated; a clip is of any world that can be driven anew. */
static enum status check_makes(const struct job_spec *spec, uint32_t index, struct error *error)
{
    bool clip = job_clip_ticks(spec) > 0;
    if (job_futures(spec, NULL, NULL)) {
        return check_futures(spec, index, error);
    }
    if (!job_makes_known(spec) || spec->audit_key[0] != '\0' || spec->evaluates || spec->follows ||
        spec->parent_job_id != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 " makes \"%s\": expected \"" JOB_MAKES_GOLDEN
                         "\" or \"" JOB_MAKES_CLIP "1\" to \"" JOB_MAKES_CLIP
                         "%d\", of a job in its own right, of the model that it names, or "
                         "\"" JOB_MAKES_FUTURES "TICK:DRAWS\"",
                         index, spec->makes, JOB_CLIP_TICKS_MAX);
    }
    if (spec->tier != TIER_STUDENT && spec->tier != TIER_TEACHER &&
        !(clip && spec->tier == TIER_OBJECT)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 " makes \"%s\": expected tier %sstudent or teacher, found "
                         "%s",
                         index, spec->makes, clip ? "object, " : "", tier_names[spec->tier]);
    }
    return STATUS_OK;
}

enum status door_spec(const struct job_spec *spec, const char *suite_id, uint32_t index,
                      struct error *error)
{
    if (spec->rollout_count < 1 || spec->rollout_count > 1 + LIMIT_BRANCHES) {
        return error_set(error, STATUS_LIMIT,
                         "job %" PRIu32 " has %" PRIu32 " rollouts; 1 to %d are allowed", index,
                         spec->rollout_count, 1 + LIMIT_BRANCHES);
    }
    struct error why;
    enum status status = invariants_check(&invariants_spec, spec, &why);
    THEN(status, check_names(spec, &why));
    if (status != STATUS_OK) {
        return error_set(error, status, "job %" PRIu32 ": %.900s", index, why.text);
    }
    if (spec->suite_id[0] != '\0' && strcmp(spec->suite_id, suite_id) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 " says suite \"%s\", it was submitted to \"%s\"", index,
                         spec->suite_id, suite_id);
    }
    if (spec->evaluates &&
        (spec->tier != TIER_STUDENT || spec->audit_key[0] != '\0' || spec->follows)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 " evaluates: expected a student's, in its own right, of "
                         "the model that it names, found tier %s%s%s",
                         index, tier_names[spec->tier],
                         spec->audit_key[0] != '\0' ? ", an audit" : "",
                         spec->follows ? ", one that follows" : "");
    }
    if (spec->rig[0] != '\0' && strlen(spec->rig) != SHA256_HEX_BYTES - 1) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32
                         " is of rig \"%.64s\": expected a SHA-256 in hexadecimal, or "
                         "nothing for the built-in one",
                         index, spec->rig);
    }
    TRY(spec->makes[0] != '\0' ? check_makes(spec, index, error) : STATUS_OK);
    return check_escalation(spec, index, error);
}

enum status door_rollout_count(const struct job_spec *spec, const struct door_scenario *scenario,
                               struct error *error)
{
    const struct door_facts *facts = scenario->facts;
    bool alone = job_has_maker(spec); /* of the main line */
    uint32_t expected = alone ? 1 : facts != NULL ? 1 + facts->branch_count : spec->rollout_count;
    if (spec->rollout_count == expected) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_CONFLICT,
                     "scenario \"%s\": it has %" PRIu32
                     " branches, so that a job of it has %" PRIu32 " rollouts, found %" PRIu32,
                     spec->scenario_id, facts != NULL ? facts->branch_count : 0, expected,
                     spec->rollout_count);
}

enum status door_worker(const struct store_worker *worker, struct error *error)
{
    TRY(text_name_check("worker", worker->worker_id, sizeof worker->worker_id, error));
    TRY(text_name_check("pool", worker->pool, sizeof worker->pool, error));
    TRY(text_name_check("device", worker->device, sizeof worker->device, error));
    if (worker->host[0] != '\0') {
        TRY(text_name_check("host", worker->host, sizeof worker->host, error));
    }
    if (worker->without_count > STORE_WITHOUT_MAX) {
        return error_set(error, STATUS_LIMIT, "a claim leaves at most %d planners alone",
                         STORE_WITHOUT_MAX);
    }
    return STATUS_OK;
}

enum status door_progress(const struct store_progress *progress, struct error *error)
{
    struct error why;
    return invariants_check(&invariants_progress, progress, &why) == STATUS_OK
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "the progress of job %" PRId64 ": %.900s",
                           progress->job_id, why.text);
}
