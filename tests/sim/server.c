/*
 * The server process: opening the store, serving requests, dying at any commit, coming back.
 *
 * A dying process keeps what it had committed: what its database holds is set aside at the moment
 * of death, and brought back when the call is over. (Power cuts are the disk tests' business.)
 */
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "base/units.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- commits ---- */

static void snap(struct server *server)
{
    medium_snap(server);
    server->snapped = true;
}

void server_committed(void *context)
{
    struct server *server = context;

    server->commits++;
    if (server->crash_commits == server->commits && !server->snapped) {
        snap(server);
    }
}

const char *server_text(void *context, enum statement statement, const char *sql)
{
    struct server *server = context;
    return bug_text(server->fleet, statement, sql);
}

/* ---- opening ---- */

static void open_store(struct server *server)
{
    struct error error;
    const struct fleet *fleet = server->fleet;
    struct store_config config = {.clock = &server->clock.clock,
                                  .bill_slack_ms = fleet->model->bill_slack_ns / NS_PER_MS,
                                  .lease_ttl_ms = fleet->model->ttl_ns / NS_PER_MS,
                                  .backoff_ms = fleet->model->backoff_ns / NS_PER_MS,
                                  .checkpoint_pages = fleet->checkpoint_pages};

    if (medium_open(server, &config, &error) != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        CHECK(false);
    }
    if (fleet->bug != NULL && fleet->bug->setup != NULL) {
        CHECK(medium_script(server, fleet->bug->setup, &error) == STATUS_OK);
    }
    server->context =
        (struct http_context){.store = &server->spy.store, .clock = &server->clock.clock};
    server->incarnation++;
    server->busy_until_ns = fleet->sim.now_ns;
    server->up = true;
}

static void close_store(struct server *server)
{
    server->store->ops->close(server->store);
    server->store = NULL;
    server->up = false;
}

/* Versions of the student, of which the first is promoted. */
void server_add_versions(struct store *store)
{
    struct error error;
    struct model_event done;
    struct model_event event = {
        .kind = MODEL_MOVED, .to_state = MODEL_PROMOTED, .forced = true, .evidence = "a seed"};

    for (int i = 0; i < MODEL_VERSIONS; i++) {
        struct model_version version = {.tier = TIER_STUDENT,
                                        .precision = "bf16",
                                        .sampler = "few/bf16",
                                        .agents_ticks = 300,
                                        .map_ticks = 300,
                                        .none_ticks = 300};
        snprintf(version.name, sizeof version.name, "%s", model_versions[i]);
        CHECK(store->ops->artifact_put(store, model_versions[i], strlen(model_versions[i]),
                                       version.hash, &error) == STATUS_OK);
        CHECK(store->ops->model_add(store, &version, &error) == STATUS_OK);
    }
    snprintf(event.model, sizeof event.model, "%s", model_versions[0]);
    CHECK(store->ops->model_event(store, &event, &done, &error) == STATUS_OK);
}

void server_open(struct server *server, struct fleet *fleet, const char *path)
{
    server->fleet = fleet;
    snprintf(server->path, sizeof server->path, "%s", path);
    sim_clock_init(&server->clock, &fleet->sim, sim_between(&fleet->sim, 0, 1000) * NS_PER_S,
                   sim_between(&fleet->sim, -200, 200));
    server->before = malloc(sizeof *server->before);
    server->swept = malloc(sizeof *server->swept);
    CHECK(server->before != NULL && server->swept != NULL);
    spy_init(&server->spy, fleet);
    medium_begin(server);
    open_store(server);
    server->crash_commits = -1;
    model_restart(fleet->model, sim_clock_now(&server->clock));
}

void server_close(struct server *server)
{
    if (server->store != NULL) {
        close_store(server);
    }
    free(server->before);
    free(server->swept);
}

/* ---- dying and coming back ---- */

/* Dies with the files as they are, or as they were at the planned commit. */
static void die(struct server *server)
{
    struct fleet *fleet = server->fleet;
    struct sim *sim = &fleet->sim;

    server->whole = server->commits == server->crash_commits;
    if (!server->snapped) {
        snap(server);
        server->uncertain = false;
    }
    close_store(server);
    medium_restore(server);
    fleet->deaths++;
    fleet->deaths_in_calls += server->uncertain;
    sim_log(sim, "server", "dies%s", server->uncertain ? " in the middle of a call" : "");
    sim_at(sim, sim->now_ns + sim_between(sim, 50, 6000) * NS_PER_MS, server_restart, server, 0);
}

void server_crash(struct server *server)
{
    if (server->up) {
        server->snapped = false;
        server->crash_commits = -1;
        strangers_take(server);
        die(server);
    }
}

void server_tick(struct server *server)
{
    server->crash_commits = -1;
    server->clock.stall_reads = 0;
    model_time(server->fleet->model, sim_clock_now(&server->clock));
    sql_store_tick(sql_store_of(server->store));
    spy_after(server->fleet);
}

