/*
 * Strangers to the fleet, who have to do with the server's files alone: a second process that opens
 * the database by one name or another, and an operator who moves a file away under the server.
 *
 * When they come follows from the seed and the moment, not from the simulation's chance: with them
 * a seed plays as it would without. They leave no trace, so the model does not know of them.
 */
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "base/rng.h"
#include "store/sql/sql_store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INTRUDER_ONE_IN = 64, NAME_BYTES = FLEET_PATH_BYTES + 64 };

static uint64_t chance_of(const struct server *server, uint64_t what)
{
    const struct fleet *fleet = server->fleet;
    return rng_mix(rng_mix(fleet->options->seed ^ what) + (uint64_t)fleet->sim.now_ns);
}

/* A link to the database, or the database by its own name. */
static void make_name(const struct server *server, uint64_t kind, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s%s", server->path, kind == 0 ? "" : ".link");
    CHECK(kind != 1 || symlink(server->path, name) == 0);
    CHECK(kind != 2 || link(server->path, name) == 0);
}

void strangers_open(struct server *server)
{
    uint64_t chance = chance_of(server, 1);
    struct store *store = NULL;
    struct error error = {.text = ""};
    char name[NAME_BYTES];

    if (chance % INTRUDER_ONE_IN != 0) {
        return;
    }
    const struct bug *bug = server->fleet->bug;
    if (bug != NULL && bug->stranger != NULL) {
        enum status done = bug->stranger(server->fleet, &error);
        sim_log(&server->fleet->sim, "stranger", "owns the database as well: %s",
                status_name(done));
        return;
    }
    uint64_t kind = chance / INTRUDER_ONE_IN % 3;
    make_name(server, kind, name);
    enum status status = sql_store_open_stepped(name, NULL, &store, &error);
    if (kind != 0) {
        unlink(name);
    }
    server->fleet->intrusions++;
    sim_log(&server->fleet->sim, "stranger", "opens %s: %s", strrchr(name, '/') + 1,
            status_name(status));
    if (status == STATUS_OK) {
        store->ops->close(store);
        sim_violation(&server->fleet->sim, "there are two owners: the database is open as %s too",
                      name);
    } else if (status != STATUS_CONFLICT && status != STATUS_STORE) {
        sim_violation(&server->fleet->sim, "a second opener is told: %s", error.text);
    }
}

void strangers_take(struct server *server)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    const char *suffix = suffixes[chance_of(server, 2) % 3];
    struct store *store = server->store;
    struct error error = {.text = ""};
    char name[NAME_BYTES];
    char away[NAME_BYTES];

    snprintf(name, sizeof name, "%s%s", server->path, suffix);
    snprintf(away, sizeof away, "%s.away", server->path);
    CHECK(rename(name, away) == 0);
    enum status status = store->ops->price_set(store, "taken", "cpu", 1, &error);
    CHECK(rename(away, name) == 0);
    server->fleet->takings++;
    sim_log(&server->fleet->sim, "stranger", "moves the file%s away: %s", suffix,
            status_name(status));
    if (status != STATUS_STORE) {
        sim_violation(&server->fleet->sim, "a call on a moved file%s is answered %s: %s", suffix,
                      status_name(status), error.text);
    }
}
