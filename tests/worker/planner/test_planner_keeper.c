/*
 * Goal: nothing of a planner goes on when its worker is gone, whatever it has done to stay, and
 * nothing when it is closed. Method: a real Python process (bad_planners/outlive.py) that takes
 * back its parent's signal, leaves its group and session, forks away and attacks its keeper. Its
 * worker is a child of this process, which is killed; what is left is looked for in /proc, by a
 * word on command lines.
 *
 * Where the machine forbids namespaces the tests see what is kept without them.
 */
#include "tests/harness.h"
#include "tests/sanitizers.h"
#include "worker/planner/planner.h"
#include "worker/world/world_exec.h"

#include "base/check.h"
#include "base/units.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SCRIPTS SWERVE_SOURCE_ROOT "/tests/worker/bad_planners/"

static const char *const roots[] = {SWERVE_SOURCE_ROOT};

static const struct planner_confinement confined = {
    .sandbox = true, .environment_listed = true, .paths = roots, .path_count = COUNT_OF(roots)};

static bool possible(void)
{
    struct error error = {0};
    if (planner_confinement_check(&confined, &error) == STATUS_OK) {
        return true;
    }
    printf("# not tested: %s\n", error.text);
    return false;
}

enum { START_MS = 100000, GONE_MS = 5000 }; /* a second is enough for an idle machine */

/* Processes with a word on their command lines. */
static int count_processes(const char *word)
{
    char path[64];
    char text[1024];
    int count = 0;
    DIR *stream = opendir("/proc");
    CHECK(stream != NULL);
    const struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        snprintf(path, sizeof path, "/proc/%.20s/cmdline", entry->d_name);
        int fd = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
        ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text) : 0;
        count += bytes > 0 && memmem(text, (size_t)bytes, word, strlen(word)) != NULL;
        close(fd);
    }
    closedir(stream);
    return count;
}

static void await_count(const char *word, int count, int limit_ms)
{
    int found = count_processes(word);
    for (int ms = 0; ms < limit_ms && found != count; ms++) {
        struct timespec pause_for = {.tv_nsec = NS_PER_MS};
        nanosleep(&pause_for, NULL);
        found = count_processes(word);
    }
    EXPECT_INT(found, count);
}

/* The worker: opens two planners, so that one could hold what ends the other, and waits. */
_Noreturn static void be_worker(const char *spec, const struct planner_confinement *confinement,
                                int tell_fd)
{
    struct planner *planner[2];
    struct error error = {0};
    const struct planner_config config = {
        .session_count = 1, .open_deadline_ms = 100000, .confinement = confinement};
    for (int i = 0; i < 2; i++) {
        if (planner_open(spec, &config, &planner[i], &error) != STATUS_OK) {
            fprintf(stderr, "# %s\n", error.text);
            _exit(1);
        }
    }
    CHECK(write(tell_fd, "x", 1) == 1);
    for (;;) {
        pause();
    }
}

/* Kills a worker and sees its planners end, whatever they have done to stay. */
static void kill_worker(const char *name, const char *option,
                        const struct planner_confinement *confinement)
{
    char spec[400];
    char byte;
    int ready[2];
    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    snprintf(spec, sizeof spec, "exec:/usr/bin/python3 -S " SCRIPTS "outlive.py %s %s", name,
             option);
    fflush(stdout);
    pid_t worker = fork();
    if (worker == 0) {
        be_worker(spec, confinement, ready[1]);
    }
    close(ready[1]);
    EXPECT_INT(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    EXPECT(count_processes(name) >= 8); /* of each planner, itself and those that left it */
    EXPECT(kill(worker, SIGKILL) == 0 && waitpid(worker, NULL, 0) == worker);
    await_count(name, 0, GONE_MS);
}

static void no_planner_outlives_its_worker(void)
{
    char name[32];
    snprintf(name, sizeof name, "outlive-%d", (int)getpid());
    kill_worker(name, "", NULL); /* careless: nobody there attacks its keeper */
    if (possible()) {
        kill_worker(name, "", &confined);
        kill_worker(name, "spin", &confined);
    }
}

/* The worker of a world that never answers. */
_Noreturn static void open_world(const char *command)
{
    char text[512] = "";
    void *world = NULL;
    struct swerve_world_declared declared;
    const struct world_exec_host host = {.command = command,
                                         .confinement = &confined,
                                         .start_ms = 600000,
                                         .memory_bytes = INT64_C(4) << 30};
    const struct swerve_world_setup setup = {.abi_version = SWERVE_WORLD_ABI_VERSION,
                                             .state_count = 1,
                                             .batch_max = 1,
                                             .memory_fd = memfd_create("world", MFD_CLOEXEC),
                                             .host = &host};
    (void)world_exec_ops.open(&world, &setup, &declared, text, sizeof text);
    fprintf(stderr, "# %s\n", text);
    _exit(1);
}

/* Goal: nor does a world. */
static void no_world_outlives_its_worker(void)
{
    char command[400];
    char name[32];
    if (!possible()) {
        return;
    }
    snprintf(name, sizeof name, "outlive-%d-world", (int)getpid());
    snprintf(command, sizeof command, "/usr/bin/python3 -S " SCRIPTS "outlive.py %s world", name);
    fflush(stdout);
    pid_t worker = fork();
    if (worker == 0) {
        open_world(command);
    }
    await_count(name, 4, START_MS);
    EXPECT(kill(worker, SIGKILL) == 0 && waitpid(worker, NULL, 0) == worker);
    await_count(name, 0, GONE_MS);
}

/* Without privileges its keeper has the planner's own user, which may signal it. */
static void nor_an_ordinary_users(void)
{
    int how = 0;
    if (geteuid() != 0) {
        return; /* then the test above is this one */
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0 ||
            prctl(PR_SET_DUMPABLE, 1) != 0 || chdir("/") != 0) {
            _exit(3);
        }
        _exit(access(SCRIPTS "outlive.py", R_OK) != 0 ? 2
              : setjmp(test_failure) == 0             ? (no_planner_outlives_its_worker(), 0)
                                                      : 1);
    }
    EXPECT(waitpid(child, &how, 0) == child && WIFEXITED(how));
    if (WEXITSTATUS(how) == 2) {
        printf("# not tested: the sources are not readable by others\n");
        return;
    }
    EXPECT_INT(WEXITSTATUS(how), 0);
}

