/*
 * File: files that users name, opened without waiting and read whole within a limit; whole writes
 * and whole replacements, for everything that must not be found half written.
 */
#ifndef SWERVE_BASE_FILE_H
#define SWERVE_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Opens a regular file to read; the caller closes *fd. A pipe, socket, device or directory is
 * refused without waiting for its other end or touching it; symbolic links are followed. NOT_FOUND,
 * IO or BAD_INPUT name the path and what was found. */
enum status file_open(const char *path, int *fd, size_t *bytes, struct error *error);

/* The whole of a regular file of at most limit_bytes, malloc'ed and terminated. Beside the above:
 * LIMIT. */
enum status file_read(const char *path, size_t limit_bytes, char **data, size_t *bytes,
                      struct error *error);

/* All bytes at `at`, however often the system takes only some. False: errno says why. */
bool file_write_at(int fd, const void *data, size_t bytes, off_t at);

/* The path of this program's file, terminated; false: the system does not say. */
bool file_program(char *out, size_t capacity);

enum { FILE_FOLDERS_ABOVE = 4 };

/* The first of `names`, relative paths, that is of the kind (S_IFREG, S_IFDIR) below the program's
 * folder or one of the others of the FILE_FOLDERS_ABOVE above its file: beside an installed binary,
 * in a build folder, or in the sources that hold it. False, and out is empty: none, or it does not
 * fit. */
bool file_near_program(const char *const *names, size_t count, mode_t kind, char *out,
                       size_t capacity);

/* `path` becomes these bytes, with that mode, or stays as it is: a temporary file beside it, synced
 * and renamed. BAD_INPUT: no file can be made there; IO: it cannot be filled or renamed. Both name
 * the path and the cause. */
enum status file_replace(const char *path, const void *data, size_t bytes, mode_t mode,
                         struct error *error);

/* Removes a folder and all below it; links are removed, not followed. False: errno says why, and
 * some of it may be gone. */
bool file_remove_tree(const char *folder);

#endif
