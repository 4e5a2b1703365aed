/*
 * Parts that the two files of the artifacts share: names and the steps of writing a file that is
 * either whole or not there. Private to artifacts.c and artifacts_stream.c.
 */
#ifndef SWERVE_STORE_ARTIFACTS_ARTIFACTS_INTERNAL_H
#define SWERVE_STORE_ARTIFACTS_ARTIFACTS_INTERNAL_H

#include "store/artifacts/artifacts.h"

#include <time.h>

enum {
    /* Names are joined into buffers that artifacts_open has proven large enough. */
    ARTIFACT_NAME_BYTES = LIMIT_PATH_BYTES + 160,
    ARTIFACT_TEMPORARY_BYTES = ARTIFACT_NAME_BYTES + 128,
    ARTIFACT_MARK_BYTES = ARTIFACT_NAME_BYTES + 64,
};

enum status artifacts_io_error(struct error *error, const char *what, const char *path);
enum status artifacts_damaged(struct error *error, const char *path, const char *how);
/* For reading, brought from the bucket if need be; NOT_FOUND. What is no regular file is damage,
 * and never waited for. `path` is the artifact's. */
enum status artifacts_file_open(const struct artifacts *artifacts, const char *path, int *out,
                                struct error *error);
/* Mark that retention leaves in place of an artifact: an empty file that ends in this instead of
 * ".zst", whose time of change says when. `path` is the artifact's, or its name alone. */
#define ARTIFACTS_GONE ".gone"
void artifacts_mark_path(const char *path, char out[ARTIFACT_MARK_BYTES]);
/* Makes it, relative to a directory; NULL: now. False: errno. */
bool artifacts_mark(int directory, const char *path, const struct timespec times[2]);
bool artifacts_let_go(const char *path, int64_t *at_s);
/* The file open at `fd` is that artifact's, else it is damaged; its place in the file is lost.
 * `path` is for people. */
enum status artifacts_verify(int fd, const char *path, const char *hash, struct error *error);
enum status artifacts_check_hash(const char *hash, struct error *error);
/* The digest that a checked name is the text of. */
void artifacts_hash_bytes(const char *hash, uint8_t out[SHA256_BYTES]);
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
