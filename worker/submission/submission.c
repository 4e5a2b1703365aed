/*
 * Building job rows: once to count and name them, and again page by page, for whoever sends or
 * looks at them. What is kept of a suite grows with its scenarios, not with their seeds.
 */
#include "worker/submission/submission.h"

#include "base/array.h"
#include "base/check.h"
#include "base/text.h"
#include "engine/trace/trace.h"
#include "schemas/job_context.h"
#include "schemas/scenario_json.h"
#include "worker/models/sampler.h"
#include "worker/run/revision.h"
#include "worker/submission/submission_planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Jobs of one entry under one planner, from which they are made when they are wanted. */
struct submission_work {
    const struct scenario_document *document; /* the suite's, or the trusted part of it */
    const uint64_t *seeds;                    /* the entry's; NULL: first_seed, and those above */
    uint64_t first_seed;
    uint32_t seed_count;
    uint32_t kind;
    uint32_t audit_kind;
    double audit_rate; /* 0: no job is audited */
    int32_t priority;
    struct route_decision decision;
};

static void update_text(struct sha256 *hash, const char *text)
{
    sha256_update(hash, text, strlen(text) + 1);
}

/* The promoted model of the spec's tier, and how it is sampled. */
static enum status set_model(struct models *models, enum conditioning conditioning,
                             enum nn_precision precision, struct job_spec *spec,
                             struct error *error)
{
    const struct models_model *model = NULL;
    if (models == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "tier %s: no models", tier_names[spec->tier]);
    }
    TRY(models_promoted(models, spec->tier, precision, &model, error));
    snprintf(spec->model_hash, sizeof spec->model_hash, "%s", model->hash);
    spec->follows = model->foreign == NULL && models_pointed(models, spec->tier, &precision);
    models_sampler(models, model, conditioning, spec->sampler);
    if (model->foreign != NULL) { /* it computes where it likes; what Swerve does is done here */
        snprintf(spec->backend, sizeof spec->backend, "cpu");
    }
    return STATUS_OK;
}

static bool is_on_cpu(const struct job_spec *spec)
{
    return spec->backend[0] == '\0' || strcmp(spec->backend, "cpu") == 0;
}

static enum status skip_steps(const struct submission_options *options, struct job_spec *spec,
                              struct error *error)
{
    const struct models_model *model = NULL;
    uint32_t steps = options->skipped_steps;
    TRY(models_promoted(options->models, spec->tier, options->precision, &model, error));
    if (steps == SUBMISSION_SKIP_ALL && model->foreign == NULL) {
        steps = model->config->steps;
    }
    return is_on_cpu(spec)
               ? sampler_skip(spec->sampler, steps, error)
               : error_set(error, STATUS_USAGE,
                           "steps of a sampler are left out on the CPU alone, found device %s",
                           spec->backend);
}

/* No other version than these two answers. */
static enum status set_previous(const struct submission_options *options, struct job_spec *spec,
                                struct error *error)
{
    const struct models_model *previous = NULL;
    if (!is_on_cpu(spec) || strstr(spec->sampler, "/euler") == NULL) {
        return error_set(error, STATUS_USAGE,
                         "a previous model takes over from one of ours on the CPU alone, found "
                         "device %s, sampler %s",
                         spec->backend, spec->sampler);
    }
    TRY(models_named(options->models, options->previous,
                     models_precision(options->models, spec->tier, options->precision), &previous,
                     error));
    sampler_add_previous(spec->sampler, previous->hash);
    spec->follows = 0;
    return STATUS_OK;
}

static enum status tier_horizon(struct models *models, enum tier tier,
                                enum conditioning conditioning, enum nn_precision precision,
                                uint32_t *ticks, struct error *error)
{
    const struct models_model *model = NULL;
    *ticks = 0;
    if (!models_available(models, tier)) {
        return STATUS_OK;
    }
    TRY(models_promoted(models, tier, precision, &model, error));
    *ticks = model_horizon_ticks(model->config, conditioning);
    return STATUS_OK;
}

