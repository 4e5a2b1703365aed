/*
 * The store that is met when memory runs out: a database, and the backend through which it is open
 * in this process. A database can be kept and restored, so that every play meets the same bytes.
 */
#ifndef SWERVE_TESTS_STORE_FAULTS_MEMORY_BACKENDS_H
#define SWERVE_TESTS_STORE_FAULTS_MEMORY_BACKENDS_H

#include "store/api/store.h"

#include <stddef.h>
#include <stdint.h>

enum memory_backend {
    MEMORY_EMBEDDED = 0,
    MEMORY_HTTP,   /* a client and a server on a Unix socket */
    MEMORY_OWNER,  /* the one that owns the path */
    MEMORY_CLIENT, /* one that came after the owner */
    MEMORY_BACKEND_COUNT
};

extern const char *const memory_backend_names[MEMORY_BACKEND_COUNT];

struct memory_bench {
    enum memory_backend backend;
    struct store *store; /* NULL: not open */
    char path[128];
    char socket_path[128];
    struct store *behind; /* the server's, or the owner's that `store` is a client of */
    struct store_server *server;
    uint8_t *prepared; /* the database that was kept */
    size_t prepared_bytes;
};

/* The database's name from now on, in the tests' directory. */
void memory_bench_name(struct memory_bench *bench, const char *name);

/* The socket that MEMORY_HTTP opens with, to be made while there is memory; other backends: -1. */
int memory_bench_listen(const struct memory_bench *bench);

/* Takes the socket, whatever the outcome. After a failure, too, memory_bench_close is due. */
enum status memory_bench_open(struct memory_bench *bench, int listen_fd, struct error *error);
void memory_bench_close(struct memory_bench *bench);

/* The closed database: kept as it is; put back as it was kept; gone. */
enum status memory_bench_keep(struct memory_bench *bench, struct error *error);
enum status memory_bench_restore(const struct memory_bench *bench, struct error *error);
void memory_bench_remove(const struct memory_bench *bench);

#endif
