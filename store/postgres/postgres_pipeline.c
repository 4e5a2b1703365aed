/*
 * Pipelines. See postgres_pipeline.h.
 */
#include "store/postgres/postgres_pipeline.h"

#include <libpq-fe.h>
#include <stddef.h>

bool postgres_pipeline_send(PGconn *connection, int *pending, const struct postgres_send *send)
{
    if (*pending == 0 && PQenterPipelineMode(connection) != 1) {
        return false;
    }
    int sent = send->name != NULL
                   ? PQsendQueryPrepared(connection, send->name, send->parameters, send->values,
                                         send->lengths, send->formats, 1)
                   : PQsendQueryParams(connection, send->text, 0, NULL, NULL, NULL, NULL, 1);
    *pending += sent == 1 ? 1 : 0;
    if (*pending == 0) {
        (void)PQexitPipelineMode(connection);
    }
    return sent == 1;
}

static bool good(const PGresult *result)
{
    ExecStatusType code = PQresultStatus(result);
    return code == PGRES_COMMAND_OK || code == PGRES_TUPLES_OK;
}

PGresult *postgres_pipeline_end(PGconn *connection, int *pending, bool *undone)
{
    PGresult *kept = NULL;
    bool bad = false;

    *undone = false;
    if (*pending == 0 || PQpipelineSync(connection) != 1) {
        *undone = *pending > 0;
        *pending = 0;
        return NULL;
    }
    for (; *pending > 0 && PQstatus(connection) == CONNECTION_OK; --*pending) {
        PGresult *result = PQgetResult(connection);
        PGresult *end = result != NULL ? PQgetResult(connection) : NULL; /* NULL ends each answer */
        PQclear(end);
        if (bad) {
            PQclear(result);
            continue;
        }
        PQclear(kept);
        kept = result;
        bad = !good(result);
        *undone = bad && *pending > 1;
    }
    *undone |= *pending > 0;
    *pending = 0;
    PQclear(PQgetResult(connection)); /* of the end itself */
    (void)PQexitPipelineMode(connection);
    return kept;
}
