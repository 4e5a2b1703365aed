/*
 * Planners behind the egodriver contract: what is sent, forks by sending it again, and each fault
 * of a server with its own sentence.
 */
#include "base/check.h"
#include "base/units.h"
#include "schemas/observation.h"
#include "schemas/proto/egodriver.pb-c.h"
#include "tests/harness.h"
#include "tests/worker/driver_server.h"
#include "tests/worker/jobs.h"
#include "worker/egodriver/egodriver_internal.h"
#include "worker/grpc/grpc_socket.h"
#include "worker/planner/planner_start.h"

#include <stdlib.h>
#include <unistd.h>

#define WHEELBASE_M 2.8

static struct driver_server server;
static char binding[160];
static const char *const bindings[] = {binding};
static struct planner_confinement confinement = {.egodrivers = {bindings, 1, false}};

static enum status open_within(const char *spec, int64_t tick_ms, struct planner **out,
                               struct error *error)
{
    const struct planner_config config = {
        .session_count = 4,
        .tick_deadline_ms = tick_ms,
        .open_deadline_ms = 20000,
        .confinement = &confinement,
        .trial = true, /* a server that does not listen is refused at once */
    };
    snprintf(binding, sizeof binding, "policy=%s", server.address);
    return planner_open(spec, &config, out, error);
}

static enum status open_driver(const char *spec, struct planner **out, struct error *error)
{
    return open_within(spec, 20000, out, error);
}

static void reset(struct planner *planner, uint32_t session, uint64_t seed)
{
    struct error error;
    const struct swerve_episode episode = {
        .session = session,
        .horizon_ticks = 100,
        .seed = seed,
        .tick_s = 0.1,
        .scenario_id = "straight",
        .prompt = "",
        .ego_length_m = 4.5,
        .ego_width_m = 1.9,
        .ego_wheelbase_m = WHEELBASE_M,
    };
    if (planner_reset(planner, &episode, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.text);
    }
}

static struct swerve_observation seen_at(uint32_t session, uint32_t tick)
{
    static const struct swerve_route_point route[2] = {{.x_m = 0}, {.x_m = 4}};
    return (struct swerve_observation){
        .session = session,
        .tick = tick,
        .time_ns = (int64_t)tick * TICK_NS,
        .x_m = 100 + 0.5 * tick,
        .y_m = -20,
        .heading_rad = 0.25,
        .speed_mps = 5,
        .route_count = 2,
        .route = route,
    };
}

/* One image of every camera of the built-in rig. */
static const struct swerve_sensors *shown_at(uint32_t tick)
{
    static const uint8_t picture[] = "a JPEG file";
    static struct swerve_sensor sensors[CAMERA_COUNT];
    static const struct swerve_sensors shown = {.count = CAMERA_COUNT, .sensors = sensors};
    static const char *const ids[CAMERA_COUNT] = {"left", "front", "right"};
    for (int i = 0; i < CAMERA_COUNT; i++) {
        sensors[i] =
            (struct swerve_sensor){.format = SWERVE_FORMAT_JPEG, .count = 1, .frames = picture};
        sensors[i].bytes[0] = sizeof picture;
        sensors[i].time_ns[0] = (int64_t)tick * TICK_NS;
        snprintf(sensors[i].id, sizeof sensors[i].id, "%s", ids[i]);
    }
    return &shown;
}

/* One tick of one session; the action where it did not fail. */
static enum status tick(struct planner *planner, uint32_t session, uint32_t at,
                        struct swerve_action *action, uint8_t *failed, struct error *error)
{
    const struct swerve_observation seen = seen_at(session, at);
    return planner_drive(planner, 1, &seen, NULL,
                         planner_choice(planner)->count > 0 ? shown_at(at) : NULL, action, failed,
                         error);
}

