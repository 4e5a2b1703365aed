/*
 * Goal: what a planner in the sandbox cannot do it cannot do, and what it must be able to do works.
 * Method: a real Python process (bad_planners/escape.py) that tries one way out after the other,
 * against things that are really there: a listening port, an abstract socket, a secret file, this
 * process. The same attempts succeed outside the sandbox, which shows that they are attempts at
 * all.
 *
 * Plugins, which such a process runs apart, are compared bit for bit with plugins in this process.
 *
 * Where the machine forbids namespaces the tests only see that it is said.
 */
#include "schemas/observation.h"
#include "tests/harness.h"
#include "tests/worker/planner/eyes.h"
#include "worker/planner/planner.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPTS SWERVE_SOURCE_ROOT "/tests/worker/bad_planners/"

enum { ATTEMPTS = 21, WAYS = 38 };

static struct {
    char directory[64];
    char secret[96];
    char socket[96];
    char abstract[48];
    int port;
} outside;

static const char *const roots[] = {SWERVE_SOURCE_ROOT, WAYS_OUT};
static const char *const names[] = {"A_NAME_THAT_MAY_PASS", "SWERVE_TOKEN_FILE", "ASAN_OPTIONS"};

static struct planner_confinement confinement(void)
{
    return (struct planner_confinement){
        .sandbox = true,
        .environment_listed = true,
        .paths = roots,
        .path_count = COUNT_OF(roots),
        .environment = names,
        .environment_count = COUNT_OF(names),
        .secrets = {outside.secret},
    };
}

/* Whether this machine lets us; says so when it does not. */
static bool possible(void)
{
    struct error error = {0};
    const struct planner_confinement confined = confinement();
    if (planner_confinement_check(&confined, &error) == STATUS_OK) {
        return true;
    }
    printf("# not tested: %s\n", error.text);
    EXPECT_CONTAINS(error.text, "--planner-sandbox off");
    return false;
}

static void listen_at(int family, const struct sockaddr *address, socklen_t bytes, int *fd)
{
    *fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(*fd >= 0 && bind(*fd, address, bytes) == 0 && listen(*fd, 16) == 0);
}

static void make_outside(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof in;
    int fd;
    strcpy(outside.directory, "/tmp/swerve-sandbox-XXXXXX");
    CHECK(mkdtemp(outside.directory) != NULL && chmod(outside.directory, 0777) == 0);
    snprintf(outside.secret, sizeof outside.secret, "%s/token", outside.directory);
    FILE *file = fopen(outside.secret, "w");
    CHECK(file != NULL && fputs("a secret\n", file) >= 0 && fclose(file) == 0);
    listen_at(AF_INET, (const struct sockaddr *)&in, sizeof in, &fd);
    CHECK(getsockname(fd, (struct sockaddr *)&in, &bytes) == 0);
    outside.port = ntohs(in.sin_port);
    snprintf(outside.abstract, sizeof outside.abstract, "swerve-test-%d", (int)getpid());
    size_t length = strlen(outside.abstract);
    memcpy(un.sun_path + 1, outside.abstract, length);
    listen_at(AF_UNIX, (const struct sockaddr *)&un,
              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length), &fd);
    un = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(outside.socket, sizeof outside.socket, "/tmp/swerve-%d.sock", (int)getpid());
    unlink(outside.socket);
    snprintf(un.sun_path, sizeof un.sun_path, "%s", outside.socket);
    listen_at(AF_UNIX, (const struct sockaddr *)&un, sizeof un, &fd);
    CHECK(chmod(outside.socket, 0666) == 0);
    setenv("SWERVE_TOKEN_FILE", outside.secret, 1);
    setenv("A_SECRET_OF_THE_MACHINE", "x", 1);
    setenv("A_NAME_THAT_MAY_PASS", "x", 1);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    static const char *const setting_like[] = {"NVIDIA_API_KEY",     "CUDA_REGISTRY_PASSWORD",
                                               "TORCH_HUB_TOKEN",    "PYTHON_KEYRING_KEY",
                                               "OMP_SECRET",         "MKL_LICENSE_KEY",
                                               "OPENBLAS_X",         "NUMEXPR_X",
                                               "SWERVE_PLANNER_KEY", "LC_SECRET",
                                               "PATH_SECRET"};
    for (size_t i = 0; i < COUNT_OF(setting_like); i++) {
        setenv(setting_like[i], "x", 1);
    }
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* that needs ptrace, which the sandbox refuses */
}

