/*
 * Building and sending job rows.
 */
#include "worker/run/submission.h"

#include "base/check.h"
#include "base/text.h"
#include "engine/trace/trace.h"
#include "schemas/job_context.h"
#include "schemas/scenario_json.h"
#include "worker/planner/planner.h"
#include "worker/run/revision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUBMIT_BATCH = 1000, ROUNDS_MAX = 9999 };

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
    *ticks = model->config->horizon_ticks[conditioning];
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

static uint64_t entry_seed(const struct suite_entry *entry,
                           const struct submission_options *options, uint32_t index)
{
    bool own = options->seed_count == 0 && !options->nominal;
    return own ? entry->seeds[index] : (uint64_t)index + (options->nominal ? 0 : 1);
}

static uint32_t entry_planner_count(const struct suite_entry *entry)
{
    return entry->planner_count > 0 ? entry->planner_count : 1;
}

/* A planner as it starts when it is offered a rig. */
struct planner_tried {
    char spec[LIMIT_SPEC_BYTES];
    char offered[SHA256_HEX_BYTES]; /* of the rig */
    char hash[SHA256_HEX_BYTES];    /* its identity */
    char rig[SHA256_HEX_BYTES];     /* whose sensors it is shown */
};

struct planner_hashes {
    struct planner_tried list[4 * (LIMIT_PLANNERS + 1)];
    uint32_t count;
};

/* Adds facts that a trial alone tells. */
static enum status try_planner(const struct submission_options *options, const struct rig *rig,
                               struct planner_tried *tried, struct error *error)
{
    struct planner_trial told = {.loaded = ""};
    memcpy(tried->rig, tried->offered, sizeof tried->rig);
    if (options->trial == NULL) {
        return STATUS_OK;
    }
    TRY(options->trial(options->trial_context, tried->spec, rig, &told, error));
    planner_identity_extend(tried->hash, told.loaded);
    if (told.rig_id[0] != '\0') {
        memcpy(tried->rig, told.rig, sizeof tried->rig);
    }
    return STATUS_OK;
}

/* A planner spec that is offered a rig (NULL: the built-in one), tried once per suite. */
static enum status planner_hash(struct planner_hashes *cache,
                                const struct submission_options *options, const char *spec,
                                const struct rig *rig, const struct planner_tried **out,
                                struct error *error)
{
    char offered[SHA256_HEX_BYTES] = "";
    if (rig != NULL) {
        TRY(rig_hash(rig, offered, error));
    }
    for (uint32_t i = 0; i < cache->count; i++) {
        if (strcmp(cache->list[i].spec, spec) == 0 &&
            strcmp(cache->list[i].offered, offered) == 0) {
            *out = &cache->list[i];
            return STATUS_OK;
        }
    }
    if (cache->count == COUNT_OF(cache->list) || strlen(spec) >= LIMIT_SPEC_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "planners: expected at most %zu specs and rigs, of at most %d bytes",
                         COUNT_OF(cache->list), LIMIT_SPEC_BYTES - 1);
    }
    struct planner_tried *tried = &cache->list[cache->count];
    TRY(planner_spec_check(spec, error));
    TRY(planner_identity(spec, tried->hash, error));
    snprintf(tried->spec, sizeof tried->spec, "%s", spec);
    memcpy(tried->offered, offered, sizeof tried->offered);
    TRY(try_planner(options, rig, tried, error));
    cache->count++;
    *out = tried;
    return STATUS_OK;
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

