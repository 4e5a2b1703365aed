/*
 * Pipelines. See postgres_pipeline.h.
 */
#include "store/postgres/postgres_pipeline.h"

#include "base/check.h"

#include <libpq-fe.h>
#include <string.h>

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

bool postgres_pipeline_wrote(const PGresult *result)
{
    const char *rows = PQcmdTuples((PGresult *)result);
    return rows[0] != '\0' && strcmp(rows, "0") != 0;
}

/* An answer, up to the NULL that ends it. */
static PGresult *take_answer(PGconn *connection)
{
    PGresult *result = PQgetResult(connection);
    PGresult *end = result != NULL ? PQgetResult(connection) : NULL;

    PQclear(end);
    return result;
}

PGresult *postgres_pipeline_end(PGconn *connection, int *pending, const char *const *awaits,
                                bool *undone, const char **missed)
{
    PGresult *kept = NULL;
    bool bad = false;

    *undone = false;
    *missed = NULL;
    if (*pending == 0 || PQpipelineSync(connection) != 1) {
        *undone = *pending > 0;
        *pending = 0;
        return NULL;
    }
    for (; *pending > 0 && PQstatus(connection) == CONNECTION_OK; --*pending, awaits++) {
        PGresult *result = take_answer(connection);
        if (bad) {
            PQclear(result);
            continue;
        }
        PQclear(kept);
        kept = result;
        bad = !good(result);
        if (!bad && *awaits != NULL && !postgres_pipeline_wrote(result)) {
            *missed = *awaits;
            bad = true;
        }
        *undone = bad && *pending > 1;
    }
    *undone |= *pending > 0;
    *pending = 0;
    PQclear(PQgetResult(connection)); /* of the end itself */
    (void)PQexitPipelineMode(connection);
    return kept;
}

void postgres_pipeline_commit(PGconn *connection, PGresult **commit, PGresult **synced)
{
    static const char *const texts[] = {"COMMIT",
                                        "SELECT pg_logical_emit_message(true, 'swerve', '')"};
    bool sent = PQenterPipelineMode(connection) == 1;

    *commit = *synced = NULL;
    for (size_t i = 0; i < COUNT_OF(texts) && sent; i++) {
        sent = PQsendQueryParams(connection, texts[i], 0, NULL, NULL, NULL, NULL, 0) == 1;
    }
    if (sent && PQpipelineSync(connection) == 1) {
        *commit = take_answer(connection);
        *synced = take_answer(connection);
        PQclear(PQgetResult(connection)); /* of the end itself */
    }
    (void)PQexitPipelineMode(connection);
}