enum status submission_teacher_spec(struct models *models, const struct job_spec *student,
                                    enum nn_precision precision, uint32_t ticks,
                                    struct job_spec *out, struct error *error)
{
    enum conditioning conditioning = CONDITIONING_AGENTS;
    enum nn_precision of_student = NN_BF16;
    struct job_spec spec = *student;
    enum status status = models_parse_sampler(student->sampler, &conditioning, &of_student, error);
    spec.tier = TIER_TEACHER;
    spec.parent_job_id = 0;
    spec.audit_key[0] = '\0';
    job_escalation_clear(&spec);
    snprintf(spec.pool, sizeof spec.pool, "teacher");
    THEN(status, set_model(models, conditioning, precision, &spec, error));
    uint32_t trusted_ticks = 0;
    THEN(status,
         tier_horizon(models, TIER_TEACHER, conditioning, precision, &trusted_ticks, error));
    if (status == STATUS_OK && ticks > trusted_ticks) {
        status = error_set(error, STATUS_NOT_FOUND,
                           "the teacher is trusted for %g s of \"%s\", the scenario lasts %g s",
                           trusted_ticks / 10.0, conditioning_names[conditioning], ticks / 10.0);
    }
    if (status == STATUS_OK) {
        job_key_make(&spec, job_key_fresh(student));
        *out = spec;
    }
    return status;
}

/* The world whose goldens answer the job, which is asked what they do not answer. False: nobody
 * asks for that, or it is not here. */
static bool name_origin(struct models *models, struct job_spec *spec)
{
    const struct models_origin *origin = models_origin(models, spec->model_hash);
    if (origin == NULL) {
        return false;
    }
    snprintf(spec->escalate_pool, sizeof spec->escalate_pool, "%s",
             origin->tier == TIER_TEACHER ? "teacher" : "bulk");
    spec->escalate_tier = origin->tier;
    memcpy(spec->escalate_model_hash, origin->hash, sizeof spec->escalate_model_hash);
    memcpy(spec->escalate_sampler, origin->sampler, sizeof spec->escalate_sampler);
    return true;
}

/* Names who is asked the same question if the job is flagged: in place of the student the promoted
 * teacher, where that is trusted for as long; in place of goldens the world that generated them. A
 * teacher's job, or one of a log of the controls challenge, goes nowhere. */
static void name_escalation(const struct submission_options *options,
                            const struct scenario *scenario, struct job_spec *spec)
{
    struct error why;
    struct job_spec teacher;
    if (scenario->controls.log.count > 0 ||
        (spec->tier == TIER_GOLDEN && name_origin(options->models, spec))) {
        return;
    }
    if (spec->tier != TIER_STUDENT || !options->policy.teacher_available ||
        submission_teacher_spec(options->models, spec, options->precision, scenario->horizon_ticks,
                                &teacher, &why) != STATUS_OK) {
        return;
    }
    memcpy(spec->escalate_pool, teacher.pool, sizeof spec->escalate_pool);
    spec->escalate_tier = teacher.tier;
    memcpy(spec->escalate_model_hash, teacher.model_hash, sizeof spec->escalate_model_hash);
    memcpy(spec->escalate_sampler, teacher.sampler, sizeof spec->escalate_sampler);
}

static uint32_t entry_seed_count(const struct suite_entry *entry,
                                 const struct submission_options *options)
{
    uint32_t asked = options->seed_count + options->nominal;
    return asked > 0 ? asked : entry->seed_count;
}

static uint32_t entry_planner_count(const struct suite_entry *entry)
{
    return entry->planner_count > 0 ? entry->planner_count : 1;
}

/* The most that a job records must fit an artifact, or it would be simulated in vain: of what is
 * driven, for a clipped scenario may fit where the whole one does not. */
static enum status check_trace_bytes(const struct suite_entry *entry,
                                     const struct scenario *scenario, struct error *error)
{
    uint64_t bytes = trace_artifact_bytes_max(scenario);
    if (bytes <= LIMIT_ARTIFACT_BYTES) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_LIMIT,
                     "%s: scenario %s: its trace may take %llu MiB (ticks x rollouts x agents), "
                     "expected at most %d; use a shorter horizon or fewer branches",
                     entry->file, scenario->id, (unsigned long long)(bytes >> 20),
                     LIMIT_ARTIFACT_BYTES >> 20);
}

