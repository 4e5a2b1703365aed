/*
 * A PostgreSQL server of a test's own: in a temporary directory, on a Unix socket, by a user
 * without privileges, gone with the test.
 */
#ifndef SWERVE_TESTS_STORE_POSTGRES_POSTGRES_SITE_H
#define SWERVE_TESTS_STORE_POSTGRES_POSTGRES_SITE_H

#include <stdbool.h>
#include <sys/types.h>

struct postgres_site {
    char directory[64]; /* "": not made */
    char programs[256]; /* folder of initdb and postgres */
    pid_t server;       /* 0: down */
    bool durable;       /* fsync, for tests that kill it */
    bool forgetful; /* nobody kills it: in memory, where there is room, and with no log to go by;
                       statements are planned once */
};

/* Programs of the newest version that is installed. False: none is. */
bool postgres_site_installed(struct postgres_site *site);
/* Makes an empty cluster and starts it. False: why is on stdout. */
bool postgres_site_make(struct postgres_site *site);
bool postgres_site_start(struct postgres_site *site);
/* Without warning, as kill -9 of the server; what it started sees that, and ends a moment later. */
void postgres_site_kill(struct postgres_site *site);
/* In order, whatever is connected: a "fast" shutdown. */
void postgres_site_stop(struct postgres_site *site);
/* Stops it and removes everything. */
void postgres_site_remove(struct postgres_site *site);

/* URL of a schema of its own, which is made. False: it could not be. */
bool postgres_site_schema(struct postgres_site *site, int serial, char *url, int url_bytes);

#endif
