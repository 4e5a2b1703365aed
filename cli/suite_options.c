/*
 * From options and a file name to a checked submission.
 */
#include "cli/suite_options.h"

#include "base/check.h"
#include "base/text.h"
#include "cli/budget/market.h"
#include "report/draw/draw_rig.h"
#include "report/trust/table.h"
#include "worker/golden/golden_library.h"
#include "worker/models/precision.h"
#include "worker/planner/planner_spec.h"
#include "worker/planner/planner_trial.h"
#include "worker/versions/versions.h"
#include "worker/world/world_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DRIFT_AUDIT_RATE 0.5

static const enum tier learned_tiers[] = {TIER_STUDENT, TIER_TEACHER};

/* Whether everybody who may answer computes in bf16: jobs of both tiers get one backend. */
static bool computes_in_bf16(const struct submission_options *build)
{
    bool all = build->models != NULL || build->precision == NN_BF16;
    for (size_t i = 0; build->models != NULL && i < COUNT_OF(learned_tiers); i++) {
        all = all && models_precision(build->models, learned_tiers[i], build->precision) == NN_BF16;
    }
    return all;
}

/* Device of learned tiers; a worker that lacks it says so. */
static enum status choose_backend(const struct suite_options *options,
                                  const struct submission_options *build, struct device *device,
                                  struct error *error)
{
    bool learned = build->policy.student_available || build->policy.teacher_available;
    bool automatic = strcmp(options->device, "auto") == 0;
    return cli_device_choose(automatic && !learned ? "cpu" : options->device,
                             computes_in_bf16(build), options->precision, options->previous, device,
                             error);
}

static enum status parse_beyond(const char *name, enum route_beyond *out, struct error *error)
{
    size_t beyond = cli_name(name, route_beyond_names, ROUTE_BEYOND_COUNT);
    if (beyond == ROUTE_BEYOND_COUNT) {
        return error_set(error, STATUS_USAGE,
                         "--horizon: expected refuse, clip or route, found \"%s\"", name);
    }
    *out = (enum route_beyond)beyond;
    return STATUS_OK;
}

/* The user's own worlds among the models. */
static enum status lend_worlds(const struct suite_options *options, struct models *models,
                               struct error *error)
{
    const struct world_source_options how = {.confinement = options->confinement};
    const char *world = world_spec_is(options->world) ? options->world : NULL;
    if (golden_spec_is(options->world)) {
        struct store *store = NULL;
        TRY(cli_store_open(options->store_url, &store, error));
        TRY(golden_library_lend(options->world, store, true, models, error));
    }
    return world_source_lend(world, options->audit_world, &how, models, error);
}

/* A store that is there already has bounds of its versions, and may point to some; a directory that
 * is named decides for itself who answers. The store is to stay open as long as the models. */
static enum status ask_pointers(const struct suite_options *options, struct models *models,
                                struct store **store, struct error *error)
{
    if (cli_store_exists(cli_store_url(options->store_url), &(struct error){0}) != STATUS_OK) {
        return STATUS_OK;
    }
    TRY(cli_store_open(options->store_url, store, error));
    versions_fetch_from(*store, models, NULL); /* without a place for them bounds alone */
    if (options->version != NULL || options->models == NULL) {
        TRY(versions_point(*store, models, error));
    }
    return options->version != NULL ? versions_answer(*store, options->version, models, error)
                                    : STATUS_OK;
}

/* No submission audits less than that: where it audits nothing, it does now. */
static void raise_audit(struct audit_policy *audit, struct submission_options *build, double rate,
                        double safety_critical_rate)
{
    if (build->audit == NULL) {
        *audit = (struct audit_policy){0};
    }
    audit->rate = audit->rate > rate ? audit->rate : rate;
    audit->safety_critical_rate = audit->safety_critical_rate > safety_critical_rate
                                      ? audit->safety_critical_rate
                                      : safety_critical_rate;
    build->audit = audit;
}

