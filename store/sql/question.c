/*
 * Questions of jobs, and who answers them: a job's row says it. Outcomes, flags, successors and
 * audits that clients send say it too, which is a copy and must be equal; else nothing of the call
 * counts. See schemas/job_context.h. What another suite has answered already is taken over.
 */
#include "base/check.h"
#include "schemas/job_context.h"
#include "schemas/scenario_json.h"
#include "store/sql/models.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <string.h>

/* ---- outcomes ---- */

/* An outcome need not say what the scenario says of itself: then the store does. */
static bool is_unsaid(const struct outcome *outcome)
{
    bool unsaid = !outcome->safety_critical;
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        unsaid &= outcome->slice[kind][0] == '\0';
    }
    return unsaid;
}

/* Compares what it says. */
static enum status check_slices(const struct job_completion *completion, uint32_t index,
                                const struct slices *slices, struct error *error)
{
    const struct outcome *outcome = &completion->outcomes[index];
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        if (strcmp(outcome->slice[kind], slices->value[kind]) != 0) {
            return error_set(error, STATUS_CONFLICT,
                             "job %" PRId64 ", outcome %" PRIu32
                             ": %s is \"%s\", the scenario says \"%s\"",
                             completion->job_id, index, slice_names[kind], outcome->slice[kind],
                             slices->value[kind]);
        }
    }
    return outcome->safety_critical == slices->safety_critical
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "job %" PRId64 ", outcome %" PRIu32
                           ": safety_critical is %s, the scenario says otherwise",
                           completion->job_id, index, outcome->safety_critical ? "true" : "false");
}

/* Futures are those that the job makes, and no other job has any. */
static enum status check_futures(const struct job_completion *completion, uint32_t index,
                                 const struct job_spec *spec, struct error *error)
{
    const struct outcome_futures *found = &completion->outcomes[index].futures;
    uint32_t tick = 0;
    uint32_t draws = 0;
    bool made = job_futures(spec, &tick, &draws);
    return made == (found->state != FUTURES_NONE) && found->tick == tick && found->draws == draws
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "job %" PRId64 ", outcome %" PRIu32
                           ": its futures are %s from tick %" PRIu32 " by %" PRIu32
                           " draws, the job makes \"%s\"",
                           completion->job_id, index, futures_state_names[found->state],
                           found->tick, found->draws, spec->makes);
}

enum status question_check_outcomes(const struct job_completion *completion,
                                    const struct job_spec *spec,
                                    const struct door_scenario *scenario, struct error *error)
{
    char text[JOB_CONTEXT_TEXT_BYTES];
    struct job_context job = job_context_of_spec(spec);
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        struct job_context found = job_context_of_outcome(&completion->outcomes[i]);
        uint32_t member = job_context_differs(&found, &job, JOB_CONTEXT_OF_OUTCOME);
        if (member != 0) {
            return error_set(error, STATUS_CONFLICT, "job %" PRId64 ", outcome %" PRIu32 ": %s",
                             completion->job_id, i, job_context_text(&found, &job, member, text));
        }
        TRY(check_futures(completion, i, spec, error));
        const struct slices *slices = door_slices(scenario, completion->outcomes[i].branch_id);
        TRY(slices != NULL && !is_unsaid(&completion->outcomes[i])
                ? check_slices(completion, i, slices, error)
                : STATUS_OK);
    }
    return STATUS_OK;
}

/* ---- jobs that answer for others ---- */

/* `spec` asks what job `id` asks. `what`: "an audit repeats". */
static enum status check_same(struct db *db, const struct job_spec *spec, int64_t id,
                              const char *what, struct error *error)
{
    /* Of the main line alone it may be. */
    uint32_t members = job_has_maker(spec) ? JOB_CONTEXT_ASKED : JOB_CONTEXT_QUESTION;
    char text[JOB_CONTEXT_TEXT_BYTES];
    struct job_spec asked;
    TRY(record_spec_get(db, id, &asked, NULL, error));
    struct job_context job = job_context_of_spec(&asked);
    struct job_context found = job_context_of_spec(spec);
    uint32_t member = job_context_differs(&found, &job, members);
    return member == 0
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "scenario \"%s\": %s job %" PRId64 ", but asks something else: %s",
                           spec->scenario_id, what, id,
                           job_context_text(&found, &job, member, text));
}

