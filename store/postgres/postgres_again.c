/*
 * Reads of a store in PostgreSQL, asked again where their connection was lost. See
 * postgres_again.h.
 *
 * A read is one transaction and sees one moment, so one that broke off half-way begins anew; what
 * it had written so far into its caller's arrays is undefined after a failure, and is written over.
 * Those of a server's readers are not repeated: who asks over HTTP asks again, and one that a
 * closing server interrupts must end. Writers repeat theirs by operations (sql_store_run).
 */
#include "store/postgres/postgres_again.h"

#include "base/clock.h"
#include "base/units.h"
#include "store/api/calls.h"
#include "store/sql/sql_store.h"

/* Whether the caller's lane waits, and the database may be back before `until_ns`. */
static bool comes_back(struct store *base, int64_t until_ns)
{
    const struct sql_backend *backend = (const struct sql_backend *)base;
    return backend->lane == SQL_LANE_WORK && sql_store_await(backend->owner, until_ns);
}

/* Returns what the call of the plain table returns, repeated while the database is away. */
static enum status ask_again(struct store *base, unsigned call, const void *args,
                             struct error *error)
{
    const struct store_ops *ops = sql_store_of(base)->plain;
    int64_t until_ns = clock_now_ns(clock_system()) + SQL_STORE_AWAY_MS_MAX * NS_PER_MS;
    enum status status = store_call(ops, base, call, args, error);
    while (status == STATUS_BUSY && comes_back(base, until_ns)) {
        status = store_call(ops, base, call, args, error);
    }
    return status;
}

void postgres_again_adapt(struct store_ops *ops)
{
    ops->call = ask_again;
    store_calls_relay(ops, STORE_KIND_ASK, STORE_KIND_ASK);
}
