/*
 * The thread that listens. See postgres_listen.h.
 *
 * It sleeps in poll() on the connection and on a pipe that ends it; without a connection it tries
 * again every second. Names of schemas tell apart what is meant for whom.
 */
#include "store/postgres/postgres_listen.h"

#include "store/sql/db.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AWAY_PAUSE_MS = 1000 };

struct postgres_listener {
    const char *url;
    void (*heard)(void *context);
    void *context;
    int stop[2]; /* pipe: closed at its writing end to end the thread */
    pthread_t thread;
};

/* Waits for the connection, if there is one. False: it is time to end. */
static bool wait_for(const struct postgres_listener *listener, int connection, int timeout_ms)
{
    struct pollfd ends[2] = {{.fd = listener->stop[0], .events = POLLIN},
                             {.fd = connection, .events = POLLIN}};
    int ready = poll(ends, 2, timeout_ms); /* a negative descriptor is left out */

    return (ready >= 0 || errno == EINTR) && ends[0].revents == 0;
}

static void drop_notice(void *context, const char *text)
{
    (void)context;
    (void)text;
}

/* A connection that listens; NULL: there is none. *schema: the one that is meant. */
static PGconn *begin_to_listen(const struct postgres_listener *listener, char *schema, size_t bytes)
{
    const char *const names[] = {"application_name", "connect_timeout", "dbname", NULL};
    const char *const values[] = {"swerve listener", "10", listener->url, NULL};
    PGconn *connection = PQconnectdbParams(names, values, 1);
    PGresult *result = NULL;

    PQsetNoticeProcessor(connection, drop_notice, NULL);
    if (PQstatus(connection) == CONNECTION_OK) {
        result = PQexec(connection, "LISTEN swerve_ready; SELECT current_schema()");
    }
    if (PQresultStatus(result) != PGRES_TUPLES_OK || strlen(PQgetvalue(result, 0, 0)) >= bytes) {
        PQclear(result);
        PQfinish(connection);
        return NULL;
    }
    memcpy(schema, PQgetvalue(result, 0, 0), strlen(PQgetvalue(result, 0, 0)) + 1);
    PQclear(result);
    return connection;
}

/* Takes what has come. False: the connection is lost. */
static bool take_word(const struct postgres_listener *listener, PGconn *connection,
                      const char *schema)
{
    bool meant = false;

    if (PQconsumeInput(connection) != 1) {
        return false;
    }
    for (PGnotify *word = PQnotifies(connection); word != NULL; word = PQnotifies(connection)) {
        meant |= strcmp(word->extra, schema) == 0;
        PQfreemem(word);
    }
    if (meant) {
        listener->heard(listener->context);
    }
    return true;
}

static void *listen_main(void *context)
{
    const struct postgres_listener *listener = context;
    PGconn *connection = NULL;
    char schema[256];
    bool more = true;

    while (more) {
        if (connection == NULL) {
            connection = begin_to_listen(listener, schema, sizeof schema);
            if (connection != NULL) {
                listener->heard(listener->context); /* of what came meanwhile */
            }
        }
        more = wait_for(listener, PQsocket(connection), connection != NULL ? -1 : AWAY_PAUSE_MS);
        if (more && connection != NULL && !take_word(listener, connection, schema)) {
            PQfinish(connection);
            connection = NULL;
        }
    }
    PQfinish(connection);
    return NULL;
}

enum status postgres_listen_start(const char *url, void (*heard)(void *context), void *context,
                                  struct postgres_listener **out, struct error *error)
{
    struct postgres_listener *listener = calloc(1, sizeof *listener);
    TRY(memory_check(listener, error, "out of memory for word from other processes"));

    listener->url = url;
    listener->heard = heard;
    listener->context = context;
    if (pipe2(listener->stop, O_CLOEXEC) != 0) {
        free(listener);
        return error_set(error, STATUS_IO, "a pipe for word from other processes: %s",
                         strerror(errno));
    }
    if (pthread_create(&listener->thread, NULL, listen_main, listener) != 0) {
        close(listener->stop[0]);
        close(listener->stop[1]);
        free(listener);
        return error_set(error, STATUS_NO_MEMORY, "cannot start the thread that listens");
    }
    *out = listener;
    return STATUS_OK;
}

void postgres_listen_stop(struct postgres_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    close(listener->stop[1]);
    pthread_join(listener->thread, NULL);
    close(listener->stop[0]);
    free(listener);
}

enum status postgres_listen_announce(struct db *db, struct error *error)
{
    struct query query = query_begin_sql(db, "SELECT pg_notify('swerve_ready', current_schema())");
    return query_send(&query, error);
}
