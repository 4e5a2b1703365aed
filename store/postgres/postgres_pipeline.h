/*
 * Statements that are sent without waiting for their answers, in libpq's pipeline mode.
 *
 * A connection is in that mode while answers are pending, and not at any other time. The server
 * leaves out what comes behind a statement that failed, so the first bad answer is what counts.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_PIPELINE_H
#define SWERVE_STORE_POSTGRES_POSTGRES_PIPELINE_H

#include <stdbool.h>

/* So few answers fit into the buffers between both sides: neither waits for the other to read. */
enum { POSTGRES_PIPELINE_MAX = 64 };

struct pg_conn;
struct pg_result;

/* A statement with its parameters: prepared under a name, or a text without rows. */
struct postgres_send {
    const char *name; /* NULL: `text` */
    const char *text;
    const char *awaits; /* what it is, where it has to insert or update a row; NULL: it need not */
    int parameters;
    const char *const *values;
    const int *lengths;
    const int *formats;
};

/* Queues it; *pending counts answers. False: the connection says why. */
bool postgres_pipeline_send(struct pg_conn *connection, int *pending,
                            const struct postgres_send *send);

/* Whether the answer to something that has to insert or update a row says that it did. Rules and
 * triggers of somebody else's may keep it from that without an error. */
bool postgres_pipeline_wrote(const struct pg_result *result);

/* Waits for all pending answers, and returns the first bad one, else the last, which the caller
 * clears. NULL: the connection is lost, or nothing was pending. *undone: an answer before the last
 * is the bad one. *missed: one that was awaited (see above, in the order in which they were sent)
 * had no row, and is the bad one; NULL: none. */
struct pg_result *postgres_pipeline_end(struct pg_conn *connection, int *pending,
                                        const char *const *awaits, bool *undone,
                                        const char **missed);

/* Commits, with nothing pending, and behind that waits for the disk: in one go. Both answers are
 * the caller's to clear; NULL: there is none. */
void postgres_pipeline_commit(struct pg_conn *connection, struct pg_result **commit,
                              struct pg_result **synced);

#endif
