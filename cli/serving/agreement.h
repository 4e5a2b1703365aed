/*
 * Agreement while a server runs: which monitors sound, which slices are frozen, and at which
 * outcome that began, by the policy that the server was given. Any number of readers may ask; each
 * question reads the store on by a bounded number of outcomes (report/trust/follow.h) and never
 * waits for another's reading.
 */
#ifndef SWERVE_CLI_SERVING_AGREEMENT_H
#define SWERVE_CLI_SERVING_AGREEMENT_H

#include "report/trust/follow.h"

struct agreement;

/* By the policy in a file (NULL: the defaults); *out is the caller's. */
enum status agreement_open(const char *policy_path, struct agreement **out, struct error *error);
void agreement_close(struct agreement *agreement); /* accepts NULL */

/* Reads the whole store, and has it freeze what the policy freezes and it does not hold yet, and
 * audit no less than the policy's floor; nothing where no policy was given. `store`: one that may
 * be written to. *recorded: events that it got by this. */
enum status agreement_decide(struct agreement *agreement, struct store *store, uint32_t *recorded,
                             struct error *error);

/* A store_server_agreement (store/server/server.h); the context is a struct agreement. */
enum status agreement_tell(void *context, struct store *store, int64_t after, int64_t limit,
                           int64_t days, json_t **out, struct error *error);

#endif