static void drives_and_forks(void)
{
    struct error error;
    struct planner *planner = NULL;
    struct swerve_action action, other;
    uint8_t failed = 0;
    driver_server_start(&server, DRIVER_GOOD);
    EXPECT_INT(open_driver("egodriver:policy", &planner, &error), STATUS_OK);
    EXPECT_INT(planner_choice(planner)->count, CAMERA_COUNT);
    EXPECT_INT(strlen(planner_loaded(planner)), SHA256_HEX_BYTES - 1);
    reset(planner, 0, 7);
    for (uint32_t i = 0; i < 6; i++) {
        EXPECT_INT(tick(planner, 0, i, &action, &failed, &error), STATUS_OK);
        EXPECT_INT(failed, 0);
        EXPECT(action.accel_mps2 > 0.1); /* the plan is faster than ego */
        EXPECT_NEAR(action.steer_rad, 0, 1e-3);
    }
    const struct swerve_answer *answer = planner_answer(planner, 0);
    const struct swerve_observation seen = seen_at(0, 5);
    EXPECT_INT(answer->point_count, 20);
    EXPECT_NEAR(answer->points[0].x_m, seen.x_m, 1e-4); /* the box's centre, not the rear axle */
    EXPECT_NEAR(answer->points[10].x_m, seen.x_m + 8 * cos(0.25), 1e-4);
    EXPECT_NEAR(answer->points[10].heading_rad, 0.25, 1e-6);
    EXPECT_NEAR(answer->points[10].speed_mps, 8, 1e-3);
    EXPECT_NEAR(answer->points[10].t_s, 1, 1e-9);
    EXPECT_INT(server.images, 18);
    EXPECT_INT(server.route_points, 3); /* it begins beside the rear axle, not the box's centre */
    EXPECT_NEAR(server.route_x_m, 0, 1e-6);
    EXPECT_NEAR(server.camera_x_m, camera_calibrations[0].x_m + WHEELBASE_M / 2, 1e-6);

    EXPECT_INT(planner_fork(planner, 0, 2, &error), STATUS_OK);
    EXPECT_INT(server.starts, 2);
    EXPECT_INT(server.drives, 12);
    EXPECT_INT(tick(planner, 0, 6, &action, &failed, &error), STATUS_OK);
    EXPECT_INT(tick(planner, 2, 6, &other, &failed, &error), STATUS_OK);
    EXPECT(memcmp(&action, &other, sizeof action) == 0);
    EXPECT_INT(planner_fork(planner, 2, 3, &error), STATUS_OK); /* a branch's branch */
    EXPECT_INT(server.drives, 12 + 2 + 7);
    EXPECT_INT(server.forks, 1); /* it was asked once for a fork of its own */
    planner_end(planner, 0);
    EXPECT_INT(server.closes, 1);
    planner_close(planner);
    driver_server_stop(&server);
    EXPECT_INT(server.closes, 3);
}

static void cameras_that_nobody_wants_are_not_sent(void)
{
    struct error error;
    struct planner *planner = NULL;
    struct swerve_action action;
    uint8_t failed = 0;
    driver_server_start(&server, DRIVER_GOOD);
    EXPECT_INT(open_driver("egodriver:policy?cameras=none&renderer_data=carla", &planner, &error),
               STATUS_OK);
    EXPECT_INT(planner_wants(planner), SWERVE_WANTS_SIGNALS);
    reset(planner, 0, 7);
    EXPECT_INT(tick(planner, 0, 0, &action, &failed, &error), STATUS_OK);
    EXPECT_INT(failed, 0);
    EXPECT_INT(server.images, 0);
    planner_close(planner);
    driver_server_stop(&server);
}

static void a_driver_that_varies_is_not_forked(void)
{
    struct error error;
    struct planner *planner = NULL;
    struct swerve_action action;
    uint8_t failed = 0;
    driver_server_start(&server, DRIVER_GOOD);
    EXPECT_INT(open_driver("egodriver:policy", &planner, &error), STATUS_OK);
    reset(planner, 0, 7);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT(tick(planner, 0, i, &action, &failed, &error), STATUS_OK);
    }
    server.manner = DRIVER_VARIES;
    EXPECT_INT(planner_fork(planner, 0, 1, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "the driver varies: sent the same again, it answers drive 0 "
                                "otherwise");
    EXPECT(planner_varies(planner, 1));
    EXPECT(!planner_varies(planner, 0));
    EXPECT(planner_alive(planner));
    EXPECT_INT(tick(planner, 0, 3, &action, &failed, &error), STATUS_OK);
    planner_close(planner);
    driver_server_stop(&server);
}

