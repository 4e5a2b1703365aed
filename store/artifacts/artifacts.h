/*
 * Artifacts: content-addressed files beside the database, PATH.artifacts/ab/<sha256>.zst.
 *
 * Where they are kept in a bucket (store/objects/object_storage.h) under the same names, these are
 * copies: a file appears here after its object is there, and one that is not here is brought.
 *
 * A file appears under its name only when it is complete and on the disk (written under another
 * name, fsync, rename, fsync of the directory), so whoever was told its name can read it. Any
 * thread.
 */
#ifndef SWERVE_STORE_ARTIFACTS_ARTIFACTS_H
#define SWERVE_STORE_ARTIFACTS_ARTIFACTS_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/limits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* An artifact that somebody asked for, to refer to it, was changed no longer ago than this: what is
 * older and referred to by nothing may be collected (store/keep/gc.h). */
enum { ARTIFACTS_FRESH_S = 600 };

struct object_storage;

struct artifacts {
    char path[LIMIT_PATH_BYTES]; /* PATH.artifacts */
    struct object_storage
        *objects;            /* the bucket that holds them, borrowed; NULL: the folder does */
    atomic_bool synced[256]; /* directory ab's own name has been synced since the open */
};

/* Creates the directory where needed and removes what unfinished writes left behind. Syncs the
 * directory that the store is in, whoever created what is there. */
enum status artifacts_open(const char *store_path, struct artifacts *out, struct error *error);
/* The same where several processes, on several machines, have the directory open: what is
 * unfinished may be another's, so only what nobody has written to for a day is removed. */
enum status artifacts_open_shared(const char *store_path, struct artifacts *out,
                                  struct error *error);

/* Stores data[bytes] (at most LIMIT_ARTIFACT_BYTES) under its SHA-256. */
enum status artifacts_put(struct artifacts *artifacts, const void *data, size_t bytes,
                          char hash[SHA256_HEX_BYTES], struct error *error);
/* *data is malloc'ed (terminated, the terminator not counted), owned by the caller. NOT_FOUND;
 * STATUS_IO when the file is damaged. */
enum status artifacts_get(const struct artifacts *artifacts, const char *hash, void **data,
                          size_t *bytes, struct error *error);
/* A file that is not there or empty does not exist; its contents are not looked at. Of one that
 * exists the time of change is renewed when it is older than ARTIFACTS_FRESH_S. BAD_INPUT when the
 * hash is none. */
enum status artifacts_exists(const struct artifacts *artifacts, const char *hash, bool *exists,
                             struct error *error);

/* ---- piece by piece ---- */

/* Takes an artifact piece by piece: hashed and written as it comes, so that it never stands in
 * memory. `bytes` will come; `packed`: they are one zstd frame of the artifact
 * (store/artifacts/zstd_frame.h), which is unpacked for its hash and kept as it is; else they are
 * the artifact, and are compressed. The artifacts must outlive it. One thread at a time. */
struct artifact_writer;
enum status artifact_writer_open(struct artifacts *artifacts, size_t bytes, bool packed,
                                 struct artifact_writer **out, struct error *error);
/* LIMIT: more comes than was announced, or would come out of the frame than an artifact may have.
 * BAD_INPUT: a frame that is none. */
enum status artifact_writer_write(struct artifact_writer *writer, const void *data, size_t bytes,
                                  struct error *error);
/* Stores what has come under its hash, durable on return; BAD_INPUT when the hash or the size is
 * not the announced one, or the frame has not ended. The writer is gone afterwards, on failure too.
 */
enum status artifact_writer_finish(struct artifact_writer *writer, const char *hash,
                                   struct error *error);
void artifact_writer_abort(struct artifact_writer *writer); /* accepts NULL */

/* Gives an artifact piece by piece. The whole file is read through and its hash verified first (a
 * damaged file is STATUS_IO here), then it is read again. *packed: in, whether the caller takes the
 * file as it is, one zstd frame; out, whether it gets that, which is so where the frame is shorter.
 * *bytes will be given. One thread at a time. */
struct artifact_reader;
enum status artifact_reader_open(const struct artifacts *artifacts, const char *hash, bool *packed,
                                 struct artifact_reader **out, size_t *bytes, struct error *error);
/* Fills at most `capacity` bytes; *count is 0 at the end. */
enum status artifact_reader_read(struct artifact_reader *reader, void *out, size_t capacity,
                                 size_t *count, struct error *error);
void artifact_reader_close(struct artifact_reader *reader); /* accepts NULL */

#endif
