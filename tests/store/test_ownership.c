/*
 * Who may write to a database: one process, by whatever name; and what it does when its files are
 * taken away from it.
 *
 * Goal: no way of calling a database makes a second owner; an ordinary SQLite program that is
 * connected across a crash and what follows damages nothing; an owner whose file, log or shared
 * memory was replaced acknowledges nothing. Method: links, mounts and removed files; this program
 * again in other roles, which are killed or play another program.
 */
#include "base/check.h"
#include "store/api/store.h"
#include "store/sql/sqlite_db.h"
#include "tests/harness.h"
#include "tests/store/faults/invariants.h"
#include "tests/store/http/http_support.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { JOBS = 20, OPEN_DEADLINE_MS = 20000, EXIT_SKIPPED = 77 };

static struct error error;
static int serial;
static int suites; /* submitted so far, over all stores: names are never the same twice */

static void new_path(char path[160])
{
    snprintf(path, 160, "%s/%d.db", support_directory(), serial++);
}

static struct store *open_store(const char *path)
{
    const struct store_config config = {.call_deadline_ms = OPEN_DEADLINE_MS};
    struct store *store = NULL;

    if (store_open(path, &config, &store, &error) != STATUS_OK) {
        printf("# %s\n", error.text);
        return NULL;
    }
    return store;
}

/* A suite of JOBS jobs. */
static enum status submit_named(struct store *store, const char *name)
{
    struct job_spec specs[JOBS];
    struct store_submit_result results[JOBS];

    memset(specs, 0, sizeof specs);
    for (int i = 0; i < JOBS; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "key-%s-%d", name, i);
        strcpy(specs[i].scenario_id, "s");
        strcpy(specs[i].planner, "p");
        strcpy(specs[i].pool, "bulk");
        strcpy(specs[i].backend, "cpu");
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 1;
    }
    error.text[0] = '\0';
    return store->ops->submit(store, name, 1, specs, JOBS, results, &error);
}

static enum status submit(struct store *store)
{
    char name[32];
    snprintf(name, sizeof name, "suite-%d", suites++);
    return submit_named(store, name);
}

static bool has_suite(struct store *store, const char *name)
{
    struct store_suite_status status;
    return store->ops->suite_status(store, name, &status, &error) == STATUS_OK &&
           status.jobs[JOB_QUEUED] == JOBS;
}

/* ---- other processes ---- */

struct other {
    pid_t pid;
    int in;
    int out;
};

static struct other spawn(const char *role, const char *path, const char *more)
{
    struct other other;
    int to[2];
    int from[2];
    char self[] = "/proc/self/exe";
    char *arguments[] = {self, strdup(role), strdup(path), strdup(more), NULL};
    posix_spawn_file_actions_t actions;

    CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    CHECK(posix_spawn(&other.pid, self, &actions, NULL, arguments, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    for (int i = 1; i < 4; i++) {
        free(arguments[i]);
    }
    close(to[0]);
    close(from[1]);
    other.in = to[1];
    other.out = from[0];
    return other;
}

/* The other process's next answer, one character. */
static char answer_of(const struct other *other)
{
    char answer = '\0';
    return read(other->out, &answer, 1) == 1 ? answer : '\0';
}

static char ask(const struct other *other, char what)
{
    return write(other->in, &what, 1) == 1 ? answer_of(other) : '\0';
}

/* Its exit status, or -1 when it was killed. */
static int end(struct other *other, int with_signal)
{
    int exit_status = 0;

    if (with_signal != 0) {
        kill(other->pid, with_signal);
    }
    close(other->in);
    close(other->out);
    CHECK(waitpid(other->pid, &exit_status, 0) == other->pid);
    return WIFEXITED(exit_status) ? WEXITSTATUS(exit_status) : -1;
}

/* Owns the database and submits the suite `name` as often as it is asked to, each time under a
 * longer name. */
static int be_owner(const char *path, const char *name)
{
    struct store *store = NULL;
    char suite[32];
    char what;
    int bytes = snprintf(suite, sizeof suite, "%s", name);

    if (store_sqlite_open(path, NULL, &store, &error) != STATUS_OK || write(1, "o", 1) != 1) {
        return 1;
    }
    while (read(0, &what, 1) == 1) {
        bool submitted = submit_named(store, suite) == STATUS_OK;
        suite[bytes++] = 'x';
        suite[bytes] = '\0';
        if (write(1, submitted ? "y" : "n", 1) != 1) {
            return 1;
        }
    }
    store->ops->close(store);
    return 0;
}

/* An ordinary SQLite program: reads, and copies the log into the database when it is told to. */
static int be_stranger(const char *path)
{
    struct db *db = NULL;
    int64_t value = 0;
    char what;

    if (sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error) != STATUS_OK ||
        sqlite_db_scalar(db, "SELECT COUNT(*) FROM jobs", &value, &error) != STATUS_OK ||
        write(1, "o", 1) != 1) {
        return 1;
    }
    while (read(0, &what, 1) == 1) {
        const char *sql = what == 't'   ? "PRAGMA wal_checkpoint(TRUNCATE)"
                          : what == 'c' ? "PRAGMA wal_checkpoint(PASSIVE)"
                                        : "SELECT COUNT(*) FROM jobs";
        bool done = sqlite_db_scalar(db, sql, &value, &error) == STATUS_OK;
        if (!done) {
            fprintf(stderr, "# stranger: %s\n", error.text);
        }
        if (write(1, done ? "y" : "n", 1) != 1) {
            return 1;
        }
    }
    db_close(db);
    return 0;
}

/* A user of the store: opens it by this path and submits the suite `name`. */
static int be_user(const char *path, const char *name)
{
    struct store *store = open_store(path);

    if (store == NULL || submit_named(store, name) != STATUS_OK) {
        return 1;
    }
    store->ops->close(store);
    return 0;
}

/* Opens `path`, which somebody else owns, by another name: a mount. */
static int be_mounter(const char *path, const char *name)
{
    struct store *store = NULL;
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || close(fd) != 0 ||
        unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0 ||
        mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(path, name, NULL, MS_BIND, NULL) != 0) {
        return EXIT_SKIPPED;
    }
    enum status status = store_open(name, NULL, &store, &error);
    fprintf(stderr, "# %s\n", error.text);
    return status == STATUS_CONFLICT && strstr(error.text, "owns this database") != NULL ? 0 : 1;
}

/* ---- names ---- */

/* Another handle is a client of the owner's, not a second owner. */
static void expect_one_owner(struct store *owner, const char *name)
{
    struct store *other = open_store(name);
    char suite[32];

    EXPECT(other != NULL);
    snprintf(suite, sizeof suite, "shared-%d", suites++);
    EXPECT_OK(submit_named(other, suite), error);
    EXPECT(has_suite(owner, suite));
    snprintf(suite, sizeof suite, "shared-%d", suites++);
    EXPECT_OK(submit_named(owner, suite), error);
    EXPECT(has_suite(other, suite));
    other->ops->close(other);
}

static void expect_missing(const char *path, const char *suffix)
{
    char name[352];
    struct stat info;

    snprintf(name, sizeof name, "%s%s", path, suffix);
    if (lstat(name, &info) == 0) {
        TEST_FAIL("%s exists", name);
    }
}

/* Goal: links to the file or to a directory on the way to it lead to the same owner, for a new file
 * too; nothing of the store lies beside a link. */
