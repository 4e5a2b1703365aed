/*
 * The conformance suite's third part: versions of models, their pointers and the jobs that follow
 * them. See conformance.h.
 *
 * Method: the gate and what is immutable by examples; pointers by random calls against a model of
 * who answers. Its property: whatever fails, is handed back, comes late or is moved, a lease of a
 * job that follows names the version that its tier points to at the claim, one of a job that does
 * not names what was submitted, and every job ends once. Shadows are among these calls too: their
 * jobs come alone, name the shadow that there is, and no suite counts them.
 */
#include "base/check.h"
#include "base/rng.h"
#include "store/api/trust.h"
#include "tests/claim_ids.h"
#include "tests/store/conformance/conformance_kit.h"

#include <stdlib.h>

enum { VERSIONS = 3, MOVES_STEPS = 400, MOVES_SEEDS = 4, MOVES_FIRST = 2 /* all have shadows */ };

static struct model_version versions[VERSIONS];
static struct model_version listed[16];
static struct model_event events[64];

/* Version `index`, of weights that are in the store. */
static struct model_version *make_version(uint32_t index)
{
    struct model_version *version = &versions[index];
    char weights[32];

    memset(version, 0, sizeof *version);
    snprintf(version->name, sizeof version->name, "student-%" PRIu32, index);
    snprintf(weights, sizeof weights, "weights %" PRIu32, index);
    EXPECT_OK(store->ops->artifact_put(store, weights, strlen(weights), version->hash, &error),
              error);
    version->tier = TIER_STUDENT;
    strcpy(version->precision, "bf16");
    snprintf(version->sampler, sizeof version->sampler, "euler%" PRIu32 "/bf16", index + 1);
    version->agents_ticks = 300;
    version->map_ticks = 10;
    strcpy(version->parents, "nobody");
    strcpy(version->data_note, "clips");
    return version;
}

static void add_versions(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_OK(store->ops->model_add(store, make_version(i), &error), error);
    }
}

static enum status move(uint32_t index, enum model_state to, int64_t percent, bool forced,
                        struct model_event *done)
{
    struct model_event event = {
        .kind = MODEL_MOVED, .to_state = to, .canary_percent = percent, .forced = forced};

    strcpy(event.model, versions[index].name);
    strcpy(event.actor, "somebody");
    strcpy(event.evidence, "for a test");
    return store->ops->model_event(store, &event, done, &error);
}

static enum status evaluate(uint32_t index, bool passed, int64_t expires_s)
{
    struct model_event done;
    struct model_event event = {.kind = MODEL_EVALUATED, .passed = passed, .expires_s = expires_s};

    strcpy(event.model, versions[index].name);
    strcpy(event.against, "student-0");
    return store->ops->model_event(store, &event, &done, &error);
}

static int64_t now_s(void)
{
    return manual.clock.wall_ns(&manual) / NS_PER_S;
}

/* ---- versions ---- */

static void versions_do_not_change(void)
{
    uint32_t count = 0;

    open_store(true);
    struct model_version *first = make_version(0);
    struct model_version other = *first;
    memset(other.hash, 'a', sizeof other.hash - 1);
    EXPECT_INT(store->ops->model_add(store, &other, &error), STATUS_CONFLICT); /* no such file */
    EXPECT_OK(store->ops->model_add(store, first, &error), error);
    EXPECT_OK(store->ops->model_add(store, first, &error), error);
    other = *first;
    strcpy(other.data_note, "other clips");
    EXPECT_INT(store->ops->model_add(store, &other, &error), STATUS_CONFLICT);
    other = *first;
    strcpy(other.name, "twin");
    EXPECT_INT(store->ops->model_add(store, &other, &error), STATUS_CONFLICT);
    strcpy(other.precision, "int8");
    EXPECT_INT(store->ops->model_add(store, &other, &error), STATUS_CONFLICT); /* its sampler */
    strcpy(other.sampler, "euler1/int8");
    EXPECT_OK(store->ops->model_add(store, &other, &error), error);
    strcpy(other.name, "../twin");
    EXPECT_INT(store->ops->model_add(store, &other, &error), STATUS_BAD_INPUT);
    close_store();
    open_store(false);
    EXPECT_OK(store->ops->models(store, "", listed, 16, &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_TEXT(listed[0].name, "student-0");
    EXPECT_TEXT(listed[0].data_note, "clips");
    EXPECT_INT(listed[0].agents_ticks, 300);
    EXPECT_INT(listed[0].state, MODEL_CANDIDATE);
    EXPECT_INT(listed[0].added_s, now_s());
    EXPECT_OK(store->ops->models(store, "student-0", listed, 16, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(listed[0].name, "twin");
    EXPECT_OK(store->ops->model_events(store, 0, events, 64, &count, &error), error);
    EXPECT_INT(count, 2); /* repeating is no event */
    close_store();
}

static void nobody_answers_without_an_evaluation(void)
{
    struct model_event done;
    uint32_t count = 0;

    open_store(true);
    add_versions(2);
    EXPECT_INT(move(0, MODEL_PROMOTED, 0, false, &done), STATUS_MISMATCH);
    EXPECT(strstr(error.text, "never evaluated") != NULL);
    EXPECT_OK(evaluate(0, false, 0), error);
    EXPECT_INT(move(0, MODEL_PROMOTED, 0, false, &done), STATUS_MISMATCH);
    struct model_event unsaid = {
        .kind = MODEL_MOVED, .to_state = MODEL_PROMOTED, .forced = true, .actor = "somebody"};
    strcpy(unsaid.model, versions[0].name);
    EXPECT_INT(store->ops->model_event(store, &unsaid, &done, &error), STATUS_BAD_INPUT);
    EXPECT(strstr(error.text, "expected a reason") != NULL);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT(done.forced);
    EXPECT_OK(evaluate(1, true, now_s() + 60), error);
    EXPECT_OK(move(1, MODEL_CANARY, 5, false, &done), error);
    advance_ms(61000);
    EXPECT_INT(move(1, MODEL_CANARY, 25, false, &done), STATUS_MISMATCH); /* expired */
    EXPECT_OK(move(1, MODEL_SHADOW, 0, false, &done), error);
    EXPECT_INT(move(1, MODEL_PROMOTED, 0, false, &done), STATUS_MISMATCH);
    EXPECT_OK(evaluate(1, true, 0), error);
    EXPECT_OK(evaluate(1, false, 0), error); /* the last one decides */
    EXPECT_INT(move(1, MODEL_PROMOTED, 0, false, &done), STATUS_MISMATCH);
    EXPECT_OK(evaluate(1, true, 0), error);
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, false, &done), error);
    EXPECT_INT(done.from_state, MODEL_SHADOW);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, false, &done), error); /* back: it answered before */
    EXPECT_INT(move(0, MODEL_RETIRED, 0, true, &done), STATUS_CONFLICT);
    EXPECT_OK(store->ops->model_events(store, 0, events, 64, &count, &error), error);
    EXPECT_TEXT(events[count - 1].model, "student-0");
    EXPECT_INT(events[count - 1].to_state, MODEL_PROMOTED);
    EXPECT(events[count - 1].actor[0] != '\0'); /* a server says the token's name */
    EXPECT_TEXT(events[count - 2].model, "student-1");
    EXPECT_INT(events[count - 2].to_state, MODEL_RETIRED);
    EXPECT_TEXT(events[count - 2].against, "student-0");
    uint32_t before = count;
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, false, &done), error); /* repeated */
    EXPECT_INT(done.id, events[count - 1].id);
    EXPECT_OK(store->ops->model_events(store, 0, events, 64, &count, &error), error);
    EXPECT_INT(count, before);
    close_store();
}

