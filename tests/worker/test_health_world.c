/*
 * Health of learned worlds. Every planted fault is caught by the right check within five ticks of
 * its beginning, in the conditionings where it can be seen, with built-in and with calibrated
 * bounds, and one that comes and goes within a stated number of ticks; a healthy drive is never
 * flagged; calibration watches, is bound to its model and cannot make a frozen world healthy.
 * Statistics against their definition on random sums.
 */
#include "tests/worker/jobs.h"
#include "tests/worker/learned_double.h"

#include "base/rng.h"
#include "worker/models/health_world.h"

#include <unistd.h>

enum { HORIZON = 36, SICK_FROM = 9 };

static struct model healthy_model = {.config = {.tier = TIER_STUDENT, .steps = 4}};

/* A drive past parked and moving cars and a pedestrian; what a camera sees is not symmetric. */
static void make_scene(struct jobs_scenario *s)
{
    jobs_scenario_init(s, "drive", HORIZON);
    jobs_clear_lane(s);
    jobs_branch(s, 4, INTERVENE_EGO_BRAKE)->decel_mps2 = 1.0;
    jobs_prepared(s);
    for (int i = 0; i < CONDITIONING_COUNT; i++) {
        healthy_model.config.horizon_ticks[i] = HORIZON;
    }
}

static struct job_run *drive(const struct jobs_scenario *s, enum conditioning conditioning,
                             const struct health_bounds *bounds, uint32_t slots)
{
    struct job_run *job;
    struct runner *runner = NULL;
    struct error error;
    const struct runner_config config = {
        .world = &double_student_ops,
        .planner = "builtin:maintain",
        .planner_config = {.tick_deadline_ms = 400},
        .slot_count = slots,
        .model = &healthy_model,
        .conditioning = conditioning,
        .bounds = bounds,
        .clock = clock_system(),
    };
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    jobs_add(runner, s, 0, 5);
    jobs_run(runner, &job, 1);
    runner_destroy(runner);
    return job;
}

static const struct {
    enum planted_fault fault;
    int check;                     /* -1: any */
    bool seen[CONDITIONING_COUNT]; /* with which conditionings */
} cases[] = {
    {PLANTED_NAN, HEALTH_NOT_FINITE, {true, true, true}},
    {PLANTED_FROZEN, HEALTH_FROZEN, {true, true, true}},
    {PLANTED_TELEPORT, -1, {true, false, false}},
    {PLANTED_JUMP, HEALTH_TELEPORT, {true, true, true}},
    {PLANTED_BLOOM, HEALTH_MASS, {true, true, true}},
    {PLANTED_FADE, -1, {true, false, false}},
    {PLANTED_MIRROR, HEALTH_CAMERA, {true, true, false}},
    {PLANTED_SATURATED, HEALTH_SATURATED, {true, true, true}},
    {PLANTED_HORIZON, HEALTH_HORIZON, {true, true, true}},
    {PLANTED_LOST, HEALTH_PERMANENCE, {true, true, true}},
};

static double worst_statistic[CONDITIONING_COUNT][MEASURE_COUNT];

static struct health_calibration calibration;
static enum conditioning observed_conditioning;

static void observe(void *context, const struct frame_stats *frame_stats, const double *statistic)
{
    (void)context;
    (void)frame_stats;
    health_calibration_add(&calibration, observed_conditioning, statistic);
    for (int i = 0; i < MEASURE_COUNT; i++) {
        double sign = health_measure_kinds[i].low_is_sick ? -1.0 : 1.0;
        double *worst = &worst_statistic[observed_conditioning][i];
        if (!isnan(statistic[i]) && (isnan(*worst) || sign * statistic[i] > sign * *worst)) {
            *worst = statistic[i];
        }
    }
}

/* Drives without judging; fills `calibration`. */
static void watch(const struct jobs_scenario *s, enum conditioning conditioning, uint64_t seed)
{
    struct job_run *job;
    struct runner *runner = NULL;
    struct error error;
    const struct runner_config config = {
        .world = &double_student_ops,
        .planner = "builtin:maintain",
        .slot_count = 2,
        .model = &healthy_model,
        .conditioning = conditioning,
        .observe_health = observe,
        .clock = clock_system(),
    };
    observed_conditioning = conditioning;
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    jobs_add(runner, s, 0, seed);
    jobs_run(runner, &job, 1);
    runner_destroy(runner);
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        EXPECT(job->results[i].verdict != VERDICT_FLAGGED);
    }
    calibration.rollouts++;
    job_run_destroy(job);
}

static void calibrate(const struct jobs_scenario *s)
{
    memset(&calibration, 0, sizeof calibration);
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        for (int i = 0; i < MEASURE_COUNT; i++) {
            worst_statistic[conditioning][i] = (double)NAN;
        }
        for (uint64_t seed = 1; seed <= 3; seed++) {
            watch(s, (enum conditioning)conditioning, seed);
        }
    }
}