static void remove_outside(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/swerve-escape", outside.directory);
    unlink(path);
    unlink(outside.secret);
    unlink(outside.socket);
    rmdir(outside.directory);
}

static struct planner *open_escape(const struct planner_confinement *confined)
{
    char spec[700];
    struct planner *planner = NULL;
    struct error error = {0};
    snprintf(spec, sizeof spec, "exec:/usr/bin/python3 -S %sescape.py %d %s %s %d %s%s", SCRIPTS,
             outside.port, outside.abstract, outside.secret, (int)getpid(), outside.directory,
             confined == NULL ? " harmless" : "");
    const struct planner_config config = {.session_count = 1,
                                          .open_deadline_ms = 100000,
                                          .tick_deadline_ms = 20000,
                                          .memory_limit_bytes = 512 << 20,
                                          .confinement = confined};
    EXPECT_OK(planner_open(spec, &config, &planner, &error), error);
    return planner;
}

static void drive_once(struct planner *planner)
{
    struct swerve_episode episode = {
        .horizon_ticks = 10, .tick_s = 0.1, .scenario_id = "s", .prompt = ""};
    struct swerve_observation seen = {.speed_mps = 1.0};
    struct swerve_action action;
    uint8_t failed = 0;
    struct error error = {0};
    EXPECT_OK(planner_reset(planner, &episode, &error), error);
    EXPECT_OK(planner_act(planner, 1, &seen, &action, &failed, &error), error);
    EXPECT_NEAR(action.accel_mps2, 0.5, 0.0);
}

static void nothing_gets_out(void)
{
    if (!possible()) {
        return;
    }
    const struct planner_confinement confined = confinement();
    struct planner *planner = open_escape(&confined);
    drive_once(planner);
    const char *told = planner_stderr_tail(planner);
    EXPECT_CONTAINS(told, "attempts made");
    if (strstr(told, "ESCAPED") != NULL || strstr(told, "BROKEN") != NULL) {
        TEST_FAIL("%s", told);
    }
    int kept = 0;
    for (const char *at = told; (at = strstr(at, " kept\n")) != NULL; at++) {
        kept++;
    }
    EXPECT_INT(kept, ATTEMPTS);
    planner_close(planner);
    EXPECT(access("swerve-escape", F_OK) != 0);
}

static struct planner *open_ways_out(const struct planner_confinement *confined)
{
    char spec[700];
    struct planner *planner = NULL;
    struct error error = {0};
    snprintf(spec, sizeof spec,
             "exec:" WAYS_OUT " %d %s /usr/bin/python3 -S " SWERVE_SOURCE_ROOT
             "/scripts/examples/follow.py",
             (int)getpid(), outside.socket);
    const struct planner_config config = {
        .session_count = 1, .open_deadline_ms = 100000, .confinement = confined};
    EXPECT_OK(planner_open(spec, &config, &planner, &error), error);
    return planner;
}

/* Goal: ways out that take C, and things that the planner inherits, lead nowhere. */
static void ways_out_are_closed(void)
{
    static const char *const open_outside[] = {"shared-mapping", "memory-file", "others-proc",
                                               "path-socket",    "signal",      "sysv-memory",
                                               "keeper",         "written-proc"};
    struct planner *planner = open_ways_out(NULL);
    const char *told = planner_stderr_tail(planner);
    for (size_t i = 0; i < COUNT_OF(open_outside); i++) {
        char line[48];
        snprintf(line, sizeof line, "%s ESCAPED", open_outside[i]);
        EXPECT_CONTAINS(told, line);
    }
    /* These do not need the sandbox. */
    EXPECT_CONTAINS(told, "descriptors kept");
    EXPECT_CONTAINS(told, "shared-memory kept");
    EXPECT_CONTAINS(told, "pass-descriptor kept");
    planner_close(planner);
    if (!possible()) {
        return;
    }
    const struct planner_confinement confined = confinement();
    planner = open_ways_out(&confined);
    told = planner_stderr_tail(planner);
    if (strstr(told, "ESCAPED") != NULL) {
        TEST_FAIL("%s", told);
    }
    int kept = 0;
    for (const char *at = told; (at = strstr(at, " kept\n")) != NULL; at++) {
        kept++;
    }
    EXPECT_INT(kept, WAYS);
    planner_close(planner);
}

