/*
 * Health of a learned world that draws other traffic than there is. Goal: of the damages that turn
 * a verdict round, at least 95% are flagged, and of undamaged drives at most 1%.
 *
 * Method: every scenario of a suite in the object world, then in the double, whose frames are what
 * the sensor model records of a scene with the damage in it, and which the planner sees; scored by
 * what is there. Health only watches, so that each drive also comes to its verdict: a damage that
 * was planted flips when the double with it ends otherwise than the object world, and without it
 * does not.
 *
 *     test_worker_health_damage                          a few scenarios, as a test
 *     test_worker_health_damage SUITE.json [PART PARTS]  the table of a suite, of every PARTSth
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "scenarios/scenarios.h"
#include "tests/worker/learned_double.h"
#include "worker/models/health_world.h"
#include "worker/run/runner.h"

#include <math.h>
#include <stdlib.h>

enum { FROM_TICK = 5, TRUSTED_TICKS = 100000, TEST_TICKS = 60 };

/* ---- damages ---- */

enum damage {
    UNDAMAGED = 0,
    ERASED_VRU, /* the one that comes nearest to ego */
    ERASED_CAR,
    SHIFTED, /* the nearest agent, 1 m to its left */
    LAGGING, /* all agents where they were 0.3 s ago */
    PHANTOM, /* a car stands 25 m ahead */
    STANDING,
    UNREACTIVE, /* the nearest agent behind ego goes on as it went */
    MIRRORED,
    FROZEN,
    DRIFTING,   /* all agents, from 3 s on by 0.3 m/s to their left */
    FLICKERING, /* as ERASED_VRU, in two of three ticks */
    DAMAGE_COUNT
};

static const char *const damage_names[DAMAGE_COUNT] = {
    "none",    "erased VRU",    "erased car",          "1 m shift",       "0.3 s lag",
    "phantom", "frozen agent",  "unreactive follower", "mirrored camera", "frozen world",
    "drift",   "flickering VRU"};

static enum damage damage;

/* Agents of the scenario that damages concern, -1: none; found in the undamaged drive. */
static struct {
    const struct scenario *scenario;
    int vru, car, any, follower;
    double vru_m, car_m, any_m, follower_m;
    int phantom;
} targets;

static void keep_nearest(int *nearest, double *nearest_m, int agent, double distance_m)
{
    if (*nearest < 0 || distance_m < *nearest_m) {
        *nearest = agent;
        *nearest_m = distance_m;
    }
}

static void find_targets(const struct scene *scene)
{
    const struct pose *ego = &scene->ego.pose;
    for (int i = 0; i < (int)scene->agent_count; i++) {
        enum agent_kind kind = targets.scenario->agents[i].kind;
        const struct pose *at = &scene->agents[i].pose;
        double dx = at->x_m - ego->x_m;
        double dy = at->y_m - ego->y_m;
        double along = dx * cos(ego->heading_rad) + dy * sin(ego->heading_rad);
        double across = dy * cos(ego->heading_rad) - dx * sin(ego->heading_rad);
        bool rider = kind >= AGENT_MOTORCYCLE && kind <= AGENT_ANIMAL;
        if (!scene->agents[i].present || i == targets.phantom) {
            continue;
        }
        keep_nearest(&targets.any, &targets.any_m, i, hypot(dx, dy));
        if (rider) {
            keep_nearest(&targets.vru, &targets.vru_m, i, hypot(dx, dy));
        } else if (kind <= AGENT_BUS) {
            keep_nearest(&targets.car, &targets.car_m, i, hypot(dx, dy));
        }
        if (kind <= AGENT_MOTORCYCLE && scene->tick == FROM_TICK && along < -3 &&
            fabs(across) < 2 && scene->agents[i].speed_mps > 1) {
            keep_nearest(&targets.follower, &targets.follower_m, i, -along);
        }
    }
}

static void move_left(struct pose *pose, double left_m)
{
    pose->x_m -= left_m * sin(pose->heading_rad);
    pose->y_m += left_m * cos(pose->heading_rad);
}

