/*
 * Names of services behind AlpaSim's contracts, and the addresses of their servers. A job's row
 * names a service; which host that is says the worker's own command line (--egodriver
 * NAME=HOST:PORT[,..], --omnidreams NAME=HOST:PORT), so that no submitter aims a worker at a host.
 */
#ifndef SWERVE_WORKER_CONTRACT_PLACES_H
#define SWERVE_WORKER_CONTRACT_PLACES_H

#include "base/status.h"
#include "schemas/limits.h"
#include "worker/grpc/grpc_socket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTRACT_NAME_BYTES = 64, CONTRACT_SERVERS_MAX = 16 };

/* Servers that a worker's owner names. Borrowed. */
struct contract_places {
    const char *const *bindings; /* NAME=ADDRESS[,ADDRESS..] */
    uint32_t count;
    bool allow_remote; /* else addresses of this machine alone */
};

/* A contract whose servers have names. */
struct contract_kind {
    const char *option;   /* that gives a name its addresses, for sentences */
    uint32_t servers_max; /* of a name, 1 to CONTRACT_SERVERS_MAX */
};

/* Whether each is well-formed, names differ, and addresses are allowed: STATUS_USAGE says which. */
enum status contract_places_check(const struct contract_kind *kind,
                                  const struct contract_places *places, struct error *error);

/* Whether a name has letters, digits, ".", "_" and "-" alone. */
bool contract_is_name(const char *text, size_t bytes);

/* A scenario's id as files of a scene are named by it: without "clipgt-", and "/" as "_". */
void contract_clip(const char *id, char out[LIMIT_ID_BYTES]);

/* Addresses of a name. STATUS_NOT_FOUND: nobody gave it any (`places` may be NULL). */
enum status contract_addresses(const struct contract_kind *kind,
                               const struct contract_places *places, const char *name,
                               char addresses[CONTRACT_SERVERS_MAX][GRPC_ADDRESS_BYTES],
                               uint32_t *count, struct error *error);

#endif
