/*
 * Who holds a lock that was waited for in vain. See postgres_internal.h.
 *
 * Processes of the store are known by the name that they give themselves: theirs end, or the server
 * ends them (idle_in_transaction_session_timeout). Whose locks strangers hold is theirs to say, so
 * they are named.
 */
#include "store/postgres/postgres_internal.h"

#include <libpq-fe.h>
#include <stdio.h>

/* The store's advisory locks first (see postgres_transaction.c); of locks on rows PostgreSQL tells
 * only the table. */
static const char strangers[] =
    "SELECT 'process ' || a.pid || ' of the server (application \"' || left(a.application_name, 40)"
    " || '\", user ' || left(COALESCE(a.usename, '?'), 40) || ') holds ' || CASE l.locktype"
    " WHEN 'advisory' THEN 'the store''s advisory lock' ELSE 'locks of table ' || c.relname END"
    " FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
    " LEFT JOIN pg_class c ON c.oid = l.relation"
    " LEFT JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE l.granted AND l.pid <> pg_backend_pid() AND a.application_name NOT LIKE 'swerve%'"
    " AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())"
    " AND ((l.locktype = 'advisory' AND l.objsubid = 2"
    "  AND CAST(l.classid AS BIGINT) IN (1398232662, 1398232663)"
    "  AND CAST(l.objid AS BIGINT) = (CAST(hashtext(current_schema()) AS BIGINT) & 4294967295))"
    " OR (l.locktype = 'relation' AND n.nspname = current_schema()"
    "  AND l.mode <> 'AccessShareLock'))"
    " ORDER BY l.locktype, l.mode IN ('RowShareLock', 'RowExclusiveLock'), a.xact_start LIMIT 1";

bool postgres_locks_stranger(struct postgres_db *db, char who[256])
{
    PQclear(PQexec(db->connection, "ROLLBACK"));
    PGresult *result = PQexec(db->connection, strangers);
    bool found = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;

    snprintf(who, 256, "%s", found ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return found;
}