void server_compare(struct server *server, const char *when)
{
    struct fleet *fleet = server->fleet;

    if (!fleet->sim.failed && !model_check_store(fleet->model, server->store)) {
        sim_violation(&fleet->sim, "%s: %s", when, fleet->model->why);
    }
}

/* A call during which the server died has happened or not, as a whole. What has, the commits tell;
 * not everything that a state holds can be seen (the progress of running jobs), so the state that
 * they tell is tried first. */
static void settle(struct server *server, int64_t now_ns)
{
    struct fleet *fleet = server->fleet;
    bool whole = server->whole;
    struct model *after = malloc(sizeof *after);
    const struct model *states[] = {whole ? after : server->swept, server->before,
                                    whole ? server->swept : after};
    bool found = false;

    CHECK(after != NULL);
    *after = *fleet->model;
    for (size_t i = 0; i < 3 && !found; i++) {
        *fleet->model = *states[i];
        model_restart(fleet->model, now_ns);
        found = model_check_store(fleet->model, server->store);
    }
    if (!found) {
        sim_violation(&fleet->sim,
                      "after a death in the middle of a call: it has neither happened nor not "
                      "happened: %s",
                      fleet->model->why);
    }
    free(after);
}

void server_restart(void *context, int64_t argument)
{
    struct server *server = context;
    struct fleet *fleet = server->fleet;
    struct sim *sim = &fleet->sim;

    (void)argument;
    if (server->up || fleet->stopping) {
        return;
    }
    if (medium_clock_restarts &&
        sim_chance(sim, 0.3)) { /* the machine too: its clock begins anew */
        server->clock.offset_ns = 0;
        server->clock.offset_ns =
            sim_between(sim, 2, 100) * NS_PER_S - sim_clock_now(&server->clock);
    }
    open_store(server);
    sim_log(sim, "server", "comes back");
    if (server->uncertain && !sim->failed) {
        settle(server, sim_clock_now(&server->clock));
    } else {
        model_restart(fleet->model, sim_clock_now(&server->clock));
        server_compare(server, "after a restart");
    }
    server->uncertain = false;
}

/* ---- serving ---- */

static bool is_write(const struct message *message)
{
    return strcmp(message->method, "GET") != 0;
}

static void plan_crash(struct server *server, const struct message *message)
{
    struct sim *sim = &server->fleet->sim;

    server->commits = 0;
    server->snapped = false;
    server->crash_commits = -1;
    server->uncertain = false;
    /* Completions change most, and claims hand out most, so they are struck most. */
    bool completes = strcmp(message->path, "/v1/completions") == 0;
    double chance = server->fleet->faults.crash * (completes ? 4 : message->claims ? 3 : 1);
    if (sim_chance(sim, chance) && is_write(message)) {
        server->crash_commits = sim_chance(sim, 0.2) ? 0 : sim_chance(sim, 0.3) ? 2 : 1;
        medium_count(server);
    }
}

static void serve(struct server *server, struct message *message)
{
    struct fleet *fleet = server->fleet;
    struct sim *sim = &fleet->sim;
    struct http_reply reply;
    struct http_match match;
    struct http_request request = {.method = message->method,
                                   .uri = message->path,
                                   .match = &match,
                                   .body = message->body,
                                   .body_bytes = message->body_bytes,
                                   .packed = message->packed,
                                   .peer_fd = -1};

    fleet->requests++;
    server->busy_until_ns = sim->now_ns;
    if (is_write(message) && sim_chance(sim, fleet->faults.disk_slow)) {
        server->clock.stall_ns = sim_between(sim, 20, 5000) * NS_PER_MS;
        server->busy_until_ns += server->clock.stall_ns;
    }
    server->clock.stall_reads = 0;
    fleet->model->stall_ns = server->clock.stall_ns;
    http_route_find(request.method, request.uri, &match);
    http_route(&server->context, &request, &reply);
    server->clock.stall_ns = fleet->model->stall_ns = 0;
    if (server->crash_commits > 0) {
        free(reply.data);
        message_reset(message);
        die(server);
        return;
    }
    message_reply(message, &reply);
}

void server_deliver(void *context, int64_t argument)
{
    struct message *message = context;
    struct fleet *fleet = message->fleet;
    struct server *server = &fleet->server;

    if (fleet->stopping) {
        message_drop(message);
        return;
    }
    if (!server->up && message->proxied) {
        sim_at(&fleet->sim, fleet->sim.now_ns + sim_between(&fleet->sim, 100, 3000) * NS_PER_MS,
               server_deliver, message, argument);
        return;
    }
    if (!server->up || (message->incarnation != server->incarnation && !message->proxied)) {
        message_reset(message);
        message_drop(message);
        return;
    }
    if (server->busy_until_ns > fleet->sim.now_ns) {
        sim_at(&fleet->sim, server->busy_until_ns, server_deliver, message, argument);
        return;
    }
    strangers_open(server);
    plan_crash(server, message);
    if (server->crash_commits == 0) {
        message_reset(message);
        server_crash(server);
    } else {
        serve(server, message);
    }
    message_drop(message);
}
