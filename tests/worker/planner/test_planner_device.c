/*
 * Goal: a planner that reads its observations on the device drives as one that reads them in host
 * memory, to the last bit, through forks, parking, dark sensors and its own death; no frame comes
 * down for it; and where it cannot be given what it wants, it is refused in words that help.
 * Method: the emulated module (argv[1]), a small random model and one plugin compiled for both
 * places (plugin_places.c), whose actions follow from every byte that it is shown.
 */
#include "base/check.h"
#include "engine/learned/device.h"
#include "engine/learned/model.h"
#include "engine/worlds/world.h"
#include "tests/engine/small_model.h"
#include "tests/worker/jobs.h"
#include "worker/planner/planner_trial.h"

#include <dlfcn.h>

enum { HORIZON = 5, SLOTS = 2, FORK_TICK = 2, BLIND_TICK = 3 };

/* As in plugin_places.c. */
struct device_plugin_seen {
    struct swerve_place place;
    char backend[64];
    uint64_t queries;
    const uint8_t *low, *high;
};

static struct device device;
static struct model *model;
static struct jobs_scenario drive;

/* Branches that fork while sensors are dark, or go dark later or from the first tick on; more than
 * there are slots. */
static void create_scenario(void)
{
    jobs_scenario_init(&drive, "drive", HORIZON);
    jobs_clear_lane(&drive);
    struct intervention *dark = jobs_branch(&drive, 0, INTERVENE_STACK_DROPOUT);
    dark->sensors = SENSOR_LIDAR | SENSOR_CAMERA_RIGHT;
    dark->duration_s = 0.3;
    dark = jobs_branch(&drive, FORK_TICK, INTERVENE_STACK_DROPOUT);
    dark->sensors = SENSOR_ALL;
    dark->duration_s = 0.3;
    jobs_branch(&drive, FORK_TICK, INTERVENE_EGO_BRAKE)->decel_mps2 = 2.0;
    dark = jobs_then(&drive, BLIND_TICK, INTERVENE_STACK_DROPOUT);
    dark->sensors = SENSOR_CAMERA_FRONT;
    dark->duration_s = 0.2;
    jobs_prepared(&drive);
}

/* Nothing is flagged: frames of a random model are not healthy. */
static void no_judgement(void *context, const struct frame_stats *frame_stats,
                         const double *statistic)
{
    (void)context, (void)frame_stats, (void)statistic;
}

static enum status create(const char *planner, const struct device *on, uint32_t slots,
                          enum conditioning conditioning, bool solo, struct runner **out,
                          struct error *error)
{
    const struct runner_config config = {
        .world = on != NULL ? &world_student_ops : &world_object_ops,
        .planner = planner,
        .slot_count = slots,
        .model = model,
        .conditioning = conditioning,
        .device = on,
        .thread_count = 1,
        .observe_health = no_judgement,
        .always_solo = solo,
        .clock = clock_system(),
    };
    return runner_create(&config, out, error);
}

static struct job_run *run(const char *planner, uint32_t slots, enum conditioning conditioning,
                           bool solo, struct runner_stats *stats)
{
    struct runner *runner = NULL;
    struct job_run *job;
    struct error error = {0};
    EXPECT_OK(create(planner, &device, slots, conditioning, solo, &runner, &error), error);
    jobs_add(runner, &drive, 0, 5);
    jobs_run(runner, &job, 1);
    if (stats != NULL) {
        *stats = *runner_stats(runner);
    }
    runner_destroy(runner);
    return job;
}

/* Sights of the plugin's latest instance. The test holds the library, and so its memory, open. */
static const struct device_plugin_seen *seen_by(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    EXPECT(library != NULL);
    const struct device_plugin_seen *seen = dlsym(library, "device_plugin_seen");
    EXPECT(seen != NULL);
    dlclose(library);
    return seen;
}

static void it_drives_as_one_that_looks_on_the_host(void)
{
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT;
         conditioning += 2) { /* agents, none */
        struct runner_stats stats;
        struct job_run *host =
            run("plugin:" PLUGIN_HOST, SLOTS, (enum conditioning)conditioning, false, NULL);
        struct job_run *there =
            run("plugin:" PLUGIN_DEVICE, SLOTS, (enum conditioning)conditioning, false, &stats);
        jobs_expect_same(host, there);
        EXPECT(stats.forks == 3 && stats.parks > 0);
        EXPECT_INT(there->results[0].ticks, HORIZON);
        job_run_destroy(there);
        if (conditioning == CONDITIONING_AGENTS) {
            there = run("plugin:" PLUGIN_EITHER, 3, CONDITIONING_AGENTS, true, &stats);
            EXPECT_INT(stats.forks, 0);
            EXPECT_INT(there->rollout_count, host->rollout_count);
            for (uint32_t i = 0; i < there->rollout_count; i++) {
                EXPECT_TEXT(there->results[i].trace_hash, host->results[i].trace_hash);
            }
            job_run_destroy(there);
        }
        job_run_destroy(host);
    }
}

