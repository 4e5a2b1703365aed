/*
 * Opening by path: ownership of the one process that owns a database. Private to the store room;
 * users call store_open.
 */
#ifndef SWERVE_STORE_OWNERSHIP_OWNER_H
#define SWERVE_STORE_OWNERSHIP_OWNER_H

#include "store/api/store.h"

/* Opens the embedded backend; store_sqlite_open but in tests. */
typedef enum status (*store_embedded_open)(const char *path, const struct store_config *config,
                                           struct store **out, struct error *error);

/* As store_open of a path. deadline_ms: how long a call waits for an owner that answers. */
enum status store_shared_open(const char *path, const struct store_config *config,
                              store_embedded_open embedded, int64_t deadline_ms, struct store **out,
                              struct error *error);

#endif