/* Question of one entry: its scenario, or the trusted part of it, and who answers. */
struct asked {
    const struct suite_entry *entry;
    const struct scenario_document *document;
    struct route_decision decision;
};

static bool is_learned(enum tier tier)
{
    return tier >= TIER_STUDENT;
}

/* The rate at which a teacher repeats such jobs; one that is not trusted for as long repeats
 * nothing. */
static double rate_of_audits(const struct submission_options *options, const struct asked *question,
                             const struct route_horizons *horizons, const struct job_spec *spec)
{
    const struct scenario *scenario = &question->document->scenario;
    bool audited = options->audit != NULL && spec->tier == TIER_STUDENT &&
                   options->policy.teacher_available &&
                   scenario->horizon_ticks <= horizons->teacher_ticks;
    return audited ? audit_rate(options->audit, &scenario->slices) : 0;
}

static bool is_of_kind(const struct job_spec *kind, const struct job_spec *spec)
{
    const struct job_context known = job_context_of_spec(kind);
    const struct job_context asked = job_context_of_spec(spec);
    return job_context_differs(&known, &asked,
                               JOB_CONTEXT_RUNNER | JOB_CONTEXT_PLANNER_HASH | JOB_CONTEXT_POOL) ==
               0 &&
           kind->follows == spec->follows && kind->evaluates == spec->evaluates &&
           kind->escalate_tier == spec->escalate_tier &&
           strcmp(kind->escalate_pool, spec->escalate_pool) == 0 &&
           strcmp(kind->escalate_model_hash, spec->escalate_model_hash) == 0 &&
           strcmp(kind->escalate_sampler, spec->escalate_sampler) == 0;
}

/* Whether a world was asked for its pictures of the rig before. */
static bool is_asked(const struct submission *out, const struct job_spec *spec)
{
    uint32_t i = 0;
    while (i < out->kind_count && (strcmp(out->kinds[i].model_hash, spec->model_hash) != 0 ||
                                   strcmp(out->kinds[i].rig, spec->rig) != 0)) {
        i++;
    }
    return i < out->kind_count;
}

/* Whether those who answer, the flagged jobs too, can make what the planner is shown. */
static enum status check_rig(const struct submission *out, const struct asked *question,
                             const struct submission_options *options,
                             struct submission_planner *planner, const struct job_spec *spec,
                             struct error *error)
{
    struct job_spec escalated = *spec;
    const struct rig *offered = question->document->scenario.rig;
    TRY(submission_planner_suits(planner, options, offered, spec, is_asked(out, spec), error));
    if (spec->escalate_pool[0] == '\0') {
        return STATUS_OK;
    }
    escalated.tier = spec->escalate_tier;
    memcpy(escalated.model_hash, spec->escalate_model_hash, sizeof escalated.model_hash);
    memcpy(escalated.sampler, spec->escalate_sampler, sizeof escalated.sampler);
    return submission_planner_suits(planner, options, offered, &escalated,
                                    is_asked(out, &escalated), error);
}

/* The kind of such jobs, noted where it is new; revision and attempts are the same for all. */
static enum status find_kind(struct submission *out, const struct asked *question,
                             const struct submission_options *options,
                             struct submission_planner *planner, const struct job_spec *spec,
                             uint32_t *kind, struct error *error)
{
    for (*kind = 0; *kind < out->kind_count; ++*kind) {
        if (is_of_kind(&out->kinds[*kind], spec)) {
            return STATUS_OK;
        }
    }
    TRY(check_rig(out, question, options, planner, spec, error));
    TRY(array_room(&out->kinds, out->kind_count, sizeof *out->kinds, error));
    out->kinds[out->kind_count++] = *spec;
    return STATUS_OK;
}

/* The first `ticks` of the entry's scenario, owned by the submission. */
static enum status clip(struct submission *out, const struct suite_entry *entry, uint32_t ticks,
                        const struct scenario_document **document, struct error *error)
{
    TRY(array_room(&out->clipped, out->clipped_count, sizeof *out->clipped, error));
    TRY(scenario_clip(entry->file, entry->document, ticks, &out->clipped[out->clipped_count],
                      error));
    *document = out->clipped[out->clipped_count++];
    return STATUS_OK;
}

