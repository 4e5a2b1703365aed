/*
 * Calls of a store by number. See calls.h.
 */
#include "store/api/calls.h"

/* Members of the table that are no calls: name, close, call, and three that tell no status. */
_Static_assert(sizeof(struct store_ops) == (STORE_CALL_COUNT + 6) * sizeof(void (*)(void)),
               "every function of a store has its row");

/* ---- from a function to its number ---- */

#define TAKES(type, name) , type name
#define GIVES(type, name) name,
#define RELAY_ROUTED(function, kind, method, path, roles, lane, body, handler, ...) \
    RELAY_PLAIN(function, kind, __VA_ARGS__)
#define RELAY_PLAIN(function, kind, ...)                                                          \
    static enum status relay_##function(struct store *store STORE_PARAMETERS(TAKES, __VA_ARGS__), \
                                        struct error *error)                                      \
    {                                                                                             \
        const struct store_args_##function args = {STORE_PARAMETERS(GIVES, __VA_ARGS__)};         \
        return store->ops->call(store, STORE_CALL_##function, &args, error);                      \
    }
STORE_CALLS(RELAY_ROUTED, RELAY_PLAIN)

void store_calls_relay(struct store_ops *ops, unsigned mask, unsigned kind)
{
#define ADOPT(function, call_kind, ...)            \
    if ((STORE_KIND_##call_kind & mask) == kind) { \
        ops->function = relay_##function;          \
    }
    STORE_CALLS(ADOPT, ADOPT)
}

/* ---- and back ---- */

#define PASSES(type, name) , args->name
#define CALL_ROUTED(function, kind, method, path, roles, lane, body, handler, ...) \
    CALL_PLAIN(function, kind, __VA_ARGS__)
#define CALL_PLAIN(function, kind, ...)                                           \
    case STORE_CALL_##function: {                                                 \
        const struct store_args_##function *args = any_args;                      \
        return ops->function(store STORE_PARAMETERS(PASSES, __VA_ARGS__), error); \
    }

enum status store_call(const struct store_ops *ops, struct store *store, unsigned call,
                       const void *any_args, struct error *error)
{
    switch (call) {
        STORE_CALLS(CALL_ROUTED, CALL_PLAIN)
    default:
        return error_set(error, STATUS_USAGE, "no such call of a store: %u", call);
    }
}

bool store_call_known(const struct store_ops *ops, unsigned call)
{
#define KNOWN(function, ...)    \
    case STORE_CALL_##function: \
        return ops->function != NULL;
    switch (call) {
        STORE_CALLS(KNOWN, KNOWN)
    default:
        return false;
    }
}
