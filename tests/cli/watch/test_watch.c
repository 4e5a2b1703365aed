/*
 * Watch: canaries of a real store. Goals: a bad canary is sent away after few jobs, none of which
 * is lost, and nobody is answered by it afterwards; the same facts lead to the same decision,
 * however often one looks and whenever one began; a healthy canary stays; what is no canary's
 * counts not. Method: 2,400 following jobs through the embedded store, claimed by a worker whose
 * answers depend on the version that the lease names.
 */
#include "base/check.h"
#include "base/rng.h"
#include "cli/watch/watch.h"
#include "tests/store/conformance/conformance_file.h"

enum { JOBS = 2400, SUBMIT = 600, GOOD = 0, BAD = 1 };

static struct model_version versions[2];

static enum tier watched = TIER_STUDENT; /* whose versions there are */

static void add_version(int index, const char *name)
{
    struct model_version *version = &versions[index];
    memset(version, 0, sizeof *version);
    strcpy(version->name, name);
    EXPECT_OK(store->ops->artifact_put(store, name, strlen(name), version->hash, &error), error);
    version->tier = watched;
    strcpy(version->precision, "bf16");
    strcpy(version->sampler, "euler2/bf16");
    EXPECT_OK(store->ops->model_add(store, version, &error), error);
}

static enum status move(const char *name, enum model_state to, int64_t percent, bool forced,
                        struct model_event *done)
{
    struct model_event event = {
        .kind = MODEL_MOVED, .to_state = to, .canary_percent = percent, .forced = forced};
    strcpy(event.model, name);
    strcpy(event.evidence, forced ? "a test" : "");
    return store->ops->model_event(store, &event, done, &error);
}

/* Jobs from `first` on, of which every `audited`th has an audit job beside it (0: none). */
static void submit_jobs(uint32_t first, uint32_t count, uint32_t audited)
{
    static struct job_spec plain;
    uint32_t made = 0;
    make_specs("suite", "-", 1);
    plain = specs[0];
    plain.tier = TIER_STUDENT;
    plain.follows = true;
    strcpy(plain.sampler, "agents/euler2/bf16");
    memcpy(plain.model_hash, versions[GOOD].hash, sizeof plain.model_hash);
    name_teacher(&plain);
    for (uint32_t i = first; i < first + count; i++) {
        struct job_spec *spec = &specs[made++];
        *spec = plain;
        spec->seed = i;
        job_key_make(spec, 0);
        if (audited > 0 && i % audited == 0) {
            struct job_spec *audit = &specs[made++];
            char key[SHA256_HEX_BYTES];
            *audit = *spec;
            job_escalation_clear(audit);
            audit->tier = TIER_TEACHER;
            strcpy(audit->pool, "teacher");
            audit->follows = watched == TIER_TEACHER;
            memcpy(audit->audit_key, spec->key, sizeof audit->audit_key);
            job_key_make(audit, 0);
            job_key_audit(audit->key, key);
            memcpy(audit->key, key, sizeof key);
        }
    }
    submit_made("suite", 1, made);
}

struct world {
    uint64_t random;
    double flagged;   /* by the canary */
    double disagreed; /* the canary fails what the teacher passes */
    uint32_t of_canary;
    uint32_t done;
};

static double draw(struct world *world)
{
    world->random = rng_mix(world->random + 1);
    return (double)(world->random >> 11) * 0x1p-53;
}

/* Answers up to `max` jobs; the teacher passes everything. Returns how many there were. */
static uint32_t work(struct world *world, uint32_t max)
{
    const char *worker;
    uint32_t count = claim_any(&worker, max);
    for (uint32_t i = 0; i < count; i++) {
        const struct job_spec *spec = &leases[i].spec;
        bool canary = strcmp(spec->model_hash, versions[BAD].hash) == 0;
        bool flagged = canary && draw(world) < world->flagged;
        bool failed = canary && draw(world) < world->disagreed;
        make_completion(i, worker, flagged ? COMPLETION_FLAGGED : COMPLETION_DONE);
        fill_outcome(&outcomes[i], spec,
                     flagged  ? VERDICT_FLAGGED
                     : failed ? VERDICT_FAIL
                              : VERDICT_PASS);
        completions[i].outcomes = &outcomes[i];
        completions[i].outcome_count = 1;
        world->of_canary += canary;
    }
    if (count > 0) {
        complete(count);
    }
    world->done += count;
    return count;
}

