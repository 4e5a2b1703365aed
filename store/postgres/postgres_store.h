/*
 * The store in PostgreSQL: the logic of store/sql on connections of postgres_db.h.
 *
 * Every process that opens it is a peer of the others: no file, no lock that one of them owns, no
 * server between. Artifacts are in a folder that they share.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_STORE_H
#define SWERVE_STORE_POSTGRES_POSTGRES_STORE_H

#include "store/api/store.h"

/* "postgresql://..", "postgres://..". */
bool postgres_store_is_url(const char *url);

/* USAGE in a build without libpq, and of a URL with a password. config->clock NULL: the database's
 * clock. */
enum status postgres_store_open(const char *url, const struct store_config *config,
                                struct store **out, struct error *error);

/* The same without a writer thread: see group_commit_create_stepped. */
enum status postgres_store_open_stepped(const char *url, const struct store_config *config,
                                        struct store **out, struct error *error);

/* A connection of a store that is there, to look at its rows: nothing is made or changed. `path`
 * gets what the artifacts' directory is named after (PATH.artifacts), or the URL of their bucket,
 * `cut` the URL that the connection borrows. STORE: the schema is another than this program's. */
struct db;
enum status postgres_store_look(const char *url, char *cut, size_t cut_bytes,
                                char path[LIMIT_PATH_BYTES], struct db **out, struct error *error);

#endif
