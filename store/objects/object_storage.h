/*
 * Object storage: files in a bucket that speaks Amazon's S3 protocol (AWS's own, MinIO, Ceph,
 * Google's and Cloudflare's in that mode). Objects are written whole, read whole and never changed;
 * nothing is listed or deleted.
 *
 * Place and rights come as for AWS's own tools: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL (AWS's
 * where none is set), AWS_REGION or AWS_DEFAULT_REGION (us-east-1), AWS_CA_BUNDLE; keys as in
 * store/objects/object_keys.h. Requests are signed (Signature Version 4, by libcurl) and address
 * the bucket in the path. They go over TLS or to this machine only.
 *
 * A request that fails for the network or the server's sake (5xx, 429) is repeated, with pauses of
 * 4 s in all; none when a minute has gone by. One that trickles ends after 15 minutes, and of an
 * answer that is no object only the beginning is read. Redirections are refusals. A HEAD that is
 * refused or redirected has no body to say why, and is asked again by GET. Thread-safe.
 */
#ifndef SWERVE_STORE_OBJECTS_OBJECT_STORAGE_H
#define SWERVE_STORE_OBJECTS_OBJECT_STORAGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object_storage;

/* Whether a text is a bucket's URL: "s3://BUCKET" or "s3://BUCKET/PREFIX". */
bool object_storage_is_url(const char *text);

/* Connects to nothing, and reads no keys yet: see object_storage_probe. USAGE: a URL or an endpoint
 * that is none, or one where requests would travel in the clear. */
enum status object_storage_open(const char *url, struct object_storage **out, struct error *error);
void object_storage_close(struct object_storage *storage); /* accepts NULL */
/* "s3://BUCKET/PREFIX at ENDPOINT", for people. */
const char *object_storage_place(const struct object_storage *storage);

/* The calls below: IO when the storage cannot be reached, refuses the keys or fails, with its code
 * and its sentence. `key` has letters, digits and "./_-". */

/* Writes an object of random content, PREFIX/probe/HH, reads it again and compares: IO with what
 * answered instead, where that is no object storage. Asks nothing once that was good. */
enum status object_storage_probe(struct object_storage *storage, struct error *error);
/* Stores the file open at `fd`, from its first byte, behind a probe, and looks whether it is there,
 * by its length and ETag. Durable on return, as the storage has it. */
enum status object_storage_put(struct object_storage *storage, const char *key, int fd,
                               struct error *error);
/* Writes the object to the empty file open at `fd`. NOT_FOUND; LIMIT: it is longer than that. */
enum status object_storage_get(struct object_storage *storage, const char *key, size_t bytes_max,
                               int fd, struct error *error);
/* An empty object is none: no artifact is empty. Nor is a page that a web server shows for any
 * name, or an object that does not have so many `bytes` (-1: any). */
enum status object_storage_exists(struct object_storage *storage, const char *key, int64_t bytes,
                                  bool *exists, struct error *error);

#endif