static void add_job(struct submission *out, const struct scenario_document *document,
                    const struct job_spec *spec)
{
    out->specs[out->job_count] = *spec;
    out->documents[out->job_count++] = document;
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

/* A teacher that is not trusted for as long repeats nothing. */
static bool audited(const struct submission_options *options, const struct asked *question,
                    const struct route_horizons *horizons, const struct job_spec *spec)
{
    const struct scenario *scenario = &question->document->scenario;
    return options->audit != NULL && spec->tier == TIER_STUDENT &&
           options->policy.teacher_available &&
           scenario->horizon_ticks <= horizons->teacher_ticks &&
           trust_audit_sampled(spec->key, audit_rate(options->audit, &scenario->slices));
}

/* Adds a job, and its audit job when it is sampled. */
static enum status add_audited(struct submission *out, const struct asked *question,
                               const struct submission_options *options,
                               const struct route_horizons *horizons, const struct job_spec *spec,
                               struct error *error)
{
    struct job_spec audit;
    add_job(out, question->document, spec);
    out->rollout_count += spec->rollout_count;
    if (!audited(options, question, horizons, spec)) {
        return STATUS_OK;
    }
    TRY(submission_teacher_spec(options->models, spec, options->precision,
                                question->document->scenario.horizon_ticks, &audit, error));
    char key[SHA256_HEX_BYTES];
    job_key_audit(audit.key, key);
    memcpy(audit.key, key, sizeof audit.key);
    memcpy(audit.audit_key, spec->key, sizeof audit.audit_key);
    audit.evaluates = false;
    add_job(out, question->document, &audit);
    out->audit_count++;
    return STATUS_OK;
}

/* The first `ticks` of the entry's scenario, owned by the submission. */
static enum status clip(struct submission *out, const struct suite_entry *entry, uint32_t ticks,
                        const struct scenario_document **document, struct error *error)
{
    struct scenario_document **list =
        realloc(out->clipped, (out->clipped_count + 1) * sizeof *out->clipped);
    TRY(memory_check(list, error, "%s: out of memory", entry->file));
    out->clipped = list;
    TRY(scenario_clip(entry->file, entry->document, ticks, &list[out->clipped_count], error));
    *document = list[out->clipped_count++];
    return STATUS_OK;
}

/* For how long those are trusted who may have to answer. */
static enum status find_horizons(const struct submission_options *options, enum tier tier,
                                 struct route_horizons *out, struct error *error)
{
    bool teacher =
        tier == TIER_TEACHER || options->beyond == ROUTE_BEYOND_ROUTE || options->audit != NULL;
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
        status = find_horizons(options, decision.tier, horizons, error);
        THEN(status, route_within_horizon(scenario, options->beyond, horizons, &decision, error));
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

/* All of a job but its seed, model and key. */
static void describe(const struct asked *question, const struct submission_options *options,
                     const struct planner_tried *planner, struct job_spec *spec)
{
    const struct scenario_document *document = question->document;
    enum tier tier = question->decision.tier;
    *spec = (struct job_spec){
        .tier = tier,
        .priority = question->entry->priority,
        .rollout_count = 1 + document->scenario.branch_count,
        .attempts_max = options->attempts_max,
    };
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "%s", document->scenario.id);
    memcpy(spec->scenario_hash, document->hash, sizeof spec->scenario_hash);
    memcpy(spec->prefix_key, document->hash, sizeof spec->prefix_key);
    memcpy(spec->planner, planner->spec, sizeof spec->planner);
    memcpy(spec->planner_hash, planner->hash, sizeof spec->planner_hash);
    memcpy(spec->rig, planner->rig, sizeof spec->rig);
    snprintf(spec->pool, sizeof spec->pool, "%s", question->decision.pool);
    snprintf(spec->backend, sizeof spec->backend, "%s",
             is_learned(tier) ? options->backend : "cpu");
    snprintf(spec->revision, sizeof spec->revision, "%s", revision_hash);
}

static enum status add_entry(struct submission *out, const struct suite_entry *entry,
                             const struct submission_options *options,
                             struct planner_hashes *hashes, struct error *error)
{
    struct route_horizons horizons = {0};
    struct asked question;
    TRY(ask(out, entry, options, &horizons, &question, error));
    TRY(check_trace_bytes(entry, &question.document->scenario, error));
    for (uint32_t p = 0; p < entry_planner_count(entry); p++) {
        const char *planner = entry->planner_count > 0 ? entry->planners[p] : options->planner;
        const struct planner_tried *tried = NULL;
        TRY(planner_hash(hashes, options, planner, question.document->scenario.rig, &tried, error));
        for (uint32_t s = 0; s < entry_seed_count(entry, options); s++) {
            struct job_spec spec;
            describe(&question, options, tried, &spec);
            spec.seed = entry_seed(entry, options, s);
            if (is_learned(spec.tier)) {
                TRY(set_model(options->models, options->conditioning, options->precision, &spec,
                              error));
            }
            spec.evaluates = options->evaluation && spec.tier == TIER_STUDENT;
            spec.follows &= !spec.evaluates; /* of this version it is to be the evidence */
            out->evaluation_count += spec.evaluates;
            name_escalation(options, &question.document->scenario, &spec);
            job_key_make(&spec, options->fresh);
            TRY(add_audited(out, &question, options, &horizons, &spec, error));
        }
    }
    return STATUS_OK;
}

void submission_name(struct submission *out, const char *id)
{
    snprintf(out->suite_id, sizeof out->suite_id, "%s", id);
    for (uint32_t i = 0; i < out->job_count; i++) {
        memcpy(out->specs[i].suite_id, out->suite_id, sizeof out->suite_id);
    }
}

/* "<suite>-<8 hex digits of all keys>": the same work has the same id, however much of it is
 * audited. An evaluation is a suite of its own: what was driven for others may be the teacher's.
 */
static void name_suite(struct submission *out, const struct suite *suite)
{
    char id[LIMIT_ID_BYTES];
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    sha256_init(&hash);
    for (uint32_t i = 0; i < out->job_count; i++) {
        if (out->specs[i].audit_key[0] == '\0') {
            update_text(&hash, out->specs[i].key);
        }
    }
    if (out->evaluation_count > 0) {
        update_text(&hash, "evaluation");
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, hex);
    snprintf(id, sizeof id, "%.*s-%.8s", LIMIT_ID_BYTES - 16, suite->id, hex);
    submission_name(out, id);
}

static void set_round(struct submission *submission, const char first[LIMIT_ID_BYTES],
                      uint32_t round)
{
    char id[LIMIT_ID_BYTES];
    CHECK(round <= ROUNDS_MAX); /* four digits, so that nothing of the id's hash is cut off */
    if (round > 1) {
        snprintf(id, sizeof id, "%.*s-%u", LIMIT_ID_BYTES - 6, first, round);
    } else {
        memcpy(id, first, sizeof id);
    }
    submission_name(submission, id);
}

/* Jobs that ended without an answer (dead, cancelled) or whose traces are gone stay as they are in
 * their suite. So asking again makes a suite of its own, "<id>-2", ..: finished results are taken
 * over, the rest is run. Goes on from *round to the first one that is open or has every answer. */
static enum status pick_round(struct submission *submission, struct store *store,
                              const char first[LIMIT_ID_BYTES], uint32_t *round,
                              struct error *error)
{
    for (;; ++*round) {
        struct store_suite_status now;
        set_round(submission, first, *round);
        enum status status = store->ops->suite_status(store, submission->suite_id, &now, error);
        if (status == STATUS_NOT_FOUND) {
            return STATUS_OK;
        }
        if (status != STATUS_OK) {
            return status;
        }
        if (now.jobs[JOB_DEAD] - now.audits_dead + now.jobs[JOB_CANCELLED] == 0 ||
            store_jobs_open(&now) > 0 || *round >= ROUNDS_MAX) {
            return STATUS_OK;
        }
    }
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
    struct submission built = {0};
    struct planner_hashes *hashes = calloc(1, sizeof *hashes);
    /* Every job may have an audit job. */
    uint64_t room = options->audit != NULL ? 2 * count : count;
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
    name_suite(&built, suite);
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
    struct planner_hashes *hashes = calloc(1, sizeof *hashes);
    enum status status = STATUS_OK;
    char start[LIMIT_ID_BYTES];
    TRY(memory_check(hashes, error, "suite %s: out of memory", suite_id));
    submission_renewed_prefix(suite_id, specs, count, start);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        const struct planner_tried *tried = NULL;
        const struct submission_options untried = {.fresh = options->fresh};
        status = planner_hash(hashes, specs[i].rig[0] == '\0' ? options : &untried,
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
    for (uint32_t i = 0; i < submission->clipped_count; i++) {
        scenario_destroy(submission->clipped[i]);
    }
    free(submission->clipped);
    submission->specs = NULL;
    submission->documents = NULL;
    submission->clipped = NULL;
    submission->clipped_count = 0;
}

static enum status put_scenarios(const struct submission *submission, struct store *store,
                                 struct error *error)
{
    const struct scenario_document *last = NULL;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < submission->job_count; i++) {
        const struct scenario_document *document = submission->documents[i];
        if (document != last) {
            const char *body = document->canonical;
            size_t bytes = document->canonical_bytes;
            status = submission->tenant == NULL
                         ? store->ops->scenario_put(store, document->hash, body, bytes, error)
                         : store->ops->scenario_put_as(store, submission->tenant, document->hash,
                                                       body, bytes, error);
            last = document;
        }
    }
    return status;
}

/* A job and what audits it come together: the store's floor asks for both. */
static uint32_t batch_at(const struct submission *submission, uint32_t first)
{
    uint32_t left = submission->job_count - first;
    uint32_t count = left < SUBMIT_BATCH ? left : SUBMIT_BATCH;
    bool parts = count < left && submission->specs[first + count].audit_key[0] != '\0';
    return parts ? count - 1 : count;
}

/* A quota was reached within the suite: parts before stay, which the store's sentence does not
 * know. */
static enum status partly_taken(const struct submission *submission, uint32_t taken,
                                struct error *error)
{
    const struct error why = *error;
    return error_set(error, why.status,
                     "%.600s; %u of the suite's %u jobs are in %s, and submitting again goes on "
                     "from there",
                     why.text, taken, submission->job_count, submission->suite_id);
}

/* Submits all jobs under the suite's present id; *lost: some are done there, but their traces are
 * gone. */
static enum status submit_jobs(struct submission *submission, struct store *store, uint32_t weight,
                               bool *lost, struct error *error)
{
    struct store_submit_result *results = calloc(SUBMIT_BATCH, sizeof *results);
    TRY(memory_check(results, error, "submit: out of memory"));
    enum status status = STATUS_OK;
    *lost = false;
    submission->memoised_count = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; status == STATUS_OK && i < submission->job_count; i += count) {
        count = batch_at(submission, i);
        const struct job_spec *specs = submission->specs + i;
        status = submission->tenant == NULL
                     ? store->ops->submit(store, submission->suite_id, weight, specs, count,
                                          results, error)
                     : store->ops->submit_as(store, submission->tenant, submission->suite_id,
                                             weight, specs, count, results, error);
        if (status == STATUS_LIMIT && i > 0) {
            status = partly_taken(submission, i, error);
        }
        for (uint32_t k = 0; status == STATUS_OK && k < count; k++) {
            submission->memoised_count += results[k].memoised;
            *lost |= results[k].lost;
        }
    }
    free(results);
    return status;
}

enum status submission_send(struct submission *submission, struct store *store, uint32_t weight,
                            struct error *error)
{
    char first[LIMIT_ID_BYTES];
    memcpy(first, submission->suite_id, sizeof first);
    enum status status = put_scenarios(submission, store, error);
    bool lost = true;
    for (uint32_t round = 1; status == STATUS_OK && lost && round <= ROUNDS_MAX; round++) {
        struct store_suite_status now;
        status = pick_round(submission, store, first, &round, error);
        THEN(status, submit_jobs(submission, store, weight, &lost, error));
        if (status == STATUS_MISMATCH && round < ROUNDS_MAX) {
            status = STATUS_OK; /* another tenant's suite: each has one of its own */
            lost = true;
        } else if (status == STATUS_OK && lost) {
            status = store->ops->suite_status(store, submission->suite_id, &now, error);
            /* Work that still runs is finished first; the next submission repairs the rest. */
            lost = status == STATUS_OK && store_jobs_open(&now) == 0;
        }
    }
    return status;
}
