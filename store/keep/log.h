/*
 * The audit log as it lies in a store's file, or database: who ordered what of its server, with
 * which token. Servers write it (store/server/http_routes.c); this reads it, also while one does.
 */
#ifndef SWERVE_STORE_KEEP_LOG_H
#define SWERVE_STORE_KEEP_LOG_H

#include "store/api/store.h"

/* Entries in ascending id above `after_id`, until one is refused. BUSY: a program had the store to
 * itself for all of wait_ms. */
enum status keep_log(const char *store, int64_t after_id, int64_t wait_ms,
                     enum status (*visit)(void *context, const struct store_audit *entry,
                                          struct error *error),
                     void *context, struct error *error);

#endif