/* ---- followers ---- */

/* Jobs of the student as a submission makes them, every third pinned to what it names, every
 * fourth audited. Returns how many specs there are. */
static uint32_t make_followers(const char *suite, uint32_t named, uint32_t first, uint32_t count)
{
    static struct job_spec plain;
    uint32_t made = 0;

    make_specs(suite, "-", 1);
    plain = specs[0];
    for (uint32_t i = 0; i < count; i++) {
        struct job_spec *spec = &specs[made++];
        *spec = plain;
        spec->tier = TIER_STUDENT;
        spec->seed = first + i;
        spec->follows = (first + i) % 3 != 0;
        strcpy(spec->model_hash, versions[named].hash);
        snprintf(spec->sampler, sizeof spec->sampler, "agents/%.48s", versions[named].sampler);
        job_key_make(spec, 0);
        spec->audit_key[0] = '\0';
        if (i % 4 == 0) {
            struct job_spec *audit = &specs[made++];
            *audit = *spec;
            audit->tier = TIER_TEACHER;
            strcpy(audit->pool, "teacher");
            memcpy(audit->audit_key, spec->key, sizeof audit->audit_key);
            strcpy(audit->model_hash, "t");
            strcpy(audit->sampler, "agents/euler9/bf16");
            job_key_make(audit, 0);
            char key[SHA256_HEX_BYTES];
            job_key_audit(audit->key, key);
            memcpy(audit->key, key, sizeof key);
        }
    }
    return made;
}

/* Jobs that were submitted, as their submitter knows them. */
enum { KEPT = 128 };
static struct {
    struct job_spec spec;
    int64_t job_id;
} kept[KEPT];

struct followers_model {
    uint64_t random;
    uint32_t kept;
    int promoted; /* version; -1: none */
    int canary;
    int shadow;
    uint32_t shadows; /* jobs of shadows that ended */
    bool still;       /* pointers stay */
    uint32_t jobs;
    uint32_t done;
    uint32_t suites;
};

static uint32_t draw(struct followers_model *model, uint32_t below)
{
    model->random = rng_mix(model->random + 1);
    return (uint32_t)(model->random >> 33) % below;
}

static void move_at_random(struct followers_model *model)
{
    struct model_event done;
    int index = (int)draw(model, VERSIONS);
    uint32_t to = draw(model, 5);

    if (to == 0 && index != model->promoted) {
        EXPECT_OK(move((uint32_t)index, MODEL_PROMOTED, 0, true, &done), error);
        model->canary = index == model->canary ? -1 : model->canary;
        model->shadow = index == model->shadow ? -1 : model->shadow;
        model->promoted = index;
    } else if (to == 1 && model->canary < 0 && index != model->promoted && model->promoted >= 0) {
        versions[index].canary_percent = 1 + draw(model, 100);
        enum status status = move((uint32_t)index, MODEL_CANDIDATE, 0, true, &done);
        EXPECT(status == STATUS_OK || status == STATUS_CONFLICT);
        EXPECT_OK(move((uint32_t)index, MODEL_CANARY, versions[index].canary_percent, true, &done),
                  error);
        model->canary = index;
        model->shadow = index == model->shadow ? -1 : model->shadow;
    } else if (to == 2 && model->canary >= 0) {
        EXPECT_OK(move((uint32_t)model->canary, MODEL_SHADOW, 0, false, &done), error);
        model->canary = -1;
    } else if (to == 3 && model->shadow >= 0) {
        EXPECT_OK(move((uint32_t)model->shadow, MODEL_CANDIDATE, 0, false, &done), error);
        model->shadow = -1;
    } else if (to >= 3 && index != model->promoted && index != model->canary &&
               model->promoted >= 0 && (model->shadow < 0 || model->shadow == index)) {
        enum status status = move((uint32_t)index, MODEL_CANDIDATE, 0, true, &done);
        EXPECT(status == STATUS_OK || status == STATUS_CONFLICT);
        EXPECT_OK(move((uint32_t)index, MODEL_SHADOW, 1 + draw(model, 30), true, &done), error);
        model->shadow = index;
    }
}

static void submit_at_random(struct followers_model *model)
{
    char suite[LIMIT_ID_BYTES];
    uint32_t named = draw(model, VERSIONS); /* what a client held for promoted may be stale */
    uint32_t count = 1 + draw(model, 8);

    snprintf(suite, sizeof suite, "suite-%" PRIu32, model->suites++ % 4);
    uint32_t made = make_followers(suite, named, model->jobs, count);
    submit_made(suite, 1, made);
    for (uint32_t i = 0; i < made; i++) {
        EXPECT(!submitted[i].existed && !submitted[i].memoised);
        kept[model->kept % KEPT].spec = specs[i];
        kept[model->kept++ % KEPT].job_id = submitted[i].job_id;
    }
    model->jobs += made;
}

/* The same question in the same suite is the same job, wherever its pointer has been since. */
static void submit_again(struct followers_model *model)
{
    uint32_t known = model->kept < KEPT ? model->kept : KEPT;
    if (known == 0) {
        return;
    }
    uint32_t index = draw(model, known);
    specs[0] = kept[index].spec;
    submit_made(kept[index].spec.suite_id, 1, 1);
    EXPECT(submitted[0].existed);
    EXPECT_INT(submitted[0].job_id, kept[index].job_id);
}

static bool of_shadow(const struct job_spec *spec)
{
    return spec->tier == TIER_STUDENT && spec->audit_key[0] != '\0';
}

static void expect_version(const struct followers_model *model, const struct job_spec *spec)
{
    const struct model_version *assigned =
        model_assigned(spec, model->promoted >= 0 ? &versions[model->promoted] : NULL,
                       model->canary >= 0 ? &versions[model->canary] : NULL);

    if (spec->tier == TIER_STUDENT && spec->follows && assigned != NULL) {
        char sampler[2 * LIMIT_ID_BYTES];
        struct job_spec asked = *spec;
        snprintf(sampler, sizeof sampler, "agents/%s", assigned->sampler);
        EXPECT_TEXT(spec->model_hash, assigned->hash);
        EXPECT_TEXT(spec->sampler, sampler);
        job_key_make(&asked, 0);
        EXPECT_TEXT(spec->key, asked.key);
    }
    if (spec->tier == TIER_TEACHER) {
        EXPECT_TEXT(spec->model_hash, "t");
    }
    if (of_shadow(spec)) {
        EXPECT(model->shadow >= 0);
        EXPECT_TEXT(spec->model_hash, versions[model->shadow].hash);
        EXPECT(!spec->follows);
    }
}

