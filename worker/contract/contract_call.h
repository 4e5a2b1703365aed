/*
 * Calls that AlpaSim's contracts have alike: connecting to a server that may not listen yet, asking
 * it who it is, and memory for answers that nobody has looked at yet.
 */
#ifndef SWERVE_WORKER_CONTRACT_CALL_H
#define SWERVE_WORKER_CONTRACT_CALL_H

#include "worker/grpc/grpc.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTRACT_VERSION_BYTES = 512 };

/* Memory of one answer, all that is ever asked for: a message whose parts are given again and again
 * is joined anew for each, and one of empty parts takes thirty times its bytes. */
struct contract_memory {
    ProtobufCAllocator allocator;
    size_t left_bytes;
};

/* The address of *out must not change while it is used. */
void contract_memory_init(struct contract_memory *out, size_t bytes);

/* Connects. `patient`: a server that does not listen yet, or that starts again, has the deadline to
 * do so. Otherwise as grpc_open, `abandoned` too. */
enum status contract_connect(const char *address, int64_t deadline_ms, bool patient,
                             const atomic_bool *abandoned, struct grpc_client **out,
                             struct error *error);

/* A server's word about itself. */
struct contract_version {
    char line[CONTRACT_VERSION_BYTES]; /* "VERSION GIT_HASH MAJOR.MINOR.PATCH" */
    char version[64];                  /* the first of it */
    char revision[32];                 /* of the contract, in its metadata; "": it says none */
};

/* Asks by "/package.Service/get_version". STATUS_PLANNER: it refuses, or answers with no VersionId;
 * else as grpc_wait. */
enum status contract_ask_version(struct grpc_client *client, const char *method,
                                 int64_t deadline_ms, struct contract_version *out,
                                 struct error *error);

#endif