/* Whether the user's world that answers as the student drives logs of the controls challenge. */
static enum status ask_controls(const struct suite_options *options, struct models *models,
                                struct submission_options *build, struct error *error)
{
    const struct models_model *world = NULL;
    if (!world_spec_is(options->world)) {
        return STATUS_OK;
    }
    TRY(models_promoted(models, TIER_STUDENT, build->precision, &world, error));
    build->policy.controls = world->foreign != NULL && foreign_drives_controls(world->foreign);
    return STATUS_OK;
}

/* --precision auto: the student's fastest that was proven, the teacher's bf16. A version of a store
 * has its own, and so has a world of the user's. */
static enum status choose_precision(const struct suite_options *options, struct models *models,
                                    struct error *error)
{
    const struct models_model *student = NULL;
    enum nn_precision pointed = NN_BF16;
    struct precision_choice choice;
    char text[512];
    if (strcmp(options->precision, PRECISION_AUTO) != 0 ||
        !models_available(models, TIER_STUDENT) || models_pointed(models, TIER_STUDENT, &pointed)) {
        return STATUS_OK;
    }
    TRY(models_promoted(models, TIER_STUDENT, NN_BF16, &student, error));
    if (student->foreign != NULL) {
        return STATUS_OK;
    }
    char name[LIMIT_ID_BYTES];
    memcpy(name, student->name, sizeof name);
    TRY(precision_choose(models, name, &choice, error));
    models_set_precision(models, TIER_STUDENT, choice.precision);
    precision_describe(&choice, name, text, sizeof text);
    text_print(stderr, "swerve: %s\n", text);
    return STATUS_OK;
}

/* A world of the user's is answered for by nobody, unless it is said by whom: else a rate would be
 * that of a model that nobody asked about. */
static bool is_alone(const struct suite_options *options)
{
    return world_spec_is(options->world) && options->audit_world == NULL;
}

static enum status read_skip_steps(const char *text, uint32_t *out, struct error *error)
{
    int64_t steps = SUBMISSION_SKIP_ALL;
    bool all = strcmp(text, "all") == 0;
    if (!all && (!cli_number(text, &steps) || steps > LIMIT_SAMPLER_STEPS)) {
        return error_set(error, STATUS_USAGE,
                         "--skip-steps: expected a whole number from 0 to %d, or all, found \"%s\"",
                         LIMIT_SAMPLER_STEPS, text);
    }
    *out = (uint32_t)steps;
    return STATUS_OK;
}

/* Reads what concerns learned tiers; worlds that need no model do not look for any. */
static enum status prepare_models(const struct suite_options *options,
                                  struct submission_options *build, struct audit_policy *audit,
                                  struct models **models, struct store **store, struct error *error)
{
    enum status status = models_parse_conditioning(options->layout, &build->conditioning, error);
    build->precision = NN_BF16;
    THEN(status, read_skip_steps(options->skip_steps, &build->skipped_steps, error));
    build->previous = options->previous;
    if (strcmp(options->precision, PRECISION_AUTO) != 0) {
        THEN(status, models_parse_precision(options->precision, &build->precision, error));
    }
    THEN(status, parse_beyond(options->horizon, &build->beyond, error));
    if (status == STATUS_OK && is_alone(options) && options->audit != NULL &&
        strcmp(options->audit, "off") != 0) {
        return error_set(error, STATUS_USAGE,
                         "--audit: expected --audit-world with it, since --world is one of yours: "
                         "who repeats its jobs, a world of yours or \"teacher\", ours; found none");
    }
    *audit = audit_policy_default();
    build->audit = audit;
    if (options->audit != NULL && strcmp(options->audit, "off") == 0) {
        build->audit = NULL;
    } else if (status == STATUS_OK && options->audit != NULL) {
        status = audit_policy_load(options->audit, audit, error);
    }
    if (status == STATUS_OK && options->evaluation) {
        raise_audit(audit, build, 1.0, 1.0);
    }
    if (status != STATUS_OK || build->policy.choice == WORLD_OBJECT ||
        build->policy.choice == WORLD_REPLAY) {
        return status;
    }
    status = models_open(options->models, NULL, models, error);
    THEN(status, ask_pointers(options, *models, store, error));
    THEN(status, lend_worlds(options, *models, error));
    THEN(status, choose_precision(options, *models, error));
    THEN(status, ask_controls(options, *models, build, error));
    if (status == STATUS_OK) {
        build->models = *models;
        build->policy.student_available = models_available(*models, TIER_STUDENT);
        build->policy.teacher_available = models_available(*models, TIER_TEACHER) &&
                                          !build->policy.controls && !is_alone(options);
    }
    if (status == STATUS_OK && build->policy.choice == WORLD_STUDENT &&
        !build->policy.student_available) {
        return models_missing(options->models, TIER_STUDENT, error);
    }
    if (status == STATUS_OK && build->policy.choice == WORLD_TEACHER &&
        !build->policy.teacher_available) {
        return models_missing(options->models, TIER_TEACHER, error);
    }
    return status;
}