static void an_ordinary_user_is_confined_too(void)
{
    if (geteuid() != 0 || !possible()) {
        return; /* then the test above is this one */
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0 ||
            prctl(PR_SET_DUMPABLE, 1) != 0 || chdir("/") != 0) {
            _exit(3);
        }
        _exit(access(SCRIPTS "escape.py", R_OK) != 0 ? 2
              : setjmp(test_failure) == 0            ? (nothing_gets_out(), 0)
                                                     : 1);
    }
    int how = 0;
    EXPECT(waitpid(child, &how, 0) == child && WIFEXITED(how));
    if (WEXITSTATUS(how) == 2) {
        printf("# not tested: the sources are not readable by others\n");
        return;
    }
    EXPECT_INT(WEXITSTATUS(how), 0);
}

/* The same attempts without the sandbox: most of them succeed, so they are not refused by accident.
 */
static void outside_the_attempts_succeed(void)
{
    static const char *const succeed[] = {"connect",       "abstract",   "secret",
                                          "write-outside", "signal",     "strangers",
                                          "other-name",    "privileges", "setting-like"};
    struct planner *planner = open_escape(NULL);
    const char *told = planner_stderr_tail(planner);
    for (size_t i = 0; i < COUNT_OF(succeed); i++) {
        char line[48];
        snprintf(line, sizeof line, "%s ESCAPED", succeed[i]);
        EXPECT_CONTAINS(told, line);
    }
    EXPECT_CONTAINS(told, "token-name kept"); /* that one never passes */
    planner_close(planner);
    unlink("/tmp/swerve-escape-mine");
    unlink("/dev/shm/swerve-escape-mine");
}

static void memory_is_limited_inside(void)
{
    if (!possible()) {
        return;
    }
    char spec[400];
    struct planner *planner = NULL;
    struct error error = {0};
    const struct planner_confinement confined = confinement();
    const struct planner_config config = {.session_count = 1,
                                          .open_deadline_ms = 100000,
                                          .memory_limit_bytes = 256 << 20,
                                          .confinement = &confined};
    snprintf(spec, sizeof spec, "exec:/usr/bin/python3 -S -c 'bytearray(1 << 30)'");
    EXPECT_INT(planner_open(spec, &config, &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "MemoryError");
    EXPECT_CONTAINS(error.text, "256 MiB of memory: --planner-memory-mib");
}

/* Goal: no way around the limit on memory: several processes, memory of no process, files. */
static void all_memory_counts(void)
{
    static const struct {
        const char *way;
        int mib;       /* to take */
        int limit_mib; /* of all */
    } cases[] = {{"processes", 512, 256}, {"orphans", 512, 256}, {"memfd", 600, 512},
                 {"sysv", 600, 512},      {"mapping", 600, 512}, {"zero", 600, 512},
                 {"shm", 600, 512},       {"inodes", 0, 512}};
    const struct planner_confinement confined = confinement();
    if (!possible()) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char spec[300];
        char line[48];
        struct planner *planner = NULL;
        struct error error = {0};
        const struct planner_config config = {.session_count = 1,
                                              .open_deadline_ms = 100000,
                                              .memory_limit_bytes = (int64_t)cases[i].limit_mib
                                                                    << 20,
                                              .confinement = &confined};
        snprintf(spec, sizeof spec, "exec:/usr/bin/python3 -S " SCRIPTS "hoard.py %s %d",
                 cases[i].way, cases[i].mib);
        enum status status = planner_open(spec, &config, &planner, &error);
        if (cases[i].limit_mib == 256) {
            EXPECT_INT(status, STATUS_PLANNER);
            EXPECT_CONTAINS(error.text, "of 256 MiB that this worker allows a planner "
                                        "(--planner-memory-mib), and were ended");
            continue;
        }
        EXPECT_OK(status, error);
        snprintf(line, sizeof line, "%s kept", cases[i].way);
        EXPECT_CONTAINS(planner_stderr_tail(planner), line);
        planner_close(planner);
    }
}

#define CGROUP "/sys/fs/cgroup/swerve-test"

static bool write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool well = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return well;
}