static struct watch *make_watch(void)
{
    const struct rollback_policy policy = rollback_policy_default();
    struct watch *watch = NULL;
    EXPECT_OK(watch_create(&policy, watched, "tester", &watch, &error), error);
    return watch;
}

/* Who has looked all the time and who looks for the first time see the same. */
static void expect_same(const struct watch_report *a, const struct watch_report *b)
{
    EXPECT_INT(a->result, b->result);
    EXPECT_INT(a->cause, b->cause);
    EXPECT(memcmp(a->canary_side, b->canary_side, sizeof *a->canary_side) == 0);
    EXPECT(memcmp(a->promoted_side, b->promoted_side, sizeof *a->promoted_side) == 0);
}

static void start(int64_t percent)
{
    struct model_event done;
    open_store(true);
    add_version(GOOD, "good");
    add_version(BAD, "next");
    EXPECT_OK(move("good", MODEL_PROMOTED, 0, true, &done), error);
    EXPECT_OK(move("next", MODEL_CANARY, percent, true, &done), error);
}

/* Looks after every hundred jobs until the canary is out or no job is left. */
static struct watch_report play(struct world *world, struct watch *watch)
{
    struct watch_report report = {.result = WATCH_IDLE};
    while (work(world, 100) > 0) {
        EXPECT_OK(watch_sweep(watch, store, &report, &error), error);
        if (report.result == WATCH_ROLLED_BACK) {
            break;
        }
        struct watch *other = make_watch();
        struct watch_report again;
        EXPECT_OK(watch_sweep(other, store, &again, &error), error);
        expect_same(&report, &again);
        watch_destroy(other);
    }
    return report;
}

static void a_canary_that_is_flagged_goes(void)
{
    struct world world = {.random = 1, .flagged = 0.5};
    struct watch *watch = make_watch();
    struct watch_report report;
    struct model_event done;
    char text[WATCH_TEXT_BYTES];
    start(5);
    for (uint32_t first = 0; first < JOBS; first += SUBMIT) {
        submit_jobs(first, SUBMIT, 0);
    }
    report = play(&world, watch);
    EXPECT_INT(report.result, WATCH_ROLLED_BACK);
    EXPECT_INT(report.cause, ROLLBACK_RUNS_FLAGGED);
    EXPECT_CONTAINS(watch_text(&report, text), "next was rolled back for its flags in a row");
    EXPECT(world.of_canary < JOBS / 20);
    printf("# %u of %d jobs were answered by the bad canary\n", world.of_canary, JOBS);
    uint32_t before = world.of_canary;
    while (work(&world, 100) > 0) {
    }
    EXPECT_INT(world.of_canary, before); /* nobody was answered by it after the pointer moved */
    struct store_suite_status status = status_of("suite");
    EXPECT_INT(status.jobs[JOB_DONE], JOBS); /* the teacher answers for those that were flagged */
    EXPECT_INT(world.done, JOBS + status.jobs[JOB_FLAGGED]);
    /* It does not come back by itself. */
    EXPECT_OK(move("next", MODEL_CANDIDATE, 0, false, &done), error);
    EXPECT_INT(move("next", MODEL_CANARY, 5, false, &done), STATUS_MISMATCH);
    EXPECT_CONTAINS(error.text, "last evaluation did not pass");
    EXPECT_OK(watch_sweep(watch, store, &report, &error), error);
    EXPECT_INT(report.result, WATCH_IDLE);
    watch_destroy(watch);
    close_store();
}

static void a_canary_that_disagrees_goes(void)
{
    struct world world = {.random = 2, .disagreed = 0.5};
    struct watch *watch = make_watch();
    start(50);
    submit_jobs(0, 450, 1); /* with an audit job each */
    struct watch_report report = play(&world, watch);
    EXPECT_INT(report.result, WATCH_ROLLED_BACK);
    EXPECT_INT(report.cause, ROLLBACK_RUNS_DISAGREED);
    EXPECT(report.canary_side->agreement.jobs >= 100);
    EXPECT_INT(report.promoted_side->agreement.bad, 0);
    EXPECT_INT(report.canary_side->flags.bad, 0);
    watch_destroy(watch);
    close_store();
}

/* Answers that a version gave before it became a canary are not the canary's, and another canary
 * begins at nothing. */