static void a_healthy_drive_is_never_flagged(void)
{
    struct jobs_scenario s;
    planted.fault = PLANTED_NONE;
    make_scene(&s);
    calibrate(&s);
    struct health_bounds calibrated = health_calibration_bounds(&calibration, "h", NN_BF16);
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        const struct health_bounds *both[] = {NULL, &calibrated};
        for (int b = 0; b < 2; b++) {
            struct job_run *job = drive(&s, (enum conditioning)conditioning, both[b], 2);
            for (uint32_t i = 0; i < job->rollout_count; i++) {
                EXPECT_TEXT(job->results[i].error, "");
                EXPECT_INT(job->results[i].ticks, HORIZON);
                double ticks = job->results[i].ticks - job->results[i].prefix_ticks;
                EXPECT(fabs(job->results[i].flop - ticks * DOUBLE_MFLOP_PER_TICK * 1e6) < 1.0);
                EXPECT(job->results[i].snapshot == NULL);
            }
            job_run_destroy(job);
        }
    }
    jobs_scenario_finish(&s);
}

static void every_planted_fault_is_caught(void)
{
    struct jobs_scenario s;
    planted.fault = PLANTED_NONE;
    make_scene(&s);
    calibrate(&s);
    struct health_bounds calibrated = health_calibration_bounds(&calibration, "h", NN_BF16);
    planted.from_tick = SICK_FROM;
    planted.in_tier[TIER_STUDENT] = true;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
            for (int b = 0; b < 2 && cases[c].seen[conditioning]; b++) {
                planted.fault = cases[c].fault;
                struct job_run *job = drive(&s, (enum conditioning)conditioning,
                                            b == 0 ? NULL : &calibrated, 1 + (uint32_t)(c % 2));
                for (uint32_t i = 0; i < job->rollout_count; i++) {
                    const struct rollout_result *result = &job->results[i];
                    if (result->verdict != VERDICT_FLAGGED ||
                        /* Narrower bounds may see another side of a fault first. */
                        (b == 0 && cases[c].check >= 0 &&
                         (int)result->health.check != cases[c].check) ||
                        result->health.tick < SICK_FROM || result->health.tick > SICK_FROM + 5) {
                        TEST_FAIL("fault %d, %s, %s bounds: verdict %d, \"%s\"",
                                  (int)cases[c].fault, conditioning_names[conditioning],
                                  b == 0 ? "built-in" : "calibrated", (int)result->verdict,
                                  result->error);
                    }
                    EXPECT(result->snapshot != NULL);
                    EXPECT_CONTAINS(result->error, health_check_names[result->health.check]);
                }
                job_run_destroy(job);
            }
        }
    }
    planted.fault = PLANTED_NONE;
    jobs_scenario_finish(&s);
}

/* A world that is well again in between: `ticks` of each `period` are sick, and found after so many
 * ticks at the latest, and a period more where the first sick ticks are mild. */
static const struct {
    uint32_t period, ticks, within;
} flickers[] = {{2, 1, 6}, {3, 1, 15}, {3, 2, 4}, {4, 1, 20}, {4, 2, 5}, {4, 3, 5}};

static void a_fault_that_comes_and_goes_is_caught(void)
{
    struct jobs_scenario s;
    planted.fault = PLANTED_NONE;
    make_scene(&s);
    planted.from_tick = SICK_FROM;
    planted.in_tier[TIER_STUDENT] = true;
    for (size_t f = 0; f < sizeof flickers / sizeof *flickers; f++) {
        planted.period = flickers[f].period;
        planted.ticks = flickers[f].ticks;
        uint32_t latest = SICK_FROM + flickers[f].within + flickers[f].period;
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
                if (!cases[c].seen[conditioning]) {
                    continue;
                }
                planted.fault = cases[c].fault;
                struct job_run *job = drive(&s, (enum conditioning)conditioning, NULL, 2);
                for (uint32_t i = 0; i < job->rollout_count; i++) {
                    const struct rollout_result *result = &job->results[i];
                    if (result->verdict != VERDICT_FLAGGED || result->health.tick < SICK_FROM ||
                        result->health.tick > latest) {
                        TEST_FAIL("fault %d, %u of %u ticks, %s: verdict %d, tick %u, \"%s\"",
                                  (int)cases[c].fault, planted.ticks, planted.period,
                                  conditioning_names[conditioning], (int)result->verdict,
                                  result->health.tick, result->error);
                    }
                }
                job_run_destroy(job);
            }
        }
    }
    planted.fault = PLANTED_NONE;
    planted.period = 0;
    jobs_scenario_finish(&s);
}