static void the_kernels_memory_is_limited(void)
{
    const struct planner_confinement confined = confinement();
    struct planner *planner = NULL;
    struct error error = {0};
    const struct planner_config config = {.session_count = 1,
                                          .open_deadline_ms = 100000,
                                          .memory_limit_bytes = 64 << 20,
                                          .confinement = &confined};
    EXPECT_INT(planner_open("exec:/usr/bin/python3 -S " SCRIPTS "hoard.py sockets 0", &config,
                            &planner, &error),
               STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "of 64 MiB that this worker allows a planner "
                                "(--planner-memory-mib), and were ended");
    EXPECT(access(CGROUP "/swerve-worker", F_OK) == 0); /* where this process has gone */
}

/* Goal: where this process has been given a cgroup, planners have one each, which also limits what
 * the kernel keeps for them. Method: root gives one to a child. */
static void a_cgroup_limits_all(void)
{
    int how = 0;
    if (geteuid() != 0 || access("/sys/fs/cgroup/cgroup.subtree_control", W_OK) != 0 ||
        !write_to("/sys/fs/cgroup/cgroup.subtree_control", "+memory") || mkdir(CGROUP, 0755) != 0) {
        printf("# not tested: there is no cgroup of version 2 with memory to be given here\n");
        return;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        _exit(!write_to(CGROUP "/cgroup.procs", "0") ? 2
              : !possible()                          ? 0
              : setjmp(test_failure) == 0            ? (the_kernels_memory_is_limited(), 0)
                                                     : 1);
    }
    EXPECT(waitpid(child, &how, 0) == child);
    (void)rmdir(CGROUP "/swerve-worker");
    EXPECT_INT(rmdir(CGROUP), 0); /* no planner's is left */
    EXPECT(WIFEXITED(how));
    EXPECT_INT(WEXITSTATUS(how), 0);
}

/* Goal: who meets a limit of ours reads that it is ours, how large it is and what changes it. */
static void limits_say_that_they_are_ours(void)
{
    static const struct {
        const char *program;
        const char *told;
    } cases[] = {
        {"open(\"/tmp/x\", \"wb\").write(bytes(3 << 20))", "2 MiB in its /tmp: --planner-tmp-mib"},
        {"import os, time; [os.fork() or time.sleep(600) for i in range(20)]",
         "9 processes and threads: --planner-processes"},
        {"import a_module_of_the_worker", "--planner-path shows more"},
    };
    struct planner_confinement confined = confinement();
    confined.tmp_bytes = 2 << 20;
    confined.processes = 9;
    if (!possible()) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char spec[300];
        struct planner *planner = NULL;
        struct error error = {0};
        const struct planner_config config = {
            .session_count = 1, .open_deadline_ms = 100000, .confinement = &confined};
        snprintf(spec, sizeof spec, "exec:/usr/bin/python3 -S -c '%s'", cases[i].program);
        EXPECT_INT(planner_open(spec, &config, &planner, &error), STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, cases[i].told);
    }
}

static void what_lies_outside_is_said_to(void)
{
    if (!possible()) {
        return;
    }
    char script[96];
    char spec[160];
    struct planner *planner = NULL;
    struct error error = {0};
    struct planner_confinement confined = confinement();
    const struct planner_config config = {.session_count = 1, .confinement = &confined};
    snprintf(script, sizeof script, "%s/program", outside.directory);
    FILE *file = fopen(script, "w");
    CHECK(file != NULL && fputs("#!/bin/sh\n", file) >= 0 && fclose(file) == 0);
    CHECK(chmod(script, 0755) == 0);
    snprintf(spec, sizeof spec, "exec:%s", script);
    EXPECT_INT(planner_open(spec, &config, &planner, &error), STATUS_PLANNER);
    unlink(script);
    EXPECT_CONTAINS(error.text, "--planner-path");
}

static void secrets_must_not_be_in_sight(void)
{
    struct planner *planner = NULL;
    struct error error = {0};
    struct planner_confinement confined = confinement();
    const char *const shown[] = {outside.directory};
    const struct planner_config config = {.session_count = 1, .confinement = &confined};
    confined.paths = shown;
    confined.path_count = 1;
    EXPECT_INT(planner_open("exec:/bin/true", &config, &planner, &error), STATUS_USAGE);
    EXPECT_CONTAINS(error.text, outside.secret);
    const char *const everything[] = {"/"};
    confined.paths = everything;
    EXPECT_INT(planner_open("exec:/bin/true", &config, &planner, &error), STATUS_USAGE);
    const char *const own[] = {"/tmp"};
    confined.paths = own;
    EXPECT_INT(planner_open("exec:/bin/true", &config, &planner, &error), STATUS_USAGE);
    const char *const nothing[] = {"/nowhere/at/all"};
    confined.paths = nothing;
    EXPECT_INT(planner_open("exec:/bin/true", &config, &planner, &error), STATUS_NOT_FOUND);
}