/* It dies at its second tick whatever drives it, and is opened again: views are still there. */
static void it_may_die_and_be_opened_again(void)
{
    struct runner_stats stats;
    struct job_run *host = run("plugin:" PLUGIN_HOST "?1", SLOTS, CONDITIONING_AGENTS, false, NULL);
    struct job_run *there =
        run("plugin:" PLUGIN_DEVICE "?1", SLOTS, CONDITIONING_AGENTS, false, &stats);
    for (uint32_t i = 0; i < there->rollout_count; i++) {
        EXPECT_TEXT(there->results[i].trace_hash, host->results[i].trace_hash);
        EXPECT_INT(there->results[i].verdict, host->results[i].verdict);
        EXPECT_CONTAINS(there->results[i].error, "tired of it");
    }
    EXPECT(stats.planner_restarts > 0);
    EXPECT_INT(there->results[0].verdict, VERDICT_PLANNER_ERROR);
    job_run_destroy(there);
    job_run_destroy(host);
}

/* ---- where its pictures are, and what crosses the bus ---- */

static struct {
    const uint8_t *low, *high;
} views;

static int watch_views_open(struct device_session *session, uint32_t count, int bev, int cameras,
                            struct device_text *why)
{
    int fault = device.ops->views_open(session, count, bev, cameras, why);
    views.low = device.ops->view_address(session, 0, 0);
    views.high = views.low + (size_t)count * (BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES);
    return fault;
}

static uint64_t down_bytes(const struct runner *runner)
{
    return runner_cost(runner).down_bytes;
}

/* Number of ticks of one rollout that brought nothing down but counts and a digest. */
static uint32_t quiet_ticks(const char *planner, const struct device *on)
{
    struct runner *runner = NULL;
    struct error error = {0};
    uint32_t quiet = 0;
    EXPECT_OK(create(planner, on, SLOTS, CONDITIONING_AGENTS, true, &runner, &error), error);
    struct job_run *job = NULL;
    const struct job_lease lease = {.job_id = 1, .epoch = 1, .spec = {.seed = 5}};
    EXPECT_OK(job_run_create(&lease, drive.prepared, &job, &error), error);
    EXPECT_OK(runner_add(runner, job, ROLLOUT_MAIN, &error), error);
    for (uint32_t tick = 0; tick < HORIZON; tick++) {
        uint64_t before = down_bytes(runner);
        runner_tick(runner);
        uint64_t bytes = down_bytes(runner) - before;
        uint64_t counts = SLOTS * sizeof(struct device_counts);
        quiet += bytes == counts || bytes == counts + sizeof(uint64_t);
    }
    runner_destroy(runner);
    return quiet;
}

static void pictures_stay_on_the_device(void)
{
    struct device_ops watching_ops = *device.ops;
    struct device watching = device;
    watching_ops.views_open = watch_views_open;
    watching.ops = &watching_ops;
    /* All but those in which a keyframe is taken, which makes the next frame come down with its
     * tick.
     */
    uint32_t expected = 0;
    for (uint32_t tick = 0; tick < HORIZON; tick++) {
        expected += tick % trace_keyframes_period_ticks(&drive.scenario) != 0;
    }
    EXPECT(expected > HORIZON / 2);
    const struct device_plugin_seen *seen = seen_by(PLUGIN_DEVICE);
    EXPECT_INT(quiet_ticks("plugin:" PLUGIN_DEVICE, &watching), expected);
    EXPECT_INT(seen->place.device, (int)device.index);
    EXPECT_TEXT(seen->backend, device.backend);
    EXPECT_INT(seen->queries, HORIZON);
    EXPECT(seen->low >= views.low && seen->high <= views.high);
    seen = seen_by(PLUGIN_HOST);
    EXPECT_INT(quiet_ticks("plugin:" PLUGIN_HOST, &device), 0);
    EXPECT_INT(seen->place.device, -2);
}

/* ---- a device that fails under it ---- */

static uint32_t looks_until_failure;

static int failing_draw(struct device_session *session, uint32_t count, uint64_t *digests,
                        struct device_text *why)
{
    if (looks_until_failure-- > 0) {
        return device.ops->views_draw(session, count, digests, why);
    }
    snprintf(why->text, sizeof why->text, "the device went blind");
    return DEVICE_FAULT_LOST;
}

