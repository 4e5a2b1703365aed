/*
 * Goal: an exec planner gives the same answers as the same law in C, and whatever it does wrong
 * costs its rollouts and nothing else. Method: real Python processes that misbehave on purpose
 * (bad_planners/); after each, the instance must be dead or alive as the contract says, the
 * sentence must name the cause, and no descriptor or child may be left.
 */
#include "schemas/observation.h"
#include "tests/harness.h"
#include "worker/planner/planner.h"

#include "base/clock.h"
#include "tests/worker/planner/eyes.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPTS SWERVE_SOURCE_ROOT "/tests/worker/bad_planners/"

enum { SESSIONS = 4 };

static uint8_t grids[SESSIONS][BEV_BYTES];
static uint8_t images[SESSIONS][CAMERA_COUNT][CAMERA_BYTES];
static struct swerve_route_point routes[SESSIONS][SWERVE_ROUTE_POINTS];

/* The system's Python starts fastest; any other will do. */
static const char *python(void)
{
    return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
}

static struct swerve_episode make_episode(uint32_t session)
{
    static const struct swerve_log_point log[2] = {{0.0, 1.5, 2.0, 0.25, 4.0},
                                                   {0.1, 2.5, 2.0, 0.5, 8.0}};
    return (struct swerve_episode){
        .session = session,
        .horizon_ticks = 200 + session,
        .seed = 12345 + session,
        .tick_s = 0.1,
        .scenario_id = "scenario",
        .prompt = "a rainy night",
        .ego_length_m = 4.5,
        .ego_width_m = 2.0,
        .ego_wheelbase_m = 2.75,
        .log_count = 2,
        .log = log,
    };
}

/* Contents depend on session and tick, so a mix-up of sessions changes the answers. */
static struct swerve_observation make_observation(uint32_t session, uint32_t tick)
{
    uint8_t mark = (uint8_t)(17 * session + 3 * tick);
    memset(grids[session], mark, BEV_BYTES);
    memset(images[session], mark ^ 0x55, sizeof images[session]);
    for (int i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        routes[session][i] = (struct swerve_route_point){.x_m = 4.0f * (float)i,
                                                         .y_m = (float)session + (float)i * 0.125f,
                                                         .adjacent_right_m = (float)tick};
    }
    return (struct swerve_observation){
        .session = session,
        .tick = tick,
        .time_ns = (int64_t)tick * TICK_NS,
        .bev_time_ns = (int64_t)tick * TICK_NS + 7 * session,
        .speed_mps = 10.0 + session + 0.1 * tick,
        .steer_rad = 0.01 * tick,
        .route_count = SWERVE_ROUTE_POINTS,
        .route = routes[session],
        .bev = grids[session],
        .camera = {images[session][0], images[session][1], images[session][2]},
    };
}

/* The law of session.py. */
struct law {
    double memory;
    double bias;
};

static void law_reset(struct law *law, const struct swerve_episode *episode)
{
    law->memory = 0.0;
    law->bias =
        (double)strlen(episode->prompt) * 0.125 + (double)strlen(episode->scenario_id) * 0.25;
    law->bias += (double)(episode->seed % 7) * 0.5 + episode->horizon_ticks * 0.0625;
    for (uint32_t i = 0; i < episode->log_count; i++) {
        const struct swerve_log_point *point = &episode->log[i];
        law->bias += point->x_m * 0.5 - point->speed_mps * 0.25 + point->heading_rad;
    }
    law->bias += episode->ego_length_m - episode->ego_width_m * episode->ego_wheelbase_m;
}