static void plugins_are_refused_where_they_cannot_be_confined(void)
{
    struct planner *planner = NULL;
    struct error error = {0};
    const struct planner_confinement confined = confinement();
    const struct planner_config config = {.session_count = 1, .confinement = &confined};
    EXPECT_INT(planner_open("plugin:" PLUGIN_EXAMPLE, &config, &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "apart");
}

/* ---- plugins in a process of their own ---- */

enum { SESSIONS = 3, TICKS = 20 };

static uint8_t grids[SESSIONS][BEV_BYTES];
static uint8_t images[SESSIONS][CAMERA_BYTES];

/* Different for each session and tick, as a mix-up would not be seen otherwise. */
static struct swerve_observation observation_of(uint32_t session, uint32_t tick,
                                                struct swerve_route_point *route)
{
    memset(grids[session], (int)(40 * session + tick), BEV_BYTES);
    memset(images[session], (int)(90 * session + tick), CAMERA_BYTES);
    for (int i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        route[i] = (struct swerve_route_point){
            .x_m = 2.0f * (float)i, .y_m = 0.1f * (float)session, .speed_limit_mps = 15.0f};
    }
    return (struct swerve_observation){
        .session = session,
        .tick = tick,
        .time_ns = (int64_t)tick * TICK_NS,
        .bev_time_ns = (int64_t)tick * TICK_NS - (int64_t)session,
        .x_m = 1.0 / (3.0 + tick),
        .speed_mps = 10.0 + 0.1 * tick + session,
        .route_count = SWERVE_ROUTE_POINTS,
        .route = route,
        .bev = grids[session],
        .camera = {images[session], tick % 2 == 0 ? images[session] : NULL, images[session]},
    };
}

/* Three sessions; after half of the ticks the third becomes a copy of the first. Stops when the
 * planner dies. */
static enum status drive_plugin(struct planner *planner, struct swerve_action *actions,
                                struct error *error)
{
    static struct swerve_route_point routes[SESSIONS][SWERVE_ROUTE_POINTS];
    static const struct swerve_log_point log[2] = {{0.0, 1.5, 2.0, 0.25, 4.0},
                                                   {0.1, 2.5, 2.0, 0.5, 8.0}};
    uint8_t failed[SESSIONS];
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < SESSIONS && status == STATUS_OK; i++) {
        const struct swerve_episode episode = {.session = i,
                                               .horizon_ticks = TICKS,
                                               .seed = 7 + i,
                                               .tick_s = 0.1,
                                               .scenario_id = "scenario",
                                               .prompt = "a rainy night",
                                               .ego_length_m = 4.5,
                                               .ego_width_m = 2.0,
                                               .ego_wheelbase_m = 2.75,
                                               .log_count = 2,
                                               .log = log};
        status = planner_reset(planner, &episode, error);
    }
    for (uint32_t tick = 0; tick < TICKS && status == STATUS_OK; tick++) {
        struct swerve_observation seen[SESSIONS];
        if (tick == TICKS / 2) {
            planner_end(planner, 2);
            status = planner_fork(planner, 0, 2, error);
        }
        for (uint32_t i = 0; i < SESSIONS; i++) {
            seen[i] = observation_of(i, tick, routes[i]);
        }
        if (status == STATUS_OK) {
            status = planner_act(planner, SESSIONS, seen, &actions[tick * SESSIONS], failed, error);
        }
    }
    return status;
}

/* Sanitizers reserve terabytes of addresses, which the limit counts. */
#define INSTRUMENTED_BYTES (INT64_C(1) << 60)

/* The thread sanitizer needs addresses and calls that the sandbox does not give. */
static bool host_can_run(void)
{
#ifdef TEST_WITH_TSAN
    printf("# not tested: a program with the thread sanitizer does not start in the sandbox\n");
    return false;
#else
    return true;
#endif
}

static struct planner_confinement with_host(void)
{
    struct planner_confinement confined = confinement();
    confined.host = SWERVE_BINARY;
    return confined;
}