/* A job answers in place of one of its own suite: others' are not its submitter's to answer. */
enum status question_check_parent(struct db *db, int64_t suite, const struct job_spec *spec,
                                  struct error *error)
{
    struct query query = query_begin(db, STATEMENT_JOB_PROGRESS_GET);
    query_int(&query, spec->parent_job_id);
    bool found = query_row(&query) && query_column_int(&query, 7) == suite;
    TRY(query_end(&query, error));
    return found ? check_same(db, spec, spec->parent_job_id, "it answers for", error)
                 : error_set(error, STATUS_CONFLICT,
                             "scenario \"%s\": the suite has no job %" PRId64
                             " that this one could answer for",
                             spec->scenario_id, spec->parent_job_id);
}

/* Teachers answer in one pool, whose tokens are theirs. Audits of nobody else count where the store
 * has a promoted teacher. */
static enum status check_teacher(struct db *db, const struct job_spec *spec, struct error *error)
{
    struct model_version promoted;
    bool named = true;
    if (spec->tier != TIER_TEACHER) {
        return error_set(error, STATUS_CONFLICT,
                         "scenario \"%s\": an audit is answered by a teacher, this one is of tier "
                         "%s",
                         spec->scenario_id, tier_names[spec->tier]);
    }
    if (strcmp(spec->pool, TRUST_TEACHER_POOL) != 0) {
        return error_set(error, STATUS_CONFLICT,
                         "scenario \"%s\": an audit is answered in pool \"" TRUST_TEACHER_POOL
                         "\", this one is of pool \"%s\"",
                         spec->scenario_id, spec->pool);
    }
    TRY(models_points_to(db, spec, &promoted, &named, error));
    return named ? STATUS_OK
                 : error_set(error, STATUS_CONFLICT,
                             "scenario \"%s\": an audit asks the store's promoted teacher, %s "
                             "(%.12s, %s); this one names %.12s, %s",
                             spec->scenario_id, promoted.name, promoted.hash, promoted.sampler,
                             spec->model_hash, spec->sampler);
}

enum status question_check_audit(struct db *db, int64_t suite, const struct job_spec *spec,
                                 bool shadow, struct question_audited *out, struct error *error)
{
    int64_t audited = 0;
    struct query query = query_begin(db, STATEMENT_AUDITED_FIND);
    query_text(&query, spec->audit_key);
    query_int(&query, suite);
    out->answered = 0;
    if (query_row(&query)) {
        query_take_text(&query, out->key, sizeof out->key);
        audited = query_take_int(&query);
        out->answered = query_take_int(&query) != 0 ? audited : 0;
    }
    TRY(query_end(&query, error));
    if (audited == 0) {
        return error_set(error, STATUS_CONFLICT,
                         "scenario \"%s\": the suite has no job %s that this one could audit",
                         spec->scenario_id, spec->audit_key);
    }
    bool futures = job_futures(spec, NULL, NULL);
    TRY(check_same(db, spec, audited,
                   futures  ? "it makes futures of"
                   : shadow ? "it repeats"
                            : "it audits",
                   error));
    if (shadow) {
        return STATUS_OK;
    }
    out->answered = futures ? 0 : out->answered; /* the teacher, in the student's place */
    TRY(futures ? STATUS_OK : check_teacher(db, spec, error));
    struct query twin = query_begin(db, STATEMENT_AUDIT_SAME);
    query_text(&twin, out->key);
    query_int(&twin, suite);
    query_text(&twin, spec->model_hash);
    query_text(&twin, spec->sampler);
    if (out->answered == 0 && query_row(&twin)) {
        out->answered = query_column_int(&twin, 0);
    }
    return query_end(&twin, error);
}

/* ---- who answers if a job is flagged ---- */

enum status question_escalation(struct db *db, const struct job_spec *spec, int64_t *id,
                                struct error *error)
{
    struct job_spec successor;
    struct model_version teacher = {.hash = ""};
    bool pointed = true;
    *id = 0;
    if (spec->escalate_pool[0] == '\0') {
        return STATUS_OK;
    }
    job_escalation_take(spec, &successor);
    if (spec->tier != TIER_GOLDEN && successor.tier == TIER_TEACHER) {
        TRY(models_points_to(db, &successor, &teacher, &pointed, error));
    }
    if (!pointed) {
        trust_job_move(&teacher, &successor);
    } else if (spec->tier != TIER_GOLDEN && teacher.hash[0] != '\0') {
        snprintf(successor.pool, sizeof successor.pool, TRUST_TEACHER_POOL);
    }
    return record_context_id(db, &successor, id, error);
}