static void carry_on(const struct agent_state *start, double seconds, struct pose *pose)
{
    *pose = start->pose;
    pose->x_m += start->speed_mps * seconds * cos(pose->heading_rad);
    pose->y_m += start->speed_mps * seconds * sin(pose->heading_rad);
}

static void stand_ahead(const struct scene *start, struct agent_state *agent)
{
    agent->present = true;
    agent->speed_mps = 0;
    agent->pose = start->ego.pose;
    agent->pose.x_m += 25.0 * cos(agent->pose.heading_rad);
    agent->pose.y_m += 25.0 * sin(agent->pose.heading_rad);
}

static void believe(const struct double_memory *memory, struct scene *scene)
{
    const struct scene *late = &memory->recent[(scene->tick + 1) % (DOUBLE_LAG_TICKS + 1)];
    struct agent_state *agents = scene->agents;
    double since_s = ((double)scene->tick - FROM_TICK) * TICK_S;
    switch (damage) {
    case UNDAMAGED:
        find_targets(scene);
        break;
    case ERASED_VRU:
        agents[targets.vru].present = false;
        break;
    case FLICKERING:
        agents[targets.vru].present &= (scene->tick - FROM_TICK) % 3 == 2;
        break;
    case ERASED_CAR:
        agents[targets.car].present = false;
        break;
    case SHIFTED:
        move_left(&agents[targets.any].pose, 1.0);
        break;
    case LAGGING:
        memcpy(agents, late->agents, sizeof late->agents);
        break;
    case PHANTOM:
        stand_ahead(&memory->start, &agents[targets.phantom]);
        break;
    case STANDING:
        agents[targets.any].pose = memory->start.agents[targets.any].pose;
        break;
    case UNREACTIVE:
        carry_on(&memory->start.agents[targets.follower], since_s, &agents[targets.follower].pose);
        break;
    case DRIFTING:
        for (uint32_t i = 0; i < scene->agent_count && since_s > 3.0; i++) {
            move_left(&agents[i].pose, 0.3 * (since_s - 3.0));
        }
        break;
    default:
        break;
    }
}

/* Those that the test plants; the table has all. */
static bool is_gross(enum damage kind)
{
    return kind <= ERASED_CAR || kind == PHANTOM || kind == STANDING || kind == FROZEN ||
           kind == FLICKERING;
}

static bool has_target(enum damage kind)
{
    switch (kind) {
    case ERASED_VRU:
    case FLICKERING:
        return targets.vru >= 0;
    case ERASED_CAR:
        return targets.car >= 0;
    case SHIFTED:
    case LAGGING:
    case STANDING:
    case DRIFTING:
        return targets.any >= 0;
    case UNREACTIVE:
        return targets.follower >= 0;
    default:
        return true;
    }
}

/* ---- drives ---- */

struct drive {
    enum verdict verdict;
    int64_t flagged_tick; /* -1: never */
    enum health_check check;
};

static struct drive *watched;

/* Judges as the runner would, and lets the drive go on. */
static void observe(void *context, const struct frame_stats *frame_stats, const double *statistic)
{
    static const struct health_world nobody;
    const struct health_bounds bounds = health_bounds_builtin();
    struct health_verdict verdict;
    (void)context;
    if (watched->flagged_tick < 0 && !health_world_judge(&nobody, frame_stats, statistic, &bounds,
                                                         CONDITIONING_AGENTS, &verdict)) {
        watched->flagged_tick = (int64_t)frame_stats->tick;
        watched->check = verdict.check;
    }
}

static struct model perfect = {.config = {.tier = TIER_STUDENT, .steps = 2}};

