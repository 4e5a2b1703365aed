/*
 * Handlers of sessions that are relayed (store/relay/relay.h): who becomes one of its WebSockets,
 * which workers are attached, and what a page draws before it begins. See http_handlers.h.
 */
#include "schemas/json_scan.h"
#include "store/relay/relay.h"
#include "store/server/http_handlers.h"
#include "store/server/tls.h"

#include <string.h>

static enum status check_relay(const struct http_exchange *exchange, struct error *error)
{
    return exchange->context->relay != NULL
               ? STATUS_OK
               : error_set(error, STATUS_NOT_FOUND,
                           "sessions: this server relays none (swerve serve --sessions N)");
}

static bool token_holds(void *guard, const char *token)
{
    return token_guard_holds(guard, token);
}

enum status http_start_relay(struct http_context *context, uint32_t sessions_tenant,
                             const struct logger *logger, struct error *error)
{
    const struct relay_options options = {
        .sessions_tenant = sessions_tenant,
        .holds = token_holds,
        .holder = context->guard,
        .receive = tls_receive,
        .send = tls_send,
        .logger = logger,
    };
    return sessions_tenant > 0 ? relay_create(&options, &context->relay, error) : STATUS_OK;
}

_Static_assert((int)RELAY_TOKEN_BYTES == (int)TOKEN_ID_BYTES, "the relay keeps ids of tokens");

static struct relay_guest guest_of(const struct http_exchange *exchange)
{
    const struct token *grant = exchange->request->grant;
    struct relay_guest guest = {.limited = grant != NULL};
    if (grant != NULL) {
        memcpy(guest.token, grant->id, sizeof guest.token);
        memcpy(guest.tenant, grant->tenant, sizeof guest.tenant);
    }
    return guest;
}

/* Whether who asks sees and drives at one tenant's workers alone; others look at all. */
static bool is_driver(const struct token *grant)
{
    return grant != NULL && grant->role == TOKEN_ROLE_DRIVER;
}

/* Sessions that the guest's tenant may have at once. */
static enum status find_quota(const struct http_exchange *exchange, struct relay_guest *guest,
                              struct error *error)
{
    struct store *store = exchange->store;
    int64_t most = 0;
    if (guest->tenant[0] != '\0' && store->ops->tenant_sessions != NULL) {
        TRY(store->ops->tenant_sessions(store, guest->tenant, &most, error));
    }
    guest->sessions_most = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
    return STATUS_OK;
}

/* Whoever asks becomes what `guest` says. */
static enum status upgrade(struct http_exchange *exchange, const struct relay_guest *guest,
                           struct error *error)
{
    TRY(relay_look(exchange->context->relay, guest, &exchange->code, error));
    exchange->guest = *guest;
    exchange->upgrades = true;
    return STATUS_OK;
}

enum status http_handle_sessions(struct http_exchange *exchange, struct error *error)
{
    const struct token *grant = exchange->request->grant;
    struct relay_guest guest = guest_of(exchange);
    TRY(check_relay(exchange, error));
    TRY(http_query_text(exchange, "worker", guest.worker, sizeof guest.worker, error));
    if (exchange->request->socket_key == NULL) {
        const char *tenant = is_driver(grant) ? grant->tenant : NULL;
        return http_reply_put(exchange, "workers", relay_list(exchange->context->relay, tenant))
                   ? STATUS_OK
                   : http_no_memory(error);
    }
    if (grant != NULL && !is_driver(grant) && grant->role != TOKEN_ROLE_ADMIN) {
        exchange->code = 403;
        return error_set(error, STATUS_STORE,
                         "the token of \"%s\" has the role %s, which may not begin a session",
                         grant->name, token_role_names[grant->role]);
    }
    TRY(find_quota(exchange, &guest, error));
    return upgrade(exchange, &guest, error);
}

enum status http_handle_sessions_worker(struct http_exchange *exchange, struct error *error)
{
    struct relay_guest guest = guest_of(exchange);
    guest.attaches = true;
    TRY(check_relay(exchange, error));
    if (exchange->request->socket_key == NULL) {
        exchange->code = 426;
        return error_set(error, STATUS_USAGE,
                         "expected the upgrade to a WebSocket of version 13, by which a worker "
                         "attaches");
    }
    return upgrade(exchange, &guest, error);
}

enum status http_handle_session_scenario(struct http_exchange *exchange, struct error *error)
{
    char id[LIMIT_ID_BYTES] = "";
    const struct relay_guest guest = guest_of(exchange);
    TRY(check_relay(exchange, error));
    TRY(http_query_text(exchange, "scenario", id, sizeof id, error));
    TRY(relay_ask(exchange->context->relay, &guest, id, &exchange->data, error));
    exchange->data_bytes = strlen(exchange->data);
    exchange->content = HTTP_CONTENT_JSON;
    return STATUS_OK;
}
