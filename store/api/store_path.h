/*
 * The real path of a store: what lock, socket, log and artifacts are named after.
 *
 * A store may be named through links and through several working directories; whatever lies beside
 * it lies beside the file itself. So its path is resolved once, when it is opened, and everything
 * else is derived from the result.
 */
#ifndef SWERVE_STORE_API_STORE_PATH_H
#define SWERVE_STORE_API_STORE_PATH_H

#include "base/status.h"
#include "schemas/limits.h"

#include <stdbool.h>

/* SQLite opens names of 512 bytes, that of a journal ("-journal") included. */
enum { STORE_PATH_BYTES_MAX = 504 };

/* The absolute path of the file, without links in any component, written to `real` on success. The
 * file need not exist (a link may lead to where it will be), its directory must. STATUS_STORE;
 * LIMIT: it has more than STORE_PATH_BYTES_MAX bytes. */
enum status store_path_resolve(const char *path, char real[LIMIT_PATH_BYTES], struct error *error);

/* STORE: there is no file, or an empty one without a log beside it. Makes nothing, opens nothing.
 */
enum status store_path_check(const char *path, struct error *error);

/* Whether the file is there and none can be made beside it; errno says why not. */
bool store_path_is_read_only(const char *path);

/* STORE: a store that may only be read cannot be opened, for `reason` (errno), and what to do.
 * `what` of `path` is refused. */
enum status store_path_say_read_only(const char *store, const char *what, const char *path,
                                     int reason, struct error *error);

#endif
