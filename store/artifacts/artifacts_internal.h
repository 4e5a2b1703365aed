/*
 * Parts that the two files of the artifacts share: names and the steps of writing a file that is
 * either whole or not there. Private to artifacts.c and artifacts_stream.c.
 */
#ifndef SWERVE_STORE_ARTIFACTS_ARTIFACTS_INTERNAL_H
#define SWERVE_STORE_ARTIFACTS_ARTIFACTS_INTERNAL_H

#include "store/artifacts/artifacts.h"

enum {
    /* Names are joined into buffers that artifacts_open has proven large enough. */
    ARTIFACT_NAME_BYTES = LIMIT_PATH_BYTES + 160,
    ARTIFACT_TEMPORARY_BYTES = ARTIFACT_NAME_BYTES + 128,
};

enum status artifacts_io_error(struct error *error, const char *what, const char *path);
enum status artifacts_damaged(struct error *error, const char *path, const char *how);
/* For reading; NOT_FOUND. What is no regular file is damage, and never waited for. */
enum status artifacts_file_open(const char *path, int *out, struct error *error);
enum status artifacts_check_hash(const char *hash, struct error *error);
void artifacts_file_path(const struct artifacts *artifacts, const char *hash,
                         char out[ARTIFACT_NAME_BYTES]);

/* A new empty file among the unfinished ones; *fd is open for writing. */
enum status artifacts_create_unfinished(const struct artifacts *artifacts, int *fd,
                                        char temporary[ARTIFACT_TEMPORARY_BYTES],
                                        struct error *error);
enum status artifacts_write_all(int fd, const char *path, const uint8_t *data, size_t bytes,
                                struct error *error);
/* Makes the unfinished file durable under its name; closes fd and leaves nothing behind on failure.
 */
enum status artifacts_finish(struct artifacts *artifacts, int fd, const char *temporary,
                             const char *hash, struct error *error);

#endif
