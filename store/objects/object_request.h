/*
 * One request to object storage, repeated until it is answered, and what the answer means. Private
 * to this room: what objects are is object_storage.c's business.
 */
#ifndef SWERVE_STORE_OBJECTS_OBJECT_REQUEST_H
#define SWERVE_STORE_OBJECTS_OBJECT_REQUEST_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/limits.h"
#include "store/curl/curl_call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OBJECT_URL_BYTES = 2048,
    OBJECT_NAME_BYTES = 128,
    OBJECT_ANSWER_BYTES = 2048, /* of a refusal, for its sentence; the rest is not waited for */
};

#define OBJECT_CONTENT_TYPE "application/zstd" /* of every object that is stored */

/* A bucket, and the way to it. */
struct object_place {
    char base_url[OBJECT_URL_BYTES]; /* ENDPOINT/BUCKET/PREFIX/ */
    char text[OBJECT_URL_BYTES];     /* for people */
    char signer[OBJECT_NAME_BYTES];  /* what libcurl needs to know: "aws:amz:REGION:s3" */
    char ca_file[LIMIT_PATH_BYTES];
    bool here; /* no proxy in between */
    struct curl_pool handles;
};

struct object_request {
    const char *method;
    const char *key;
    int fd;           /* of the body that is sent, or that is to come; -1: none */
    curl_off_t bytes; /* of the body that is sent; -1: none is */
    size_t bytes_max; /* of the body that is to come */
    bool measures;    /* that body is counted and dropped, to a little beyond bytes_max */
    char hash[SHA256_HEX_BYTES];
    CURL *handle;
    long code;                      /* out: HTTP code, 0: none came */
    size_t taken;                   /* out: bytes of the body that came */
    bool too_long;                  /* out */
    bool cut;                       /* out: enough came of an answer that is no object */
    int file_error;                 /* out: errno of the file */
    curl_off_t length;              /* out: of the object, as the answer says; -1: it does not */
    int64_t spent_ms;               /* out: of all tries */
    char type[OBJECT_NAME_BYTES];   /* out: the answer's Content-Type, "": it says none */
    char tag[OBJECT_NAME_BYTES];    /* out: its ETag, likewise */
    char onward[OBJECT_NAME_BYTES]; /* out: where it points to, likewise */
    char answer[OBJECT_ANSWER_BYTES];
    size_t answer_bytes;
};

/* A HEAD or a GET of that key. */
struct object_request object_request_reading(const char *method, const char *key);

/* Sends it until it is answered. IO, with the storage's code and its sentence or, where it has
 * none, with what answers there instead; NOT_FOUND; LIMIT: more comes than bytes_max. */
enum status object_request_send(struct object_place *place, struct object_request *request,
                                struct error *error);

/* The sentence on an answer that seemed good and was no object storage's. */
enum status object_request_stranger(const struct object_place *place,
                                    const struct object_request *request, const char *what,
                                    enum status status, struct error *error);

#endif
