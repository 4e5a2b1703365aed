/*
 * A store in a file of its own, for programs that play with the kit and write into the file beside
 * it: each fresh store is the next file of one folder.
 */
#ifndef SWERVE_TESTS_STORE_CONFORMANCE_CONFORMANCE_FILE_H
#define SWERVE_TESTS_STORE_CONFORMANCE_CONFORMANCE_FILE_H

#include "store/sql/sqlite_db.h"
#include "tests/store/conformance/conformance_kit.h"

#include <unistd.h>

SCRATCH char file_directory[64];
SCRATCH char file_path[128]; /* of the store that was opened last */

static inline struct store *file_open(void *context, bool fresh, const struct store_config *config)
{
    static int serial;
    struct store *opened = NULL;
    (void)context;
    serial += fresh;
    snprintf(file_path, sizeof file_path, "%s/%d.db", file_directory, serial);
    EXPECT_OK(store_sqlite_open(file_path, config, &opened, &error), error);
    return opened;
}

static inline void file_close(void *context, struct store *opened)
{
    (void)context;
    opened->ops->close(opened);
}

/* SQL into the file, while nobody has the store open. */
static inline void file_write(const char *sql)
{
    struct db *db = NULL;
    EXPECT_OK(sqlite_db_open(file_path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    db_close(db);
}

/* Before the tests: the folder, in memory where possible. */
static inline bool file_begin(void)
{
    static const struct conformance_backend sqlite = {
        .name = "sqlite", .open = file_open, .close = file_close};
    backend = &sqlite;
    snprintf(file_directory, sizeof file_directory, "%s/swerve-file-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(file_directory) != NULL;
}

/* Exit status of the program, of which so many tests failed. */
static inline int file_finish(int failed)
{
    char command[128];
    failed = finish_half(failed);
    snprintf(command, sizeof command, "rm -rf '%s'", file_directory);
    return system(command) == 0 ? failed : 1;
}

#endif
