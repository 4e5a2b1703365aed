/*
 * The conformance suite's third part: versions of models, their pointers and the jobs that follow
 * them. See conformance.h.
 *
 * Method: the gate and what is immutable by examples; pointers by random calls against a model of
 * who answers. Its property: whatever fails, is handed back, comes late or is moved, a lease of a
 * job that follows names the version that its tier points to at the claim, one of a job that does
 * not names what was submitted, and every job ends once.
 */
#include "base/check.h"
#include "base/rng.h"
#include "tests/claim_ids.h"
#include "tests/store/conformance/conformance_kit.h"

#include <stdlib.h>

enum { VERSIONS = 3, MOVES_STEPS = 400, MOVES_SEEDS = 4 };

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
    uint32_t to = draw(model, 3);

    if (to == 0 && index != model->promoted) {
        EXPECT_OK(move((uint32_t)index, MODEL_PROMOTED, 0, true, &done), error);
        model->canary = index == model->canary ? -1 : model->canary;
        model->promoted = index;
    } else if (to == 1 && model->canary < 0 && index != model->promoted && model->promoted >= 0) {
        versions[index].canary_percent = 1 + draw(model, 100);
        enum status status = move((uint32_t)index, MODEL_CANDIDATE, 0, true, &done);
        EXPECT(status == STATUS_OK || status == STATUS_CONFLICT);
        EXPECT_OK(move((uint32_t)index, MODEL_CANARY, versions[index].canary_percent, true, &done),
                  error);
        model->canary = index;
    } else if (to == 2 && model->canary >= 0) {
        EXPECT_OK(move((uint32_t)model->canary, MODEL_SHADOW, 0, false, &done), error);
        model->canary = -1;
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
}

static void work_at_random(struct followers_model *model)
{
    static const enum completion_kind kinds[] = {COMPLETION_DONE, COMPLETION_DONE, COMPLETION_DONE,
                                                 COMPLETION_RELEASED, COMPLETION_FAILED};
    uint32_t count = claim("w", 1 + draw(model, 6));

    for (uint32_t i = 0; i < count; i++) {
        expect_version(model, &leases[i].spec);
    }
    for (uint32_t i = 0; i < count; i++) {
        enum completion_kind kind = kinds[draw(model, COUNT_OF(kinds))];
        kind = leases[i].attempt == 3 ? COMPLETION_DONE : kind;
        make_completion(i, "w", kind);
        memcpy(outcomes[i].model_hash, leases[i].spec.model_hash, sizeof outcomes[i].model_hash);
        memcpy(outcomes[i].sampler, leases[i].spec.sampler, sizeof outcomes[i].sampler);
        model->done += kind == COMPLETION_DONE;
        if (draw(model, 4) == 0) { /* the pointer moves while jobs are out */
            move_at_random(model);
        }
    }
    if (count > 0) {
        complete(count);
    }
    advance_ms(draw(model, 3000));
}

/* Every job ended once, and audits still know what they repeat. */
static void expect_all_done(const struct followers_model *model)
{
    struct store_outcome_filter filter = {.limit = 1000};
    uint32_t count = 0;
    uint32_t audits = 0;

    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, model->jobs);
    for (uint32_t i = 0; i < count; i++) {
        get_job(outcomes[i].job_id);
        EXPECT_TEXT(outcomes[i].model_hash, job.spec.model_hash);
        EXPECT_TEXT(outcomes[i].sampler, job.spec.sampler);
        if (job.spec.audit_key[0] != '\0') {
            audits++;
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
    for (uint64_t seed = 0; seed < MOVES_SEEDS; seed++) {
        struct followers_model model = {
            .random = rng_mix(seed), .promoted = -1, .canary = -1, .jobs = 0};
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
        for (uint32_t i = 0; i < 2000 && model.done < model.jobs; i++) {
            work_at_random(&model);
        }
        expect_all_done(&model);
        close_store();
    }
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

int conformance_models(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(TEST_RUN(
        TEST(versions_do_not_change), TEST(nobody_answers_without_an_evaluation),
        TEST(audits_find_what_has_moved), TEST(shorter_trust_takes_no_jobs),
        TEST(events_know_their_place_among_outcomes), TEST(queued_jobs_move_with_the_pointer),
        TEST(the_canary_gets_its_share), TEST(followers_go_where_the_pointer_points)));
}
