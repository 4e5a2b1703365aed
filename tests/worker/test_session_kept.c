/*
 * Goal: a session that is kept goes on in another process with the same bits, from what lies in its
 * file however it ended; a file that is damaged, or is of something else, is refused by its place.
 * Method: drives of mixed steps and two models beside others that take them up from a copy of their
 * log, ends compared by trace hash. With a module of devices as argument: on its first device,
 * frame by frame.
 */
#include "base/check.h"
#include "base/file.h"
#include "engine/sensors/layout.h"
#include "engine/trace/drive_log.h"
#include "tests/worker/sessions.h"
#include "worker/env/env_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* That everything is driven on; NULL: the CPU. A device has no second model. */
static const struct device *on;

/* The next lock is asked for behind the removal of this file. NULL: of none. */
static const char *removed_first;

/* In place of the C library's: as on NFS, where who locks for himself alone has to have opened the
 * file for writing. */
int flock(int fd, int operation)
{
    if ((operation & LOCK_EX) != 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
        return -1;
    }
    if (removed_first != NULL) {
        EXPECT_INT(unlink(removed_first), 0);
        removed_first = NULL;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

/* The template becomes a name that no file has. */
static void make_free(char *path)
{
    write_file(path, "", 0);
    unlink(path);
}

static void forget(struct session *session)
{
    drive_log_remove(session_release(session));
}

enum world_of { OBJECT = 0, BY_AGENTS, BY_MAP };

static struct swerve_env *open_long_env(enum world_of world_of)
{
    struct swerve_env *env = NULL;
    struct error error;
    char text[256] = "";
    const struct swerve_env_config config = {
        SWERVE_ENV_ABI_VERSION, 1, 1, SWERVE_ENV_CAMERAS | SWERVE_ENV_HASH, "object",
        long_road_path,
    };
    const struct env_learned world = {&model,
                                      world_of == BY_MAP ? CONDITIONING_MAP : CONDITIONING_AGENTS,
                                      1, on == NULL ? &previous : NULL, on};
    if (world_of != OBJECT) {
        EXPECT_OK(env_open_learned(&config, &world, &env, &error), error);
    } else {
        EXPECT_INT(swerve_env_open(&config, &env, text, sizeof text), 0);
    }
    return env;
}

static void drive_any(struct session *session, uint64_t key, uint32_t end, enum world_of world)
{
    struct error error;
    for (uint32_t tick = session_tick(session); tick < end; tick++) {
        const struct action action = action_of(key, tick);
        uint32_t drawn = skipped_at(key, tick);
        uint32_t skipped = world == OBJECT || (world == BY_MAP && drawn == STEPS) ? 0 : drawn;
        EXPECT_OK(session_step(session, &action, skipped, &error), error);
    }
}

/* A copy of a log as it would be found, with `cut` bytes missing at its end, and one turned. */
static void copy_log(const char *path, char *copy, size_t cut, size_t turned)
{
    char *data = NULL;
    size_t bytes = 0;
    struct error error;
    EXPECT_OK(file_read(path, DRIVE_LOG_BYTES_MAX, &data, &bytes, &error), error);
    if (turned > 0) {
        data[bytes - turned] ^= 1;
    }
    write_file(copy, data, bytes - cut);
    free(data);
}

static struct session *resume(struct swerve_env *env, const char *path, uint64_t key)
{
    struct drive_log_head head;
    struct drive_log *log = NULL;
    struct session *session = NULL;
    struct error error;
    EXPECT_OK(drive_log_open(path, &head, &log, &error), error);
    EXPECT_TEXT(head.scenario, "road");
    EXPECT_INT(head.seed, key);
    EXPECT_OK(session_create(env, 0, 0, head.seed, &session, &error), error);
    EXPECT_OK(session_resume(session, log, &error), error);
    while (session_retraces(session)) { /* a tick at a time, generating nothing */
        uint32_t tick = session_tick(session);
        EXPECT_OK(session_return(session, &error), error);
        EXPECT_INT(session_tick(session), tick + 1);
    }
    return session;
}

/* Both go on alike to the end, and are the same drive. */
static void end_alike(struct session *a, struct session *b, uint64_t key, enum world_of world)
{
    static const char *const members[] = {"trace_hash", "verdict", "sampler", "model_hash"};
    char *text[2] = {NULL, NULL};
    struct error error;
    drive_any(a, key, LONG_HORIZON, world);
    drive_any(b, key, LONG_HORIZON, world);
    EXPECT_INT(session_end(a), SWERVE_ENV_HORIZON);
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        char *mine = outcome_text(a, members[i]);
        char *theirs = outcome_text(b, members[i]);
        EXPECT_TEXT(theirs, mine);
        free(mine);
        free(theirs);
    }
    EXPECT_INT(memcmp(session_cameras(a), session_cameras(b), SWERVE_ENV_CAMERA_BYTES), 0);
    EXPECT_OK(session_scenario(a, "kept", &text[0], &error), error);
    EXPECT_OK(session_scenario(b, "kept", &text[1], &error), error);
    EXPECT_TEXT(text[1], text[0]);
    free(text[0]);
    free(text[1]);
}

/* One drives 33 ticks, goes six back and on to 47; another process takes it up at 40, the last kept
 * state, has the rest generated again, and both go on alike: also
 * after going back over what was driven before, of which no entry is needed that was cut off. */
static void take_up(enum world_of world)
{
    const uint64_t key = 3;
    char path[] = "/tmp/swerve_session_XXXXXX";
    char copy[] = "/tmp/swerve_session_XXXXXX";
    char torn[] = "/tmp/swerve_session_XXXXXX";
    char damaged[] = "/tmp/swerve_session_XXXXXX";
    struct drive_log_head head = {.scenario = "road", .seed = key};
    struct drive_log *log = NULL;
    struct session *session = NULL;
    struct error error;
    struct swerve_env *env = open_long_env(world);
    struct swerve_env *elsewhere = open_long_env(world);
    make_free(path);
    EXPECT_OK(drive_log_create(path, &head, &log, &error), error);
    EXPECT_OK(session_create(env, 0, 0, key, &session, &error), error);
    session_keep(session, log);
    drive_any(session, key, 33, world);
    EXPECT_OK(session_back(session, 6, true, &error), error);
    drive_any(session, key + 100, 47, world);
    EXPECT_INT(drive_log_open(path, &head, &log, &error), STATUS_BUSY);
    copy_log(path, copy, 0, 0);
    copy_log(path, torn, 1, 0);
    copy_log(path, damaged, 0, 300);

    struct session *again = resume(elsewhere, copy, key);
    EXPECT_INT(session_tick(again), world == OBJECT ? 47 : 40);
    EXPECT_INT(session_returning(again), world == OBJECT ? 0 : 7);
    while (session_returning(again) > 0) {
        EXPECT_OK(session_return(again, &error), error);
    }
    EXPECT_INT(session_lines(again), 2);
    end_alike(session, again, key, world);
    EXPECT_OK(session_back(session, 25, false, &error), error); /* behind what was taken up */
    EXPECT_OK(session_back(again, 25, false, &error), error);
    end_alike(session, again, key + 7, world);
    forget(again);
    EXPECT(access(copy, F_OK) != 0);

    again = resume(elsewhere, torn, key); /* the tick that was being written is missing */
    EXPECT_INT(session_tick(again) + session_returning(again), 46);
    forget(again);
    EXPECT_INT(drive_log_open(damaged, &head, &log, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected an entry of a drive's log with its digest");
    EXPECT_CONTAINS(error.text, damaged);
    EXPECT_CONTAINS(error.text, "byte ");
    unlink(damaged);
    forget(session);
    swerve_env_close(env);
    swerve_env_close(elsewhere);
}

static void a_kept_session_goes_on_elsewhere(void)
{
    take_up(OBJECT);
    take_up(BY_AGENTS);
}

/* Frames that move agents are generated again, all of them. */
static void where_frames_move_agents_all_is_driven_again(void)
{
    enum { TICKS = 8 };
    const uint64_t key = 2;
    char path[] = "/tmp/swerve_session_XXXXXX";
    char copy[] = "/tmp/swerve_session_XXXXXX";
    struct drive_log_head head = {.scenario = "road", .seed = key};
    struct drive_log *log = NULL;
    struct session *session = NULL;
    struct error error;
    struct swerve_env *env = open_long_env(BY_MAP);
    struct swerve_env *elsewhere = open_long_env(BY_MAP);
    make_free(path);
    EXPECT_OK(drive_log_create(path, &head, &log, &error), error);
    EXPECT_OK(session_create(env, 0, 0, key, &session, &error), error);
    session_keep(session, log);
    drive_any(session, key, TICKS, BY_MAP);
    copy_log(path, copy, 0, 0);
    struct session *again = resume(elsewhere, copy, key);
    EXPECT_INT(session_tick(again), 0);
    EXPECT_INT(session_returning(again), TICKS);
    while (session_returning(again) > 0) {
        EXPECT_OK(session_return(again, &error), error);
    }
    const struct scene *mine = session_scene(session);
    const struct scene *theirs = session_scene(again);
    EXPECT_INT(theirs->agent_count, mine->agent_count);
    EXPECT_INT(memcmp(theirs->agents, mine->agents, mine->agent_count * sizeof mine->agents[0]), 0);
    EXPECT_INT(memcmp(session_cameras(again), session_cameras(session), SWERVE_ENV_CAMERA_BYTES),
               0);
    forget(session);
    forget(again);
    swerve_env_close(env);
    swerve_env_close(elsewhere);
}

/* Entries with good digests that do not fit the drive: frames of another tick, of which the cameras
 * show something else, and a way back that leads ahead. */
static void a_log_that_does_not_fit_is_refused(void)
{
    struct error error;
    struct swerve_env *env = open_long_env(BY_AGENTS);
    for (int fault = 0; fault < 3; fault++) {
        char path[] = "/tmp/swerve_session_XXXXXX";
        struct drive_log_head head = {.scenario = "road"};
        struct drive_log *log = NULL;
        struct session *session = NULL;
        uint8_t *frame = calloc(1, FRAME_BYTES);
        const uint8_t *frames[] = {frame};
        make_free(path);
        EXPECT_OK(drive_log_create(path, &head, &log, &error), error);
        EXPECT_OK(session_create(env, 0, 0, 0, &session, &error), error);
        if (fault == 0) { /* before the session's own */
            for (uint32_t tick = 0; tick < 20; tick++) {
                const struct action none = {0};
                EXPECT_OK(session_step(session, &none, STEPS, &error), error);
                const struct env_past past = env_past(env, 0);
                EXPECT_OK(drive_log_tick(log, none, STEPS, past.observation_digest,
                                         past.world.frame_stats, &error),
                          error);
            }
            EXPECT_OK(drive_log_frames(log, frames, 1, &error), error);
        } else if (fault == 1) {
            EXPECT_OK(drive_log_back(log, 1, false, &error), error);
        } else {
            const struct frame_stats frame_stats = {.tick = 7};
            for (uint32_t tick = 0; tick < 20; tick++) {
                EXPECT_OK(drive_log_tick(log, (struct action){0}, 0, 0, &frame_stats, &error),
                          error);
            }
            EXPECT_OK(drive_log_frames(log, frames, 1, &error), error);
        }
        session_destroy(session);
        drive_log_close(log);
        EXPECT_OK(drive_log_open(path, &head, &log, &error), error);
        EXPECT_OK(session_create(env, 0, 0, 0, &session, &error), error);
        enum status status = session_resume(session, log, &error);
        while (status == STATUS_OK && session_retraces(session)) {
            status = session_return(session, &error);
        }
        EXPECT_INT(status, STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, fault == 0   ? "expected what was seen at tick 20"
                                    : fault == 1 ? "expected a way back"
                                                 : "expected the past of tick 1");
        session_destroy(session);
        unlink(path);
        free(frame);
    }
    swerve_env_close(env);
}

/* Goal: room is made of logs with which nobody goes on, on NFS too. Method: three logs of which the
 * oldest is held, and room for one, then for none. */
static void logs_make_room(void)
{
    enum { LOGS = 3 };
    char folder[] = "/tmp/swerve_logs_XXXXXX";
    char paths[LOGS][64];
    struct drive_log *held = NULL;
    struct error error;
    EXPECT(mkdtemp(folder) != NULL);
    for (int i = 0; i < LOGS; i++) {
        const struct drive_log_head head = {.scenario = "road"};
        const struct timespec touched[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        struct drive_log *log = NULL;
        snprintf(paths[i], sizeof paths[i], "%s/%d" DRIVE_LOG_SUFFIX, folder, i);
        EXPECT_OK(drive_log_create(paths[i], &head, &log, &error), error);
        if (i == 0) {
            held = log;
        } else {
            drive_log_close(log);
        }
        EXPECT_INT(utimensat(AT_FDCWD, paths[i], touched, 0), 0);
    }
    EXPECT_OK(drive_log_make_room(folder, 2, UINT64_MAX, &error), error);
    EXPECT(access(paths[0], F_OK) == 0 && access(paths[1], F_OK) != 0);
    EXPECT_INT(access(paths[2], F_OK), 0);
    drive_log_close(held);
    EXPECT_OK(drive_log_make_room(folder, 0, UINT64_MAX, &error), error);
    EXPECT(access(paths[0], F_OK) != 0 && access(paths[2], F_OK) != 0);
    EXPECT_INT(rmdir(folder), 0);
    EXPECT_INT(drive_log_make_room(folder, 0, 0, &error), STATUS_IO);
    EXPECT_CONTAINS(error.text, folder);
}

/* Goal: nobody goes on with a log that another process removes between its opening and its lock. */
static void a_log_without_a_name_is_none(void)
{
    char path[] = "/tmp/swerve_session_XXXXXX";
    struct drive_log_head head = {.scenario = "road"};
    struct drive_log *log = NULL;
    struct error error;
    make_free(path);
    EXPECT_OK(drive_log_create(path, &head, &log, &error), error);
    drive_log_close(log);
    removed_first = path;
    EXPECT_INT(drive_log_open(path, &head, &log, &error), STATUS_NOT_FOUND);
    EXPECT_CONTAINS(error.text, "was removed as it was opened");
    EXPECT_CONTAINS(error.text, path);
    removed_first = path;
    EXPECT_INT(drive_log_create(path, &head, &log, &error), STATUS_NOT_FOUND);
    EXPECT(removed_first == NULL && access(path, F_OK) != 0);
}

/* ---- on a device ---- */

/* Most ticks are drawn, since an emulated device takes long for steps. */
static void drive_on_device(struct session *session, uint32_t end)
{
    struct error error;
    for (uint32_t tick = session_tick(session); tick < end; tick++) {
        const struct action action = action_of(3, tick);
        bool drawn = tick % 3 != 1; /* also behind the kept state, and at last */
        EXPECT_OK(session_step(session, &action, drawn ? STEPS : STEPS - 1, &error), error);
    }
}

/* One drives 23 ticks; another takes it up at 20, the last kept state, has three generated again,
 * and both show the same frames from there on. */
static void a_kept_session_goes_on_elsewhere_on_a_device(void)
{
    char path[] = "/tmp/swerve_session_XXXXXX";
    char copy[] = "/tmp/swerve_session_XXXXXX";
    const struct drive_log_head head = {.scenario = "road", .seed = 3};
    struct drive_log *log = NULL;
    struct session *session = NULL;
    struct error error;
    struct swerve_env *env = open_long_env(BY_AGENTS);
    struct swerve_env *elsewhere = open_long_env(BY_AGENTS);
    make_free(path);
    EXPECT_OK(drive_log_create(path, &head, &log, &error), error);
    EXPECT_OK(session_create(env, 0, 0, 3, &session, &error), error);
    session_keep(session, log);
    drive_on_device(session, 23);
    copy_log(path, copy, 0, 0);

    struct session *again = resume(elsewhere, copy, 3);
    EXPECT_INT(session_tick(again), 20);
    EXPECT_INT(session_returning(again), 3);
    while (session_returning(again) > 0) {
        EXPECT_OK(session_return(again, &error), error);
    }
    for (uint32_t tick = 23; tick <= 26; tick++) {
        drive_on_device(session, tick);
        drive_on_device(again, tick);
        EXPECT_INT(
            memcmp(session_cameras(session), session_cameras(again), SWERVE_ENV_CAMERA_BYTES), 0);
    }
    forget(again);
    forget(session);
    swerve_env_close(env);
    swerve_env_close(elsewhere);
}

static int run_on_device(const char *module)
{
    struct device device;
    struct error error;
    EXPECT_INT(setenv("SWERVE_CUDA_MODULE", module, 1), 0);
    EXPECT_OK(device_choose("cuda:0", &device, &error), error);
    on = &device;
    int code = TEST_RUN(TEST(a_kept_session_goes_on_elsewhere_on_a_device));
    on = NULL;
    return code;
}

int main(int argc, char **argv)
{
    open_model(SWERVE_SOURCE_ROOT "/tests/engine/data");
    if (argc > 1) {
        int on_device = run_on_device(argv[1]);
        close_models();
        return on_device;
    }
    int code = TEST_RUN(TEST(a_kept_session_goes_on_elsewhere),
                        TEST(where_frames_move_agents_all_is_driven_again),
                        TEST(a_log_that_does_not_fit_is_refused), TEST(logs_make_room),
                        TEST(a_log_without_a_name_is_none));
    close_models();
    return code;
}