/* For how long those are trusted who may have to answer. */
static enum status find_horizons(const struct submission_options *options, enum tier tier,
                                 struct route_horizons *out, struct error *error)
{
    bool teacher = tier == TIER_TEACHER || options->beyond == ROUTE_BEYOND_ROUTE ||
                   options->audit != NULL || options->policy.market.tick_pusd[TIER_TEACHER] > 0;
    if (tier == TIER_STUDENT || tier == TIER_GOLDEN) {
        TRY(tier_horizon(options->models, tier, options->conditioning, options->precision,
                         &out->student_ticks, error));
    }
    return teacher ? tier_horizon(options->models, TIER_TEACHER, options->conditioning,
                                  options->precision, &out->teacher_ticks, error)
                   : STATUS_OK;
}

/* Whether a slice that is frozen has the main line or a branch. */
static bool is_frozen(const struct submission_options *options, const struct scenario *scenario)
{
    struct slices slices;
    bool frozen = false;
    for (uint32_t i = 0; i <= scenario->branch_count && !frozen && options->frozen_count > 0; i++) {
        scenario_slices(scenario, i, &slices);
        frozen = trust_find_slice(options->frozen, options->frozen_count, &slices) != NULL;
    }
    return frozen;
}

/* Who answers, and how much of it: asked before anything is driven. */
static enum status ask(struct submission *out, const struct suite_entry *entry,
                       const struct submission_options *options, struct route_horizons *horizons,
                       struct asked *question, struct error *error)
{
    const struct scenario *scenario = &entry->document->scenario;
    struct route_decision decision;
    *question = (struct asked){.entry = entry, .document = entry->document};
    enum status status = route_scenario(scenario, &options->policy, &decision, error);
    if (status == STATUS_OK && !options->evaluation && is_frozen(options, scenario)) {
        status = route_frozen(scenario, &options->policy, &decision, error);
    }
    if (status == STATUS_OK && is_learned(decision.tier)) {
        TRY(find_horizons(options, decision.tier, horizons, error)); /* no scenario is at fault */
        out->open_count += route_is_open(scenario, &options->policy, horizons, &decision);
        route_by_market(scenario, &options->policy, horizons, &decision);
        status = route_within_horizon(scenario, options->beyond, horizons, &decision, error);
    }
    if (status != STATUS_OK) {
        return error_prefix(error, "%s", entry->file);
    }
    if (decision.clip_ticks > 0) {
        TRY(clip(out, entry, decision.clip_ticks, &question->document, error));
    }
    out->degraded_count += decision.degraded;
    out->frozen_count += decision.frozen && !decision.rerouted;
    out->rerouted_count += decision.rerouted;
    question->decision = decision;
    return STATUS_OK;
}

/* Members that jobs of the question have alike, but for the model. */
static void describe(const struct asked *question, const struct submission_options *options,
                     const struct submission_planner *planner, struct job_spec *spec)
{
    enum tier tier = question->decision.tier;
    *spec = (struct job_spec){.tier = tier, .attempts_max = options->attempts_max};
    memcpy(spec->planner, planner->spec, sizeof spec->planner);
    memcpy(spec->planner_hash, planner->hash, sizeof spec->planner_hash);
    memcpy(spec->rig, planner->rig, sizeof spec->rig);
    snprintf(spec->pool, sizeof spec->pool, "%s", question->decision.pool);
    snprintf(spec->backend, sizeof spec->backend, "%s",
             is_learned(tier) ? options->backend : "cpu");
    snprintf(spec->revision, sizeof spec->revision, "%s", revision_hash);
}