enum status question_fill_escalation(struct db *db, const struct job_spec *spec, int64_t job_id,
                                     struct error *error)
{
    int64_t context = 0;
    TRY(question_escalation(db, spec, &context, error));
    struct query query = query_begin(db, STATEMENT_ESCALATION_SET);
    query_int(&query, job_id);
    query_int(&query, context);
    return query_run(&query, error);
}

/* Who is asked the same question in place of a flagged job, as its row says, and where that says
 * nothing the promoted teacher; *found: there is somebody. Else *why it ends, or NULL. */
static enum status find_successor(struct sql_store *store, const struct job_spec *job,
                                  struct job_spec *out, bool *found, const char **why,
                                  struct error *error)
{
    struct model_version teacher;
    *out = *job;
    *found = false;
    *why = NULL;
    if (job->audit_key[0] != '\0' || job->makes[0] != '\0') { /* a shadow's job, too */
        return STATUS_OK;
    }
    if (job->tier == TIER_TEACHER) {
        *why = "a teacher's job escalates no further";
        return STATUS_OK;
    }
    if (job->escalate_pool[0] != '\0') {
        *found = true;
        job_escalation_take(job, out);
        job_key_make(out, job_key_fresh(job));
        return STATUS_OK;
    }
    TRY(job->tier == TIER_STUDENT ? freezes_teacher(store, job, &teacher, found, error)
                                  : STATUS_OK);
    if (*found) {
        trust_job_move(&teacher, out);
    } else if (job->tier == TIER_STUDENT || job->tier == TIER_GOLDEN) {
        *why = job->tier == TIER_GOLDEN
                   ? "nobody is named who answers instead; submit the suite again with --world "
                     "golden:NAME?diverged=live"
                   : "nobody is named who answers instead; submit the suite again";
    }
    return STATUS_OK;
}

/* Names of a successor in a flag are copies. Of a job of which nothing is known they are not looked
 * at: earlier versions left it to the worker. */
static enum status check_copy(const struct job_spec *job, const struct job_completion *completion,
                              bool found, const struct job_spec *successor, struct error *error)
{
    const struct {
        const char *name;
        const char *copy;
        const char *of_row;
    } members[] = {
        {"pool", completion->escalate_pool, successor->pool},
        {"model", completion->escalate_model_hash, successor->model_hash},
        {"sampler", completion->escalate_sampler, successor->sampler},
        {"key", completion->escalate_key, successor->key},
        {"tier", completion->escalate_pool[0] != '\0' ? tier_names[completion->escalate_tier] : "",
         tier_names[successor->tier]},
    };
    bool unknown = !found && job->audit_key[0] == '\0' && job->makes[0] == '\0' &&
                   (job->tier == TIER_STUDENT || job->tier == TIER_GOLDEN);
    for (size_t i = 0; i < COUNT_OF(members) && !unknown; i++) {
        if (members[i].copy[0] != '\0' &&
            (!found || strcmp(members[i].copy, members[i].of_row) != 0)) {
            return error_set(error, STATUS_CONFLICT,
                             "job %" PRId64 ": its flag names %s \"%s\" for the job that answers "
                             "instead, the job's row %s%s%s",
                             completion->job_id, members[i].name, members[i].copy,
                             found ? "\"" : "nobody", found ? members[i].of_row : "",
                             found ? "\"" : "");
        }
    }
    return STATUS_OK;
}

enum status question_successor(struct sql_store *store, const struct job_spec *job,
                               const struct job_completion *completion, struct job_spec *out,
                               bool *found, const char **why, struct error *error)
{
    TRY(find_successor(store, job, out, found, why, error));
    return check_copy(job, completion, *found, out, error);
}

/* Whether a job of the successor's key is the successor: one that follows has moved with its tier,
 * and a student's of a frozen slice has become the teacher's. */
static bool answers(const struct job_spec *found, const struct job_spec *successor)
{
    struct job_context has = job_context_of_spec(found);
    struct job_context asked = job_context_of_spec(successor);
    bool moved = found->follows || (successor->tier == TIER_STUDENT && found->tier == TIER_TEACHER);
    uint32_t members =
        moved ? JOB_CONTEXT_QUESTION : JOB_CONTEXT_ALL & ~(uint32_t)JOB_CONTEXT_BACKEND;
    return found->audit_key[0] == '\0' && job_context_differs(&has, &asked, members) == 0;
}