static int no_views(struct device_session *session, uint32_t count, int bev, int cameras,
                    struct device_text *why)
{
    (void)session, (void)count, (void)bev, (void)cameras;
    snprintf(why->text, sizeof why->text, "0.3 GB for observations: out of memory");
    return DEVICE_FAULT_MEMORY;
}

/* The attempt broke; the planner is not asked, and not blamed. */
static void a_device_that_fails_is_no_fault_of_the_planner(void)
{
    struct device_ops failing_ops = *device.ops;
    struct device failing = device;
    struct runner *runner = NULL;
    struct error error = {0};
    struct job_run *job;
    failing_ops.views_draw = failing_draw;
    failing.ops = &failing_ops;
    looks_until_failure = 1;
    EXPECT_OK(create("plugin:" PLUGIN_DEVICE, &failing, SLOTS, CONDITIONING_AGENTS, false, &runner,
                     &error),
              error);
    jobs_add(runner, &drive, 0, 5);
    jobs_run(runner, &job, 1);
    EXPECT_INT(seen_by(PLUGIN_DEVICE)->queries, 2); /* the main line and its first branch, once */
    EXPECT_INT(job->failure, STATUS_DEVICE);
    EXPECT_CONTAINS(job->error, "went blind");
    EXPECT_INT(runner_stats(runner)->planner_restarts, 0);
    job_run_destroy(job);
    runner_destroy(runner);
}

/* ---- refusals ---- */

static void it_is_told_where_it_is_or_refused(void)
{
    struct runner *runner = NULL;
    struct error error = {0};
    struct device_ops full_ops = *device.ops;
    struct device full = device;
    const struct device cpu = {.backend = "cpu"};
    const struct device *const elsewhere[] = {NULL, &cpu}; /* the object world; the CPU */
    for (size_t i = 0; i < COUNT_OF(elsewhere); i++) {
        EXPECT_INT(create("plugin:" PLUGIN_DEVICE, elsewhere[i], 1, CONDITIONING_AGENTS, false,
                          &runner, &error),
                   STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, "the world of this job runs on the CPU");
        EXPECT_CONTAINS(error.text, "--device cuda:N");
        EXPECT_CONTAINS(error.text, "SWERVE_WANTS_HOST_ELSE");
        EXPECT_OK(create("plugin:" PLUGIN_EITHER, elsewhere[i], 1, CONDITIONING_AGENTS, false,
                         &runner, &error),
                  error);
        EXPECT_INT(seen_by(PLUGIN_EITHER)->place.device, -1);
        EXPECT_TEXT(seen_by(PLUGIN_EITHER)->backend, "cpu");
        runner_destroy(runner);
    }
    full_ops.views_open = no_views;
    full.ops = &full_ops;
    EXPECT_INT(
        create("plugin:" PLUGIN_DEVICE, &full, 1, CONDITIONING_AGENTS, false, &runner, &error),
        STATUS_NO_MEMORY);
    EXPECT_CONTAINS(error.text, "for observations");
}

/* A trial says the same, and opens nothing that would touch a device. */
static void trials_know_where_it_will_be(void)
{
    struct error error = {0};
    EXPECT_INT(planner_try("plugin:" PLUGIN_DEVICE, NULL, NULL, false, 60000, NULL, &error),
               STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "runs on the CPU");
    EXPECT_OK(planner_try("plugin:" PLUGIN_DEVICE, NULL, NULL, true, 60000, NULL, &error), error);
    EXPECT_OK(planner_try("plugin:" PLUGIN_EITHER, NULL, NULL, false, 60000, NULL, &error), error);
    EXPECT_INT(planner_try("plugin:" PLUGIN_BAD "?fail", NULL, NULL, true, 60000, NULL, &error),
               STATUS_PLANNER);
}

int main(int argc, char **argv)
{
    struct error error = {0};
    if (argc > 1) {
        setenv("SWERVE_CUDA_MODULE", argv[1], 1);
    }
    if (device_choose("cuda:0", &device, &error) != STATUS_OK) {
        printf("1..0 # SKIP %s\n", error.text);
        return 0;
    }
    device.reference = true; /* the emulator runs them faster */
    model = small_model();
    create_scenario();
    int status = TEST_RUN(
        TEST(it_drives_as_one_that_looks_on_the_host), TEST(it_may_die_and_be_opened_again),
        TEST(pictures_stay_on_the_device), TEST(a_device_that_fails_is_no_fault_of_the_planner),
        TEST(it_is_told_where_it_is_or_refused), TEST(trials_know_where_it_will_be));
    jobs_scenario_finish(&drive);
    model_close(model);
    return status;
}