/* The jobs of a question under one planner. */
static enum status add_work(struct submission *out, const struct asked *question,
                            const struct submission_options *options,
                            const struct route_horizons *horizons,
                            struct submission_planner *planner, struct error *error)
{
    const struct suite_entry *entry = question->entry;
    bool own = options->seed_count == 0 && !options->nominal;
    struct submission_work work = {.document = question->document,
                                   .seeds = own ? entry->seeds : NULL,
                                   .first_seed = options->nominal ? 0 : 1,
                                   .seed_count = entry_seed_count(entry, options),
                                   .priority = entry->priority,
                                   .decision = question->decision};
    struct job_spec spec;
    describe(question, options, planner, &spec);
    if (is_learned(spec.tier)) {
        TRY(set_model(options->models, options->conditioning, options->precision, &spec, error));
    }
    if (is_learned(spec.tier) && options->previous != NULL) {
        TRY(set_previous(options, &spec, error));
    }
    if (spec.tier == TIER_STUDENT && options->skipped_steps > 0) {
        TRY(skip_steps(options, &spec, error));
    }
    spec.evaluates = options->evaluation && spec.tier == TIER_STUDENT;
    spec.follows &= !spec.evaluates; /* of this version it is to be the evidence */
    out->evaluation_count += spec.evaluates ? work.seed_count : 0;
    if (options->makes != NULL) {
        snprintf(spec.makes, sizeof spec.makes, "%s", options->makes);
        spec.follows = false;
    } else {
        name_escalation(options, &question->document->scenario, &spec);
    }
    TRY(find_kind(out, question, options, planner, &spec, &work.kind, error));
    work.audit_rate = rate_of_audits(options, question, horizons, &spec);
    if (work.audit_rate > 0) {
        struct job_spec audit;
        TRY(submission_teacher_spec(options->models, &spec, options->precision,
                                    question->document->scenario.horizon_ticks, &audit, error));
        audit.evaluates = false;
        TRY(find_kind(out, question, options, planner, &audit, &work.audit_kind, error));
    }
    if (work.seed_count > 0) {
        TRY(array_room(&out->work, out->work_count, sizeof *out->work, error));
        out->work[out->work_count++] = work;
    }
    return STATUS_OK;
}

static enum status add_entry(struct submission *out, const struct suite_entry *entry,
                             const struct submission_options *options,
                             struct submission_planners *hashes, struct error *error)
{
    struct route_horizons horizons = {0};
    struct asked question;
    TRY(ask(out, entry, options, &horizons, &question, error));
    TRY(check_trace_bytes(entry, &question.document->scenario, error));
    for (uint32_t p = 0; p < entry_planner_count(entry); p++) {
        const char *planner = entry->planner_count > 0 ? entry->planners[p] : options->planner;
        struct submission_planner *tried = NULL;
        TRY(submission_planner_find(hashes, options, planner, question.document->scenario.rig,
                                    &tried, error));
        TRY(add_work(out, &question, options, &horizons, tried, error));
    }
    return STATUS_OK;
}

const struct scenario_document *submission_document(const struct submission *submission, uint32_t i)
{
    CHECK(i < submission->work_count);
    return submission->work[i].document;
}

const struct scenario_document *submission_example(const struct submission *submission,
                                                   uint32_t kind)
{
    for (uint32_t i = 0; i < submission->work_count; i++) {
        if (submission->work[i].kind == kind) {
            return submission->work[i].document;
        }
    }
    return NULL;
}

/* ---- pages ---- */

/* A job of the kind that answers for the scenario and the seed; its key is still to be made. */
static void fill_job(const struct submission *submission, const struct submission_work *work,
                     uint32_t kind, uint64_t seed, struct job_spec *spec)
{
    const struct scenario_document *document = work->document;
    *spec = submission->kinds[kind];
    memcpy(spec->suite_id, submission->suite_id, sizeof spec->suite_id);
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "%s", document->scenario.id);
    memcpy(spec->scenario_hash, document->hash, sizeof spec->scenario_hash);
    memcpy(spec->prefix_key, document->hash, sizeof spec->prefix_key);
    spec->priority = work->priority;
    spec->route_reason = kind == work->kind ? work->decision.reason : ROUTE_REASON_AUDIT;
    spec->route_own = kind == work->kind ? work->decision.own : 0;
    spec->route_other = kind == work->kind ? work->decision.other : 0;
    spec->rollout_count = 1 + document->scenario.branch_count;
    spec->seed = seed;
}