/* Goal: a plugin gives the same bits apart as in this process. */
static void a_plugin_apart_equals_one_in_process(void)
{
    static const char *const specs[] = {"plugin:" PLUGIN_EXAMPLE, "plugin:" PLUGIN_MOODY "?good"};
    const struct planner_confinement confined = with_host();
    if (!possible() || !host_can_run()) {
        return;
    }
    for (size_t s = 0; s < COUNT_OF(specs); s++) {
        struct swerve_action actions[2][TICKS * SESSIONS] = {{{0.0, 0.0}}};
        for (int apart = 0; apart < 2; apart++) {
            struct planner *planner = NULL;
            struct error error = {0};
            const struct planner_config config = {.session_count = SESSIONS,
                                                  .tick_deadline_ms = 20000,
                                                  .memory_limit_bytes = INSTRUMENTED_BYTES,
                                                  .confinement = apart == 1 ? &confined : NULL};
            EXPECT_OK(planner_open(specs[s], &config, &planner, &error), error);
            EXPECT_OK(drive_plugin(planner, actions[apart], &error), error);
            planner_close(planner);
        }
        EXPECT(memcmp(actions[0], actions[1], sizeof actions[0]) == 0);
        EXPECT(actions[0][0].accel_mps2 != actions[0][1].accel_mps2 ||
               actions[0][0].steer_rad != actions[0][1].steer_rad);
    }
}

/* Goal: the same of one that is shown the sensors of a rig. */
static void sensors_reach_a_plugin_apart(void)
{
    const struct planner_confinement confined = with_host();
    static struct swerve_action actions[EYES_TICKS][EYES_SESSIONS];
    struct planner *planner = NULL;
    struct error error = {0};
    struct rig rig;
    if (!possible() || !host_can_run()) {
        return;
    }
    eyes_rig(&rig);
    const struct planner_config config = {.session_count = EYES_SESSIONS,
                                          .tick_deadline_ms = 20000,
                                          .memory_limit_bytes = INSTRUMENTED_BYTES,
                                          .confinement = &confined,
                                          .rig = &rig};
    EXPECT_OK(planner_open("plugin:" PLUGIN_SENSORS "?" EYES_CHOICE, &config, &planner, &error),
              error);
    eyes_drive(planner, actions);
    planner_close(planner);
}

/* Goal: a plugin that crashes, hangs, or does not load costs its rollouts and a sentence. */
static void a_bad_plugin_apart_costs_only_itself(void)
{
    static const struct {
        const char *spec;
        const char *reason;
    } cases[] = {
        {"plugin:" PLUGIN_MOODY "?trap,5,scenario", "was killed by signal"},
        {"plugin:" PLUGIN_MOODY "?hang,5,scenario", "no answer within 500 ms"},
        {"plugin:" PLUGIN_BAD "?fail", "the weights are missing"},
        {"plugin:" PLUGIN_WRONG_ABI, "ABI version"},
        {"plugin:" PLUGIN_DEVICE, "takes observations on a device alone"},
        {"plugin:" PLUGIN_DEVICE, "--planner-sandbox off"},
    };
    const struct planner_confinement confined = with_host();
    if (!possible() || !host_can_run()) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct swerve_action actions[TICKS * SESSIONS];
        struct planner *planner = NULL;
        struct error error = {0};
        const struct planner_config config = {.session_count = SESSIONS,
                                              .tick_deadline_ms = i == 1 ? 500 : 20000,
                                              .memory_limit_bytes = INSTRUMENTED_BYTES,
                                              .confinement = &confined};
        enum status status = planner_open(cases[i].spec, &config, &planner, &error);
        if (status == STATUS_OK) {
            status = drive_plugin(planner, actions, &error);
            EXPECT(!planner_alive(planner));
        }
        EXPECT_INT(status, STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, cases[i].reason);
        planner_close(planner);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    make_outside();
    int failed = TEST_RUN(
        TEST(nothing_gets_out), TEST(an_ordinary_user_is_confined_too),
        TEST(outside_the_attempts_succeed), TEST(memory_is_limited_inside),
        TEST(ways_out_are_closed), TEST(all_memory_counts), TEST(a_cgroup_limits_all),
        TEST(limits_say_that_they_are_ours), TEST(what_lies_outside_is_said_to),
        TEST(secrets_must_not_be_in_sight), TEST(plugins_are_refused_where_they_cannot_be_confined),
        TEST(a_plugin_apart_equals_one_in_process), TEST(sensors_reach_a_plugin_apart),
        TEST(a_bad_plugin_apart_costs_only_itself));
    remove_outside();
    return failed;
}