/* Goal: its keeper ends a planner too when it is closed, sandbox or not. */
static void nothing_is_left_of_a_closed_planner(void)
{
    char spec[400];
    char name[32];
    snprintf(name, sizeof name, "outlive-%d-closed", (int)getpid());
    snprintf(spec, sizeof spec, "exec:/usr/bin/python3 -S " SCRIPTS "outlive.py %s", name);
    const int ways = possible() ? 2 : 1;
    for (int sandboxed = 0; sandboxed < ways; sandboxed++) {
        struct planner *planner = NULL;
        struct error error = {0};
        const struct planner_config config = {.session_count = 1,
                                              .open_deadline_ms = 100000,
                                              .confinement = sandboxed ? &confined : NULL};
        EXPECT_OK(planner_open(spec, &config, &planner, &error), error);
        EXPECT_INT(count_processes(name), 4);
        planner_close(planner);
        EXPECT_INT(count_processes(name), 0);
    }
}

/* A line of a child's status that begins with a word, as a number; -1: it is not called that. */
static long status_of(const char *number, const char *name, const char *field)
{
    char path[64];
    char line[256];
    long found = -1;
    bool named = false;
    snprintf(path, sizeof path, "/proc/%.20s/status", number);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        named = named || (strncmp(line, "Name:\t", 6) == 0 && strstr(line, name) != NULL);
        if (named && strncmp(line, field, strlen(field)) == 0) {
            found = strtol(line + strlen(field) + 1, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* Goal: a keeper has none of its worker's memory: neither pages to copy nor secrets. */
static void a_keeper_gives_memory_back(void)
{
    enum { HELD_KIB = 256 << 10, LEFT_KIB = 16 << 10 };
    struct planner *planner = NULL;
    struct error error = {0};
    long keeper_kib = -1;
#if defined(TEST_WITH_ASAN) || defined(TEST_WITH_TSAN)
    printf("# not tested: a sanitizer's memory is kept\n");
    return;
#endif
    char *held = malloc((size_t)HELD_KIB << 10);
    CHECK(held != NULL);
    memset(held, 'x', (size_t)HELD_KIB << 10);
    const struct planner_config config = {.session_count = 1, .open_deadline_ms = 100000};
    EXPECT_OK(planner_open("exec:/usr/bin/python3 -S " SWERVE_SOURCE_ROOT
                           "/scripts/examples/follow.py",
                           &config, &planner, &error),
              error);
    for (int ms = 0; ms < GONE_MS && (keeper_kib < 0 || keeper_kib > LEFT_KIB); ms++) {
        struct timespec pause_for = {.tv_nsec = NS_PER_MS};
        DIR *stream = opendir("/proc");
        CHECK(stream != NULL);
        const struct dirent *entry;
        while ((entry = readdir(stream)) != NULL) {
            if (status_of(entry->d_name, "planner-keeper", "PPid:") == (long)getpid()) {
                keeper_kib = status_of(entry->d_name, "planner-keeper", "RssAnon:");
            }
        }
        closedir(stream);
        nanosleep(&pause_for, NULL);
    }
    EXPECT(keeper_kib >= 0 && keeper_kib <= LEFT_KIB);
    EXPECT(held[HELD_KIB] == 'x');
    planner_close(planner);
    free(held);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return TEST_RUN(TEST(no_planner_outlives_its_worker), TEST(nor_an_ordinary_users),
                    TEST(no_world_outlives_its_worker), TEST(nothing_is_left_of_a_closed_planner),
                    TEST(a_keeper_gives_memory_back));
}