/* Adds a job to the page, and its audit job when it is sampled. */
static void add_job(struct submission *submission, const struct submission_work *work,
                    uint64_t seed)
{
    uint32_t at = submission->page_count++;
    struct job_spec *spec = &submission->specs[at];
    submission->documents[at] = work->document;
    fill_job(submission, work, work->kind, seed, spec);
    job_key_make(spec, submission->fresh);
    if (work->audit_rate > 0 && trust_audit_sampled(spec->key, work->audit_rate)) {
        struct job_spec *audit = &submission->specs[at + 1];
        submission->documents[submission->page_count++] = work->document;
        fill_job(submission, work, work->audit_kind, seed, audit);
        job_key_make(audit, job_key_fresh(spec));
        char key[SHA256_HEX_BYTES];
        job_key_audit(audit->key, key);
        memcpy(audit->key, key, sizeof audit->key);
        memcpy(audit->audit_key, spec->key, sizeof audit->audit_key);
    }
}

/* Makes the jobs that follow the last page those at hand. */
static void fill_page(struct submission *submission)
{
    submission->page_count = 0;
    while (submission->work_next < submission->work_count &&
           submission->page_count + 2 <= SUBMISSION_PAGE) { /* a job and what audits it */
        const struct submission_work *work = &submission->work[submission->work_next];
        uint32_t seed = submission->seed_next++;
        add_job(submission, work,
                work->seeds != NULL ? work->seeds[seed] : work->first_seed + seed);
        if (submission->seed_next == work->seed_count) {
            submission->work_next++;
            submission->seed_next = 0;
        }
    }
}

bool submission_first(struct submission *submission)
{
    if (submission->page_count < submission->job_count) { /* else the page has them all */
        submission->work_next = submission->seed_next = 0;
        fill_page(submission);
    }
    return submission->page_count > 0;
}

bool submission_next(struct submission *submission)
{
    if (submission->work_next == submission->work_count) {
        return false;
    }
    fill_page(submission);
    return true;
}

void submission_name(struct submission *out, const char *id)
{
    snprintf(out->suite_id, sizeof out->suite_id, "%s", id);
    for (uint32_t i = 0; i < out->page_count; i++) {
        memcpy(out->specs[i].suite_id, out->suite_id, sizeof out->suite_id);
    }
}

/* Counts the jobs, and names the suite "<suite>-<8 hex digits of all keys>": the same work has the
 * same id, however much of it is audited. An evaluation is a suite of its own: what was driven for
 * others may be the teacher's. */
static void count_jobs(struct submission *out, const struct suite *suite)
{
    char id[LIMIT_ID_BYTES];
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    sha256_init(&hash);
    while (submission_next(out)) {
        out->job_count += out->page_count;
        for (uint32_t i = 0; i < out->page_count; i++) {
            const struct job_spec *spec = &out->specs[i];
            bool audit = spec->audit_key[0] != '\0';
            out->audit_count += audit;
            out->rollout_count += audit ? 0 : spec->rollout_count;
            if (!audit) {
                update_text(&hash, spec->key);
            }
        }
    }
    if (out->evaluation_count > 0) {
        update_text(&hash, "evaluation");
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, hex);
    bool makes = out->page_count > 0 && out->specs[0].makes[0] != '\0';
    snprintf(id, sizeof id, "%.*s%s-%.8s", LIMIT_ID_BYTES - (makes ? 24 : 16), suite->id,
             makes ? "-golden" : "", hex);
    submission_first(out);
    submission_name(out, id);
}

