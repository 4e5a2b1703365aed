/*
 * The server's database in PostgreSQL, on a server of the test's own. See fleet.h.
 *
 * Three schemas have the same tables: `live` is the store's; `base` holds the rows that each play
 * begins with; `dead` those that were committed when the server died. Time is the simulation's: the
 * store is given its clock, as any caller may give one, and runs without a thread of its own.
 *
 * What is not played: the database's own death (tests/store/postgres and the soak kill it), two
 * servers at work at one time, and new connections, which are kept (pool_postgres.c).
 */
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_store.h"
#include "store/sql/sql_store.h"
#include "tests/sim/fleet.h"
#include "tests/store/postgres/postgres_site.h"

#include "base/check.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { URL_BYTES = 512, PEER_ONE_IN = 64 };

const bool medium_files = false;
const bool medium_clock_restarts = false;

static struct {
    struct postgres_site site;
    char url[URL_BYTES];   /* of the store in `live` */
    char plain[URL_BYTES]; /* without artifacts */
    struct db *admin;
    int64_t next_id; /* of a transaction that writes, as last seen while a death is planned */
} place;

/* Copies rows between schemas; ids go on behind the highest. What is empty on both sides is left
 * alone. `anew`: emptied files, not rows alone, which costs more and leaves nothing to look past.
 */
static const char functions[] =
    "CREATE SCHEMA tools;"
    "CREATE TABLE tools.names AS SELECT tablename::TEXT AS name FROM pg_tables"
    " WHERE schemaname = 'live' AND tablename NOT LIKE 'swerve%' ORDER BY tablename;"
    "CREATE TABLE tools.ids AS SELECT c.table_name::TEXT AS name, c.column_name::TEXT AS id,"
    " pg_get_serial_sequence('live.' || c.table_name, c.column_name) AS sequence"
    " FROM information_schema.columns c WHERE c.table_schema = 'live' AND c.is_identity = 'YES';"
    "CREATE FUNCTION tools.make(target TEXT) RETURNS VOID LANGUAGE plpgsql AS $$"
    " DECLARE t TEXT; BEGIN EXECUTE format('CREATE SCHEMA %I', target);"
    " FOR t IN SELECT name FROM tools.names LOOP"
    " EXECUTE format('CREATE TABLE %I.%I (LIKE live.%I)', target, t, t); END LOOP; END $$;"
    "CREATE FUNCTION tools.holds(name TEXT) RETURNS BOOLEAN LANGUAGE sql AS $$"
    " SELECT pg_relation_size(CAST(name AS REGCLASS)) > 0 $$;"
    "CREATE FUNCTION tools.copy(source TEXT, target TEXT, anew BOOLEAN) RETURNS VOID LANGUAGE "
    "plpgsql AS $$"
    " DECLARE t TEXT; n BIGINT; s TEXT; k TEXT; BEGIN SET LOCAL session_replication_role = replica;"
    " IF anew THEN EXECUTE (SELECT 'TRUNCATE ' || string_agg(format('%I.%I', target, name), ', ') "
    "||"
    " ' RESTART IDENTITY' FROM tools.names); END IF;"
    " FOR t IN SELECT name FROM tools.names LOOP"
    " IF NOT anew AND tools.holds(target || '.' || t) THEN"
    "  EXECUTE format('DELETE FROM %I.%I', target, t); END IF;"
    " IF tools.holds(source || '.' || t) THEN"
    "  EXECUTE format('INSERT INTO %I.%I SELECT * FROM %I.%I', target, t, source, t); END IF;"
    " END LOOP;"
    " FOR t, k, s IN SELECT name, id, sequence FROM tools.ids WHERE target = 'live' LOOP"
    " EXECUTE format('SELECT MAX(%I) FROM %I.%I', k, target, t) INTO n;"
    " IF n IS NOT NULL THEN PERFORM setval(s, n); END IF; END LOOP; END $$";

static void run(const char *sql)
{
    struct error error;
    if (postgres_db_script(place.admin, sql, &error) != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        CHECK(false);
    }
}

/* The id that the next transaction that writes will get. */
static int64_t next_id(void)
{
    int64_t id = 0;
    struct error error;
    struct query query = query_begin_sql(
        place.admin,
        "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)");
    if (query_row(&query)) {
        id = query_column_int(&query, 0);
    }
    CHECK(query_end(&query, &error) == STATUS_OK);
    return id;
}

/* A commit with nothing in it is none, as in a file: the message that is waited for behind each
 * takes one id, what was written another. */
static void on_commit(void *context)
{
    const struct server *server = context;
    if (server->crash_commits < 0) {
        return; /* nobody counts them */
    }
    if (next_id() > place.next_id + 1) {
        server_committed(context);
    }
    place.next_id = next_id();
}

void medium_count(struct server *server)
{
    (void)server;
    place.next_id = next_id();
}

bool medium_plays(const struct bug *bug)
{
    return !bug->files;
}

static bool refuse(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    return false;
}