static uint32_t work_at_random(struct followers_model *model)
{
    static const enum completion_kind kinds[] = {COMPLETION_DONE, COMPLETION_DONE, COMPLETION_DONE,
                                                 COMPLETION_RELEASED, COMPLETION_FAILED};
    const char *worker;
    uint32_t count = claim_any(&worker, 1 + draw(model, 6));

    for (uint32_t i = 0; i < count; i++) {
        expect_version(model, &leases[i].spec);
        EXPECT_INT(of_shadow(&leases[i].spec), of_shadow(&leases[0].spec)); /* alone, or not yet */
    }
    for (uint32_t i = 0; i < count; i++) {
        enum completion_kind kind = kinds[draw(model, COUNT_OF(kinds))];
        kind = leases[i].attempt == 3 ? COMPLETION_DONE : kind;
        make_completion(i, worker, kind);
        memcpy(outcomes[i].model_hash, leases[i].spec.model_hash, sizeof outcomes[i].model_hash);
        memcpy(outcomes[i].sampler, leases[i].spec.sampler, sizeof outcomes[i].sampler);
        model->done += kind == COMPLETION_DONE && !of_shadow(&leases[i].spec);
        if (!model->still && draw(model, 4) == 0) { /* the pointer moves while jobs are out */
            move_at_random(model);
        }
    }
    if (count > 0) {
        complete(count);
    }
    for (uint32_t i = 0; i < count; i++) {
        model->shadows += of_shadow(&leases[i].spec) && completions[i].kind == COMPLETION_DONE &&
                          completed[i].status == STATUS_OK;
    }
    advance_ms(draw(model, 3000));
    return count;
}

/* A shadow that stays, jobs of its share, and everything that waits. */
static void work_everything_off(struct followers_model *model)
{
    struct model_event done;
    for (uint32_t i = 0; i < 2000 && model->done < model->jobs; i++) {
        work_at_random(model);
    }
    uint32_t other = model->promoted == 0 || model->canary == 0 ? 1 : 0;
    other += other == 1 && (model->promoted == 1 || model->canary == 1);
    if (model->promoted >= 0 && model->shadow < 0) {
        (void)move(other, MODEL_CANDIDATE, 0, true, &done); /* where it is retired */
        EXPECT_OK(move(other, MODEL_SHADOW, 30, true, &done), error);
        model->shadow = (int)other;
    }
    for (uint32_t i = 0; i < 5; i++) {
        submit_at_random(model);
    }
    model->still = true;
    for (uint32_t i = 0, idle = 0; i < 2000 && idle < 30; i++) {
        idle = work_at_random(model) > 0 ? 0 : idle + 1; /* backoffs end in between */
    }
    EXPECT_INT(model->done, model->jobs);
}

/* Every job ended once, and audits still know what they repeat. */
static void expect_all_done(const struct followers_model *model)
{
    struct store_outcome_filter filter = {.limit = 1000};
    uint32_t count = 0;
    uint32_t audits = 0;
    int64_t passed = 0;
    char suite[LIMIT_ID_BYTES];

    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, model->jobs + model->shadows);
    for (uint32_t i = 0; i < model->suites && i < 4; i++) {
        snprintf(suite, sizeof suite, "suite-%" PRIu32, i);
        struct store_suite_status status = status_of(suite);
        EXPECT_INT(status.jobs[JOB_QUEUED] + status.jobs[JOB_LEASED], 0);
        passed += status.rollouts[VERDICT_PASS] + status.rollouts_audit;
    }
    EXPECT_INT(passed, model->jobs);
    for (uint32_t i = 0; i < count; i++) {
        get_job(outcomes[i].job_id);
        EXPECT_TEXT(outcomes[i].model_hash, job.spec.model_hash);
        EXPECT_TEXT(outcomes[i].sampler, job.spec.sampler);
        EXPECT_INT(outcomes[i].shadow, of_shadow(&job.spec));
        if (job.spec.audit_key[0] != '\0') {
            audits += !outcomes[i].shadow;
            EXPECT(outcomes[i].audit_of > 0);
            uint64_t seed = job.spec.seed;
            get_job(outcomes[i].audit_of);
            EXPECT_INT(job.spec.seed, seed);
        }
    }
    EXPECT(audits > 0);
}

static void followers_go_where_the_pointer_points(void)
{
    uint32_t shadows = 0;
    uint64_t seed;
    uint64_t end = random_sequences(MOVES_SEEDS, &seed);
    bool all = end == MOVES_SEEDS;
    for (end += seed; seed < end; seed++) {
        struct followers_model model = {
            .random = rng_mix(MOVES_FIRST + seed), .promoted = -1, .canary = -1, .shadow = -1};
        open_store(true);
        add_versions(VERSIONS);
        for (uint32_t step = 0; step < MOVES_STEPS; step++) {
            uint32_t what = draw(&model, 8);
            if (what == 0) {
                move_at_random(&model);
            } else if (what == 1 && model.jobs < 700) {
                submit_at_random(&model);
            } else if (what == 2) {
                close_store();
                open_store(false);
            } else if (what == 3) {
                submit_again(&model);
            } else {
                work_at_random(&model);
            }
        }
        work_everything_off(&model);
        expect_all_done(&model);
        shadows += model.shadows;
        close_store();
    }
    printf("# %" PRIu32 " jobs of shadows\n", shadows);
    EXPECT(shadows > 0 || !all);
}

/* A pointer that moves takes queued jobs along in the same transaction: what is read right after
 * names the new version, and pinned jobs stay. */
static void queued_jobs_move_with_the_pointer(void)
{
    struct model_event done;

    open_store(true);
    add_versions(2);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    uint32_t made = make_followers("a", 0, 0, 300);
    submit_made("a", 1, made);
    uint32_t following = 0;
    for (uint32_t i = 0; i < made; i++) {
        following += specs[i].follows && specs[i].tier == TIER_STUDENT;
    }
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(done.jobs_moved, following);
    for (uint32_t i = 0; i < made; i++) {
        get_job(submitted[i].job_id);
        bool moved = specs[i].follows && specs[i].tier == TIER_STUDENT;
        EXPECT_TEXT(job.spec.model_hash, moved ? versions[1].hash : specs[i].model_hash);
        EXPECT((strcmp(job.spec.key, specs[i].key) != 0) == moved);
    }
    /* The same work, asked for again under the version that answers now, is the same jobs. */
    EXPECT_INT(make_followers("a", 1, 0, 300), made);
    uint32_t known = 0;
    for (uint32_t i = 0; i < made; i++) {
        if (specs[i].follows && specs[i].tier == TIER_STUDENT) {
            specs[known++] = specs[i];
        }
    }
    submit_made("a", 1, known);
    for (uint32_t i = 0; i < known; i++) {
        EXPECT(submitted[i].existed);
    }
    close_store();
}

