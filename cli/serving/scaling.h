/*
 * Advice on scaling while a server runs: what it remembers of each pool between two questions. Any
 * number of readers may ask; each question is one look (scheduler/scale.h).
 */
#ifndef SWERVE_CLI_SERVING_SCALING_H
#define SWERVE_CLI_SERVING_SCALING_H

#include "scheduler/scale.h"

struct scaling;

/* The policies of a file; *out is the caller's. */
enum status scaling_open(const char *path, struct scaling **out, struct error *error);
void scaling_close(struct scaling *scaling); /* accepts NULL */

/* A store_server_scaling (store/server/server.h); the context is a struct scaling. */
enum status scaling_advise(void *context, struct store *store, const char *pool, int64_t now_ms,
                           json_t **out, struct error *error);

#endif
