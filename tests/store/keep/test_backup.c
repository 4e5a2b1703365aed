/*
 * Goal: a backup is one moment of a store, whole, also when the store is in use; a process that
 * ends at any step of making or restoring one leaves what was there or what was to come.
 *
 * Method: a thread goes on finishing jobs while backups are made; each must pass the store's own
 * check, as must what is restored from it. Then children make and restore backups and end at the
 * first, second, third .. change of the disk until one comes through; after each, DEST and the
 * store are either the old or the new, told apart by the digest of their outcomes.
 */
#include "store/keep/backup.h"
#include "store/keep/gc.h"
#include "store/keep/keep_files.h"
#include "store/sql/ownership.h"
#include "tests/harness.h"
#include "tests/store/keep/keep_support.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];
static char path[128];
static char dest[128];
static struct error error;
static struct keep_summary summary;

/* Findings are not heard: counting them suffices to refuse. */
static const struct keep_options usual = {.found = NULL};

static const char *named(const char *name)
{
    static char out[8][160];
    static int next;
    char *text = out[next++ % 8];
    snprintf(text, sizeof out[0], "%s/%s", root, name);
    return text;
}

static void fresh(void)
{
    EXPECT_OK(keep_remove_tree(root, &error), error);
    EXPECT_OK(keep_directory(root, &error), error);
    snprintf(path, sizeof path, "%s/store.db", root);
    snprintf(dest, sizeof dest, "%s/backup", root);
}

/* A closed store with these suites, finished. */
static void make_store(const char *at, int first, int count)
{
    struct store *store = keep_open(at);
    for (int i = 0; i < count; i++) {
        EXPECT(keep_finish_suite(store, first + i));
    }
    store->ops->close(store);
}

static struct digest digest_of(const char *at, int64_t outcomes)
{
    struct digest digest;
    int64_t found = 0;
    EXPECT_INT(keep_faults(at, &digest, &found), 0);
    EXPECT_INT(found, outcomes);
    return digest;
}

static bool same_digest(const struct digest *a, const struct digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* ---- in use ---- */

static struct store *busy_store;
static atomic_bool busy_end;
static atomic_int busy_done; /* suites; -1: a call failed */

static void *work(void *context)
{
    (void)context;
    for (int i = 1; !atomic_load(&busy_end); i++) {
        if (!keep_finish_suite(busy_store, i)) {
            atomic_store(&busy_done, -1);
            break;
        }
        atomic_store(&busy_done, i);
    }
    return NULL;
}

static void backups_of_a_store_in_use_are_whole(void)
{
    pthread_t thread;
    int64_t last = 0;

    fresh();
    busy_store = keep_open(path);
    EXPECT(keep_finish_suite(busy_store, 0));
    atomic_store(&busy_end, false);
    EXPECT_INT(pthread_create(&thread, NULL, work, NULL), 0);
    bool good = true;
    for (int i = 0; i < 4 && good; i++) {
        int before = atomic_load(&busy_done);
        good = keep_backup(path, dest, &usual, &summary, &error) == STATUS_OK &&
               summary.check.faults == 0 && summary.check.outcomes >= last &&
               /* everything that had been acknowledged is in it */
               summary.check.outcomes >= (int64_t)(before + 1) * KEEP_SUITE_JOBS &&
               summary.artifacts == summary.check.artifacts;
        last = summary.check.outcomes;
    }
    atomic_store(&busy_end, true);
    pthread_join(thread, NULL);
    busy_store->ops->close(busy_store);
    EXPECT(good);
    EXPECT(atomic_load(&busy_done) >= 0);
    EXPECT_OK(keep_restore(dest, named("again.db"), &usual, &summary, &error), error);
    EXPECT_INT(keep_faults(named("again.db"), NULL, NULL), 0);
    struct store *again = keep_open(named("again.db")); /* and it goes on */
    EXPECT(keep_finish_suite(again, 1000000));
    again->ops->close(again);
    EXPECT_INT(keep_faults(named("again.db"), NULL, NULL), 0);
}

/* ---- ends ---- */

static void write_file(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0);
    ssize_t put = write(fd, "mine", 4);
    close(fd);
    EXPECT_INT(put, 4);
}