static struct swerve_action law_act(struct law *law, const struct swerve_observation *seen)
{
    law->memory = law->memory * 0.5 + seen->speed_mps;
    int sum = seen->bev[5 * BEV_COLS + 7] + 3 * seen->bev[BEV_BYTES - 1];
    sum += seen->camera[0][(1 * CAMERA_COLS + 2) * 3] + 5 * seen->camera[2][CAMERA_BYTES - 1];
    const struct swerve_route_point *last = &seen->route[seen->route_count - 1];
    double accel = law->memory * 0.015625 + law->bias * 0.0009765625 + sum * 0.0009765625;
    double steer = (double)last->y_m * 0.015625 + (double)last->adjacent_right_m * 0.03125;
    steer += seen->steer_rad * 0.5 + (double)(seen->bev_time_ns % 1000) * 0.0009765625;
    return (struct swerve_action){accel, steer};
}

static struct planner *open_script(const char *script, int64_t tick_ms, int64_t open_ms)
{
    char spec[600];
    snprintf(spec, sizeof spec, "exec:%s -S %s%s", python(), SCRIPTS, script);
    struct planner_config config = {.session_count = SESSIONS,
                                    .tick_deadline_ms = tick_ms,
                                    .open_deadline_ms = open_ms,
                                    .memory_limit_bytes = 512 << 20};
    struct planner *planner = NULL;
    struct error error = {0};
    EXPECT_OK(planner_open(spec, &config, &planner, &error), error);
    return planner;
}

static void reset_all(struct planner *planner)
{
    struct error error = {0};
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct swerve_episode episode = make_episode(i);
        EXPECT_OK(planner_reset(planner, &episode, &error), error);
    }
}

static enum status act_all(struct planner *planner, uint32_t tick, struct swerve_action *actions,
                           uint8_t *failed, struct error *error)
{
    struct swerve_observation seen[SESSIONS];
    for (uint32_t i = 0; i < SESSIONS; i++) {
        seen[i] = make_observation(i, tick);
    }
    return planner_act(planner, SESSIONS, seen, actions, failed, error);
}

static uint32_t open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint32_t count = 0;
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static bool has_children(void)
{
    return !(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* ---- good ---- */

static void python_equals_c(void)
{
    struct planner *planner = open_script("session.py good", 5000, 0);
    EXPECT_INT(planner_wants(planner), SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS);
    reset_all(planner);
    struct law laws[SESSIONS];
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct swerve_episode episode = make_episode(i);
        law_reset(&laws[i], &episode);
    }
    struct error error = {0};
    for (uint32_t tick = 0; tick < 50; tick++) {
        if (tick == 20) {
            planner_end(planner, 3);
            EXPECT_OK(planner_fork(planner, 1, 3, &error), error);
            laws[3] = laws[1];
        }
        /* Different batches: all, some, in another order. */
        struct swerve_observation seen[SESSIONS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < SESSIONS; i++) {
            uint32_t session = (i + tick) % SESSIONS;
            if ((tick + session) % 3 != 0) {
                seen[count++] = make_observation(session, tick);
            }
        }
        struct swerve_action actions[SESSIONS];
        uint8_t failed[SESSIONS];
        EXPECT_OK(planner_act(planner, count, seen, actions, failed, &error), error);
        for (uint32_t i = 0; i < count; i++) {
            struct swerve_action expected = law_act(&laws[seen[i].session], &seen[i]);
            EXPECT_INT(failed[i], 0);
            EXPECT(memcmp(&actions[i], &expected, sizeof expected) == 0);
        }
    }
    planner_close(planner);
    EXPECT(!has_children());
}

/* With whatever python3 is first in PATH, which may have numpy; both views must read the same. */
static void other_python_equals_c(void)
{
    char spec[600];
    snprintf(spec, sizeof spec, "exec:python3 '%ssession.py' \"good\"", SCRIPTS);
    struct planner_config config = {.session_count = SESSIONS, .tick_deadline_ms = 5000};
    struct planner *planner = NULL;
    struct error error = {0};
    EXPECT_OK(planner_open(spec, &config, &planner, &error), error);
    reset_all(planner);
    struct swerve_action actions[SESSIONS];
    uint8_t failed[SESSIONS];
    EXPECT_OK(act_all(planner, 1, actions, failed, &error), error);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct law law;
        struct swerve_episode episode = make_episode(i);
        law_reset(&law, &episode);
        struct swerve_observation seen = make_observation(i, 1);
        struct swerve_action expected = law_act(&law, &seen);
        EXPECT(memcmp(&actions[i], &expected, sizeof expected) == 0);
    }
    planner_close(planner);
}