/* An audit job that is submitted after what it repeats has moved, once or again, repeats it still.
 */
static void audits_find_what_has_moved(void)
{
    struct model_event done;

    open_store(true);
    add_versions(VERSIONS);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    uint32_t made = make_followers("a", 0, 1, 1);
    EXPECT_INT(made, 2);
    struct job_spec audit = specs[1];
    submit_made("a", 1, 1);
    int64_t audited = submitted[0].job_id;
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_OK(move(2, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(done.jobs_moved, 1);
    specs[0] = audit;
    submit_made("a", 1, 1);
    EXPECT(!submitted[0].existed);
    int64_t repeats = submitted[0].job_id;
    get_job(audited);
    char key[SHA256_HEX_BYTES];
    memcpy(key, job.spec.key, sizeof key);
    EXPECT(strcmp(key, audit.audit_key) != 0);
    get_job(repeats);
    EXPECT_TEXT(job.spec.audit_key, key);
    close_store();
}

/* A lease that is over, then a move: what the old version found is not the new one's answer, under
 * whose key others would take it over. */
static void late_answers_of_another_version_are_stale(void)
{
    struct model_event done;

    open_store(true);
    add_versions(2);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    make_followers("a", 0, 1, 1);
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    make_completion(0, "w", COMPLETION_DONE);
    memcpy(outcomes[0].model_hash, leases[0].spec.model_hash, sizeof outcomes[0].model_hash);
    memcpy(outcomes[0].sampler, leases[0].spec.sampler, sizeof outcomes[0].sampler);
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(done.jobs_moved, 1);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error); /* it is its answer again */
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE); /* and was refused */
    EXPECT_INT(claim("v", 1), 1);
    EXPECT_TEXT(leases[0].spec.model_hash, versions[0].hash);
    close_store();
}

/* A failure neither: it is told, and paid for, and the new version has all its attempts. */
static void late_failures_of_another_version_are_not_its_own(void)
{
    struct model_event done;

    open_store(true);
    add_versions(2);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    make_followers("a", 0, 1, 1);
    specs[0].attempts_max = 1;
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    make_completion(0, "w", COMPLETION_FAILED)->device_ns = 7;
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(done.jobs_moved, 1);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    get_job(leases[0].job_id);
    EXPECT_INT(job.state, JOB_QUEUED);
    EXPECT_INT(claim("v", 1), 1);
    EXPECT_TEXT(leases[0].spec.model_hash, versions[1].hash);
    make_completion(0, "v", COMPLETION_FAILED);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK); /* one that was not moved counts */
    get_job(leases[0].job_id);
    EXPECT_INT(job.state, JOB_DEAD);
    close_store();
}

/* Partial outcomes of an audit job stay readable when the job that it repeats moves. */
static void audits_go_on_while_what_they_repeat_moves(void)
{
    struct model_event done;
    uint32_t count = 0;

    open_store(true);
    add_versions(2);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(make_followers("a", 0, 1, 1), 2);
    specs[0].rollout_count = specs[1].rollout_count = 2;
    submit_made("a", 1, 2);
    int64_t audit = submitted[1].job_id;
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_INT(claim_in("t", "teacher", 1), 1);
    EXPECT_INT(leases[0].job_id, audit);
    struct job_completion *partial = make_completion(0, "t", COMPLETION_PARTIAL);
    fill_outcome(&outcomes[0], &leases[0].spec, VERDICT_PASS);
    partial->outcomes = &outcomes[0];
    partial->outcome_count = 1;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_OK(store->ops->worker_gone(store, "t", &error), error);
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(done.jobs_moved, 1);
    EXPECT_OK(store->ops->partials(store, audit, outcomes, 4, &count, &error), error);
    EXPECT_INT(count, 1);
    close_store();
}

/* Jobs were asked for as long as the promoted version is trusted. */
static void shorter_trust_takes_no_jobs(void)
{
    struct model_event done;

    open_store(true);
    add_versions(1);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    struct model_version *shorter = make_version(1);
    shorter->map_ticks = 9;
    EXPECT_OK(store->ops->model_add(store, shorter, &error), error);
    EXPECT_OK(evaluate(1, true, 0), error);
    EXPECT_INT(move(1, MODEL_CANARY, 5, false, &done), STATUS_MISMATCH);
    EXPECT_CONTAINS(error.text, "last longer");
    EXPECT_INT(move(1, MODEL_PROMOTED, 0, false, &done), STATUS_MISMATCH);
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, false, &done), error); /* longer, and it was there */
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, false, &done), error); /* a way back is always open */
    close_store();
}