static struct drive drive(struct prepared *prepared, uint64_t seed, bool in_object)
{
    struct drive result = {.flagged_tick = -1};
    struct runner *runner = NULL;
    struct job_run *job = NULL;
    struct error error;
    const struct job_lease lease = {.epoch = 1, .spec = {.seed = seed}};
    const struct runner_config config = {
        .world = in_object ? &world_object_ops : &double_student_ops,
        .planner = "builtin:reference",
        .slot_count = 1,
        .model = in_object ? NULL : &perfect,
        .observe_health = observe,
        .clock = clock_system(),
    };
    watched = &result;
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    EXPECT_OK(job_run_create(&lease, prepared, &job, &error), error);
    EXPECT_OK(runner_add(runner, job, ROLLOUT_MAIN, &error), error);
    do {
        runner_tick(runner);
    } while ((job = runner_take(runner)) == NULL);
    result.verdict = job->results[0].verdict;
    job_run_destroy(job);
    runner_destroy(runner);
    return result;
}

static struct drive drive_damaged(struct prepared *prepared, uint64_t seed, enum damage kind)
{
    damage = kind;
    planted.fault = kind == MIRRORED ? PLANTED_MIRROR
                    : kind == FROZEN ? PLANTED_FROZEN
                                     : PLANTED_BELIEF;
    planted.from_tick = kind == UNDAMAGED ? 0 : FROM_TICK;
    return drive(prepared, seed, false);
}

/* ---- a suite ---- */

struct row {
    int64_t drives;
    int64_t differs; /* undamaged drives that end otherwise than the object world's */
    int64_t flagged;
    int64_t flips;
    int64_t caught;
    int64_t ticks; /* until the flag, of those caught */
};

static struct row rows[DAMAGE_COUNT];

static void count(struct row *row, const struct drive *drive, bool flips)
{
    row->drives++;
    row->flagged += drive->flagged_tick >= 0;
    row->flips += flips;
    if (flips && drive->flagged_tick >= 0) {
        row->caught++;
        row->ticks += drive->flagged_tick - FROM_TICK;
    }
}

/* A copy with one more agent, a hidden car: the phantom. */
static struct scenario with_phantom(const struct scenario *scenario)
{
    struct scenario copy = *scenario;
    struct agent *agents = calloc(scenario->agent_count + 1, sizeof *agents);
    CHECK(agents != NULL && scenario->agent_count < LIMIT_AGENTS);
    if (scenario->agent_count > 0) {
        memcpy(agents, scenario->agents, scenario->agent_count * sizeof *agents);
    }
    agents[copy.agent_count++] = (struct agent){.id = "phantom",
                                                .kind = AGENT_CAR,
                                                .length_m = 4.5,
                                                .width_m = 1.8,
                                                .height_m = 1.5,
                                                .pose = scenario->ego.pose,
                                                .hidden = true,
                                                .behaviour = BEHAVIOUR_STATIC};
    copy.agents = agents;
    return copy;
}

/* A line of CSV: slices, safety-critical, damage, flips, tick and check of the flag. */
static void tell(const struct scenario *scenario, uint64_t seed, int kind,
                 const struct drive *drive, bool flips)
{
    for (const char *c = scenario->id; *c != '\0'; c++) {
        putchar(*c == ',' ? ' ' : *c); /* those of a grid */
    }
    printf(",%llu", (unsigned long long)seed);
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        printf(",%s", scenario->slices.value[i]);
    }
    printf(",%d,%s,%d,%lld,%s\n", scenario->slices.safety_critical, damage_names[kind], flips,
           (long long)drive->flagged_tick,
           drive->flagged_tick < 0 ? "" : health_check_names[drive->check]);
}

static void drive_scenario(const struct scenario *original, uint64_t seed, bool table)
{
    struct scenario scenario = with_phantom(original);
    scenario.horizon_ticks =
        table || original->horizon_ticks < TEST_TICKS ? original->horizon_ticks : TEST_TICKS;
    struct prepared *prepared = NULL;
    struct error error;
    targets.scenario = &scenario;
    targets.vru = targets.car = targets.any = targets.follower = -1;
    targets.phantom = (int)original->agent_count;
    EXPECT_OK(prepared_create(&scenario, &prepared, &error), error);
    struct drive object = drive(prepared, seed, true);
    struct drive healthy = drive_damaged(prepared, seed, UNDAMAGED);
    count(&rows[UNDAMAGED], &healthy, false);
    rows[UNDAMAGED].differs += object.verdict != healthy.verdict;
    if (table) {
        tell(&scenario, seed, UNDAMAGED, &healthy, object.verdict != healthy.verdict);
    }
    for (int kind = UNDAMAGED + 1; kind < DAMAGE_COUNT; kind++) {
        if (has_target((enum damage)kind) && (table || is_gross((enum damage)kind))) {
            struct drive sick = drive_damaged(prepared, seed, (enum damage)kind);
            bool flips = sick.verdict != object.verdict && object.verdict == healthy.verdict;
            count(&rows[kind], &sick, flips);
            if (table) {
                tell(&scenario, seed, kind, &sick, flips);
            }
        }
    }
    prepared_unref(prepared);
    free(scenario.agents);
}

