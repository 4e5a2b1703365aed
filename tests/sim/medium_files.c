/*
 * The server's database in a file: SQLite, with its log. See fleet.h.
 */
#include "store/sql/sql_store.h"
#include "tests/sim/fleet.h"
#include "tests/store/faults/invariants.h"

#include "base/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 16 };

const bool medium_files = true;
const bool medium_clock_restarts = true;

/* A file that is not there becomes one that is not there. */
static void copy_file(const char *from, const char *to)
{
    char buffer[COPY_BYTES];
    ssize_t bytes;
    int in = open(from, O_RDONLY | O_CLOEXEC);

    unlink(to);
    if (in < 0) {
        return;
    }
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(out >= 0);
    while ((bytes = read(in, buffer, sizeof buffer)) > 0) {
        CHECK(write(out, buffer, (size_t)bytes) == bytes);
    }
    CHECK(bytes == 0);
    close(in);
    close(out);
}

static void path_with(const struct server *server, const char *suffix, char out[])
{
    snprintf(out, FLEET_PATH_BYTES + 64, "%s%s", server->path, suffix);
}

/* A file that is not there takes away the other one. */
static void move_file(const char *from, const char *to)
{
    if (rename(from, to) != 0) {
        unlink(to);
    }
}

/* The database and its log. */
static void transfer(const struct server *server, const char *from, const char *to,
                     void (*file)(const char *from, const char *to))
{
    static const char *const parts[] = {"", "-wal"};
    char name[32];
    char source[FLEET_PATH_BYTES + 64];
    char target[FLEET_PATH_BYTES + 64];

    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", from, parts[i]);
        path_with(server, name, source);
        snprintf(name, sizeof name, "%s%s", to, parts[i]);
        path_with(server, name, target);
        file(source, target);
    }
}

bool medium_plays(const struct bug *bug)
{
    (void)bug;
    return true;
}

/* Making the tables takes longer than half a play. */
bool medium_prepare(const char *directory)
{
    char path[FLEET_PATH_BYTES];
    struct store *store = NULL;
    struct error error;

    snprintf(path, sizeof path, "%s/empty.db", directory);
    CHECK(sql_store_open_stepped(path, NULL, &store, &error) == STATUS_OK);
    server_add_versions(store);
    store->ops->close(store);
    return true;
}

void medium_finish(void)
{
}

static void remove_files(const struct server *server)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".dead", ".dead-wal"};
    char name[FLEET_PATH_BYTES + 64];

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        path_with(server, suffixes[i], name);
        unlink(name);
    }
}

void medium_begin(struct server *server)
{
    char empty[FLEET_PATH_BYTES];

    remove_files(server);
    snprintf(empty, sizeof empty, "%s/empty.db", server->fleet->options->directory);
    copy_file(empty, server->path);
}

enum status medium_open(struct server *server, const struct store_config *config,
                        struct error *error)
{
    static struct sqlite_db_probe probe;
    TRY(sql_store_open_stepped(server->path, config, &server->store, error));
    probe = (struct sqlite_db_probe){server_text, server_committed, server};
    sqlite_db_set_probe(sql_store_of(server->store)->db, &probe);
    return STATUS_OK;
}

enum status medium_script(struct server *server, const char *sql, struct error *error)
{
    return sqlite_db_script(sql_store_of(server->store)->db, sql, error);
}

/* The connection's probe counts them all. */
void medium_count(struct server *server)
{
    (void)server;
}

void medium_snap(struct server *server)
{
    transfer(server, "", ".dead", copy_file);
}

void medium_restore(struct server *server)
{
    char shm[FLEET_PATH_BYTES + 64];

    transfer(server, ".dead", "", move_file);
    path_with(server, "-shm", shm);
    unlink(shm);
}

bool medium_holds(struct server *server, char *why, size_t why_bytes)
{
    bool holds = invariants_hold(server->path, why, why_bytes);
    remove_files(server);
    return holds;
}