static void a_healthy_canary_stays_and_begins_at_nothing(void)
{
    struct world world = {.random = 3, .flagged = 1.0};
    struct watch *watch = make_watch();
    struct watch_report report;
    struct model_event done;
    start(100);
    submit_jobs(0, 80, 0); /* fewer than five runs */
    report = play(&world, watch);
    EXPECT_INT(report.result, WATCH_STAYS);
    EXPECT_INT(report.canary_side->flags.bad, 80);
    EXPECT_OK(move("next", MODEL_SHADOW, 0, false, &done), error);
    EXPECT_OK(watch_sweep(watch, store, &report, &error), error);
    EXPECT_INT(report.result, WATCH_IDLE);
    EXPECT_OK(move("next", MODEL_CANARY, 50, true, &done), error);
    world.flagged = 0.0;
    submit_jobs(1000, 300, 3);
    report = play(&world, watch);
    EXPECT_INT(report.result, WATCH_STAYS);
    EXPECT_INT(report.canary_side->flags.bad, 0);
    EXPECT_INT(report.canary_side->flags.jobs + report.promoted_side->flags.jobs, 300);
    EXPECT_INT(report.canary_side->agreement.jobs + report.promoted_side->agreement.jobs, 100);
    EXPECT_OK(move("next", MODEL_CANARY, 60, true, &done),
              error); /* another share, the same facts */
    EXPECT_OK(watch_sweep(watch, store, &report, &error), error);
    EXPECT_INT(report.canary_side->flags.jobs + report.promoted_side->flags.jobs, 300);
    watch_destroy(watch);
    close_store();
}

/* Goal: a teacher's canary goes when it says of its audits what the students do not. */
static void a_canary_of_the_teacher_goes(void)
{
    struct world world = {.random = 5, .disagreed = 0.5};
    struct watch_report report = {.result = WATCH_IDLE};
    watched = TIER_TEACHER;
    struct watch *watch = make_watch();
    start(50);
    submit_jobs(0, 450, 1);
    report = play(&world, watch);
    EXPECT_INT(report.result, WATCH_ROLLED_BACK);
    EXPECT_INT(report.cause, ROLLBACK_RUNS_DISAGREED);
    EXPECT(report.canary_side->agreement.jobs >= 100);
    EXPECT_INT(report.promoted_side->agreement.bad, 0);
    EXPECT(report.promoted_side->flags.jobs > 50); /* audits are what a teacher drives */
    watched = TIER_STUDENT;
    struct watch *other = make_watch();
    EXPECT_OK(watch_sweep(other, store, &report, &error), error);
    EXPECT_INT(report.result, WATCH_IDLE);
    watch_destroy(other);
    watch_destroy(watch);
    close_store();
}

static const struct store_ops *plain_ops;

/* Somebody decides while the watch is reading. */
static enum status promote_meanwhile(struct store *at, const struct store_outcome_filter *filter,
                                     struct outcome *out, uint32_t *count, struct error *why)
{
    struct model_event done;
    store->ops = plain_ops;
    EXPECT_OK(move("next", MODEL_PROMOTED, 0, true, &done), error);
    return plain_ops->outcomes(at, filter, out, count, why);
}

static void a_decision_during_a_look_stands(void)
{
    struct world world = {.random = 4, .flagged = 1.0};
    struct watch *watch = make_watch();
    struct watch_report report;
    static struct model_version pages[8];
    struct model_event event;
    uint32_t count = 0;
    start(100);
    submit_jobs(0, 200, 0);
    while (work(&world, 100) > 0) {
    }
    struct store_ops hooked = *store->ops;
    plain_ops = store->ops;
    hooked.outcomes = promote_meanwhile;
    store->ops = &hooked;
    enum status status = watch_sweep(watch, store, &report, &error);
    store->ops = plain_ops;
    EXPECT_OK(status, error);
    EXPECT_INT(report.result, WATCH_IDLE);
    EXPECT_OK(store->ops->models(store, "", pages, COUNT_OF(pages), &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(strcmp(pages[i].name, "next") != 0 || pages[i].state == MODEL_PROMOTED);
    }
    for (int64_t after = 0; count > 0;) { /* no verdict of a look that was overtaken */
        EXPECT_OK(store->ops->model_events(store, after, &event, 1, &count, &error), error);
        EXPECT(count == 0 || event.kind != MODEL_EVALUATED);
        after = event.id;
    }
    watch_destroy(watch);
    close_store();
}

int main(void)
{
    return file_begin() ? file_finish(TEST_RUN(TEST(a_canary_that_is_flagged_goes),
                                               TEST(a_canary_that_disagrees_goes),
                                               TEST(a_canary_of_the_teacher_goes),
                                               TEST(a_healthy_canary_stays_and_begins_at_nothing),
                                               TEST(a_decision_during_a_look_stands)))
                        : 1;
}
