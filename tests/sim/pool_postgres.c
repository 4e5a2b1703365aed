/*
 * Connections to PostgreSQL that outlive the store which opened them: a play opens its store anew
 * after each death of the server, and most of its time would go into new connections, whose
 * processes read the catalogs and plan every statement again.
 *
 * Stands in front of libpq, whose functions the program takes the place of: one that is finished is
 * kept, and handed out to whoever connects in the same way, with its settings as at the beginning.
 * A statement that is prepared there already, from the same text, is not prepared again.
 */
#include "base/check.h"
#include "base/sha256.h"

#include <dlfcn.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_MAX = 64, NAMES_MAX = 320, NAME_BYTES = 16, KEY_BYTES = 1024 };

struct prepared {
    char name[NAME_BYTES];
    char hash[SHA256_HEX_BYTES]; /* of its text */
};

struct pooled {
    PGconn *connection; /* NULL: free */
    bool used;
    char key[KEY_BYTES]; /* how it was connected */
    struct prepared *prepared;
    int count;
};

static struct pooled pool[CONNECTIONS_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    CHECK(found != NULL);
    return found;
}

static void really_finish(PGconn *connection)
{
    void (*finish)(PGconn *);
    *(void **)&finish = real("PQfinish");
    finish(connection);
}

static PGresult *really_execute(PGconn *connection, const char *sql)
{
    PGresult *(*execute)(PGconn *, const char *);
    *(void **)&execute = real("PQexec");
    return execute(connection, sql);
}

/* False: it is of no more use. */
static bool settle(PGconn *connection, const char *sql)
{
    PGresult *result = really_execute(connection, sql);
    bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return good;
}

static struct pooled *find(const PGconn *connection)
{
    struct pooled *found = NULL;
    for (int i = 0; i < CONNECTIONS_MAX && found == NULL; i++) {
        found = pool[i].connection == connection ? &pool[i] : NULL;
    }
    return found;
}

static void write_key(char key[KEY_BYTES], const char *const *values)
{
    int bytes = 0;
    for (int i = 0; values[i] != NULL && bytes < KEY_BYTES; i++) {
        bytes += snprintf(key + bytes, (size_t)(KEY_BYTES - bytes), "%s\n", values[i]);
    }
    CHECK(bytes < KEY_BYTES);
}

PGconn *PQconnectdbParams(const char *const *names, const char *const *values, int expand)
{
    PGconn *(*connect)(const char *const *, const char *const *, int);
    PGconn *connection = NULL;
    char key[KEY_BYTES];

    write_key(key, values);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < CONNECTIONS_MAX && connection == NULL; i++) {
        if (pool[i].connection != NULL && !pool[i].used && strcmp(pool[i].key, key) == 0) {
            pool[i].used = true;
            connection = pool[i].connection;
        }
    }
    pthread_mutex_unlock(&mutex);
    if (connection != NULL) {
        return connection;
    }
    *(void **)&connect = real("PQconnectdbParams");
    connection = connect(names, values, expand);
    pthread_mutex_lock(&mutex);
    struct pooled *free_place = find(NULL);
    if (connection != NULL && free_place != NULL) {
        *free_place = (struct pooled){.connection = connection, .used = true};
        memcpy(free_place->key, key, sizeof key);
    }
    pthread_mutex_unlock(&mutex);
    return connection;
}

static void forget(struct pooled *pooled)
{
    free(pooled->prepared);
    *pooled = (struct pooled){.connection = NULL};
}

void PQfinish(PGconn *connection)
{
    bool kept = connection != NULL && PQstatus(connection) == CONNECTION_OK &&
                PQpipelineStatus(connection) == PQ_PIPELINE_OFF &&
                PQtransactionStatus(connection) != PQTRANS_ACTIVE &&
                settle(connection, "ROLLBACK") && settle(connection, "UNLISTEN *") &&
                settle(connection, "RESET ALL");
    PGnotify *word = NULL;
    while (kept && (word = PQnotifies(connection)) != NULL) {
        PQfreemem(word);
    }
    pthread_mutex_lock(&mutex);
    struct pooled *pooled = connection != NULL ? find(connection) : NULL;
    kept &= pooled != NULL;
    if (kept) {
        pooled->used = false;
    } else if (pooled != NULL) {
        forget(pooled);
    }
    pthread_mutex_unlock(&mutex);
    if (!kept) {
        really_finish(connection);
    }
}

/* Forgets no statements: a store that wants them forgotten prepares them again, under the same
 * names. */
PGresult *PQexec(PGconn *connection, const char *sql)
{
    return strcmp(sql, "DEALLOCATE ALL") == 0 ? PQmakeEmptyPGresult(connection, PGRES_COMMAND_OK)
                                              : really_execute(connection, sql);
}

/* The place of a name, NULL: none is left, it is that of what is not kept, or the connection is not
 * one of these. */
static struct prepared *place_of(struct pooled *pooled, const char *name)
{
    if (pooled == NULL || name[0] == '\0' || strlen(name) >= NAME_BYTES) {
        return NULL;
    }
    if (pooled->prepared == NULL) {
        pooled->prepared = calloc(NAMES_MAX, sizeof *pooled->prepared);
        CHECK(pooled->prepared != NULL);
    }
    for (int i = 0; i < pooled->count; i++) {
        if (strcmp(pooled->prepared[i].name, name) == 0) {
            return &pooled->prepared[i];
        }
    }
    return pooled->count < NAMES_MAX ? &pooled->prepared[pooled->count] : NULL;
}

PGresult *PQprepare(PGconn *connection, const char *name, const char *sql, int types_count,
                    const Oid *types)
{
    PGresult *(*prepare)(PGconn *, const char *, const char *, int, const Oid *);
    char hash[SHA256_HEX_BYTES];
    char deallocate[NAME_BYTES + 16];

    pthread_mutex_lock(&mutex);
    struct pooled *pooled = find(connection);
    struct prepared *place = place_of(pooled, name);
    pthread_mutex_unlock(&mutex);
    *(void **)&prepare = real("PQprepare");
    if (place == NULL) {
        return prepare(connection, name, sql, types_count, types);
    }
    sha256_hex(sql, strlen(sql), hash);
    if (strcmp(place->hash, hash) == 0) {
        return PQmakeEmptyPGresult(connection, PGRES_COMMAND_OK);
    }
    if (place->hash[0] != '\0') {
        snprintf(deallocate, sizeof deallocate, "DEALLOCATE %s", name);
        CHECK(settle(connection, deallocate));
        place->hash[0] = '\0';
    }
    PGresult *result = prepare(connection, name, sql, types_count, types);
    if (PQresultStatus(result) == PGRES_COMMAND_OK) {
        pooled->count += place == &pooled->prepared[pooled->count] ? 1 : 0;
        snprintf(place->name, sizeof place->name, "%s", name);
        memcpy(place->hash, hash, sizeof hash);
    }
    return result;
}