/* An answer of another kind than the one asked for is given only to who agreed to it beforehand. */
static enum status check_degraded(const struct suite_options *options,
                                  const struct submission_options *build,
                                  const struct submission *submission, struct error *error)
{
    uint32_t count = submission->degraded_count;
    if (count == 0 || build->policy.choice != WORLD_AUTO || options->allow_degraded) {
        return STATUS_OK;
    }
    models_missing(options->models, TIER_STUDENT, error);
    return error_prefix(
        error,
        "%u scenario%s about perception, which a world model answers (or the object "
        "world, with --allow-degraded)",
        count, count == 1 ? " asks" : "s ask");
}

/* Goldens answer what they were recorded of, and nothing else. */
static enum status check_golden_page(const struct golden_list *list,
                                     const struct submission *submission, struct error *error)
{
    for (uint32_t i = 0; i < submission->page_count; i++) {
        const struct job_spec *spec = &submission->specs[i];
        const struct golden_entry *entry = golden_list_find(list, spec->scenario_id, spec->seed);
        if (spec->tier == TIER_GOLDEN && entry == NULL) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: golden \"%s\" has no recording of it with seed %llu; it "
                             "was left out, or was not in suite %s",
                             spec->scenario_id, list->name, (unsigned long long)spec->seed,
                             list->suite);
        }
        if (spec->tier == TIER_GOLDEN && strcmp(entry->scenario_hash, spec->scenario_hash) != 0) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: is another than golden \"%s\" recorded (expected %.12s, "
                             "found %.12s); make the set anew, or clip it alike (--horizon)",
                             spec->scenario_id, list->name, entry->scenario_hash,
                             spec->scenario_hash);
        }
    }
    return STATUS_OK;
}

static enum status check_goldens(struct models *models, struct submission *submission,
                                 struct error *error)
{
    const struct golden_library *library = golden_library_lent(models);
    bool more = library != NULL && submission_first(submission);
    for (; more; more = submission_next(submission)) {
        TRY(check_golden_page(golden_library_list(library), submission, error));
    }
    return STATUS_OK;
}

static enum status check_numbers(const struct suite_options *options, struct error *error)
{
    const struct cli_bounds bounds[] = {
        {"--seeds", options->seeds == SEEDS_NOT_GIVEN ? 1 : options->seeds, 1, LIMIT_SEEDS},
        {"--attempts", options->attempts, 1, 100},
        {"--weight", options->weight, 1, 100},
        {"--planner-start-ms", options->start_ms == 0 ? 1 : options->start_ms, 1, 86400000},
    };
    return cli_bounds_check(bounds, COUNT_OF(bounds), error);
}

/* The planner with what stands between it and the car. */
static enum status choose_guardian(const struct suite_options *options, char out[LIMIT_SPEC_BYTES],
                                   struct error *error)
{
    bool act = strcmp(options->guardian, "act") == 0;
    if (!act && strcmp(options->guardian, "monitor") != 0) {
        return error_set(error, STATUS_USAGE, "--guardian: expected monitor or act, found \"%s\"",
                         options->guardian);
    }
    int bytes = snprintf(out, LIMIT_SPEC_BYTES, "%s%s", act ? "guarded+" : "", options->planner);
    if (bytes >= LIMIT_SPEC_BYTES) {
        return error_set(error, STATUS_LIMIT, "--planner: expected at most %d bytes",
                         LIMIT_SPEC_BYTES - 1);
    }
    return STATUS_OK;
}