static void a_server_that_forks_is_sent_nothing_again(void)
{
    struct error error;
    struct planner *planner = NULL;
    struct swerve_action action, other;
    uint8_t failed = 0;
    driver_server_start(&server, DRIVER_FORKS);
    EXPECT_INT(open_driver("egodriver:policy", &planner, &error), STATUS_OK);
    reset(planner, 0, 7);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT(tick(planner, 0, i, &action, &failed, &error), STATUS_OK);
    }
    EXPECT_INT(planner_fork(planner, 0, 1, &error), STATUS_OK);
    EXPECT_INT(planner_fork(planner, 1, 2, &error), STATUS_OK);
    EXPECT_INT(server.forks, 2);
    EXPECT_INT(server.starts, 1);
    EXPECT_INT(server.drives, 3);
    EXPECT_INT(tick(planner, 0, 3, &action, &failed, &error), STATUS_OK);
    EXPECT_INT(tick(planner, 2, 3, &other, &failed, &error), STATUS_OK);
    EXPECT(memcmp(&action, &other, sizeof action) == 0);
    server.manner = DRIVER_GOOD; /* and where it has none any more, the whole past is sent */
    EXPECT_INT(planner_fork(planner, 2, 3, &error), STATUS_OK);
    EXPECT_INT(server.drives, 3 + 2 + 4);
    planner_close(planner);
    driver_server_stop(&server);
    EXPECT_INT(server.closes, 4);
}

static void debug_bytes_are_kept_as_text(void)
{
    struct error error;
    struct planner *planner = NULL;
    struct swerve_action action;
    uint8_t failed = 0;
    size_t bytes = 0;
    driver_server_start(&server, DRIVER_GOOD);
    EXPECT_INT(open_driver("egodriver:policy?cameras=none", &planner, &error), STATUS_OK);
    reset(planner, 0, 7);
    EXPECT_INT(tick(planner, 0, 0, &action, &failed, &error), STATUS_OK);
    EXPECT_INT(tick(planner, 0, 1, &action, &failed, &error), STATUS_OK);
    EXPECT_TEXT(planner_session_output(planner, 0, &bytes),
                "drive 0: \\x80c\\x5cos\ndrive 1: \\x80c\\x5cos\n");
    EXPECT_INT(bytes, 42);
    EXPECT(!planner_has_stderr(planner));
    EXPECT_INT(planner_fork(planner, 0, 1, &error),
               STATUS_OK); /* what was told before is not its */
    EXPECT_TEXT(planner_session_output(planner, 1, &bytes), "");
    for (uint32_t i = 2; i < 400; i++) {
        EXPECT_INT(tick(planner, 0, i, &action, &failed, &error), STATUS_OK);
    }
    const char *text = planner_session_output(planner, 0, &bytes);
    EXPECT(bytes <= 4096 && bytes > 4096 - 24 && bytes == strlen(text));
    EXPECT(strncmp(text, "drive 2", 7) == 0); /* whole lines, the newest */
    EXPECT_CONTAINS(text, "\ndrive 399: \\x80c\\x5cos\n");
    planner_close(planner);
    driver_server_stop(&server);
}

/* Goal: branches of a driver that varies are driven, from tick 0, and their results say so. */
static void a_result_says_that_its_driver_varies(void)
{
    struct error error;
    struct jobs_scenario s;
    struct runner *runner = NULL;
    struct job_run *job = NULL;
    const struct runner_config config = {
        .world = &world_object_ops,
        .planner = "egodriver:policy?cameras=none",
        .planner_config = {.tick_deadline_ms = 20000, .confinement = &confinement},
        .slot_count = 2,
        .clock = clock_system(),
    };
    jobs_scenario_init(&s, "varies", 12);
    jobs_branch(&s, 5, INTERVENE_EGO_BRAKE)->decel_mps2 = 1;
    jobs_branch(&s, 8, INTERVENE_EGO_MAINTAIN);
    jobs_prepared(&s);
    driver_server_start(&server, DRIVER_VARIES);
    snprintf(binding, sizeof binding, "policy=%s", server.address);
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    jobs_add(runner, &s, 0, 1);
    jobs_run(runner, &job, 1);
    EXPECT_INT(runner_stats(runner)->fork_refusals, 2);
    EXPECT_TEXT(job->results[0].error, "");
    EXPECT_CONTAINS(job->results[1].error, "tick 5: " OUTCOME_VARIES);
    EXPECT_CONTAINS(job->results[2].error, "it answers drive 0 otherwise");
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT(job->results[i].prefix_ticks, 0);
        EXPECT_INT(job->results[i].ticks, 12);
        EXPECT(job->results[i].verdict != VERDICT_PLANNER_ERROR);
    }
    job_run_destroy(job);
    server.manner = DRIVER_GOOD; /* its past is kept until the last fork */
    server.drives = 0;
    jobs_add(runner, &s, 0, 2);
    jobs_run(runner, &job, 1);
    EXPECT_INT(runner_stats(runner)->fork_refusals, 2);
    EXPECT_INT(job->results[1].prefix_ticks, 5);
    EXPECT_INT(job->results[2].prefix_ticks, 8);
    EXPECT_INT(server.drives, 12 + 5 + 7 + 8 + 4);
    job_run_destroy(job);
    runner_destroy(runner);
    driver_server_stop(&server);
    jobs_scenario_finish(&s);
}

