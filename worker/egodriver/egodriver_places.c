/*
 * Names of policies and the addresses of their servers. See egodriver.h.
 */
#include "worker/egodriver/egodriver_internal.h"

#include "worker/grpc/grpc_socket.h"

#include <string.h>

bool egodriver_is_name(const char *text, size_t bytes)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return bytes > 0 && bytes < EGODRIVER_NAME_BYTES && strspn(text, allowed) >= bytes;
}

/* Takes the next address off a list; false: there is none. */
static bool next_address(const char **list, char address[GRPC_ADDRESS_BYTES])
{
    size_t bytes = strcspn(*list, ",");
    if (**list == '\0') {
        return false;
    }
    size_t kept = bytes < GRPC_ADDRESS_BYTES ? bytes : GRPC_ADDRESS_BYTES - 1;
    memcpy(address, *list, kept);
    address[kept] = '\0';
    *list += bytes + ((*list)[bytes] == ',');
    return true;
}

static enum status addresses_check(const char *binding, const char *list, bool allow_remote,
                                   struct error *error)
{
    char address[GRPC_ADDRESS_BYTES];
    uint32_t count = 0;
    while (next_address(&list, address)) {
        struct error why;
        if (++count > EGODRIVER_SERVERS_MAX) {
            return error_set(error, STATUS_USAGE, "--egodriver %s: more than %d addresses", binding,
                             EGODRIVER_SERVERS_MAX);
        }
        if (grpc_address_check(address, &why) != STATUS_OK) {
            return error_set(error, STATUS_USAGE, "--egodriver %s: %s", binding, why.text);
        }
        if (!allow_remote && !grpc_address_is_local(address)) {
            return error_set(
                error, STATUS_USAGE,
                "--egodriver %s: %s is another machine, and the connection has no TLS; "
                "--allow-remote allows it",
                binding, address);
        }
    }
    return count > 0 ? STATUS_OK
                     : error_set(error, STATUS_USAGE,
                                 "--egodriver %s: expected NAME=HOST:PORT[,HOST:PORT ..]", binding);
}

enum status egodriver_places_check(const struct egodriver_places *places, struct error *error)
{
    for (uint32_t i = 0; i < places->count; i++) {
        const char *binding = places->bindings[i];
        size_t name_bytes = strcspn(binding, "=");
        if (!egodriver_is_name(binding, name_bytes) || binding[name_bytes] == '\0') {
            return error_set(error, STATUS_USAGE,
                             "--egodriver %s: expected NAME=HOST:PORT[,HOST:PORT ..]; a name has "
                             "letters, digits, \".\", \"_\" and \"-\"",
                             binding);
        }
        TRY(addresses_check(binding, binding + name_bytes + 1, places->allow_remote, error));
        for (uint32_t j = 0; j < i; j++) {
            if (strncmp(places->bindings[j], binding, name_bytes + 1) == 0) {
                return error_set(error, STATUS_USAGE,
                                 "--egodriver %s: the name was given addresses before (%s)",
                                 binding, places->bindings[j]);
            }
        }
    }
    return STATUS_OK;
}

enum status egodriver_addresses(const struct egodriver_places *places, const char *name,
                                char addresses[EGODRIVER_SERVERS_MAX][GRPC_ADDRESS_BYTES],
                                uint32_t *count, struct error *error)
{
    size_t bytes = strlen(name);
    for (uint32_t i = 0; places != NULL && i < places->count; i++) {
        const char *binding = places->bindings[i];
        if (strncmp(binding, name, bytes) == 0 && binding[bytes] == '=') {
            const char *list = binding + bytes + 1;
            *count = 0;
            while (*count < EGODRIVER_SERVERS_MAX && next_address(&list, addresses[*count])) {
                (*count)++;
            }
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_NOT_FOUND,
                     "no server is known by the name %s here; expected --egodriver %s=HOST:PORT",
                     name, name);
}