bool medium_prepare(const char *directory)
{
    struct store *store = NULL;
    struct error error;

    (void)directory;
    if (!postgres_site_installed(&place.site)) {
        return refuse("no PostgreSQL server is installed");
    }
    place.site.forgetful = true;
    CHECK(postgres_site_make(&place.site));
    snprintf(place.plain, sizeof place.plain,
             "postgresql://swerve@/postgres?host=%s&options=-csearch_path%%3Dlive",
             place.site.directory);
    CHECK(snprintf(place.url, sizeof place.url, "%s&artifacts=%s", place.plain,
                   place.site.directory) < URL_BYTES);
    CHECK(postgres_db_open(place.plain, NULL, &place.admin, &error) == STATUS_OK);
    run("CREATE SCHEMA live");
    CHECK(postgres_store_open_stepped(place.url, NULL, &store, &error) == STATUS_OK);
    server_add_versions(store);
    store->ops->close(store);
    run(functions);
    run("SELECT tools.make('base'), tools.make('dead'), tools.copy('live', 'base', true)");
    return true;
}

void medium_finish(void)
{
    db_close(place.admin);
    postgres_site_remove(&place.site);
}

void medium_begin(struct server *server)
{
    server->fleet->model->goes_on = true;
    run("SELECT tools.copy('base', 'live', true), tools.copy('base', 'dead', true)");
}

enum status medium_open(struct server *server, const struct store_config *config,
                        struct error *error)
{
    static struct postgres_db_probe probe;
    TRY(postgres_store_open_stepped(place.url, config, &server->store, error));
    probe = (struct postgres_db_probe){server_text, on_commit, server};
    postgres_db_set_probe(sql_store_of(server->store)->db, &probe);
    return STATUS_OK;
}

enum status medium_script(struct server *server, const char *sql, struct error *error)
{
    enum status status = postgres_db_script(sql_store_of(server->store)->db, sql, error);
    if (server->crash_commits >= 0) {
        medium_count(server);
    }
    return status;
}

void medium_snap(struct server *server)
{
    (void)server;
    run("SELECT tools.copy('live', 'dead', false)");
}

void medium_restore(struct server *server)
{
    (void)server;
    run("SELECT tools.copy('dead', 'live', false)");
}

/* Rows that sums are made of, beside the sums. */
bool medium_holds(struct server *server, char *why, size_t why_bytes)
{
    static const char *const queries[] = {
        "SELECT 'the ledger of suite ' || l.suite || ' is not the sum of its attempts' FROM (SELECT"
        " suite, SUM(attempts) AS n, SUM(device_ns) AS ns, SUM(cost_uusd) AS cost FROM ledger"
        " GROUP BY suite) l FULL JOIN (SELECT j.suite, COUNT(*) AS n, SUM(a.device_ns) AS ns,"
        " SUM(a.cost_uusd) AS cost FROM attempts a JOIN jobs j ON j.id = a.job GROUP BY j.suite) a"
        " ON a.suite = l.suite WHERE (l.n, l.ns, l.cost) IS DISTINCT FROM (a.n, a.ns, a.cost)",
        "SELECT 'job ' || o.job || ' has outcomes of an epoch that is not its own' FROM outcomes o"
        " JOIN jobs j ON j.id = o.job WHERE o.epoch <> j.epoch AND j.state IN (2, 3)",
        "SELECT 'outcome ' || MIN(id) || ' is there twice' FROM outcomes GROUP BY job, branch_id"
        " HAVING COUNT(*) > 1",
    };
    struct error error;
    bool holds = true;

    (void)server;
    for (size_t i = 0; i < COUNT_OF(queries) && holds; i++) {
        struct query query = query_begin_sql(place.admin, queries[i]);
        if (query_row(&query)) {
            query_column_text(&query, 0, why, why_bytes);
            holds = false;
        }
        if (query_end(&query, &error) != STATUS_OK) {
            snprintf(why, why_bytes, "%s", error.text);
            holds = false;
        }
    }
    return holds;
}

/* A second process opens the database, which it may, and goes again. */
void strangers_open(struct server *server)
{
    const struct fleet *fleet = server->fleet;
    struct store *peer = NULL;
    struct error error;
    const struct store_config config = {.clock = &server->clock.clock,
                                        .lease_ttl_ms = fleet->model->ttl_ns / 1000000};

    if (rng_mix(fleet->options->seed + (uint64_t)fleet->sim.now_ns) % PEER_ONE_IN != 0 ||
        !model_bears_peer(fleet->model, sim_clock_now(&server->clock))) {
        return;
    }
    enum status status = postgres_store_open_stepped(place.url, &config, &peer, &error);
    server->fleet->intrusions++;
    if (status != STATUS_OK) {
        sim_violation(&server->fleet->sim, "a peer cannot open the database: %s", error.text);
        return;
    }
    peer->ops->close(peer);
}

/* There is no file that somebody could move away. */
void strangers_take(struct server *server)
{
    (void)server;
}