/* Goal: a lost connection is nobody's result, also where it is lost again while the rollout is
 * driven alone: the attempt fails, and its job is tried again. A policy that is late then is to
 * blame. Neighbours have their results either way. */
static void a_lost_connection_is_no_result(void)
{
    struct error error;
    struct jobs_scenario s;
    struct runner *runner = NULL;
    struct job_run *jobs[2] = {NULL};
    struct runner_config config = {
        .world = &world_object_ops,
        .planner = "egodriver:policy?cameras=none",
        .planner_config = {.tick_deadline_ms = 20000, .confinement = &confinement},
        .slot_count = 2,
        .clock = clock_system(),
    };
    jobs_scenario_init(&s, "lost", 12);
    jobs_prepared(&s);
    driver_server_start(&server, DRIVER_RESETS);
    snprintf(binding, sizeof binding, "policy=%s", server.address);
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    jobs_add(runner, &s, 0, 1);
    jobs_add(runner, &s, 1, 2);
    jobs_run(runner, jobs, 2);
    EXPECT_INT(jobs[0]->failure, STATUS_PLANNER);
    EXPECT_CONTAINS(jobs[0]->error, "drive ended without a gRPC status (HTTP/2 error 8: CANCEL)");
    EXPECT(!jobs[0]->results[0].finished);
    EXPECT_INT(jobs[1]->failure, STATUS_OK);
    EXPECT_INT(jobs[1]->results[0].ticks, 12);
    EXPECT_INT(runner_stats(runner)->planner_restarts, 2);
    job_run_destroy(jobs[0]);
    job_run_destroy(jobs[1]);
    runner_destroy(runner);
    server.manner = DRIVER_MUTE;
    config.planner_config.tick_deadline_ms = 1500;
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    jobs_add(runner, &s, 0, 2);
    jobs_run(runner, jobs, 1);
    EXPECT_INT(jobs[0]->failure, STATUS_OK);
    EXPECT_INT(jobs[0]->results[0].verdict, VERDICT_PLANNER_ERROR);
    EXPECT_CONTAINS(jobs[0]->results[0].error, "no answer to drive within 1500 ms");
    job_run_destroy(jobs[0]);
    runner_destroy(runner);
    driver_server_stop(&server);
    jobs_scenario_finish(&s);
}