/* Files of an exec planner and the version of a service are part of its identity, known once it has
 * started; so is its rig of the question. */
static enum status try_apart(void *context, const char *planner, const struct rig *rig,
                             bool on_device, struct planner_trial *told, struct error *error)
{
    const struct suite_options *options = context;
    const struct planner_confinement patient = {.start_ms = options->start_ms};
    enum status status =
        planner_try(planner, options->start_ms > 0 ? &patient : options->confinement, rig,
                    on_device, PLANNER_TRY_MS + options->start_ms, told, error);
    bool served = status == STATUS_NOT_FOUND && options->confinement == NULL;
    if (status == STATUS_OK && told->choice.count > 0) {
        text_print(stderr, "swerve: %.600s sees %u sensors of the rig %s: %.1f MB a drive\n",
                   planner, told->choice.count, told->rig_id, (double)told->session_bytes / 1e6);
    }
    if (!served && (status != STATUS_PLANNER || !options->untried)) {
        return status;
    }
    text_print(stderr,
               "swerve: %s; submitted for workers elsewhere, under an identity without %s\n",
               error->text, served ? "who serves it" : "what it imports");
    return STATUS_OK;
}

/* A number that no other submission has. */
static uint64_t fresh_number(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t time = (uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec;
    return (time ^ (uint64_t)getpid() << 44) | 1;
}

/* State of the student that would answer, by policy and store. */
struct advice {
    struct trust_slice *frozen; /* to be freed */
    uint32_t frozen_count;
    bool drifted;
    double floor;
    double floor_safety_critical;
    int64_t freeze; /* the newest that holds; 0: none does */
};

static void raise_floor(struct advice *advice, double rate, double safety_critical_rate)
{
    advice->floor = fmax(advice->floor, rate);
    advice->floor_safety_critical = fmax(advice->floor_safety_critical, safety_critical_rate);
}

/* Freezes and floor of the store bind whoever submits, policy or not; it enforces them again. */
static enum status ask_decisions(struct store *store, const struct drives_student *student,
                                 struct advice *out, struct error *error)
{
    struct decisions decisions;
    TRY(decisions_read(store, &decisions, error));
    const struct trust_event *floor = decisions_floor(&decisions);
    if (floor != NULL) {
        raise_floor(out, floor->audit_rate, floor->audit_rate_safety_critical);
    }
    size_t room = (size_t)out->frozen_count + decisions.count + 1;
    struct trust_slice *slices = realloc(out->frozen, room * sizeof *slices);
    enum status status = memory_check(slices, error, "trust: out of memory");
    if (status == STATUS_OK) {
        out->frozen = slices;
        for (uint32_t i = 0; i < decisions.count; i++) {
            if (decisions_holds(&decisions.events[i], student)) {
                slices[out->frozen_count++] = decisions.events[i].slice;
                out->freeze = decisions.events[i].id;
            }
        }
    }
    decisions_finish(&decisions);
    return status;
}

static enum status find_student(const struct submission_options *build, struct drives_student *out,
                                struct error *error)
{
    const struct models_model *student = NULL;
    char sampler[LIMIT_ID_BYTES];
    TRY(models_promoted(build->models, TIER_STUDENT, build->precision, &student, error));
    models_sampler(build->models, student, CONDITIONING_AGENTS, sampler);
    snprintf(out->hash, sizeof out->hash, "%s", student->hash);
    snprintf(out->sampler, sizeof out->sampler, "%s", drives_sampler(sampler));
    return STATUS_OK;
}

/* A store of this machine's, or a database: what its policy freezes is written down. A server
 * decides for itself. */
static bool is_embedded(const char *url)
{
    return strncmp(url, "http://", strlen("http://")) != 0 &&
           strncmp(url, "https://", strlen("https://")) != 0;
}

/* Verdict of the policy on the store's audits. */
static enum status ask_policy(const struct suite_options *options, struct store *store,
                              const struct drives_student *student,
                              const struct trust_policy *policy, struct advice *out,
                              struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    uint32_t recorded = 0;
    struct pairs pairs = {0};
    struct table table = {0};
    enum status status = pairs_read(store, &pairs, error);
    THEN(status, table_make(&pairs, policy, &table, error));
    THEN(status, table_frozen_slices(&table, student, &out->frozen, &out->frozen_count, error));
    out->drifted = status == STATUS_OK && table_drifted(&table, student);
    if (status == STATUS_OK && is_embedded(cli_store_url(options->store_url))) {
        status = decisions_policy_hash(options->trust, hash, error);
        THEN(status, decisions_record(store, &table, hash, "swerve --trust", &recorded, error));
    }
    table_finish(&table);
    pairs_finish(&pairs);
    return status;
}

/* A store that is not there yet has neither audits nor drives. */
static enum status ask_store(const struct suite_options *options,
                             const struct submission_options *build, struct store *store,
                             struct advice *out, struct error *error)
{
    struct drives_student student;
    struct trust_policy *policy = malloc(sizeof *policy);
    enum status status = memory_check(policy, error, "--trust: out of memory");
    if (status == STATUS_OK && options->trust != NULL) {
        status = trust_policy_load(options->trust, policy, error);
    }
    if (status == STATUS_OK && options->trust != NULL) {
        raise_floor(out, policy->audit_floor, policy->audit_floor_safety_critical);
    }
    bool asked = status == STATUS_OK && build->policy.student_available && options->makes == NULL;
    if (asked && store != NULL) {
        status = find_student(build, &student, error);
        if (status == STATUS_OK && options->trust != NULL) {
            status = ask_policy(options, store, &student, policy, out, error);
        }
        THEN(status, ask_decisions(store, &student, out, error));
    }
    free(policy);
    if (status != STATUS_OK) {
        free(out->frozen);
        out->frozen = NULL;
    }
    return status;
}

/* Verdict of the store, and of the policy on its audits, on this submission. */
static enum status follow_store(const struct suite_options *options,
                                struct submission_options *build, struct audit_policy *audit,
                                struct store *store, struct trust_slice **frozen,
                                struct error *error)
{
    struct advice advice = {0};
    TRY(ask_store(options, build, store, &advice, error));
    *frozen = advice.frozen;
    build->frozen = advice.frozen;
    build->frozen_count = advice.frozen_count;
    if (options->evaluation && build->fresh == 0) { /* what is older is no evidence */
        build->fresh = (uint64_t)advice.freeze;
    }
    if (advice.floor > 0.0 || advice.floor_safety_critical > 0.0) {
        raise_audit(audit, build, advice.floor, advice.floor_safety_critical);
    }
    if (advice.drifted) {
        raise_audit(audit, build, DRIFT_AUDIT_RATE, DRIFT_AUDIT_RATE);
        text_print(stderr, "swerve: input drift: the student is asked what its evaluation did not "
                           "see (swerve agreement says what); half of its jobs are audited, and "
                           "re-validation is due\n");
    }
    return STATUS_OK;
}

/* Evidence of a student is what it drove, and what the teacher said of each. */
static enum status check_evaluation(const struct suite_options *options,
                                    struct submission *submission, struct error *error)
{
    uint32_t jobs = submission->evaluation_count;
    if (!options->evaluation || (jobs > 0 && jobs == submission->audit_count)) {
        return STATUS_OK;
    }
    if (jobs == 0) {
        error_set(error, STATUS_USAGE,
                  "--evaluation: expected jobs of a student, whom it is to evaluate: --world "
                  "student, or a world of yours with --audit-world; found --world %.200s, with "
                  "which no job is a student's",
                  options->world);
        submission_finish(submission);
        return error->status;
    }
    error_set(
        error, STATUS_USAGE,
        "--evaluation: expected jobs of a student, each with a teacher that is trusted for as "
        "long as its scenario lasts; found %u of a student, %u of them audited",
        jobs, submission->audit_count);
    submission_finish(submission);
    return error->status;
}

/* Says which of the models that answer were not calibrated, or promoted without an evaluation: of a
 * directory nobody asks for one. */
static void name_untried(struct models *models, const struct submission_options *build,
                         const struct submission *submission)
{
    for (enum tier tier = TIER_STUDENT; models != NULL && tier <= TIER_TEACHER; tier++) {
        const struct registry_entry *entry = registry_promoted(models_registry(models), tier);
        const struct models_model *model = NULL;
        enum nn_precision precision = build->precision;
        struct error ignored;
        uint32_t i = 0;
        while (i < submission->kind_count && submission->kinds[i].tier != tier) {
            i++;
        }
        if (i == submission->kind_count ||
            models_promoted(models, tier, build->precision, &model, &ignored) != STATUS_OK ||
            model->foreign != NULL) {
            continue;
        }
        bool moved =
            entry != NULL && entry->promoted_s > 0 && !models_pointed(models, tier, &precision);
        if (moved || !model->bounds.calibrated) {
            text_print(stderr, "swerve: %s %s (%.12s): %s%s%s\n", tier_names[tier], model->name,
                       model->hash,
                       model->bounds.calibrated ? "" : "not calibrated, built-in health bounds",
                       moved && !model->bounds.calibrated ? "; " : "",
                       moved ? "promoted in its directory, without an evaluation" : "");
        }
        if (model->overruled) {
            text_print(
                stderr,
                "swerve: %s %s (%.12s): the store's health bounds judge it, not those in %s\n",
                tier_names[tier], model->name, model->hash, models_registry(models)->directory);
        }
    }
}

/* Seeds of the command line would replace those that failed. */
static enum status load_chosen(const struct suite_options *options, const char *path,
                               struct suite **loaded, struct error *error)
{
    char found[LIMIT_PATH_BYTES];
    if (!choice_is_made(&options->choice)) {
        return cli_suite_load(path, loaded, error);
    }
    if (options->choice.failed_in != NULL &&
        (options->seeds != SEEDS_NOT_GIVEN || options->nominal)) {
        return error_set(error, STATUS_USAGE,
                         "--failed-in drives the seeds that failed: expected neither --seeds nor "
                         "--nominal beside it");
    }
    return choice_load(&options->choice, cli_suite_path(path, found),
                       cli_store_url(options->store_url), loaded, error);
}

/* The rig of the command line, in every scenario. */
static enum status set_rig(struct suite *suite, const char *path, struct error *error)
{
    struct rig *rig = malloc(sizeof *rig);
    json_t *json = NULL;
    TRY(memory_check(rig, error, "%s: out of memory", path));
    enum status status = rig_read(path, rig, NULL, error);
    THEN(status, draw_rig_check(path, rig, NULL, error));
    if (status == STATUS_OK) {
        json = rig_encode(rig);
        status = memory_check(json, error, "%s: out of memory", path);
    }
    THEN(status, suite_set_rig(suite, json, error));
    json_decref(json);
    free(rig);
    return status;
}

static enum status read_class(const char *name, enum suite_class *out, struct error *error)
{
    size_t found = name == NULL ? 0 : cli_name(name, suite_class_names, SUITE_CLASS_COUNT);
    *out = (enum suite_class)found;
    return name == NULL || (found > SUITE_CLASS_SAME && found < SUITE_CLASS_COUNT)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--class: expected interactive, regression or mining, found \"%.64s\"",
                           name);
}