static void end_at(void *context)
{
    int *left = context;
    if (--*left == 0) {
        _exit(9);
    }
}

/* A child that ends at change `at`; true: it came to its own end. */
static bool play(bool restoring, int at)
{
    pid_t child = fork();
    if (child == 0) {
        const struct keep_options options = {.replace = true, .step = end_at, .context = &at};
        enum status status = restoring ? keep_restore(dest, path, &options, &summary, &error)
                                       : keep_backup(path, dest, &options, &summary, &error);
        _exit(status == STATUS_OK ? 0 : 1);
    }
    int state = 0;
    EXPECT(child > 0 && waitpid(child, &state, 0) == child);
    EXPECT(WIFEXITED(state));
    EXPECT(WEXITSTATUS(state) == 0 || WEXITSTATUS(state) == 9);
    return WEXITSTATUS(state) == 0;
}

static void a_backup_that_ends_leaves_the_old_or_the_new(void)
{
    char database[192];
    int at = 1;
    bool came = false;

    fresh();
    make_store(path, 0, 1);
    EXPECT(play(false, 1000));
    snprintf(database, sizeof database, "%s/" KEEP_DATABASE, dest);
    struct digest old = digest_of(database, KEEP_SUITE_JOBS);
    make_store(path, 1, 1);
    struct digest new = digest_of(path, 2 * KEEP_SUITE_JOBS);
    EXPECT(!same_digest(&old, &new));
    for (; !came; at++) {
        enum keep_place place;
        struct digest found;
        int64_t outcomes = 0;
        came = play(false, at);
        EXPECT_OK(keep_look(dest, &place, &error), error);
        EXPECT_INT(place, KEEP_BACKUP);
        EXPECT_INT(keep_faults(database, &found, &outcomes), 0);
        EXPECT(same_digest(&found, outcomes == KEEP_SUITE_JOBS ? &old : &new));
        EXPECT(!came || same_digest(&found, &new));
    }
    EXPECT(at > 6); /* marker, database, artifacts, sync, rename */
    EXPECT(access(named("backup.part"), F_OK) != 0);
}

static int beside_marker = -1; /* entries that were there when the marker was removed */

/* In place of the C library's. */
int remove(const char *name)
{
    if (strcmp(name, named("backup/" KEEP_MARKER)) == 0) {
        DIR *directory = opendir(dest);
        EXPECT(directory != NULL);
        for (beside_marker = -3; readdir(directory) != NULL; beside_marker++) { /* . and .. */
        }
        closedir(directory);
    }
    return unlink(name) == 0 || rmdir(name) == 0 ? 0 : -1;
}

static void the_marker_goes_last(void)
{
    fresh();
    make_store(path, 0, 1);
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    for (int i = 0; i < 200; i++) { /* the file system gives them in its own order */
        char other[32];
        snprintf(other, sizeof other, "backup/%d", i);
        write_file(named(other));
    }
    EXPECT_OK(keep_remove_tree(dest, &error), error);
    EXPECT_INT(beside_marker, 0);
    EXPECT(access(dest, F_OK) != 0);
}

static void a_marker_may_be_unfinished(void)
{
    fresh();
    make_store(path, 0, 1);
    EXPECT_OK(keep_directory(named("backup.part"), &error), error);
    write_file(named("backup.part/" KEEP_MARKER ".Xy12Zw"));
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    EXPECT(access(named("backup/" KEEP_MARKER ".Xy12Zw"), F_OK) != 0);
    /* Beside a marker, and with what SQLite had beside an unfinished copy. */
    EXPECT_INT(rename(dest, named("backup.part")), 0);
    write_file(named("backup.part/" KEEP_MARKER ".Xy12Zw"));
    write_file(named("backup.part/" KEEP_DATABASE "-wal"));
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    EXPECT(access(named("backup/" KEEP_MARKER ".Xy12Zw"), F_OK) != 0);
    EXPECT(access(named("backup/" KEEP_DATABASE "-wal"), F_OK) != 0);
    /* Others' files are no such thing. */
    EXPECT_OK(keep_directory(named("b.part"), &error), error);
    write_file(named("b.part/" KEEP_MARKER ".Xy12Zwq"));
    EXPECT_INT(keep_backup(path, named("b"), &usual, &summary, &error), STATUS_BAD_INPUT);
    EXPECT_INT(access(named("b.part/" KEEP_MARKER ".Xy12Zwq"), F_OK), 0);
}