enum status question_escalate(struct sql_store *store, struct tally *tally, int64_t suite,
                              const struct job_spec *job, int64_t job_id,
                              struct job_spec *successor, int64_t *successor_id,
                              struct error *error)
{
    bool other = true;
    if (job->escalate_pool[0] == '\0') {
        int64_t context_id = 0;
        TRY(record_context_id(tally->db, successor, &context_id, error));
        struct query query = query_begin(tally->db, STATEMENT_ESCALATION_SET);
        query_int(&query, job_id);
        query_int(&query, context_id);
        TRY(query_run(&query, error));
    }
    job_escalation_clear(successor);
    successor->parent_job_id = job_id;
    successor->evaluates = false;
    successor->route_reason = ROUTE_REASON_FLAGGED;
    successor->route_own = successor->route_other = 0;
    while (other) {
        struct job_spec found;
        TRY(submit_successor(store, tally, suite, successor, successor_id, error));
        TRY(record_spec_get(tally->db, *successor_id, &found, NULL, error));
        other = *successor_id == job_id || !answers(&found, successor);
        if (other) { /* what has its key and asks something else is left alone */
            job_key_apart(successor);
        }
    }
    return STATUS_OK;
}

/* ---- answers of other suites ---- */

enum status question_artifact_lost(struct sql_store *store, struct query *query, int column,
                                   bool *lost, struct error *error)
{
    char hash[SHA256_HEX_BYTES] = "";
    bool exists = true;

    query_column_text(query, column, hash, sizeof hash);
    enum status status =
        hash[0] == '\0' ? STATUS_OK : artifacts_exists(&store->artifacts, hash, &exists, error);
    *lost = !exists;
    return status;
}

/* The question that a result answers. A key is what its submitter says, so that the rest is
 * compared as well: otherwise whoever may submit could have another party's suite take over answers
 * to a question of his own. */
static void bind_question(struct query *query, const struct job_spec *spec)
{
    query_text(query, spec->key);
    query_text(query, spec->planner);
    query_text(query, spec->planner_hash);
    query_int(query, spec->tier);
    query_text(query, spec->model_hash);
    query_text(query, spec->sampler);
    query_text(query, spec->backend);
    query_text(query, spec->revision);
    query_text(query, spec->scenario_id);
    query_text(query, spec->scenario_hash);
    query_int(query, (int64_t)spec->seed);
    query_int(query, spec->rollout_count);
    query_text(query, spec->rig);
    query_text(query, spec->makes);
}

enum status question_known(struct sql_store *store, struct db *db, const struct job_spec *spec,
                           int64_t *job_id, struct error *error)
{
    enum status looked = STATUS_OK;
    struct query query = query_begin(db, STATEMENT_MEMO_FIND);

    *job_id = 0;
    bind_question(&query, spec);
    while (*job_id == 0 && looked == STATUS_OK && query_row(&query)) {
        bool lost = false;
        looked = question_artifact_lost(store, &query, 1, &lost, error);
        *job_id = lost ? 0 : query_column_int(&query, 0);
    }
    enum status status = query_end(&query, looked == STATUS_OK ? error : NULL);
    return looked == STATUS_OK ? status : looked;
}

enum status question_take(struct tally *tally, int64_t suite, int64_t job_id, int64_t source,
                          enum ledger_kind kind, struct error *error)
{
    struct tally_suite *counters;
    struct query link = query_begin(tally->db, STATEMENT_MEMO_LINK);
    query_int(&link, source);
    query_int(&link, suite);
    query_int(&link, job_id);
    TRY(query_run(&link, error));
    if (kind == LEDGER_SHADOW) {
        return STATUS_OK;
    }
    TRY(tally_suite(tally, suite, &counters, error));
    counters->jobs_memoised++;
    struct query verdicts = query_begin(tally->db, STATEMENT_MEMO_SOURCE);
    query_int(&verdicts, source);
    while (query_row(&verdicts)) {
        int64_t verdict = query_column_int(&verdicts, 0);
        CHECK(verdict >= 0 && verdict < VERDICT_COUNT);
        *(kind == LEDGER_AUDIT ? &counters->rollouts_audit : &counters->rollouts[verdict]) +=
            query_column_int(&verdicts, 1);
    }
    return query_end(&verdicts, error);
}