static void links_lead_to_the_same_owner(void)
{
    char real[160];
    char folder[160];
    char names[3][320];
    char target[32];

    new_path(real);
    snprintf(folder, sizeof folder, "%s/folder-link", support_directory());
    EXPECT_INT(symlink(support_directory(), folder), 0);
    snprintf(names[0], sizeof names[0], "%s/link.db", support_directory());
    snprintf(target, sizeof target, "%s", strrchr(real, '/') + 1);
    EXPECT_INT(symlink(target, names[0]), 0);
    snprintf(names[1], sizeof names[1], "%s/%s", folder, strrchr(real, '/') + 1);
    snprintf(names[2], sizeof names[2], "%s/../%s/%s", support_directory(),
             strrchr(support_directory(), '/') + 1, strrchr(real, '/') + 1);
    /* The owner itself comes through the link, to a file that does not exist yet. */
    struct store *owner = open_store(names[0]);
    EXPECT(owner != NULL);
    EXPECT_INT(access(real, F_OK), 0);
    for (int i = 0; i < 3; i++) {
        expect_one_owner(owner, names[i]);
    }
    expect_one_owner(owner, real);
    char hash[SHA256_HEX_BYTES];
    EXPECT_OK(owner->ops->artifact_put(owner, "x", 1, hash, &error), error);
    static const char *const suffixes[] = {".lock", ".sock", ".artifacts", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        expect_missing(names[0], suffixes[i]);
    }
    owner->ops->close(owner);
}

/* Goal: a database with two names is refused, and left as it is. */
static void hard_links_are_refused(void)
{
    char path[160];
    char second[176];
    struct store *store = NULL;

    new_path(path);
    snprintf(second, sizeof second, "%s.second", path);
    store = open_store(path);
    EXPECT(store != NULL);
    store->ops->close(store);
    EXPECT_INT(link(path, second), 0);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(store_open(i == 0 ? path : second, NULL, &store, &error), STATUS_STORE);
        EXPECT_CONTAINS(error.text, "2 names");
    }
    EXPECT_INT(unlink(second), 0);
    store = open_store(path);
    EXPECT(store != NULL);
    store->ops->close(store);
}

/* Goal: the same file under another path that no name tells apart: a mount of the file. */
static void mounts_lead_to_one_owner(void)
{
    char path[160];
    char name[176];

    new_path(path);
    snprintf(name, sizeof name, "%s.mounted", path);
    struct store *owner = open_store(path);
    EXPECT(owner != NULL);
    EXPECT_OK(submit(owner), error);
    struct other mounter = spawn("--mounter", path, name);
    int exit_status = end(&mounter, 0);
    if (exit_status == EXIT_SKIPPED) {
        printf("# mounts are not permitted here\n");
    } else {
        EXPECT_INT(exit_status, 0);
    }
    EXPECT_OK(submit(owner), error);
    owner->ops->close(owner);
}

/* Goal: whoever comes after the lock file was removed is a client, in this process and in others.
 */
static void a_removed_lock_file_makes_no_second_owner(void)
{
    char path[160];
    char lock[176];

    new_path(path);
    snprintf(lock, sizeof lock, "%s.lock", path);
    struct store *owner = open_store(path);
    EXPECT(owner != NULL);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(unlink(lock), 0);
        expect_one_owner(owner, path);
        struct other user = spawn("--user", path, i == 0 ? "first" : "second");
        EXPECT_INT(end(&user, 0), 0);
        EXPECT(has_suite(owner, i == 0 ? "first" : "second"));
        EXPECT_OK(submit(owner), error);
    }
    owner->ops->close(owner);
}

/* ---- files that are taken away ---- */

enum taking { REMOVE, REPLACE, EMPTY, HALVE };

static void take_away(const char *name, enum taking taking)
{
    char other[200];
    struct stat info;

    EXPECT_INT(stat(name, &info), 0);
    if (taking == REMOVE) {
        EXPECT_INT(unlink(name), 0);
    } else if (taking == REPLACE) {
        snprintf(other, sizeof other, "%s.other", name);
        int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        EXPECT(fd >= 0 && write(fd, "another's", 9) == 9 && close(fd) == 0);
        EXPECT_INT(rename(other, name), 0);
    } else {
        EXPECT_INT(truncate(name, taking == EMPTY ? 0 : info.st_size / 2), 0);
    }
}