static double draw(uint64_t *state)
{
    return (double)(rng_mix(++*state) >> 11) * 0x1p-53;
}

/* The least value that `count` of the last `window` of past[0..tick] do not exceed. */
static double reached(const double *past, uint32_t tick, uint32_t window, uint32_t count)
{
    double least = (double)NAN;
    for (uint32_t i = 0; i <= tick && i < window; i++) {
        double candidate = past[tick - i];
        uint32_t within = 0;
        for (uint32_t k = 0; k <= tick && k < window; k++) {
            within += past[tick - k] <= candidate ? 1 : 0;
        }
        least = within >= count && !(candidate >= least) ? candidate : least;
    }
    return least;
}

/* The statistic is the worst that enough ticks reach, and none before there are so many. */
static void statistics_are_what_lasts(void)
{
    uint64_t state = 1;
    for (int round = 0; round < 200; round++) {
        struct health_world memory = {0};
        struct health_world twin;
        double past[64];
        for (uint32_t tick = 0; tick < 64; tick++) {
            bool nothing = draw(&state) < 0.2;
            struct frame_stats frame_stats = {
                .tick = tick,
                .saturated_share = draw(&state),
                .layout_iou = nothing ? (double)NAN : draw(&state),
                .layout_cells = 100,
                .occupancy_cells = 100,
                .camera_layout_corr = (double)NAN,
                .ego_step_m = 0.0,
            };
            double statistic[MEASURE_COUNT];
            double again[MEASURE_COUNT];
            past[tick] = frame_stats.layout_iou;
            twin = memory; /* a fork */
            health_world_measure(&memory, &frame_stats, statistic);
            health_world_measure(&twin, &frame_stats, again);
            double expected = fmin(reached(past, tick, 3, 3), reached(past, tick, 8, 4));
            expected = fmin(expected, reached(past, tick, 24, 6));
            EXPECT(isnan(expected) ? isnan(statistic[MEASURE_LAYOUT])
                                   : statistic[MEASURE_LAYOUT] == expected);
            EXPECT(isnan(statistic[MEASURE_STILL]) && isnan(statistic[MEASURE_CAMERA]));
            EXPECT(statistic[MEASURE_MASS_HIGH] == 1.0 || tick < 2);
            for (int i = 0; i < MEASURE_COUNT; i++) {
                EXPECT(isnan(statistic[i]) ? isnan(again[i]) : statistic[i] == again[i]);
            }
        }
    }
}

/* A drive keeps the worst, by the end that is sick, and the mean of what is judged; a fork has its
 * past in it. */
static void a_drive_keeps_worst_and_mean(void)
{
    uint64_t state = 7;
    struct health_world memory = {0};
    struct drive_health none;
    struct drive_health kept;
    double sum[MEASURE_COUNT] = {0};
    double least[MEASURE_COUNT];
    double most[MEASURE_COUNT];
    uint32_t count[MEASURE_COUNT] = {0};
    static const struct drive_health zero;
    health_world_drive(&memory, &none);
    EXPECT(memcmp(&none, &zero, sizeof none) == 0);
    for (uint32_t tick = 0; tick < 40; tick++) {
        struct frame_stats frame_stats = {.tick = tick,
                                          .saturated_share = draw(&state),
                                          .layout_iou = draw(&state),
                                          .layout_cells = 100,
                                          .occupancy_cells = 100 * draw(&state),
                                          .camera_layout_corr = (double)NAN,
                                          .jump_m = draw(&state)};
        double statistic[MEASURE_COUNT];
        struct health_world fork = memory;
        memory = fork;
        health_world_measure(&memory, &frame_stats, statistic);
        for (int i = 0; i < MEASURE_COUNT; i++) {
            if (!isnan(statistic[i])) {
                least[i] = count[i] == 0 ? statistic[i] : fmin(least[i], statistic[i]);
                most[i] = count[i] == 0 ? statistic[i] : fmax(most[i], statistic[i]);
                sum[i] += statistic[i];
                count[i]++;
            }
        }
    }
    health_world_drive(&memory, &kept);
    EXPECT_INT(kept.measured_ticks, 40);
    for (int i = 0; i < MEASURE_COUNT; i++) {
        if (count[i] == 0) {
            EXPECT(isnan(kept.worst[i]) && isnan(kept.mean[i]));
        } else {
            EXPECT(kept.worst[i] == (health_measure_kinds[i].low_is_sick ? least[i] : most[i]));
            EXPECT(kept.mean[i] == sum[i] / count[i]);
        }
    }
    EXPECT_INT(count[MEASURE_CAMERA], 0);
    EXPECT(kept.worst[MEASURE_MASS_LOW] < kept.worst[MEASURE_MASS_HIGH]);
    EXPECT(kept.worst[MEASURE_LAYOUT] < kept.mean[MEASURE_LAYOUT]);
    EXPECT(kept.worst[MEASURE_JUMP] > kept.mean[MEASURE_JUMP]);
}