/* An event says which outcomes were there before it. */
static void events_know_their_place_among_outcomes(void)
{
    struct model_event done;

    open_store(true);
    add_versions(2);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(done.after_outcome, 0);
    make_specs("a", "n", 3);
    submit_made("a", 1, 3);
    uint32_t count = claim("w", 3);
    for (uint32_t i = 0; i < count; i++) {
        make_completion(i, "w", COMPLETION_DONE);
    }
    complete(count);
    struct store_outcome_filter filter = {.limit = 1000};
    uint32_t found = 0;
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &found, &error), error);
    EXPECT(found > 0);
    EXPECT_OK(move(1, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(done.after_outcome, outcomes[found - 1].id);
    EXPECT_OK(store->ops->model_events(store, done.id - 1, events, 64, &count, &error), error);
    EXPECT_INT(events[0].after_outcome, done.after_outcome);
    close_store();
}

/* Goal: the canary's share of a tier is what it says, and a job stays on its side. */
static void the_canary_gets_its_share(void)
{
    static const int64_t percents[] = {5, 25, 50, 100};
    struct model_event done;

    open_store(true);
    add_versions(2);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    uint32_t made = make_followers("a", 0, 0, 600);
    submit_made("a", 1, made);
    bool before[1000] = {false};
    for (size_t p = 0; p < COUNT_OF(percents); p++) {
        uint32_t following = 0;
        uint32_t canary = 0;
        EXPECT_OK(move(1, MODEL_CANARY, percents[p], true, &done), error);
        for (uint32_t i = 0; i < made; i++) {
            get_job(submitted[i].job_id);
            bool on_canary = strcmp(job.spec.model_hash, versions[1].hash) == 0;
            EXPECT(on_canary || !before[i]);
            before[i] = on_canary;
            following += specs[i].follows && specs[i].tier == TIER_STUDENT;
            canary += on_canary;
        }
        double share = (double)canary / following;
        double expected = (double)percents[p] / 100.0;
        EXPECT_NEAR(share, expected, 0.08);
    }
    EXPECT_OK(move(1, MODEL_CANDIDATE, 0, false, &done), error);
    for (uint32_t i = 0; i < made; i++) {
        get_job(submitted[i].job_id);
        EXPECT(strcmp(job.spec.model_hash, versions[1].hash) != 0);
    }
    close_store();
}

/* ---- shadows ---- */

/* Claims and answers everything; leases of shadows stay in leases[]. Returns how many these are. */
static uint32_t drive_production(void)
{
    const char *worker;
    uint32_t count = claim_any(&worker, 100);
    while (count > 0 && !of_shadow(&leases[0].spec)) {
        for (uint32_t i = 0; i < count; i++) {
            EXPECT(!of_shadow(&leases[i].spec));
            make_completion(i, worker, COMPLETION_DONE);
        }
        complete(count);
        count = claim_any(&worker, 100);
    }
    return count;
}

static uint32_t in_share(uint32_t made, const struct model_version *shadow)
{
    struct job_spec ignored;
    uint32_t count = 0;
    for (uint32_t i = 0; i < made; i++) {
        count += specs[i].follows && specs[i].tier == TIER_STUDENT &&
                 model_job_shadow(shadow, &specs[i], &ignored);
    }
    return count;
}

/* Who may be a shadow with a share, and of how much. */
static void shadows_have_their_place(void)
{
    struct model_event done;

    open_store(true);
    add_versions(VERSIONS);
    EXPECT_INT(move(1, MODEL_SHADOW, 5, false, &done), STATUS_CONFLICT); /* whose jobs? */
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_INT(move(1, MODEL_SHADOW, 101, false, &done), STATUS_BAD_INPUT);
    EXPECT_INT(move(1, MODEL_CANDIDATE, 5, false, &done), STATUS_CONFLICT);
    EXPECT_OK(move(1, MODEL_SHADOW, 5, false, &done), error); /* never evaluated */
    EXPECT_INT(done.canary_percent, 5);
    EXPECT_INT(move(2, MODEL_SHADOW, 5, false, &done), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "student-1");
    EXPECT_OK(move(2, MODEL_SHADOW, 0, false, &done), error); /* it drives nothing */
    EXPECT_OK(move(1, MODEL_SHADOW, 25, false, &done), error);
    EXPECT_INT(done.from_state, MODEL_SHADOW);
    EXPECT_OK(move(1, MODEL_SHADOW, 0, false, &done), error);
    EXPECT_OK(move(2, MODEL_SHADOW, 100, false, &done), error);
    close_store();
}

/* Rollouts from which demand says what a tick takes. */
static uint32_t rollouts_seen(void)
{
    struct store_demand rows[8];
    uint32_t count = 0;
    uint32_t seen = 0;
    EXPECT_OK(store->ops->demand(store, rows, 8, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        seen += (uint32_t)rows[i].rollouts_seen;
    }
    return seen;
}

/* Goal: a shadow's share of jobs, queued before it and submitted after, is driven again once each,
 * when nothing else waits, whatever comes between; and suites are as without it. */
static void shadows_drive_again(void)
{
    struct model_event done;
    struct store_ledger_row rows[64];
    struct store_outcome_filter filter = {.limit = 1000};
    uint32_t count = 0;

    open_store(true);
    add_versions(2);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    submit_made("a", 1, make_followers("a", 0, 0, 60));
    uint32_t expected = 0;
    versions[1].canary_percent = 50;
    expected += in_share(75, &versions[1]);
    EXPECT_OK(move(1, MODEL_SHADOW, 50, false, &done), error);
    uint32_t made = make_followers("b", 0, 60, 60);
    expected += in_share(made, &versions[1]);
    submit_made("b", 1, made);
    EXPECT(expected > 20);
    struct store_suite_status queued = status_of("b");
    EXPECT_INT(queued.jobs[JOB_QUEUED], made);
    EXPECT_INT(drive_production(), expected);
    struct store_suite_status before = status_of("a");
    EXPECT_INT(before.jobs[JOB_DONE], 75);
    EXPECT_INT(before.ticks_ended, before.ticks_planned);
    make_completion(0, "w", COMPLETION_FLAGGED); /* it goes nowhere */
    make_completion(1, "w", COMPLETION_FAILED);
    make_completion(2, "w", COMPLETION_RELEASED);
    complete(3);
    EXPECT_INT(completed[0].escalated_job_id, 0);
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    submit_plain("c", "k", 1); /* what somebody waits for comes first */
    EXPECT_INT(claim("v", 100), 1);
    EXPECT_TEXT(leases[0].spec.suite_id, "c");
    complete_one("v", COMPLETION_DONE);
    EXPECT_INT(claim("v", 100), expected - 2);
    for (uint32_t i = 0; i < expected - 2; i++) {
        make_completion(i, "v", COMPLETION_DONE);
    }
    complete(expected - 2);
    advance_ms(BACKOFF_MS);
    EXPECT_INT(claim("v", 100), 1); /* the one that failed */
    complete_one("v", COMPLETION_DONE);
    EXPECT_INT(claim("v", 100), 0);
    struct store_suite_status after = status_of("a");
    EXPECT(memcmp(&before, &after, sizeof before) == 0);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    uint32_t shadows = 0;
    for (uint32_t i = 0; i < count; i++) {
        shadows += outcomes[i].shadow;
        EXPECT(!outcomes[i].shadow || outcomes[i].audit_of > 0);
    }
    EXPECT_INT(shadows, expected); /* the flagged one's evidence too */
    EXPECT_INT(rollouts_seen(), count - shadows);
    EXPECT_OK(store->ops->ledger(store, NULL, rows, 64, &count, &error), error);
    int64_t attempts = 0;
    for (uint32_t i = 0; i < count; i++) {
        attempts += rows[i].shadow ? rows[i].totals.attempts : 0;
        EXPECT(!rows[i].shadow || !rows[i].audit);
    }
    EXPECT_INT(attempts, 3 + (expected - 3) + (expected - 2) + 1);
    /* Asked again, and by another suite, which takes the results over: nobody drives. */
    submit_made("b", 1, make_followers("b", 0, 60, 60));
    submit_made("d", 1, make_followers("d", 0, 60, 60));
    EXPECT(submitted[1].memoised);
    EXPECT_INT(claim("v", 100), 0);
    close_store();
}

/* Goal: nothing is driven for a version that is a shadow no longer. */
static void shadows_end(void)
{
    struct model_event done;
    uint32_t cancelled = 0;
    int64_t ttl_ms = 0;
    int64_t ids[1];
    int64_t count = 0;

    open_store(true);
    add_versions(2);
    EXPECT_OK(move(0, MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_OK(move(1, MODEL_SHADOW, 100, false, &done), error);
    submit_made("a", 1, make_followers("a", 0, 0, 30));
    EXPECT(drive_production() > 10);
    make_completion(0, "w", COMPLETION_DONE);
    struct store_progress progress = {.job_id = leases[0].job_id, .epoch = leases[0].epoch};
    struct store_worker worker = worker_of("w", "bulk");
    for (uint32_t i = 1; i < 5; i++) { /* others wait */
        make_completion(i, "w", COMPLETION_RELEASED);
        EXPECT_OK(store->ops->complete(store, &completions[i], 1, completed, &error), error);
    }
    EXPECT_OK(move(1, MODEL_CANDIDATE, 0, false, &done), error);
    EXPECT_OK(store->ops->heartbeat(store, &worker, &progress, 1, ids, &cancelled, &ttl_ms, &error),
              error);
    EXPECT_INT(cancelled, 1);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(claim("v", 100), 0);
    submit_made("b", 1, make_followers("b", 0, 30, 30));
    EXPECT_INT(drive_production(), 0);
    /* A suite that is cancelled takes its own along, and says of its jobs alone. */
    EXPECT_OK(move(1, MODEL_SHADOW, 100, false, &done), error);
    uint32_t made = make_followers("c", 0, 60, 10);
    submit_made("c", 1, made);
    EXPECT_OK(store->ops->cancel(store, "c", &count, &error), error);
    EXPECT_INT(count, made);
    EXPECT_INT(claim("v", 100), 0);
    /* Workers that cannot start a planner leave its jobs alone. */
    submit_made("d", 1, make_followers("d", 0, 90, 6));
    EXPECT(drive_production() > 0);
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    const struct store_planner without = {.planner = "builtin:reference", .planner_hash = "p"};
    struct store_worker other = worker_of("other", "bulk");
    other.without = &without;
    other.without_count = 1;
    uint32_t leased = 0;
    EXPECT_OK(
        store->ops->claim(store, &other, fresh_claim_id(), 9, 0, leases, &leased, &ttl_ms, &error),
        error);
    EXPECT_INT(leased, 0);
    EXPECT(claim("v", 100) > 0);
    close_store();
}

/* ---- goldens ---- */

/* Puts a list that names `recordings` artifacts, and says in *set what set it is. */
static void make_golden(struct golden_set *set, const char *name, int recordings)
{
    char list[1024];
    char hash[SHA256_HEX_BYTES];
    int used = snprintf(list, sizeof list, "{\"name\": \"%s\", \"recordings\": [", name);

    memset(set, 0, sizeof *set);
    for (int i = 0; i < recordings; i++) {
        char text[64];
        int bytes = snprintf(text, sizeof text, "frames %d of %s", i, name);
        EXPECT_OK(store->ops->artifact_put(store, text, (size_t)bytes, hash, &error), error);
        used += snprintf(list + used, sizeof list - (size_t)used,
                         "%s{\"artifact\": \"%s\", \"bytes\": %d}", i > 0 ? ", " : "", hash, bytes);
    }
    used += snprintf(list + used, sizeof list - (size_t)used, "]}");
    EXPECT_OK(store->ops->artifact_put(store, list, (size_t)used, set->hash, &error), error);
    strcpy(set->name, name);
    memset(set->model_hash, 'b', sizeof set->model_hash - 1);
    strcpy(set->sampler, "agents/euler2/bf16");
}

/* Puts a list of one recording with that member. */
static void put_list(struct golden_set *set, const char *member)
{
    char list[256];
    char hash[SHA256_HEX_BYTES];
    EXPECT_OK(store->ops->artifact_put(store, "frames", 6, hash, &error), error);
    int bytes =
        snprintf(list, sizeof list, "{%s, \"recordings\": [{\"artifact\": \"%s\", \"bytes\": 6}]}",
                 member, hash);
    EXPECT_OK(store->ops->artifact_put(store, list, (size_t)bytes, set->hash, &error), error);
}

static void goldens_are_kept_until_they_are_let_go(void)
{
    struct golden_set night;
    struct golden_set day;
    struct golden_set other;
    struct golden_set found[4];
    uint32_t count = 0;

    open_store(true);
    make_golden(&night, "night", 3);
    make_golden(&day, "day", 1);
    other = night;
    memset(other.hash, 'a', sizeof other.hash - 1);
    EXPECT_INT(store->ops->golden_add(store, &other, &error), STATUS_CONFLICT); /* no such list */
    EXPECT_OK(store->ops->golden_add(store, &night, &error), error);
    EXPECT_OK(store->ops->golden_add(store, &night, &error), error);
    EXPECT_OK(store->ops->golden_add(store, &day, &error), error);
    other = day;
    strcpy(other.name, "night"); /* another set of that name */
    EXPECT_INT(store->ops->golden_add(store, &other, &error), STATUS_CONFLICT);
    strcpy(other.name, "noon"); /* this one under another */
    EXPECT_INT(store->ops->golden_add(store, &other, &error), STATUS_CONFLICT);
    strcpy(other.name, "../day");
    EXPECT_INT(store->ops->golden_add(store, &other, &error), STATUS_BAD_INPUT);
    /* A list that names what is not there keeps nothing. */
    static const char lacking[] =
        "{\"recordings\": [{\"artifact\": "
        "\"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc\", \"bytes\": 1}]}";
    strcpy(other.name, "lacking");
    EXPECT_OK(store->ops->artifact_put(store, lacking, sizeof lacking - 1, other.hash, &error),
              error);
    EXPECT_INT(store->ops->golden_add(store, &other, &error), STATUS_CONFLICT);
    /* The set says of which model its pictures are; so may the list. */
    strcpy(other.name, "forged");
    put_list(&other, "\"model_hash\": \"b\"");
    EXPECT_INT(store->ops->golden_add(store, &other, &error), STATUS_BAD_INPUT);
    put_list(&other, "\"sampler\": 7");
    EXPECT_INT(store->ops->golden_add(store, &other, &error), STATUS_BAD_INPUT);
    close_store();
    open_store(false);
    EXPECT_OK(store->ops->goldens(store, "", found, 4, &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_TEXT(found[0].name, "day");
    EXPECT_TEXT(found[1].name, "night");
    EXPECT_INT(found[1].recordings, 3);
    EXPECT_INT(found[1].bytes, 3 * (int64_t)strlen("frames 0 of night"));
    EXPECT_INT(found[1].made_s, now_s());
    EXPECT_TEXT(found[1].hash, night.hash);
    EXPECT_OK(store->ops->goldens(store, "day", found, 4, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(store->ops->golden_drop(store, "../day", &error), STATUS_BAD_INPUT);
    EXPECT_OK(store->ops->golden_drop(store, "day", &error), error);
    EXPECT_OK(store->ops->golden_drop(store, "day", &error), error);
    EXPECT_OK(store->ops->goldens(store, "", found, 4, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(found[0].name, "night");
    EXPECT_OK(store->ops->golden_add(store, &day, &error), error);
    close_store();
}

/* ---- labels ---- */

static enum status label(const char *suite, enum label_kind kind, const char *text)
{
    struct label made = {.kind = kind};
    snprintf(made.suite, sizeof made.suite, "%s", suite);
    snprintf(made.text, sizeof made.text, "%s", text);
    return store->ops->label_add(store, &made, &error);
}

/* Files of planners are their suite's, content-addressed; a server without --keep-planners refuses
 * a token's. */
static void files_are_kept_with_their_suite(void)
{
    char planner[SHA256_HEX_BYTES];
    void *data = NULL;
    size_t bytes = 0;

    open_store(true);
    make_specs("s", "k", 2);
    EXPECT_OK(store->ops->submit(store, "s", 1, specs, 2, submitted, &error), error);
    snprintf(planner, sizeof planner, "%064d", 7);
    enum status taken = store->ops->planner_keep(store, "s", planner, "pack", 4, &error);
    if (taken != STATUS_OK) {
        EXPECT_CONTAINS(error.text, "keeps no files of planners");
        close_store();
        return;
    }
    EXPECT_OK(store->ops->planner_keep(store, "s", planner, "pack", 4, &error), error); /* free */
    EXPECT_INT(store->ops->planner_keep(store, "none", planner, "pack", 4, &error),
               STATUS_NOT_FOUND);
    close_store();
    open_store(false);
    EXPECT_OK(store->ops->planner_kept(store, "s", planner, &data, &bytes, &error), error);
    EXPECT(bytes == 4 && memcmp(data, "pack", 4) == 0);
    free(data);
    snprintf(planner, sizeof planner, "%064d", 8);
    EXPECT_INT(store->ops->planner_kept(store, "s", planner, &data, &bytes, &error),
               STATUS_NOT_FOUND);
    EXPECT_INT(store->ops->planner_kept(store, "none", planner, &data, &bytes, &error),
               STATUS_NOT_FOUND);
    close_store();
}

static enum status unlabel(const char *suite, enum label_kind kind, const char *text)
{
    struct label made = {.kind = kind};
    snprintf(made.suite, sizeof made.suite, "%s", suite);
    snprintf(made.text, sizeof made.text, "%s", text);
    return store->ops->label_drop(store, &made, &error);
}

static void labels_are_what_their_kind_says(void)
{
    struct store_suite_status status;
    struct label found[8];
    char artifact[SHA256_HEX_BYTES];
    char files[LABEL_BYTES];
    char absent[LABEL_BYTES];
    uint32_t count = 0;

    open_store(true);
    for (int i = 0; i < 2; i++) {
        make_specs(i == 0 ? "old" : "new", i == 0 ? "o" : "n", 2);
        EXPECT_OK(store->ops->submit(store, i == 0 ? "old" : "new", 1, specs, 2, submitted, &error),
                  error);
    }
    EXPECT_OK(label("old", LABEL_BASELINE, "main"), error);
    EXPECT_OK(label("new", LABEL_BASELINE, "main"), error); /* moves */
    EXPECT_OK(label("new", LABEL_BASELINE, "nightly"), error);
    for (int i = 0; i < 2; i++) { /* repeating is free */
        EXPECT_OK(label("new", LABEL_TAG, "fog"), error);
        EXPECT_OK(label("new", LABEL_TAG, "rain"), error);
        EXPECT_OK(label("new", LABEL_NOTE, i == 0 ? "first" : "second, \xc3\xa4"), error);
        EXPECT_OK(label("new", LABEL_COMMIT, "abc with changes"), error);
    }
    EXPECT_OK(store->ops->artifact_put(store, "pack", 4, artifact, &error), error);
    snprintf(files, sizeof files, "%064d %s", 7, artifact);
    snprintf(absent, sizeof absent, "%064d %064d", 7, 8);
    /* A server takes files from nobody who has a token, and shows them to nobody. */
    bool files_taken = label("new", LABEL_FILES, files) == STATUS_OK;
    if (files_taken) {
        EXPECT_INT(label("new", LABEL_FILES, absent), STATUS_CONFLICT);
        EXPECT_INT(label("new", LABEL_FILES, artifact), STATUS_BAD_INPUT);
    } else {
        EXPECT_CONTAINS(error.text, "files of planners are not served to tokens");
    }
    EXPECT_INT(label("new", LABEL_TAG, "two words"), STATUS_BAD_INPUT);
    EXPECT_INT(label("new", LABEL_NOTE, "two\nlines"), STATUS_BAD_INPUT);
    EXPECT_INT(label("none", LABEL_TAG, "fog"), STATUS_NOT_FOUND);
    for (int i = 2; i < LABELS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        EXPECT_OK(label("new", LABEL_TAG, name), error);
    }
    EXPECT_INT(label("new", LABEL_TAG, "more"), STATUS_LIMIT);
    close_store();
    open_store(false);
    EXPECT_OK(store->ops->suite_status(store, "old", &status, &error), error);
    EXPECT_TEXT(status.baselines, "");
    EXPECT_OK(store->ops->suite_status(store, "new", &status, &error), error);
    EXPECT_TEXT(status.baselines, "main, nightly");
    EXPECT_TEXT(status.tags, "fog, rain, t2, t3, t4, t5, t6, t7");
    EXPECT_TEXT(status.note, "second, \xc3\xa4");
    EXPECT_TEXT(status.commit, "abc with changes");
    EXPECT_TEXT(status.planner_hash, "p");
    EXPECT_OK(store->ops->labels(store, "baseline", 0, found, 8, &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_TEXT(found[0].suite, "new");
    EXPECT_TEXT(found[0].text, "main");
    EXPECT_INT(found[0].at_s, now_s());
    EXPECT_OK(store->ops->labels(store, "baseline", found[0].id, found, 8, &count, &error), error);
    EXPECT_INT(count, 1);
    enum status shown = store->ops->labels(store, "files", 0, found, 8, &count, &error);
    EXPECT(files_taken ? shown == STATUS_OK && strcmp(found[0].text, files) == 0
                       : shown != STATUS_OK);
    EXPECT_OK(store->ops->labels(store, NULL, 0, found, 8, &count, &error), error);
    EXPECT_INT(count, 8);
    EXPECT_INT(store->ops->labels(store, "tags", 0, found, 8, &count, &error), STATUS_BAD_INPUT);
    for (int i = 0; i < 2; i++) { /* what is not there is gone, and nothing else goes with it */
        EXPECT_OK(unlabel("new", LABEL_BASELINE, "nightly"), error);
        EXPECT_OK(unlabel("new", LABEL_TAG, "rain"), error);
        EXPECT_OK(unlabel("new", LABEL_NOTE, i == 0 ? "first" : "second, \xc3\xa4"), error);
        EXPECT_OK(unlabel("old", LABEL_BASELINE, "main"), error);
    }
    EXPECT_INT(unlabel("new", LABEL_COMMIT, "abc with changes"), STATUS_BAD_INPUT);
    EXPECT_INT(unlabel("new", LABEL_FILES, files), STATUS_BAD_INPUT);
    EXPECT_INT(unlabel("none", LABEL_TAG, "fog"), STATUS_NOT_FOUND);
    EXPECT_OK(store->ops->suite_status(store, "new", &status, &error), error);
    EXPECT_TEXT(status.baselines, "main");
    EXPECT_TEXT(status.tags, "fog, t2, t3, t4, t5, t6, t7");
    EXPECT_TEXT(status.note, "");
    EXPECT_TEXT(status.commit, "abc with changes");
    EXPECT_OK(label("new", LABEL_TAG, "more"), error);
    close_store();
}

/* ---- the teacher ---- */

/* A promoted teacher. */
static void promote_teacher(struct model_version *teacher, const char *name)
{
    struct model_event done;
    struct model_event event = {.kind = MODEL_MOVED, .to_state = MODEL_PROMOTED, .forced = true};

    memset(teacher, 0, sizeof *teacher);
    strcpy(teacher->name, name);
    EXPECT_OK(store->ops->artifact_put(store, name, strlen(name), teacher->hash, &error), error);
    teacher->tier = TIER_TEACHER;
    strcpy(teacher->precision, "bf16");
    strcpy(teacher->sampler, "euler9/bf16");
    teacher->agents_ticks = 300;
    EXPECT_OK(store->ops->model_add(store, teacher, &error), error);
    strcpy(event.model, name);
    strcpy(event.evidence, "for a test");
    EXPECT_OK(store->ops->model_event(store, &event, &done, &error), error);
}

/* specs[0]: a student's job; specs[1]: its audit by that teacher. */
static void make_audited(const struct model_version *teacher, uint64_t seed, bool follows)
{
    make_specs("a", "-", 2);
    struct job_spec *spec = &specs[0];
    spec->seed = seed;
    spec->tier = TIER_STUDENT;
    spec->follows = follows;
    strcpy(spec->model_hash, "student");
    strcpy(spec->sampler, "agents/euler1/bf16");
    job_key_make(spec, 0);
    trust_job_audit(teacher, spec, &specs[1]);
}

/* Goal: whoever may submit cannot have another than the store's teacher speak against the student;
 * what one is told of it comes once. */
static void audits_ask_the_promoted_teacher(void)
{
    static struct model_version teacher;
    static struct model_version rival;
    struct model_event done;

    open_store(true);
    promote_teacher(&teacher, "teacher");
    rival = teacher;
    strcpy(rival.name, "rival");
    EXPECT_OK(store->ops->artifact_put(store, "rival", 5, rival.hash, &error), error);
    for (uint32_t i = 0; i < 100; i++) { /* another teacher, or the same sampled otherwise */
        struct model_version forged = i % 2 == 0 ? rival : teacher;
        if (i % 2 != 0) {
            strcpy(forged.sampler, "euler1/bf16");
        }
        make_audited(&forged, i, i % 3 == 0);
        EXPECT_INT(store->ops->submit(store, "a", 1, specs, 2, submitted, &error), STATUS_CONFLICT);
        EXPECT_CONTAINS(error.text, "an audit asks the store's promoted teacher, teacher");
    }
    EXPECT_INT(store->ops->suite_status(store, "a", &(struct store_suite_status){0}, &error),
               STATUS_NOT_FOUND);
    make_audited(&teacher, 1, false);
    strcpy(specs[1].pool, specs[0].pool); /* of the workers whose results it is about */
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 2, submitted, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "an audit is answered in pool \"teacher\", this one is of pool \"");
    make_audited(&teacher, 1, false);
    submit_made("a", 1, 2);
    int64_t audit = submitted[1].job_id;
    for (uint32_t i = 0; i < 100; i++) { /* the same once more, under other keys */
        specs[0] = specs[1];
        snprintf(specs[0].key, sizeof specs[0].key, "again-%" PRIu32, i);
        submit_made("a", 1, 1);
        EXPECT(submitted[0].existed);
        EXPECT_INT(submitted[0].job_id, audit);
    }
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 2);
    /* Another teacher is promoted: its word counts beside that of the first. */
    EXPECT_OK(store->ops->model_add(store, &rival, &error), error);
    struct model_event event = {.kind = MODEL_MOVED, .to_state = MODEL_PROMOTED, .forced = true};
    strcpy(event.model, "rival");
    strcpy(event.evidence, "for a test");
    EXPECT_OK(store->ops->model_event(store, &event, &done, &error), error);
    make_audited(&rival, 1, false);
    submit_made("a", 1, 2);
    EXPECT(submitted[0].existed && !submitted[1].existed);
    make_audited(&teacher, 2, false);
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 2, submitted, &error), STATUS_CONFLICT);
    close_store();
}

/* Goal: a flagged job of which nobody has said who answers goes to the promoted teacher, where that
 * is trusted for as long; others go to it whoever was named, and to its pool whichever was; and the
 * teacher's own job says nobody. */
static void flagged_jobs_ask_the_promoted_teacher(void)
{
    static struct model_version teacher;

    open_store(true);
    promote_teacher(&teacher, "teacher");
    for (int way = 0; way < 4; way++) {
        make_audited(&teacher, (uint64_t)way, way == 1);
        if (way > 0) {
            name_teacher(&specs[0]);
        }
        if (way == 3) { /* the promoted one, in the pool of the workers whose job was flagged */
            strcpy(specs[0].escalate_pool, specs[0].pool);
            strcpy(specs[0].escalate_model_hash, teacher.hash);
            strcpy(specs[0].escalate_sampler, "agents/euler9/bf16");
        }
        submit_made("a", 1, 1);
        EXPECT_INT(claim("w", 1), 1);
        complete_one("w", COMPLETION_FLAGGED);
        EXPECT_INT(completed[0].status, STATUS_OK);
        get_job(completed[0].escalated_job_id);
        EXPECT_INT(job.spec.tier, TIER_TEACHER);
        EXPECT_TEXT(job.spec.pool, "teacher");
        EXPECT_TEXT(job.spec.model_hash, teacher.hash);
        EXPECT_TEXT(job.spec.sampler, "agents/euler9/bf16");
        EXPECT_INT(job.spec.follows, way == 1);
        EXPECT_TEXT(job.spec.escalate_pool, "");
        get_job(leases[0].job_id); /* and its row says so from then on */
        EXPECT_TEXT(job.spec.escalate_model_hash, teacher.hash);
    }
    close_store();
}

int conformance_models(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(TEST_RUN(
        TEST(audits_ask_the_promoted_teacher), TEST(flagged_jobs_ask_the_promoted_teacher),
        TEST(versions_do_not_change), TEST(goldens_are_kept_until_they_are_let_go),
        TEST(labels_are_what_their_kind_says), TEST(files_are_kept_with_their_suite),
        TEST(nobody_answers_without_an_evaluation), TEST(audits_find_what_has_moved),
        TEST(late_answers_of_another_version_are_stale),
        TEST(late_failures_of_another_version_are_not_its_own),
        TEST(audits_go_on_while_what_they_repeat_moves), TEST(shorter_trust_takes_no_jobs),
        TEST(events_know_their_place_among_outcomes), TEST(queued_jobs_move_with_the_pointer),
        TEST(the_canary_gets_its_share), TEST(shadows_have_their_place), TEST(shadows_drive_again),
        TEST(shadows_end), TEST(followers_go_where_the_pointer_points)));
}