static void drive_suite(const char *path, uint32_t part, uint32_t parts, bool table)
{
    struct suite *suite = NULL;
    struct error error;
    uint32_t next = 0;
    for (int i = 0; i < CONDITIONING_COUNT; i++) {
        perfect.config.horizon_ticks[i] = TRUSTED_TICKS;
    }
    planted.in_tier[TIER_STUDENT] = true;
    planted.shown = true;
    planted.believe = believe;
    EXPECT_OK(suite_load(path, &suite, &error), error);
    for (uint32_t e = 0; e < suite->entry_count; e++) {
        const struct suite_entry *entry = &suite->entries[e];
        for (uint32_t s = 0; s < entry->seed_count; s++) {
            if (next++ % parts == part) {
                drive_scenario(&entry->document->scenario, entry->seeds[s], table);
            }
        }
    }
    suite_destroy(suite);
}

static void print_rows(void)
{
    printf("%-20s %7s %8s %6s %7s %s\n", "damage", "drives", "flagged", "flips", "caught",
           "ticks until then");
    for (int i = 0; i < DAMAGE_COUNT; i++) {
        const struct row *row = &rows[i];
        printf("%-20s %7lld %8lld %6lld %7lld %.1f\n", damage_names[i], (long long)row->drives,
               (long long)row->flagged, (long long)row->flips, (long long)row->caught,
               row->caught > 0 ? (double)row->ticks / (double)row->caught : 0.0);
    }
    printf("undamaged drives that end otherwise than the object world's: %lld\n",
           (long long)rows[UNDAMAGED].differs);
}

/* A pedestrian who walks into the lane, a child who runs out from behind cars, and a car that
 * stands in the lane. */
static void what_flips_a_verdict_is_flagged(void)
{
    int64_t flips = 0;
    memset(rows, 0, sizeof rows);
    drive_suite(SWERVE_SOURCE_ROOT "/scenarios/ncap/cpna.json", 0, 1, false);
    drive_suite(SWERVE_SOURCE_ROOT "/scenarios/ncap/cpnco_50.json", 0, 1, false);
    drive_suite(SWERVE_SOURCE_ROOT "/scenarios/ncap/ccrs.json", 0, 1, false);
    for (int i = 0; i < DAMAGE_COUNT; i++) {
        const struct row *row = &rows[i];
        flips += row->flips;
        if (row->caught != row->flips) {
            TEST_FAIL("%s: %d of %d flips are flagged", damage_names[i], (int)row->caught,
                      (int)row->flips);
        }
    }
    EXPECT(rows[ERASED_VRU].flips == 2 && rows[ERASED_CAR].flips >= 1);
    EXPECT_INT(rows[FLICKERING].flips, 1);
    EXPECT(rows[STANDING].flips > 0 && rows[FROZEN].flips > 0);
    EXPECT(flips >= 5);
    EXPECT_INT(rows[UNDAMAGED].flagged, 0);
    EXPECT_INT(rows[UNDAMAGED].differs, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        drive_suite(argv[1], argc > 3 ? (uint32_t)atoi(argv[2]) : 0,
                    argc > 3 ? (uint32_t)atoi(argv[3]) : 1, true);
        print_rows();
        return 0;
    }
    return TEST_RUN(TEST(what_flips_a_verdict_is_flagged));
}