static void tolerated_behaviour(void)
{
    /* Each of these is unusual and allowed: the answers stay right. */
    static const char *const scripts[] = {"session.py slow 1", "session.py flood 1",
                                          "session.py print 1", "session.py limits 1"};
    for (size_t k = 0; k < sizeof scripts / sizeof scripts[0]; k++) {
        struct planner *planner = open_script(scripts[k], 5000, 0);
        reset_all(planner);
        struct swerve_action actions[SESSIONS];
        uint8_t failed[SESSIONS];
        struct error error = {0};
        for (uint32_t tick = 0; tick < 3; tick++) {
            EXPECT_OK(act_all(planner, tick, actions, failed, &error), error);
            EXPECT_INT(failed[0] + failed[1] + failed[2] + failed[3], 0);
        }
        if (k == 1) {
            const char *tail = planner_stderr_tail(planner);
            EXPECT_INT(strlen(tail), 8192);
            EXPECT_CONTAINS(tail, "the end of the flood\n");
        }
        if (k == 2) {
            EXPECT_CONTAINS(planner_stderr_tail(planner), "a word on stdout");
        }
        planner_close(planner);
        EXPECT(!has_children());
    }
}

/* ---- one session fails ---- */

static void session_failures(void)
{
    static const struct {
        const char *script;
        const char *reason;
    } cases[] = {
        {"session.py nan 1", "not finite"},
        {"session.py huge 1", "exceeds 50"},
        {"session.py none 1", "marked its answer as failed"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct planner *planner = open_script(cases[k].script, 5000, 0);
        reset_all(planner);
        struct swerve_action actions[SESSIONS];
        uint8_t failed[SESSIONS];
        struct error error = {0};
        for (uint32_t tick = 0; tick < 3; tick++) {
            EXPECT_OK(act_all(planner, tick, actions, failed, &error), error);
            for (uint32_t i = 0; i < SESSIONS; i++) {
                EXPECT_INT(failed[i], tick == 1 && i == 1);
                EXPECT(isfinite(actions[i].accel_mps2));
                EXPECT((planner_session_error(planner, i)[0] != '\0') == (failed[i] != 0));
            }
            if (tick == 1) {
                EXPECT_CONTAINS(planner_session_error(planner, 1), cases[k].reason);
            }
        }
        EXPECT(planner_alive(planner));
        planner_close(planner);
    }
}

/* Whatever it raises: what would end the process, which is started again, too. */
static void raising_fails_its_sessions(void)
{
    static const char *const cases[][2] = {
        {"session.py raise 1", "ValueError: no idea"},
        {"session.py interrupt 1", "KeyboardInterrupt: no wish to go on"},
        {"session.py sysexit 1", "SystemExit: no wish to go on"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct planner *planner = open_script(cases[i][0], 5000, 0);
        reset_all(planner);
        struct swerve_action actions[SESSIONS];
        uint8_t failed[SESSIONS];
        struct error error = {0};
        EXPECT_OK(act_all(planner, 1, actions, failed, &error), error);
        EXPECT_INT(failed[0] + failed[1] + failed[2] + failed[3], 4);
        EXPECT_CONTAINS(planner_stderr_tail(planner), cases[i][1]);
        EXPECT(planner_alive(planner));
        planner_close(planner);
    }
}

static void refused_reset_keeps_the_instance(void)
{
    struct planner *planner = open_script("session.py reset", 5000, 0);
    struct swerve_episode episode = make_episode(0);
    struct error error = {0};
    EXPECT_INT(planner_reset(planner, &episode, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "not to my taste");
    EXPECT(planner_alive(planner));
    planner_close(planner);
}

/* ---- the instance dies ---- */

static void instance_failures(void)
{
    static const struct {
        const char *script;
        const char *reason;
        int64_t tick_ms;
    } cases[] = {
        {"session.py hang 1", "act: no answer within 300 ms (--planner-deadline-ms raises", 300},
        {"session.py spin 1", "act: no answer within 300 ms", 300},
        {"session.py abort 1", "act: the process was killed by signal 6", 5000},
        {"session.py abort 1", "about to abort", 5000},
        {"session.py exit 1", "exited with status 0", 5000},
        {"session.py exit3 1", "exited with status 3", 5000},
        {"session.py orphan 1", "exited with status 3", 5000},
        {"session.py confused", "gave 3 answers to 4 observations", 5000},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct planner *planner = open_script(cases[k].script, cases[k].tick_ms, 0);
        reset_all(planner);
        struct swerve_action actions[SESSIONS];
        uint8_t failed[SESSIONS];
        struct error error = {0};
        enum status status = act_all(planner, 0, actions, failed, &error);
        if (status == STATUS_OK) {
            status = act_all(planner, 1, actions, failed, &error);
        }
        EXPECT_INT(status, STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, cases[k].reason);
        EXPECT(!planner_alive(planner));
        EXPECT(!has_children());
        EXPECT_INT(act_all(planner, 2, actions, failed, &error), STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, "dead");
        planner_close(planner);
    }
}

static void memory_is_limited(void)
{
    struct planner *planner = open_script("session.py memory 1", 20000, 0);
    reset_all(planner);
    struct swerve_action actions[SESSIONS];
    uint8_t failed[SESSIONS];
    struct error error = {0};
    EXPECT_OK(act_all(planner, 1, actions, failed, &error), error);
    EXPECT_INT(failed[0], 1);
    EXPECT_CONTAINS(planner_stderr_tail(planner), "MemoryError");
    planner_close(planner);
}

static void shared_memory_is_read_only(void)
{
    struct planner *planner = open_script("session.py write 1", 5000, 0);
    reset_all(planner);
    struct swerve_action actions[SESSIONS];
    uint8_t failed[SESSIONS];
    struct error error = {0};
    EXPECT_OK(act_all(planner, 1, actions, failed, &error), error);
    EXPECT_INT(failed[0], 1);
    EXPECT_CONTAINS(planner_stderr_tail(planner), "PermissionError");
    planner_close(planner);
}

static void broken_frames(void)
{
    static const struct {
        const char *script;
        const char *reason; /* NULL: must succeed */
    } cases[] = {
        {"frames.py good", NULL},
        {"frames.py bytewise", NULL},
        {"frames.py garbage", "printing to stdout"},
        {"frames.py sequence", "expected sequence"},
        {"frames.py huge", "payload bytes"},
        {"frames.py type", "expected frame type 6, found 4"},
        {"frames.py unknown", "frame type 77"},
        {"frames.py count", "expected 1 records"},
        {"frames.py session", "expected session 2, found 7"},
        {"frames.py mark", "failed to be 0 or 1"},
        {"frames.py short", "expected 1 records"},
        {"frames.py truncated", "exited with status 0"},
        {"frames.py error", "the model is on fire"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct planner *planner = open_script(cases[k].script, 5000, 0);
        struct swerve_episode episode = make_episode(2);
        struct swerve_observation seen = make_observation(2, 0);
        struct swerve_action action;
        uint8_t failed = 0;
        struct error error = {0};
        EXPECT_OK(planner_reset(planner, &episode, &error), error);
        enum status status = planner_act(planner, 1, &seen, &action, &failed, &error);
        if (cases[k].reason == NULL) {
            EXPECT_OK(status, error);
            EXPECT_NEAR(action.accel_mps2, 0.5, 0.0);
        } else {
            EXPECT_INT(status, STATUS_PLANNER);
            EXPECT_CONTAINS(error.text, cases[k].reason);
            EXPECT(!planner_alive(planner));
        }
        planner_close(planner);
        EXPECT(!has_children());
    }
}

/* Goal: a planner that closed its stdin is told of at the next tick, not at the end of its time. */
static void closed_stdin(void)
{
    struct planner *planner = open_script("frames.py deaf", 3600000, 0);
    struct swerve_episode episode = make_episode(2);
    struct swerve_observation seen = make_observation(2, 0);
    struct swerve_action action;
    uint8_t failed = 0;
    struct error error = {0};
    EXPECT_OK(planner_reset(planner, &episode, &error), error);
    EXPECT_OK(planner_act(planner, 1, &seen, &action, &failed, &error), error);
    seen.tick = 1;
    EXPECT_INT(planner_act(planner, 1, &seen, &action, &failed, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "the process closed descriptor 0 and had to be killed");
    planner_close(planner);
    EXPECT(!has_children());
}

static void answer_nobody_asked_for(void)
{
    struct planner *planner = open_script("frames.py early", 5000, 0);
    struct swerve_observation seen = make_observation(2, 0);
    struct swerve_action action;
    uint8_t failed = 0;
    struct error error = {0};
    EXPECT_OK(planner_act(planner, 1, &seen, &action, &failed, &error), error);
    EXPECT_INT(planner_act(planner, 1, &seen, &action, &failed, &error), STATUS_PLANNER);
    EXPECT(!planner_alive(planner));
    planner_close(planner);
}

static void opening_fails(void)
{
    static const struct {
        const char *command;
        const char *reason;
    } cases[] = {
        {"PYTHON session.py start_hang",
         "hello: no answer within 400 ms (--planner-start-ms raises"},
        {"PYTHON session.py start_exit",
         "exited with status 7; stderr ends: cannot find my weights"},
        {"PYTHON session.py start_long", "; stderr ends: ..xxx"},
        {"PYTHON session.py start_long", "xxx: the end says why"},
        {"PYTHON frames.py version", "expected protocol version 1, 3 or 4, found 2"},
        {"PYTHON frames.py wants", "bits that version 1 does not know: 0x80"},
        {"PYTHON frames.py name", "at most 63 bytes"},
        {"/no/such/program", "no such file"},
        {"no-such-program-at-all x", "not found in PATH"},
        {"/etc/passwd", "not executable"},
        {"'unclosed", "never closed"},
        {"/bin/true", "exited with status 0"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char spec[600];
        const char *command = cases[k].command;
        if (strncmp(command, "PYTHON ", 7) == 0) {
            snprintf(spec, sizeof spec, "exec:%s -S %s%s", python(), SCRIPTS, command + 7);
        } else {
            snprintf(spec, sizeof spec, "exec:%s", command);
        }
        struct planner_config config = {.session_count = 2, .open_deadline_ms = k == 0 ? 400 : 0};
        struct planner *planner = NULL;
        struct error error = {0};
        EXPECT(planner_open(spec, &config, &planner, &error) != STATUS_OK);
        EXPECT_CONTAINS(error.text, cases[k].reason);
        EXPECT(planner == NULL);
        EXPECT(!has_children());
    }
}

/* A child that a planner forked is in its process group: it ends with it, and frees its lock. */
static void grandchildren_are_ended(void)
{
    char lock[] = "/tmp/swerve-planner-lock-XXXXXX";
    int fd = mkstemp(lock);
    EXPECT(fd >= 0);
    char script[200];
    snprintf(script, sizeof script, "session.py child 0 %s", lock);
    struct planner *planner = open_script(script, 5000, 0);
    EXPECT(flock(fd, LOCK_EX | LOCK_NB) != 0);
    planner_close(planner);
    alarm(20); /* ends the program should the lock never become free */
    int locked = flock(fd, LOCK_EX);
    alarm(0);
    close(fd);
    unlink(lock);
    EXPECT_INT(locked, 0);
}

/* A child that ignores SIGTERM and bye is killed. */
static void stubborn_children_are_ended(void)
{
    struct planner *planner = open_script("session.py stubborn", 5000, 0);
    int64_t before_ns = clock_now_ns(clock_system());
    planner_close(planner);
    EXPECT(!has_children());
    EXPECT(clock_now_ns(clock_system()) - before_ns < 10 * NS_PER_S);
}

static void nothing_leaks(void)
{
    uint32_t before = open_descriptors();
    for (int cycle = 0; cycle < 50; cycle++) {
        /* Every tenth dies in act, so both ways out are covered. */
        struct planner *planner =
            open_script(cycle % 10 == 9 ? "frames.py garbage" : "frames.py good", 5000, 0);
        struct swerve_observation seen = make_observation(2, 0);
        struct swerve_action action;
        uint8_t failed = 0;
        struct error error = {0};
        enum status status = planner_act(planner, 1, &seen, &action, &failed, &error);
        EXPECT_INT(status, cycle % 10 == 9 ? STATUS_PLANNER : STATUS_OK);
        planner_close(planner);
    }
    EXPECT_INT(open_descriptors(), before);
    EXPECT(!has_children());
}

/* Sensors of a rig, of sizes that are not the built-in ones: the same bytes in this process and in
 * Python; what is not to be had is refused with its name. */
static void sensors_of_a_rig_reach_planners(void)
{
    static struct swerve_action actions[2][EYES_TICKS][EYES_SESSIONS];
    struct rig rig;
    char spec[2][600];
    struct planner *planner = NULL;
    struct error error = {0};
    eyes_rig(&rig);
    snprintf(spec[0], sizeof spec[0], "plugin:%s?%s", PLUGIN_SENSORS, EYES_CHOICE);
    snprintf(spec[1], sizeof spec[1], "exec:%s -S %seyes.py", python(), SCRIPTS);
    struct planner_config config = {
        .session_count = EYES_SESSIONS, .tick_deadline_ms = 5000, .rig = &rig};
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(planner_open(spec[i], &config, &planner, &error), error);
        eyes_drive(planner, actions[i]);
        struct swerve_observation seen = {.session = 0};
        struct swerve_action action;
        uint8_t failed = 0;
        EXPECT_INT(planner_act(planner, 1, &seen, &action, &failed, &error), STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, "chose 3 sensors of a rig, which are not shown here");
        planner_close(planner);
    }
    EXPECT(memcmp(actions[0], actions[1], sizeof actions[0]) == 0);
    config.sensor_bytes_max = 1 << 20;
    EXPECT_INT(planner_open(spec[1], &config, &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "2.9 MB a session: expected at most 1 MiB (--planner-sensors-mib)");
    config.sensor_bytes_max = 0;
    snprintf(spec[1], sizeof spec[1], "exec:%s -S %seyes.py rear", python(), SCRIPTS);
    EXPECT_INT(planner_open(spec[1], &config, &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "$.sensors[0]: expected a sensor of the rig eyes (");
    snprintf(spec[1], sizeof spec[1], "exec:%s -S %ssession.py good", python(), SCRIPTS);
    EXPECT_INT(planner_open(spec[1], &config, &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "the built-in rig alone, the job's rig is eyes");
}

int main(void)
{
    return TEST_RUN(
        TEST(python_equals_c), TEST(sensors_of_a_rig_reach_planners), TEST(other_python_equals_c),
        TEST(tolerated_behaviour), TEST(session_failures), TEST(raising_fails_its_sessions),
        TEST(refused_reset_keeps_the_instance), TEST(instance_failures), TEST(memory_is_limited),
        TEST(shared_memory_is_read_only), TEST(broken_frames), TEST(closed_stdin),
        TEST(answer_nobody_asked_for), TEST(opening_fails), TEST(grandchildren_are_ended),
        TEST(stubborn_children_are_ended), TEST(nothing_leaks));
}