/* Goal: an owner whose database, log or shared memory is not that of the path any more says so and
 * answers nothing else, for good; closing does not touch what lies there instead. */
static void an_owner_without_its_files_stops(void)
{
    static const struct {
        const char *suffix;
        enum taking taking;
        const char *says;
    } cases[] = {
        {"", REMOVE, "was removed"},     {"", REPLACE, "was replaced"},
        {"-wal", REMOVE, "was removed"}, {"-wal", REPLACE, "was replaced"},
        {"-shm", REMOVE, "was removed"}, {"-shm", REPLACE, "was replaced"},
        {"-wal", EMPTY, "stopped"},      {"-wal", HALVE, "was cut off"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[160];
        char name[176];
        char found[16] = "";
        struct store *store = NULL;
        struct store_suite_status status;

        new_path(path);
        snprintf(name, sizeof name, "%s%s", path, cases[i].suffix);
        EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
        for (int k = 0; k < 3; k++) {
            EXPECT_OK(submit(store), error);
        }
        take_away(name, cases[i].taking);
        for (int k = 0; k < 2; k++) {
            enum status refused = submit(store);
            if (refused == STATUS_OK) {
                TEST_FAIL("case %d: acknowledged", (int)i);
            }
        }
        EXPECT_CONTAINS(error.text, cases[i].says);
        if (cases[i].taking != EMPTY) {
            EXPECT_CONTAINS(error.text, name);
            EXPECT_INT(store->ops->suite_status(store, "suite-0", &status, &error), STATUS_STORE);
            EXPECT_CONTAINS(error.text, cases[i].says);
        }
        store->ops->close(store);
        if (cases[i].taking == REPLACE) {
            int fd = open(name, O_RDONLY | O_CLOEXEC);
            EXPECT(fd >= 0 && read(fd, found, sizeof found - 1) == 9 && close(fd) == 0);
            EXPECT_TEXT(found, "another's");
        }
    }
}

/* Goal: the owner of a database that was removed does not disturb the one that is made at its path:
 * neither its log nor its socket goes away when the old one is closed. */
static void a_new_database_is_left_alone_by_the_old_owner(void)
{
    char path[160];
    char lock[176];
    char log[176];
    char suite[32];

    new_path(path);
    snprintf(lock, sizeof lock, "%s.lock", path);
    snprintf(log, sizeof log, "%s-wal", path);
    struct store *old = open_store(path);
    EXPECT(old != NULL);
    EXPECT_OK(submit(old), error);
    EXPECT(unlink(path) == 0 && unlink(lock) == 0);
    EXPECT(open_store(path) == NULL); /* its log holds what was acknowledged */
    EXPECT_CONTAINS(error.text, "its database is not");
    EXPECT_INT(unlink(log), 0);
    struct store *new = open_store(path);
    EXPECT(new != NULL);
    snprintf(suite, sizeof suite, "suite-%d", suites);
    EXPECT_OK(submit(new), error);
    EXPECT_INT(submit(old), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "was replaced");
    old->ops->close(old);
    expect_one_owner(new, path);
    EXPECT(has_suite(new, suite));
    new->ops->close(new);
    new = open_store(path);
    EXPECT(new != NULL &&has_suite(new, suite));
    new->ops->close(new);
}

/* ---- other programs ---- */

static ino_t log_inode(const char *path)
{
    char name[176];
    struct stat info;

    snprintf(name, sizeof name, "%s-wal", path);
    return stat(name, &info) == 0 ? info.st_ino : 0;
}

static void expect_whole(const char *path)
{
    char why[512] = "";
    if (!invariants_hold(path, why, sizeof why)) {
        TEST_FAIL("%s", why);
    }
}

/* Goal: the log that a killed owner left is renewed when nobody else has it open, and stays where
 * it is when somebody has. */
static void logs_are_renewed_when_nobody_has_them_open(void)
{
    for (int connected = 0; connected < 2; connected++) {
        char path[160];
        struct other stranger = {.pid = 0};
        struct store *store = NULL;

        new_path(path);
        struct other owner = spawn("--owner", path, "a");
        EXPECT_INT(answer_of(&owner), 'o');
        EXPECT_INT(ask(&owner, 's'), 'y');
        if (connected == 1) {
            stranger = spawn("--stranger", path, "");
            EXPECT_INT(answer_of(&stranger), 'o');
        }
        end(&owner, SIGKILL);
        ino_t before = log_inode(path);
        EXPECT(before != 0);
        EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
        EXPECT((log_inode(path) == before) == (connected == 1));
        EXPECT(has_suite(store, "a"));
        store->ops->close(store);
        if (connected == 1) {
            EXPECT_INT(end(&stranger, 0), 0);
        }
        expect_whole(path);
    }
}

/* Goal: a program that stays connected while owners are killed and follow one another, and that
 * copies the log into the database at any moment, damages and loses nothing. */
static void strangers_may_stay_connected_across_crashes(void)
{
    char path[160];
    char suite[32];

    new_path(path);
    struct store *store = NULL;
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    struct other stranger = spawn("--stranger", path, "");
    EXPECT_INT(answer_of(&stranger), 'o');
    for (int life = 0; life < 5; life++) {
        char name[2] = {(char)('a' + life), '\0'};
        struct other owner = spawn("--owner", path, name);
        EXPECT_INT(answer_of(&owner), 'o');
        for (int i = 0; i < 4; i++) {
            EXPECT_INT(ask(&owner, 's'), 'y');
            EXPECT_INT(ask(&stranger, i == 1 ? 'c' : 'r'), 'y');
        }
        end(&owner, SIGKILL);
    }
    EXPECT_INT(ask(&stranger, 'c'), 'y');
    EXPECT_INT(end(&stranger, 0), 0);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    for (int life = 0; life < 5; life++) {
        for (int i = 0; i < 4; i++) {
            snprintf(suite, sizeof suite, "%c%.*s", 'a' + life, i, "xxxx");
            EXPECT(has_suite(store, suite));
        }
    }
    store->ops->close(store);
    expect_whole(path);
}

/* Goal: what other programs may do to a log through SQLite is no reason to stop. Method: one that
 * copies it and cuts it to nothing between two commits. */
static void strangers_may_empty_the_log(void)
{
    char path[160];
    struct store *store = NULL;

    new_path(path);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    EXPECT_OK(submit(store), error);
    struct other stranger = spawn("--stranger", path, "");
    EXPECT_INT(answer_of(&stranger), 'o');
    for (int i = 0; i < 4; i++) {
        EXPECT_INT(ask(&stranger, i % 2 == 0 ? 't' : 'c'), 'y');
        EXPECT_OK(submit(store), error);
        EXPECT_OK(submit(store), error);
    }
    EXPECT_INT(end(&stranger, 0), 0);
    store->ops->close(store);
    expect_whole(path);
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test end early */
        return strcmp(argv[1], "--owner") == 0      ? be_owner(argv[2], argv[3])
               : strcmp(argv[1], "--stranger") == 0 ? be_stranger(argv[2])
               : strcmp(argv[1], "--user") == 0     ? be_user(argv[2], argv[3])
                                                    : be_mounter(argv[2], argv[3]);
    }
    return TEST_RUN(
        TEST(links_lead_to_the_same_owner), TEST(hard_links_are_refused),
        TEST(mounts_lead_to_one_owner), TEST(a_removed_lock_file_makes_no_second_owner),
        TEST(an_owner_without_its_files_stops), TEST(a_new_database_is_left_alone_by_the_old_owner),
        TEST(logs_are_renewed_when_nobody_has_them_open),
        TEST(strangers_may_stay_connected_across_crashes), TEST(strangers_may_empty_the_log));
}