static void a_restore_that_ends_leaves_the_old_or_the_new(void)
{
    int at = 1;
    bool came = false;

    fresh();
    make_store(named("other.db"), 10, 2);
    EXPECT_OK(keep_backup(named("other.db"), dest, &usual, &summary, &error), error);
    make_store(path, 0, 1);
    struct digest old = digest_of(path, KEEP_SUITE_JOBS);
    struct digest new = digest_of(named("other.db"), 2 * KEEP_SUITE_JOBS);
    for (; !came; at++) {
        struct digest found;
        int64_t outcomes = 0;
        came = play(true, at);
        EXPECT_INT(keep_faults(path, &found, &outcomes), 0);
        EXPECT(same_digest(&found, outcomes == KEEP_SUITE_JOBS ? &old : &new));
        EXPECT(!came || same_digest(&found, &new));
    }
    EXPECT(at > 5); /* artifacts (the next attempt keeps them), copy, sync, rename */
}

/* ---- refusals ---- */

static void a_damaged_store_does_not_replace_a_backup(void)
{
    char hash[SHA256_HEX_BYTES];
    char artifact[KEEP_PATH_BYTES];
    struct keep_options options = usual;

    fresh();
    make_store(path, 0, 1);
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    make_store(path, 1, 1);
    keep_artifact_hash(1, 2, hash);
    keep_artifact_path(named("store.db.artifacts"), hash, artifact);
    EXPECT_INT(unlink(artifact), 0);
    EXPECT_INT(keep_backup(path, dest, &usual, &summary, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "1 faults");
    digest_of(named("backup/" KEEP_DATABASE), KEEP_SUITE_JOBS);
    EXPECT(access(named("backup.part"), F_OK) != 0);
    options.allow_faults = true;
    EXPECT_OK(keep_backup(path, dest, &options, &summary, &error), error);
    EXPECT_INT(summary.check.faults, 1);
    EXPECT_INT(keep_restore(dest, named("b.db"), &usual, &summary, &error), STATUS_STORE);
    EXPECT(access(named("b.db"), F_OK) != 0);
    EXPECT_OK(keep_restore(dest, named("b.db"), &options, &summary, &error), error);
}

static void nothing_foreign_is_touched(void)
{
    struct ownership *ownership = NULL;
    struct keep_options replacing = usual;

    fresh();
    make_store(path, 0, 1);
    EXPECT_OK(keep_directory(dest, &error), error); /* an empty one is fine */
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    EXPECT_OK(keep_directory(named("mine"), &error), error);
    write_file(named("mine/file"));
    EXPECT_INT(keep_backup(path, named("mine"), &usual, &summary, &error), STATUS_BAD_INPUT);
    EXPECT_INT(keep_backup(path, named("mine/file"), &usual, &summary, &error), STATUS_BAD_INPUT);
    EXPECT_OK(keep_directory(named("b.part"), &error), error);
    write_file(named("b.part/file"));
    EXPECT_INT(keep_backup(path, named("b"), &usual, &summary, &error), STATUS_BAD_INPUT);
    EXPECT_INT(access(named("mine/file"), F_OK) | access(named("b.part/file"), F_OK), 0);
    EXPECT_INT(keep_restore(named("mine"), named("c.db"), &usual, &summary, &error),
               STATUS_BAD_INPUT);
    EXPECT_INT(keep_restore(named("none"), named("c.db"), &usual, &summary, &error),
               STATUS_NOT_FOUND);
    EXPECT_INT(keep_restore(dest, path, &usual, &summary, &error), STATUS_CONFLICT);
    replacing.replace = true;
    write_file(named("c.db-wal")); /* would be applied to what is restored */
    EXPECT_INT(keep_restore(dest, named("c.db"), &replacing, &summary, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "c.db-wal");
    EXPECT_OK(ownership_take(path, &ownership, &error), error);
    enum status status = keep_restore(dest, path, &replacing, &summary, &error);
    ownership_release(ownership);
    EXPECT_INT(status, STATUS_CONFLICT);
    EXPECT_OK(keep_restore(dest, path, &replacing, &summary, &error), error);
    digest_of(path, KEEP_SUITE_JOBS);
}

/* ---- stores and links where a backup goes ---- */

static void a_store_is_not_replaced_by_a_backup(void)
{
    char inside[192];

    fresh();
    make_store(path, 0, 1);
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    snprintf(inside, sizeof inside, "%s/" KEEP_DATABASE, dest);
    make_store(inside, 1, 1); /* somebody works in the backup */
    EXPECT_INT(keep_backup(inside, dest, &usual, &summary, &error), STATUS_USAGE);
    EXPECT_INT(keep_backup(inside, named("backup/../backup"), &usual, &summary, &error),
               STATUS_USAGE);
    EXPECT_INT(keep_backup(path, named("store.db.artifacts/new"), &usual, &summary, &error),
               STATUS_USAGE);
    EXPECT_INT(keep_backup(path, named("backup/."), &usual, &summary, &error), STATUS_USAGE);
    digest_of(inside, 2 * KEEP_SUITE_JOBS);
    struct store *store = keep_open(inside);
    EXPECT(keep_finish_suite(store, 2));
    enum status status = keep_backup(path, dest, &usual, &summary, &error);
    store->ops->close(store);
    EXPECT_INT(status, STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "in use as a store");
    digest_of(inside, 3 * KEEP_SUITE_JOBS);
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    EXPECT_OK(keep_backup(inside, named("elsewhere"), &usual, &summary, &error), error);
}

/* Remains of an interrupted backup, as somebody else would prepare them. */
static void make_part(const char *link_at, const char *folder)
{
    static const char marker[] = "{\"swerve_backup\": 1, \"complete\": false}";
    EXPECT_OK(keep_directory(named("backup.part"), &error), error);
    int fd = open(named("backup.part/" KEEP_MARKER), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0 && write(fd, marker, sizeof marker - 1) == (ssize_t)sizeof marker - 1);
    close(fd);
    EXPECT_INT(symlink(folder, link_at), 0);
}

static void links_are_not_followed(void)
{
    fresh();
    make_store(path, 0, 1);
    EXPECT_OK(keep_directory(named("mine"), &error), error);
    EXPECT_OK(keep_directory(named("mine/00"), &error), error);
    write_file(named("mine/file"));
    write_file(named("mine/00/file"));
    make_part(named("backup.part/" KEEP_DATABASE ".artifacts"), named("mine"));
    EXPECT_INT(keep_backup(path, dest, &usual, &summary, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "a link");
    EXPECT_INT(unlink(named("backup.part/" KEEP_DATABASE ".artifacts")), 0);
    EXPECT_OK(keep_directory(named("backup.part/" KEEP_DATABASE ".artifacts"), &error), error);
    for (int i = 0; i < 256; i++) {
        char place[64];
        snprintf(place, sizeof place, "backup.part/" KEEP_DATABASE ".artifacts/%02x", (unsigned)i);
        EXPECT_INT(symlink(named("mine"), named(place)), 0);
    }
    EXPECT(keep_backup(path, dest, &usual, &summary, &error) != STATUS_OK);
    EXPECT_INT(access(named("mine/file"), F_OK) | access(named("mine/00/file"), F_OK), 0);
}

/* ---- artifacts that are there when a backup comes back ---- */

static void flip_a_byte(const char *file)
{
    char byte = 0;
    int fd = open(file, O_RDWR);
    EXPECT(fd >= 0 && pread(fd, &byte, 1, 12) == 1);
    byte = (char)(byte ^ 1);
    ssize_t put = pwrite(fd, &byte, 1, 12);
    close(fd);
    EXPECT_INT(put, 1);
}

static void damaged_artifacts_are_brought_back(void)
{
    char hash[SHA256_HEX_BYTES];
    char artifact[KEEP_PATH_BYTES];
    struct keep_options replacing = usual;

    fresh();
    replacing.replace = true;
    make_store(path, 0, 1);
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    keep_artifact_hash(0, 2, hash);
    keep_artifact_path(named("store.db.artifacts"), hash, artifact);
    flip_a_byte(artifact);
    EXPECT_INT(keep_faults(path, NULL, NULL), 1);
    EXPECT_OK(keep_restore(dest, path, &replacing, &summary, &error), error);
    EXPECT_INT(summary.copied, 1);
    EXPECT_INT(keep_faults(path, NULL, NULL), 0);
}

static void damage_of_a_backup_ends_with_it(void)
{
    char hash[SHA256_HEX_BYTES];
    char artifact[KEEP_PATH_BYTES];

    fresh();
    make_store(path, 0, 1);
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    keep_artifact_hash(0, 2, hash);
    keep_artifact_path(named("backup/" KEEP_DATABASE ".artifacts"), hash, artifact);
    flip_a_byte(artifact);
    EXPECT_INT(keep_faults(named("backup/" KEEP_DATABASE), NULL, NULL), 1);
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    EXPECT_INT(summary.copied, 1);
    EXPECT_INT(summary.artifacts, KEEP_SUITE_JOBS);
    EXPECT_INT(keep_faults(named("backup/" KEEP_DATABASE), NULL, NULL), 0);
}

static void try_to_collect(void *context)
{
    const struct keep_gc_options apply = {.apply = true, .older_than_s = 86400};
    struct keep_gc_summary taken;
    struct error why;
    int *refused = context;

    *refused += keep_gc(path, &apply, &taken, &why) == STATUS_BUSY;
}

/* The artifacts are there already and nothing refers to them until the last moment. */
static void nothing_is_collected_during_a_restore(void)
{
    int refused = 0;
    const struct keep_options options = {
        .replace = true, .step = try_to_collect, .context = &refused};
    char hash[SHA256_HEX_BYTES];
    char artifact[KEEP_PATH_BYTES];
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    fresh();
    make_store(path, 0, 1);
    EXPECT_OK(keep_backup(path, dest, &usual, &summary, &error), error);
    EXPECT_INT(unlink(path), 0);
    for (int i = 0; i < KEEP_SUITE_JOBS; i++) {
        keep_artifact_hash(0, i, hash);
        keep_artifact_path(named("store.db.artifacts"), hash, artifact);
        EXPECT_INT(utimensat(AT_FDCWD, artifact, old, 0), 0);
    }
    make_store(path, 1, 1);
    EXPECT_OK(keep_restore(dest, path, &options, &summary, &error), error);
    EXPECT(refused > 0);
    EXPECT_INT(keep_faults(path, NULL, NULL), 0);
}

int main(void)
{
    snprintf(root, sizeof root, "%s", keep_directory_new());
    return TEST_RUN(
        TEST(backups_of_a_store_in_use_are_whole),
        TEST(a_backup_that_ends_leaves_the_old_or_the_new), TEST(the_marker_goes_last),
        TEST(a_marker_may_be_unfinished), TEST(a_restore_that_ends_leaves_the_old_or_the_new),
        TEST(a_damaged_store_does_not_replace_a_backup), TEST(nothing_foreign_is_touched),
        TEST(a_store_is_not_replaced_by_a_backup), TEST(links_are_not_followed),
        TEST(damaged_artifacts_are_brought_back), TEST(damage_of_a_backup_ends_with_it),
        TEST(nothing_is_collected_during_a_restore));
}
