/*
 * Word from other processes on the same schema that jobs became claimable (LISTEN, NOTIFY).
 *
 * Word may be lost with a connection, so it is never more than a hint: who waits looks by itself
 * now and then. Whoever was away looks once when he is back.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_LISTEN_H
#define SWERVE_STORE_POSTGRES_POSTGRES_LISTEN_H

#include "base/status.h"

struct db;
struct postgres_listener;

/* Starts a thread with a connection of its own, which calls `heard`. The URL is borrowed. */
enum status postgres_listen_start(const char *url, void (*heard)(void *context), void *context,
                                  struct postgres_listener **out, struct error *error);
/* Accepts NULL. `heard` is not called any more. */
void postgres_listen_stop(struct postgres_listener *listener);

/* Inside a transaction: tells the others when it commits. */
enum status postgres_listen_announce(struct db *db, struct error *error);

#endif