static char directory[64];

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *stream = fopen(path, "w");
    EXPECT(stream != NULL);
    EXPECT(fputs(text, stream) >= 0);
    EXPECT_INT(fclose(stream), 0);
}

static void calibrations_belong_to_their_model(void)
{
    struct jobs_scenario s;
    struct error error;
    struct health_bounds saved;
    struct health_bounds loaded;
    char hash[SHA256_HEX_BYTES];
    char other[SHA256_HEX_BYTES];
    sha256_hex("a", 1, hash);
    sha256_hex("b", 1, other);
    planted.fault = PLANTED_NONE;
    make_scene(&s);
    calibrate(&s);
    saved = health_calibration_bounds(&calibration, hash, NN_BF16);
    EXPECT_OK(health_bounds_load(directory, "m", hash, NN_BF16, &loaded, &error), error);
    EXPECT(!loaded.calibrated);
    EXPECT_OK(health_calibration_save(&calibration, &saved, directory, "m", &error), error);
    EXPECT_OK(health_bounds_load(directory, "m", hash, NN_BF16, &loaded, &error), error);
    EXPECT(loaded.calibrated && memcmp(loaded.bound, saved.bound, sizeof saved.bound) == 0);
    EXPECT_INT(health_bounds_load(directory, "m", other, NN_BF16, &loaded, &error),
               STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "m.health.json");
    /* .. and to the precision that it was driven in, each in a file of its own. */
    EXPECT_OK(health_bounds_load(directory, "m", hash, NN_INT8, &loaded, &error), error);
    EXPECT(!loaded.calibrated);
    struct health_bounds integers = health_calibration_bounds(&calibration, hash, NN_INT8);
    integers.bound[CONDITIONING_AGENTS][MEASURE_LAYOUT] = 0.25;
    EXPECT_OK(health_calibration_save(&calibration, &integers, directory, "m", &error), error);
    EXPECT_OK(health_bounds_load(directory, "m", hash, NN_INT8, &loaded, &error), error);
    EXPECT(loaded.calibrated && loaded.bound[CONDITIONING_AGENTS][MEASURE_LAYOUT] == 0.25);
    EXPECT_OK(health_bounds_load(directory, "m", hash, NN_BF16, &loaded, &error), error);
    EXPECT(loaded.calibrated && memcmp(loaded.bound, saved.bound, sizeof saved.bound) == 0);
    EXPECT_OK(health_bounds_load(directory, "m", hash, NN_FP32, &loaded, &error), error);
    EXPECT(!loaded.calibrated);
    /* Bounds of one precision under the name of another are nobody's. */
    char from[LIMIT_PATH_BYTES];
    char to[LIMIT_PATH_BYTES];
    snprintf(from, sizeof from, "%s/m.health.json", directory);
    snprintf(to, sizeof to, "%s/n.int8.health.json", directory);
    EXPECT_INT(rename(from, to), 0);
    EXPECT_INT(health_bounds_load(directory, "n", hash, NN_INT8, &loaded, &error),
               STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "n.int8.health.json: expected bounds that were calibrated in int8, "
                                "found those of bf16");
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        for (int i = 0; i < MEASURE_COUNT; i++) {
            double worst = worst_statistic[conditioning][i];
            double bound = saved.bound[conditioning][i];
            const struct health_measure_info *info = &health_measures[i];
            EXPECT(bound >= info->floor && bound <= info->ceiling);
            if (isnan(worst)) {
                EXPECT(bound == info->builtin[conditioning]);
            } else {
                EXPECT(health_measure_kinds[i].low_is_sick ? bound <= fmax(worst, info->floor)
                                                           : bound >= fmin(worst, info->ceiling));
            }
        }
    }
    write_file("bad.health.json", "{\"format\": \"swerve-health/1\"}");
    EXPECT(health_bounds_load(directory, "bad", hash, NN_BF16, &loaded, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "bad.health.json");
    jobs_scenario_finish(&s);
}

int main(void)
{
    char command[128];
    snprintf(directory, sizeof directory, "/tmp/swerve-health-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        return 1;
    }
    int failed =
        TEST_RUN(TEST(a_healthy_drive_is_never_flagged), TEST(every_planted_fault_is_caught),
                 TEST(a_fault_that_comes_and_goes_is_caught), TEST(statistics_are_what_lasts),
                 TEST(a_drive_keeps_worst_and_mean), TEST(calibrations_belong_to_their_model));
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) == 0 ? failed : 1;
}