enum status submission_build(const struct suite *suite, const struct submission_options *options,
                             struct submission *out, struct error *error)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        count += (uint64_t)entry_seed_count(&suite->entries[i], options) *
                 entry_planner_count(&suite->entries[i]);
    }
    if (count == 0 || count > LIMIT_SUITE_JOBS) {
        return error_set(error, STATUS_LIMIT, "suite %s: expected 1 to %d jobs, found %llu",
                         suite->id, LIMIT_SUITE_JOBS, (unsigned long long)count);
    }
    struct submission built = {.fresh = options->fresh, .of_class = options->of_class};
    struct submission_planners *hashes = calloc(1, sizeof *hashes);
    /* Every job may have an audit job. */
    uint64_t room = 2 * count < SUBMISSION_PAGE ? 2 * count : SUBMISSION_PAGE;
    built.specs = calloc(room, sizeof *built.specs);
    built.documents = calloc(room, sizeof *built.documents);
    enum status status = STATUS_OK;
    if (hashes == NULL || built.specs == NULL || built.documents == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "suite %s: out of memory for %llu jobs",
                           suite->id, (unsigned long long)count);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < suite->entry_count; i++) {
        status = add_entry(&built, &suite->entries[i], options, hashes, error);
    }
    free(hashes);
    if (status != STATUS_OK) {
        submission_finish(&built);
        return status;
    }
    count_jobs(&built, suite);
    *out = built;
    return STATUS_OK;
}

/* As much of the suite's name as fits and may be in a new one: older stores have names with what a
 * terminal obeys, and with steps of paths. */
static void keep_plain(const char *name, char *out, size_t capacity)
{
    struct error why;
    bool steps = text_name_check("suite", name, LIMIT_ID_BYTES, &why) != STATUS_OK;
    size_t left = strlen(name);
    size_t used = 0;
    while (left > 0) {
        size_t shown = text_shown_bytes((const unsigned char *)name, left, TEXT_LINE);
        size_t bytes = shown > 0 ? shown : 1;
        if (used + bytes >= capacity) {
            break;
        }
        memcpy(out + used, name, bytes);
        if (shown == 0 || (steps && *name == '/')) {
            out[used] = '_';
        }
        used += bytes;
        name += bytes;
        left -= bytes;
    }
    out[used] = '\0';
}

void submission_renewed_prefix(const char *suite_id, const struct job_spec *specs, uint32_t count,
                               char out[LIMIT_ID_BYTES])
{
    uint32_t set = 2166136261; /* FNV-1a */
    for (uint32_t i = 0; i < count; i++) {
        for (const char *at = specs[i].key; *at != '\0'; at++) {
            set = (set ^ (unsigned char)*at) * 16777619;
        }
    }
    char kept[LIMIT_ID_BYTES - 15];
    keep_plain(suite_id, kept, sizeof kept);
    snprintf(out, LIMIT_ID_BYTES, "%s-again-%04x", kept, (unsigned)(set ^ set >> 16) & 0xffff);
}

enum status submission_renew(const struct submission_options *options, const char *suite_id,
                             struct job_spec *specs, uint32_t count, struct error *error)
{
    struct submission_planners *hashes = calloc(1, sizeof *hashes);
    enum status status = STATUS_OK;
    char start[LIMIT_ID_BYTES];
    TRY(memory_check(hashes, error, "suite %s: out of memory", suite_id));
    submission_renewed_prefix(suite_id, specs, count, start);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        struct submission_planner *tried = NULL;
        const struct submission_options untried = {.fresh = options->fresh};
        status = submission_planner_find(hashes, specs[i].rig[0] == '\0' ? options : &untried,
                                         specs[i].planner, NULL, &tried, error);
        if (status == STATUS_OK) {
            memcpy(specs[i].planner_hash, tried->hash, sizeof specs[i].planner_hash);
            snprintf(specs[i].revision, sizeof specs[i].revision, "%s", revision_hash);
            snprintf(specs[i].suite_id, sizeof specs[i].suite_id, "%.*s%04x", LIMIT_ID_BYTES - 5,
                     start, (unsigned)(options->fresh ^ options->fresh >> 32) & 0xffff);
            job_key_make(&specs[i], options->fresh);
        }
    }
    free(hashes);
    return status;
}

void submission_finish(struct submission *submission)
{
    free(submission->specs);
    free(submission->documents);
    free(submission->kinds);
    free(submission->work);
    for (uint32_t i = 0; i < submission->clipped_count; i++) {
        scenario_destroy(submission->clipped[i]);
    }
    free(submission->clipped);
    submission->specs = NULL;
    submission->documents = NULL;
    submission->kinds = NULL;
    submission->work = NULL;
    submission->clipped = NULL;
    submission->clipped_count = 0;
}