/* Scenarios that two tiers could answer alike go to whom the store's measures name. Nobody asks for
 * them where a world is named, for evidence of the student's, or in rounds of a search. */
static enum status build_by_market(const struct suite_options *options, const struct suite *suite,
                                   struct store *store, struct submission_options *build,
                                   struct submission *submission, struct error *error)
{
    build->policy.market.urgent = build->of_class == SUITE_INTERACTIVE;
    if (build->policy.choice != WORLD_AUTO || !build->policy.student_available ||
        !build->policy.teacher_available || options->evaluation || options->makes != NULL) {
        store = NULL;
    }
    if (store != NULL) {
        market_read(store, &build->policy.market, &(struct error){0}); /* or not measured */
    }
    return market_build(suite, build, store, submission, error);
}

/* The jobs of `suite`, or where that is NULL of the one at `path`, which is then in *loaded. */
static enum status build_jobs(const struct suite_options *options, const struct suite *suite,
                              const char *path, struct suite **loaded,
                              struct submission *submission, struct error *error)
{
    char planner[LIMIT_SPEC_BYTES];
    struct submission_options build = {
        .planner = planner,
        .seed_count = options->seeds == SEEDS_NOT_GIVEN ? 0 : (uint32_t)options->seeds,
        .nominal = options->nominal,
        .attempts_max = (uint32_t)options->attempts,
        .trial = try_apart,
        .trial_context = (void *)(uintptr_t)options,
        .fresh = options->fresh ? fresh_number() : 0,
        .evaluation = options->evaluation,
        .makes = options->makes,
    };
    struct device device;
    enum status status = check_numbers(options, error);
    THEN(status, read_class(options->of_class, &build.of_class, error));
    THEN(status, choose_guardian(options, planner, error));
    THEN(status, cli_world_choice(options->world, &build.policy.choice, error));
    struct store *store = NULL;
    struct models *models = NULL;
    struct audit_policy audit;
    struct trust_slice *frozen = NULL;
    THEN(status, prepare_models(options, &build, &audit, &models, &store, error));
    THEN(status, follow_store(options, &build, &audit, store, &frozen, error));
    if (status == STATUS_OK) {
        status = choose_backend(options, &build, &device, error);
        build.backend = device.backend;
    }
    if (status == STATUS_OK && suite == NULL) {
        status = load_chosen(options, path, loaded, error);
        suite = *loaded;
    }
    if (status == STATUS_OK && loaded != NULL && options->rig != NULL) {
        status = set_rig(*loaded, options->rig, error);
    }
    THEN(status, loaded != NULL ? build_by_market(options, suite, store, &build, submission, error)
                                : submission_build(suite, &build, submission, error));
    THEN(status, check_evaluation(options, submission, error));
    if (status == STATUS_OK && (check_degraded(options, &build, submission, error) != STATUS_OK ||
                                check_goldens(models, submission, error) != STATUS_OK)) {
        status = error->status;
        submission_finish(submission);
    }
    if (status == STATUS_OK && loaded != NULL) { /* once, where a search builds often */
        name_untried(models, &build, submission);
    }
    models_close(models); /* jobs name them by hash */
    cli_store_close(store);
    free(frozen);
    return status;
}

enum status suite_options_build(const struct suite_options *options, const char *path,
                                struct suite **suite, struct submission *submission,
                                struct error *error)
{
    struct suite *loaded = NULL;
    enum status status = build_jobs(options, NULL, path, &loaded, submission, error);
    if (status != STATUS_OK) {
        suite_destroy(loaded);
        return status;
    }
    *suite = loaded;
    return STATUS_OK;
}

enum status suite_options_build_of(const struct suite_options *options, const struct suite *suite,
                                   struct submission *submission, struct error *error)
{
    if (strcmp(options->precision, PRECISION_AUTO) == 0) {
        return error_set(error, STATUS_USAGE,
                         "--precision: expected fp32, bf16 or int8, found auto: the fastest may be "
                         "another one in the next round, whose jobs would answer another question");
    }
    return build_jobs(options, suite, NULL, NULL, submission, error);
}

enum status suite_options_renew(const struct suite_options *options, const char *suite_id,
                                struct job_spec *specs, uint32_t count, struct error *error)
{
    const struct submission_options build = {
        .trial = try_apart,
        .trial_context = (void *)(uintptr_t)options,
        .fresh = fresh_number(),
    };
    TRY(check_numbers(options, error));
    return submission_renew(&build, suite_id, specs, count, error);
}
