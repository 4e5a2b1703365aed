/*
 * A server over an embedded store on a Unix socket in this process, one at a time; each begins with
 * an empty store of its own.
 */
#ifndef SWERVE_TESTS_STORE_HTTP_HTTP_SITE_H
#define SWERVE_TESTS_STORE_HTTP_HTTP_SITE_H

#include "store/api/store.h"
#include "store/server/http_server.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"

#include <stdio.h>

struct site {
    struct store *behind;
    struct store_server *server;
    char path[200]; /* of the store */
    char socket_path[208];
    char url[240];
};

static struct site site;

static inline void site_serve(void)
{
    struct error error;
    EXPECT_OK(store_sqlite_open(site.path, NULL, &site.behind, &error), error);
    EXPECT_OK(store_server_start(site.behind, support_listen(site.socket_path), NULL, &site.server,
                                 &error),
              error);
}

static inline void site_start(void)
{
    static int serial;
    snprintf(site.path, sizeof site.path, "%s/%d.db", support_directory(), serial++);
    snprintf(site.socket_path, sizeof site.socket_path, "%s.s", site.path);
    snprintf(site.url, sizeof site.url, "unix:%s", site.socket_path);
    site_serve();
}

static inline void site_stop(void)
{
    store_server_stop(site.server);
    site.behind->ops->close(site.behind);
}

/* Another server on the same store. */
static inline void site_again(void)
{
    site_stop();
    site_serve();
}

#endif