/* Faults of a server towards one session, and the sentence that the session gets. */
static void each_fault_of_a_session_has_its_sentence(void)
{
    static const struct {
        enum driver_manner manner;
        const char *sentence;
    } rows[] = {
        {DRIVER_NAN, "pose 3 of the answer to drive is not finite"},
        {DRIVER_PAST, "all 20 poses of the answer to drive are of the past"},
        {DRIVER_ENDS, "the driver ended the session (terminate_session)"},
        {DRIVER_FAILS,
         "the driver answers drive with INTERNAL: the network has no answer: out of memory"},
        {DRIVER_BLIND, "the driver answers submit_image_observation with INVALID_ARGUMENT: Camera "
                       "was not declared"},
        {DRIVER_BABBLES, "the answer to drive is no DriveResponse"},
        {DRIVER_REPEATS, "the answer to drive is no DriveResponse"},
        {DRIVER_SWELLS, "the answer to drive is no DriveResponse"},
        {DRIVER_HOLDS, ""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct error error;
        struct planner *planner = NULL;
        struct swerve_action actions[2];
        uint8_t failed[2] = {0};
        driver_server_start(&server, rows[i].manner);
        EXPECT_INT(open_driver("egodriver:policy", &planner, &error), STATUS_OK);
        reset(planner, 0, 1);
        reset(planner, 1, 2); /* the neighbour */
        const struct swerve_observation seen[2] = {seen_at(0, 0), seen_at(1, 0)};
        const struct swerve_sensors sensors[2] = {*shown_at(0), *shown_at(0)};
        EXPECT_INT(planner_drive(planner, 2, seen, NULL, sensors, actions, failed, &error),
                   STATUS_OK);
        EXPECT_TEXT(planner_session_error(planner, 0), rows[i].sentence);
        EXPECT_INT(failed[0], rows[i].sentence[0] != '\0');
        if (rows[i].manner == DRIVER_FAILS) {
            EXPECT_INT(failed[1], 0);
        }
        if (rows[i].manner == DRIVER_HOLDS) {
            EXPECT_NEAR(actions[0].accel_mps2, -3, 0);
        }
        EXPECT(planner_alive(planner));
        planner_close(planner);
        driver_server_stop(&server);
    }
}

/* The instance dies in its first tick, of a lost connection unless it is late; the server stops. */
static void expect_death(int64_t tick_ms, const char *sentence)
{
    struct error error;
    struct planner *planner = NULL;
    struct swerve_action action;
    uint8_t failed = 0;
    EXPECT_INT(open_within("egodriver:policy", tick_ms, &planner, &error), STATUS_OK);
    reset(planner, 0, 1);
    EXPECT_INT(tick(planner, 0, 0, &action, &failed, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, sentence);
    EXPECT(!planner_alive(planner));
    EXPECT_INT(planner_cut_off(planner), strncmp(sentence, "no answer", 9) != 0);
    planner_close(planner); /* and asks it nothing more */
    driver_server_stop(&server);
}

static void each_fault_of_a_connection_has_its_sentence(void)
{
    static const struct {
        enum driver_manner manner;
        int64_t tick_ms;
        const char *sentence;
    } rows[] = {
        {DRIVER_MUTE, 1500, "no answer to drive within 1500 ms"},
        {DRIVER_RESETS, 20000, "drive ended without a gRPC status (HTTP/2 error 8: CANCEL)"},
        {DRIVER_DIES, 20000, "closed the connection before it answered drive"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        driver_server_start(&server, rows[i].manner);
        expect_death(rows[i].tick_ms, rows[i].sentence);
    }
}

/* HEADERS of an answer, a gRPC status of 0 behind it, frames that a call can end with. */
#define HEAD(bytes, kind, flags) "\0\0" bytes kind flags "\0\0\0\x77"
#define BEGIN HEAD("\1", "\1", "\4") "\x88"
#define STATUS_0          \
    "\0\x0bgrpc-status\1" \
    "0"
#define END HEAD("\x0f", "\1", "\5") STATUS_0

/* Frames of a hostile server in the place of an answer to drive: the sentence says what it did, the
 * call ends long before its deadline, and nothing is kept of it. */
static void hostile_frames_have_their_sentence(void)
{
    static const char floods[] = "it floods the connection with frames that bring nothing";
    static const char no_message[] = "that are not one uncompressed gRPC message";
#define FRAMES(text) text, sizeof(text) - 1
    static const struct {
        const char *first;
        size_t first_bytes;
        const char *again; /* without end */
        size_t again_bytes;
        const char *sentence;
    } rows[] = {
        {FRAMES(""), FRAMES("\0\0\0\xfa\0\0\0\0\0"), floods},
        {FRAMES(""), FRAMES("\0\0\x08\6\0\0\0\0\0ping-off"), floods},
        {FRAMES(""), FRAMES("\0\0\0\4\0\0\0\0\0"), floods},
        {FRAMES(""), FRAMES("\0\0\4\x08\0\0\0\0\0\0\0\0\1"), floods},
        {FRAMES(BEGIN), FRAMES(HEAD("\0", "\0", "\0")), floods},
        {FRAMES(BEGIN), FRAMES(HEAD("\1", "\0", "\0") "\0"), floods},
        {FRAMES(HEAD("\1", "\1", "\0") "\x88"), FRAMES(HEAD("\0", "\x09", "\0")),
         "it does not speak HTTP/2 ("},
        {FRAMES(BEGIN HEAD("\5", "\0", "\0") "\0\xff\xff\xff\xff" END), FRAMES(""), no_message},
        {FRAMES(BEGIN HEAD("\6", "\0", "\0") "\1\0\0\0\1x" END), FRAMES(""), no_message},
        {FRAMES(HEAD("\x10", "\1", "\5") "\x88" STATUS_0), FRAMES(""), no_message},
        {FRAMES(BEGIN HEAD("\5", "\0", "\1") "\0\0\0\0\0"), FRAMES(""),
         "drive ended without a gRPC status (HTTP/2 error 0: NO_ERROR)"},
        {FRAMES("\0\0\x0d\7\0\0\0\0\0\0\0\0\0\0\0\0\x0b"
                "tired"),
         FRAMES(""),
         "drive ended without a gRPC status (HTTP/2 error 7: REFUSED_STREAM); it said GOAWAY "
         "(ENHANCE_YOUR_CALM: tired)"},
        {FRAMES("\0\0\6\5\4\0\0\0\x77\0\0\0\2\x82\x87"), FRAMES(""), "it does not speak HTTP/2"},
        {FRAMES("HTTP/1.1 400 Bad Request\r\n\r\n"), FRAMES(""), "it does not speak HTTP/2"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        driver_server_start(&server, DRIVER_RAW);
        memcpy(server.raw.frames, rows[i].first, rows[i].first_bytes);
        memcpy(server.raw.frames + rows[i].first_bytes, rows[i].again, rows[i].again_bytes);
        server.raw.again = rows[i].first_bytes;
        server.raw.bytes = rows[i].first_bytes + rows[i].again_bytes;
        expect_death(20000, rows[i].sentence);
    }
}

/* A field of 3,000 bytes that is sent once and named 13,000 times, by a byte each. */
static void headers_that_unpack_to_much_are_refused(void)
{
    static const uint8_t head[] = {0, 62, 0, 1, 4, 0, 0, 0, DRIVER_RAW_STREAM};
    static const uint8_t field[] = {0x88, 0x40, 1, 'x', 0x7f, 0xb9, 0x16}; /* 3,000 */
    driver_server_start(&server, DRIVER_RAW);
    struct driver_raw *raw = &server.raw;
    raw->bytes = raw->again = sizeof head + (62 << 8);
    memset(raw->frames, 0xbe, raw->bytes);
    memcpy(raw->frames, head, sizeof head);
    memcpy(raw->frames + sizeof head, field, sizeof field);
    memset(raw->frames + sizeof head + sizeof field, 'v', 3000);
    expect_death(20000, "it sends more than 16 KiB of headers at once");
}

static void windows_that_never_open_end_with_the_deadline(void)
{
    struct error error;
    struct planner *planner = NULL;
    const struct planner_config config = {
        .session_count = 1, .open_deadline_ms = 1500, .confinement = &confinement, .trial = true};
    driver_server_start(&server, DRIVER_SHUT);
    snprintf(binding, sizeof binding, "policy=%s", server.address);
    EXPECT_OK(planner_open("egodriver:policy", &config, &planner, &error), error);
    const struct swerve_episode episode = {.scenario_id = "", .prompt = "", .ego_wheelbase_m = 3};
    EXPECT_INT(planner_reset(planner, &episode, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "no answer to start_session within 1500 ms");
    planner_close(planner);
    driver_server_stop(&server);
}

static void servers_that_cannot_drive_are_refused(void)
{
    struct error error;
    struct planner *planner = NULL;
    driver_server_start(&server, DRIVER_FOREIGN);
    EXPECT_INT(open_driver("egodriver:policy", &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "speaks revision 7 of the egodriver contract (expected 1 or 2)");
    EXPECT_INT(open_driver("egodriver:other", &planner, &error), STATUS_NOT_FOUND);
    EXPECT_CONTAINS(error.text, "no server is known by the name other here; expected --egodriver "
                                "other=HOST:PORT");
    EXPECT_INT(open_driver("egodriver:policy?cameras=front,rear", &planner, &error),
               STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "once each some cameras of rig swerve, found \"rear\"");
    EXPECT_INT(open_driver("egodriver:policy?cameras=", &planner, &error), STATUS_BAD_INPUT);
    driver_server_stop(&server);
    EXPECT_INT(open_driver("egodriver:policy", &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "cannot connect to unix:/tmp/swerve-driver-");

    driver_server_start(&server, DRIVER_REFUSES);
    EXPECT_INT(open_driver("egodriver:policy", &planner, &error), STATUS_OK);
    const struct swerve_episode episode = {.scenario_id = "", .prompt = "", .ego_wheelbase_m = 3};
    EXPECT_INT(planner_reset(planner, &episode, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text,
                    "the driver answers start_session with FAILED_PRECONDITION: needs a lidar");
    planner_close(planner);
    driver_server_stop(&server);
}

struct opening {
    struct planner_config config;
    struct planner *planner;
};

static enum status open_abandoned(void *context, const atomic_bool *abandoned, struct error *error)
{
    struct opening *opening = context;
    opening->config.abandoned = abandoned;
    return planner_open("egodriver:policy", &opening->config, &opening->planner, error);
}

/* A start that waits for a server that does not listen, or that listens and says nothing, ends when
 * it is given up, not with its deadline of an hour. */
static void a_start_that_is_given_up_ends(void)
{
    enum { HOUR_MS = 3600 * 1000, WHILE_MS = 100 };
    char path[] = "/tmp/swerve-silent-XXXXXX";
    char address[64];
    char bound[GRPC_ADDRESS_BYTES];
    EXPECT(mkdtemp(path) != NULL);
    snprintf(address, sizeof address, "unix:%s/s", path);
    for (int listens = 0; listens < 2; listens++) {
        struct error error = {.status = STATUS_OK};
        struct planner_start *start = NULL;
        struct opening opening = {.config = {.session_count = 1,
                                             .open_deadline_ms = HOUR_MS,
                                             .confinement = &confinement}};
        int fd = -1;
        snprintf(binding, sizeof binding, "policy=%s", address);
        if (listens != 0) {
            EXPECT_OK(grpc_socket_listen(address, &fd, bound, &error), error);
        }
        EXPECT(planner_starts_apart("egodriver:policy", &opening.config));
        EXPECT_OK(planner_start_begin(open_abandoned, &opening, &start, &error), error);
        EXPECT(!planner_start_wait(start, WHILE_MS));
        EXPECT_INT(planner_start_end(start, &error), STATUS_CANCELLED);
        EXPECT_CONTAINS(error.text, "given up");
        EXPECT(opening.planner == NULL);
        if (fd >= 0) {
            close(fd);
        }
    }
    unlink(address + strlen("unix:"));
    rmdir(path);
}

static void two_servers_of_a_name_are_one_policy(void)
{
    struct error error;
    struct planner *planner = NULL;
    static struct driver_server second;
    char text[320];
    const char *const both[] = {text};
    const struct planner_confinement places = {.egodrivers = {both, 1, false}};
    const struct planner_config config = {
        .session_count = 4, .open_deadline_ms = 20000, .confinement = &places};
    driver_server_start(&server, DRIVER_GOOD);
    driver_server_start(&second, DRIVER_GOOD);
    snprintf(text, sizeof text, "policy=%s,%s", server.address, second.address);
    EXPECT_INT(planner_open("egodriver:policy", &config, &planner, &error), STATUS_OK);
    for (uint32_t i = 0; i < 4; i++) {
        reset(planner, i, i);
    }
    const struct swerve_observation seen[4] = {seen_at(0, 0), seen_at(1, 0), seen_at(2, 0),
                                               seen_at(3, 0)};
    const struct swerve_sensors sensors[4] = {*shown_at(0), *shown_at(0), *shown_at(0),
                                              *shown_at(0)};
    struct swerve_action actions[4];
    uint8_t failed[4];
    EXPECT_INT(planner_drive(planner, 4, seen, NULL, sensors, actions, failed, &error), STATUS_OK);
    planner_close(planner);
    EXPECT_INT(server.drives, 2);
    EXPECT_INT(second.drives, 2);
    second.version = "straight 2";
    EXPECT_INT(planner_open("egodriver:policy", &config, &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "serve different policies: get_version differs");
    driver_server_stop(&server);
    driver_server_stop(&second);
}

static void bindings_and_specs_are_checked(void)
{
    static const struct {
        const char *binding;
        bool allow_remote;
        const char *sentence; /* "": allowed */
    } rows[] = {
        {"a=127.0.0.1:1", false, ""},
        {"a=localhost:1,[::1]:2,unix:/x", false, ""},
        {"a=10.0.0.1:1", true, ""},
        {"a=10.0.0.1:1", false, "10.0.0.1:1 is another machine"},
        {"a=driver.example:1", false, "driver.example:1 is another machine"},
        {"a=127.0.0.1", false, "expected HOST:PORT, [IPV6]:PORT"},
        {"a=127.0.0.1:99999", false, "ports 1 to 65535"},
        {"a=127.0.0.1:0", false, "ports 1 to 65535"},
        {"a=::1:50", false, "expected HOST:PORT, [IPV6]:PORT"},
        {"a=", false, "expected NAME=HOST:PORT"},
        {"a", false, "expected NAME=HOST:PORT"},
        {"a b=127.0.0.1:1", false, "expected NAME=HOST:PORT"},
    };
    static const char *const specs[] = {
        "egodriver:",
        "egodriver:a/b",
        "egodriver:a?sound=on",
        "egodriver:a?renderer_data=nre",
    };
    struct error error;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct contract_places places = {&rows[i].binding, 1, rows[i].allow_remote};
        enum status expected = rows[i].sentence[0] == '\0' ? STATUS_OK : STATUS_USAGE;
        error.text[0] = '\0';
        EXPECT_INT(contract_places_check(&egodriver_kind, &places, &error), expected);
        EXPECT_CONTAINS(error.text, rows[i].sentence);
    }
    static const char *const twice[] = {"a=127.0.0.1:1", "a=127.0.0.1:2"};
    const struct contract_places places = {twice, 2, false};
    EXPECT_INT(contract_places_check(&egodriver_kind, &places, &error), STATUS_USAGE);
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        EXPECT_INT(planner_spec_check(specs[i], &error), STATUS_BAD_INPUT);
    }
    EXPECT_INT(planner_spec_check("seen+egodriver:a?cameras=front&tell_scene=yes", &error),
               STATUS_OK);
}

/* Each frame of a tick goes with the times of its first row and its last; none is before the start.
 */
static void images_have_the_times_of_their_shutter(void)
{
    static const uint8_t pictures[2][4] = {"one", "two"};
    const struct swerve_sensor sensor = {.id = "front",
                                         .format = SWERVE_FORMAT_JPEG,
                                         .count = 2,
                                         .frames = pictures[0],
                                         .stride = sizeof pictures[0],
                                         .bytes = {4, 4},
                                         .time_ns = {20000000, 50000000},
                                         .shutter_ns = 30000000,
                                         .shutter = 1};
    static const struct {
        uint64_t start_us, end_us;
    } right[2] = {{0, 20000}, {20000, 50000}};
    struct ego_block *block = NULL;
    for (uint32_t i = 0; i < sensor.count; i++) {
        struct ego_message *message = ego_message_image(&block, &sensor, i);
        CHECK(message != NULL);
        Ego__SubmitImage *sent = ego__submit_image__unpack(NULL, message->bytes, message->data);
        CHECK(sent != NULL && sent->camera_image != NULL);
        EXPECT_INT(sent->camera_image->frame_start_us, right[i].start_us);
        EXPECT_INT(sent->camera_image->frame_end_us, right[i].end_us);
        EXPECT(memcmp(sent->camera_image->image_bytes.data, pictures[i], 4) == 0);
        ego__submit_image__free_unpacked(sent, NULL);
        ego_message_free(message);
    }
    ego_block_leave(&block);
}

/* Messages of a block go in any order, and after whoever made them; what is made when none is left
 * begins the block again. */
static void messages_share_blocks(void)
{
    enum { COUNT = 40 };
    static const size_t sizes[] = {1, 60000, 300, 900000, 3 << 20};
    struct ego_message *made[COUNT];
    struct ego_block *block = NULL;
    for (size_t i = 0; i < COUNT; i++) {
        made[i] = ego_message_make(&block, EGO_IMAGE, sizes[i % COUNT_OF(sizes)]);
        CHECK(made[i] != NULL);
        EXPECT_INT((uintptr_t)made[i] % 16, 0);
        memset(made[i]->data, (int)i, made[i]->bytes);
    }
    for (size_t i = 0; i < COUNT; i++) {
        const struct ego_message *message = made[7 * i % COUNT];
        EXPECT_INT(message->bytes, sizes[7 * i % COUNT % COUNT_OF(sizes)]);
        EXPECT_INT(message->data[0], (uint8_t)(7 * i % COUNT));
        EXPECT_INT(message->data[message->bytes - 1], (uint8_t)(7 * i % COUNT));
        ego_message_free(made[7 * i % COUNT]);
    }
    made[0] = ego_message_make(&block, EGO_IMAGE, 100);
    ego_message_free(made[0]);
    made[1] = ego_message_make(&block, EGO_IMAGE, 200);
    EXPECT(made[0] == made[1]);
    ego_block_leave(&block);
    EXPECT(block == NULL);
    made[1]->data[199] = 1;
    ego_message_free(made[1]);
}

int main(void)
{
    return TEST_RUN(
        TEST(drives_and_forks), TEST(cameras_that_nobody_wants_are_not_sent),
        TEST(a_driver_that_varies_is_not_forked), TEST(a_server_that_forks_is_sent_nothing_again),
        TEST(debug_bytes_are_kept_as_text), TEST(a_result_says_that_its_driver_varies),
        TEST(a_lost_connection_is_no_result), TEST(each_fault_of_a_session_has_its_sentence),
        TEST(hostile_frames_have_their_sentence), TEST(headers_that_unpack_to_much_are_refused),
        TEST(windows_that_never_open_end_with_the_deadline),
        TEST(each_fault_of_a_connection_has_its_sentence),
        TEST(servers_that_cannot_drive_are_refused), TEST(a_start_that_is_given_up_ends),
        TEST(two_servers_of_a_name_are_one_policy), TEST(bindings_and_specs_are_checked),
        TEST(images_have_the_times_of_their_shutter), TEST(messages_share_blocks));
}
