/*
 * The shipped library, driven: whatever ego does, the other road users behave as bodies on a road
 * do. No two of them are in one place, none accelerates, brakes or turns harder than the surface
 * under it lets it.
 *
 * Method: every scenario of the library in the world that answers it, the reference planner at the
 * wheel, main lines with several seeds and all branches with one; each tick is read back from the
 * trace. What follows ego's first contact is not looked at: worlds have no physics of impacts.
 * With --list, prints what it finds instead of failing at once.
 */
#include "tests/worker/jobs.h"

#include "base/dmath.h"
#include "base/units.h"
#include "engine/trace/trace.h"
#include "engine/traffic/ego_model.h"
#include "scenarios/scenarios.h"

#include <math.h>

/* Boxes may touch: what the validation of starts allows as well. */
#define TOUCH_M 0.01
#define SEEDS_MAX 3

static bool listing;
static uint32_t faults;

static void __attribute__((format(printf, 1, 2))) fault(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    faults++;
    if (!listing) {
        TEST_FAIL("%s", text);
    }
    printf("# %s\n", text);
}

static struct box body(const struct agent *agent, const struct agent_state *state)
{
    return box_make(state->pose, agent->length_m - TOUCH_M, agent->width_m - TOUCH_M);
}

/* Recorded agents may overlap: measured boxes do. */
static bool may_overlap(const struct agent *a, const struct agent *b)
{
    return a->behaviour == BEHAVIOUR_REPLAY && b->behaviour == BEHAVIOUR_REPLAY;
}

/* Pairs that were reported, so that each is told once per rollout. */
struct told {
    bool overlap[LIMIT_AGENTS];
    bool lon[LIMIT_AGENTS];
    bool lat[LIMIT_AGENTS];
};

static void look_for_overlaps(const struct scenario *scenario, const char *name,
                              const struct scene *scene, struct told *told)
{
    for (uint32_t i = 1; i < scene->agent_count; i++) {
        const struct agent *a = &scenario->agents[i];
        if (!scene->agents[i].present || told->overlap[i]) {
            continue;
        }
        struct box box = body(a, &scene->agents[i]);
        for (uint32_t j = 0; j < i; j++) {
            const struct agent *b = &scenario->agents[j];
            struct box other = body(b, &scene->agents[j]);
            if (scene->agents[j].present && !may_overlap(a, b) && box_overlap(&box, &other)) {
                told->overlap[i] = true;
                fault("%s: %s and %s overlap at tick %u", name, b->id, a->id, scene->tick);
            }
        }
    }
}

static void look_at_motion(const struct roadmap *roadmap, const struct scenario *scenario,
                           const char *name, const struct scene *before, const struct scene *now,
                           struct told *told)
{
    for (uint32_t i = 0; i < now->agent_count; i++) {
        const struct agent_state *a = &before->agents[i];
        const struct agent_state *b = &now->agents[i];
        if (!a->present || !b->present || scenario->agents[i].behaviour == BEHAVIOUR_STATIC) {
            continue;
        }
        struct vec2 place = {a->pose.x_m, a->pose.y_m};
        double grip =
            GRAVITY_MPS2 * roadmap_friction(roadmap, place, before->conditions.friction) + 0.1;
        double lon = (b->speed_mps - a->speed_mps) / TICK_S;
        double turn = dmath_wrap_angle(b->pose.heading_rad - a->pose.heading_rad) / TICK_S;
        double lat = 0.5 * (a->speed_mps + b->speed_mps) * turn;
        if (fabs(lon) > grip && !told->lon[i]) {
            told->lon[i] = true;
            fault("%s: %s changes its speed by %.2f m/s2 at tick %u, the surface gives %.2f", name,
                  scenario->agents[i].id, lon, now->tick, grip);
        }
        if (fabs(lat) > grip && !told->lat[i]) {
            told->lat[i] = true;
            fault("%s: %s turns with %.2f m/s2 (%.2f m/s, %.2f rad/s) at tick %u, surface %.2f",
                  name, scenario->agents[i].id, lat, b->speed_mps, turn, now->tick, grip);
        }
    }
}

