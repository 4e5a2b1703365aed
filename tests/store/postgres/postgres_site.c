/*
 * Servers for tests. See postgres_site.h.
 *
 * The server refuses to run as root: as root, it gets a user that owns nothing else. It is in a
 * group of processes of its own, so that a terminal's signals do not reach it, and dies with the
 * test. Its own processes are leaders of sessions: they end when they see that it is gone.
 */
#include "tests/store/postgres/postgres_site.h"

#include "base/status.h"
#include "base/units.h"
#include "store/postgres/postgres_db.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_S_MAX = 100 }; /* sanitizers and other work beside it */

#define MEMORY_BYTES_MIN (INT64_C(2) << 30)

bool postgres_site_installed(struct postgres_site *site)
{
    glob_t found = {0};

    memset(site, 0, sizeof *site);
    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0) {
        const char *newest = found.gl_pathv[found.gl_pathc - 1];
        snprintf(site->programs, sizeof site->programs, "%.*s",
                 (int)(strrchr(newest, '/') - newest), newest);
    }
    globfree(&found);
    return site->programs[0] != '\0';
}

static const struct passwd *server_user(void)
{
    const struct passwd *user = getpwnam("postgres");
    return geteuid() != 0 ? NULL : user != NULL ? user : getpwnam("nobody");
}

/* In the child: the program, as its user, what it says in a file. */
static void become(const struct postgres_site *site, char *const *words)
{
    char path[512];
    const struct passwd *user = server_user();

    setpgid(0, 0);
    snprintf(path, sizeof path, "%s/log", site->directory);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    int null = open("/dev/null", O_RDONLY);
    if (log < 0 || null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
        (user != NULL && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))) {
        _exit(126);
    }
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    setenv("LC_ALL", "C", 1);
    execv(words[0], words);
    _exit(127);
}

static pid_t spawn(const struct postgres_site *site, char *const *words)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        become(site, words);
    }
    return child;
}

static bool say(const char *what)
{
    printf("# PostgreSQL: %s\n", what);
    return false;
}

/* Memory as a folder, where a forgetful server fits into it. */
static const char *site_folder(const struct postgres_site *site)
{
    static const char memory[] = "/dev/shm";
    struct statvfs room;
    bool fits = site->forgetful && access(memory, W_OK) == 0 && statvfs(memory, &room) == 0 &&
                (int64_t)room.f_bavail * (int64_t)room.f_frsize > MEMORY_BYTES_MIN;
    return fits ? memory : "/tmp";
}

bool postgres_site_make(struct postgres_site *site)
{
    char program[300];
    char data[128];
    const struct passwd *user = server_user();
    int state = 0;

    snprintf(site->directory, sizeof site->directory, "%s/swerve-pg-XXXXXX", site_folder(site));
    if (mkdtemp(site->directory) == NULL) {
        return say(strerror(errno));
    }
    if (user != NULL && chown(site->directory, user->pw_uid, user->pw_gid) != 0) {
        return say("cannot give the directory to the server's user");
    }
    snprintf(program, sizeof program, "%s/initdb", site->programs);
    snprintf(data, sizeof data, "%s/data", site->directory);
    char *words[] = {program,  "-D", data,   "-A",         "trust",     "-U",
                     "swerve", "-E", "UTF8", "--locale=C", "--no-sync", NULL};
    pid_t child = spawn(site, words);
    if (child < 0 || waitpid(child, &state, 0) != child || state != 0) {
        return say("initdb failed");
    }
    return postgres_site_start(site);
}

static void site_url(const struct postgres_site *site, char *url, int bytes)
{
    snprintf(url, (size_t)bytes, "postgresql://swerve@/postgres?host=%s", site->directory);
}

static bool await(struct postgres_site *site, char *const *words)
{
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};
    int64_t until_ns = clock_now_ns(clock_system()) + START_S_MAX * NS_PER_S;
    char url[256];
    struct db *db = NULL;
    struct error error;

    site_url(site, url, sizeof url);
    while (postgres_db_open(url, NULL, &db, &error) != STATUS_OK) {
        if (clock_now_ns(clock_system()) > until_ns) {
            return say(error.text);
        }
        nanosleep(&pause, NULL);
        /* A new server refuses to start while processes of a killed one are still there. */
        if (waitpid(site->server, NULL, WNOHANG) == site->server) {
            site->server = spawn(site, words);
        }
    }
    db_close(db);
    return true;
}

bool postgres_site_start(struct postgres_site *site)
{
    char program[300];
    char data[128];
    char socket[128];
    const char *fsync = site->durable ? "fsync=on" : "fsync=off";

    snprintf(program, sizeof program, "%s/postgres", site->programs);
    snprintf(data, sizeof data, "%s/data", site->directory);
    snprintf(socket, sizeof socket, "unix_socket_directories=%s", site->directory);
    /* mmap: /dev/shm may be small. Behind NULL: of a forgetful server alone. */
    char *words[] = {program,
                     "-D",
                     data,
                     "-c",
                     "listen_addresses=",
                     "-c",
                     socket,
                     "-c",
                     (char *)(uintptr_t)fsync,
                     "-c",
                     "dynamic_shared_memory_type=mmap",
                     "-c",
                     "autovacuum=off",
                     "-c",
                     site->forgetful ? "shared_buffers=128MB" : "shared_buffers=16MB",
                     site->forgetful ? "-c" : NULL,
                     "full_page_writes=off",
                     "-c",
                     "wal_level=minimal",
                     "-c",
                     "max_wal_senders=0",
                     "-c",
                     "checkpoint_timeout=1h",
                     "-c",
                     "track_counts=off",
                     "-c",
                     "track_activities=off",
                     "-c",
                     "plan_cache_mode=force_generic_plan",
                     NULL};
    site->server = spawn(site, words);
    return site->server > 0 ? await(site, words) : say("cannot start a process");
}

void postgres_site_kill(struct postgres_site *site)
{
    if (site->server > 0) {
        kill(-site->server, SIGKILL);
        waitpid(site->server, NULL, 0);
        site->server = 0;
    }
}

void postgres_site_stop(struct postgres_site *site)
{
    if (site->server > 0) {
        kill(site->server, SIGINT);
        waitpid(site->server, NULL, 0);
        site->server = 0;
    }
}

void postgres_site_remove(struct postgres_site *site)
{
    char command[128];

    postgres_site_kill(site);
    if (site->directory[0] != '\0') {
        snprintf(command, sizeof command, "rm -rf '%s'", site->directory);
        if (system(command) != 0) {
            say("the directory could not be removed");
        }
    }
}

bool postgres_site_schema(struct postgres_site *site, int serial, char *url, int url_bytes)
{
    char base[256];
    char sql[64];
    struct db *db = NULL;
    struct error error;

    site_url(site, base, sizeof base);
    snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS s%d", serial);
    enum status status = postgres_db_open(base, NULL, &db, &error);
    THEN(status, postgres_db_script(db, "SET client_min_messages = warning", &error));
    THEN(status, postgres_db_script(db, sql, &error));
    db_close(db);
    snprintf(url, (size_t)url_bytes, "%s&options=-csearch_path%%3Ds%d&artifacts=%s", base, serial,
             site->directory);
    return status == STATUS_OK ? true : say(error.text);
}
