/*
 * The backends, and the file behind them. See memory_backends.h.
 */
#include "tests/store/faults/memory_backends.h"

#include "tests/store/http/http_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const memory_backend_names[MEMORY_BACKEND_COUNT] = {"embedded", "http", "owner",
                                                                "client"};

void memory_bench_name(struct memory_bench *bench, const char *name)
{
    snprintf(bench->path, sizeof bench->path, "%s/%s.db", support_directory(), name);
    snprintf(bench->socket_path, sizeof bench->socket_path, "%s/s.sock", support_directory());
}

/* ---- opening and closing ---- */

int memory_bench_listen(const struct memory_bench *bench)
{
    return bench->backend == MEMORY_HTTP ? support_listen(bench->socket_path) : -1;
}

static enum status open_server(struct memory_bench *bench, int listen_fd, struct error *error)
{
    char url[160];
    enum status status = store_sqlite_open(bench->path, NULL, &bench->behind, error);

    if (status != STATUS_OK) {
        bench->behind = NULL;
        close(listen_fd);
        return status;
    }
    snprintf(url, sizeof url, "unix:%s", bench->socket_path);
    status = store_server_start(bench->behind, listen_fd, NULL, &bench->server, error);
    if (status != STATUS_OK) {
        bench->server = NULL;
        return status;
    }
    return store_http_open(url, NULL, &bench->store, error);
}

enum status memory_bench_open(struct memory_bench *bench, int listen_fd, struct error *error)
{
    enum status status = STATUS_OK;

    if (bench->backend == MEMORY_EMBEDDED) {
        status = store_sqlite_open(bench->path, NULL, &bench->store, error);
    } else if (bench->backend == MEMORY_HTTP) {
        status = open_server(bench, listen_fd, error);
    } else if (bench->backend == MEMORY_OWNER) {
        status = store_open(bench->path, NULL, &bench->store, error);
    } else {
        status = store_open(bench->path, NULL, &bench->behind, error);
        if (status == STATUS_OK) {
            status = store_open(bench->path, NULL, &bench->store, error);
        } else {
            bench->behind = NULL;
        }
    }
    if (status != STATUS_OK) {
        bench->store = NULL;
    }
    return status;
}

void memory_bench_close(struct memory_bench *bench)
{
    if (bench->store != NULL) {
        bench->store->ops->close(bench->store);
    }
    store_server_stop(bench->server);
    if (bench->behind != NULL) {
        bench->behind->ops->close(bench->behind);
    }
    bench->store = NULL;
    bench->server = NULL;
    bench->behind = NULL;
}

/* ---- the file ---- */

static void remove_file(const struct memory_bench *bench, const char *suffix)
{
    char name[160];

    snprintf(name, sizeof name, "%s%s", bench->path, suffix);
    unlink(name);
}

void memory_bench_remove(const struct memory_bench *bench)
{
    remove_file(bench, "");
    remove_file(bench, "-wal");
    remove_file(bench, "-shm");
}

static enum status refused(const struct memory_bench *bench, const char *what, struct error *error)
{
    return error_set(error, STATUS_IO, "%s: cannot %s it: %s", bench->path, what, strerror(errno));
}

static enum status read_all(struct memory_bench *bench, int fd, struct error *error)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        return refused(bench, "stat", error);
    }
    bench->prepared_bytes = (size_t)info.st_size;
    bench->prepared = malloc(bench->prepared_bytes);
    if (bench->prepared == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "%s: no memory for %zu bytes", bench->path,
                         bench->prepared_bytes);
    }
    ssize_t bytes = read(fd, bench->prepared, bench->prepared_bytes);
    if (bytes < 0) {
        return refused(bench, "read", error);
    }
    if ((size_t)bytes != bench->prepared_bytes) {
        return error_set(error, STATUS_IO, "%s: expected %zu bytes, read %zd", bench->path,
                         bench->prepared_bytes, bytes);
    }
    return STATUS_OK;
}

enum status memory_bench_keep(struct memory_bench *bench, struct error *error)
{
    int fd = open(bench->path, O_RDONLY);

    free(bench->prepared);
    bench->prepared = NULL;
    if (fd < 0) {
        return refused(bench, "open", error);
    }
    enum status status = read_all(bench, fd, error);
    close(fd);
    return status;
}

enum status memory_bench_restore(const struct memory_bench *bench, struct error *error)
{
    enum status status = STATUS_OK;

    memory_bench_remove(bench);
    int fd = open(bench->path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) {
        return refused(bench, "create", error);
    }
    ssize_t bytes = write(fd, bench->prepared, bench->prepared_bytes);
    if (bytes < 0) {
        status = refused(bench, "write", error);
    } else if ((size_t)bytes != bench->prepared_bytes) {
        status = error_set(error, STATUS_IO, "%s: expected %zu bytes, wrote %zd", bench->path,
                           bench->prepared_bytes, bytes);
    }
    close(fd);
    return status;
}