static void look_at_rollout(const struct job_run *job, const struct trace_reader *reader,
                            uint32_t rollout)
{
    static struct scene before;
    static struct scene now;
    const struct rollout_result *result = &job->results[rollout];
    const char *branch = rollout == 0 ? "" : job->scenario->branches[rollout - 1].id;
    char name[2 * LIMIT_ID_BYTES + 32];
    struct told told = {0};
    snprintf(name, sizeof name, "%s%s%s, seed %llu", job->scenario->id, rollout == 0 ? "" : ":",
             branch, (unsigned long long)job->lease.spec.seed);
    int32_t at = trace_reader_find(reader, branch);
    EXPECT(at >= 0);
    uint32_t end = trace_reader_last_tick(reader, at);
    end = result->metrics.collision_tick < end ? result->metrics.collision_tick : end;
    for (uint32_t tick = result->prefix_ticks; tick <= end; tick++) {
        if (!trace_reader_scene(reader, at, tick, &now, NULL)) {
            continue;
        }
        look_for_overlaps(job->scenario, name, &now, &told);
        if (tick > result->prefix_ticks) {
            look_at_motion(prepared_roadmap(job->prepared), job->scenario, name, &before, &now,
                           &told);
        }
        before = now;
    }
}

static void look_at_job(const struct job_run *job)
{
    uint8_t *data;
    size_t bytes;
    struct trace_reader reader;
    struct error error;
    const struct trace *traces[1 + LIMIT_BRANCHES];
    const char *ids[1 + LIMIT_BRANCHES];
    int32_t parents[1 + LIMIT_BRANCHES];
    EXPECT_INT(job->failure, STATUS_OK);
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        traces[i] = &job->results[i].trace;
        ids[i] = i == 0 ? "" : job->scenario->branches[i - 1].id;
        parents[i] = job->results[i].parent;
    }
    EXPECT_OK(trace_pack(traces, ids, parents, job->rollout_count, &data, &bytes, &error), error);
    EXPECT_OK(trace_reader_init(&reader, data, bytes, &error), error);
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        if (job->results[i].finished) {
            look_at_rollout(job, &reader, i);
        }
    }
    trace_reader_finish(&reader);
    free(data);
}

static void drive(struct runner *runner, const struct scenario *scenario, uint64_t seed)
{
    struct error error;
    struct prepared *prepared;
    struct job_run *job = NULL;
    const struct job_lease lease = {.job_id = 0, .epoch = 1, .spec = {.seed = seed}};
    EXPECT_OK(prepared_create(scenario, &prepared, &error), error);
    EXPECT_OK(job_run_create(&lease, prepared, &job, &error), error);
    EXPECT_OK(runner_add(runner, job, ROLLOUT_ALL, &error), error);
    jobs_run(runner, &job, 1);
    look_at_job(job);
    job_run_destroy(job);
    prepared_unref(prepared);
}

static bool replayed(const struct scenario *scenario)
{
    return scenario->question == QUESTION_REGRESSION;
}

static void drive_suite(const char *file)
{
    char path[LIMIT_PATH_BYTES];
    struct error error;
    struct suite *suite = NULL;
    struct runner *object = jobs_runner(&world_object_ops, "builtin:reference", 16, false);
    struct runner *replay = jobs_runner(&world_replay_ops, "builtin:reference", 16, false);
    snprintf(path, sizeof path, "%s/%s", LIBRARY, file);
    EXPECT_OK(suite_load(path, &suite, &error), error);
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        struct scenario main_line = *scenario;
        main_line.branch_count = 0;
        for (uint64_t seed = 0; seed < SEEDS_MAX; seed++) {
            drive(replayed(scenario) ? replay : object, seed == 1 ? scenario : &main_line, seed);
        }
    }
    suite_destroy(suite);
    runner_destroy(object);
    runner_destroy(replay);
}

static void road_users_behave_as_bodies_do(void)
{
    drive_suite("longtail.json");
    EXPECT_INT(faults, 0);
}

int main(int argc, char **argv)
{
    listing = argc > 1 && strcmp(argv[1], "--list") == 0;
    return TEST_RUN(TEST(road_users_behave_as_bodies_do));
}
