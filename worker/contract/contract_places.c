/*
 * Names of services and the addresses of their servers. See contract_places.h.
 */
#include "worker/contract/contract_places.h"

#include <stdio.h>
#include <string.h>

bool contract_is_name(const char *text, size_t bytes)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return bytes > 0 && bytes < CONTRACT_NAME_BYTES && strspn(text, allowed) >= bytes;
}

void contract_clip(const char *id, char out[LIMIT_ID_BYTES])
{
    static const char prefix[] = "clipgt-"; /* of AlpaSim's scenes, not of their files */
    id += strncmp(id, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
    snprintf(out, LIMIT_ID_BYTES, "%s", id);
    for (char *at = out; *at != '\0'; at++) {
        *at = *at == '/' ? '_' : *at;
    }
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

/* Form of further addresses of a name. */
static const char *more(const struct contract_kind *kind)
{
    return kind->servers_max > 1 ? "[,HOST:PORT ..]" : "";
}

static enum status addresses_check(const struct contract_kind *kind,
                                   const struct contract_places *places, const char *binding,
                                   const char *list, struct error *error)
{
    const char *option = kind->option;
    char address[GRPC_ADDRESS_BYTES];
    uint32_t count = 0;
    while (next_address(&list, address)) {
        struct error why;
        if (++count > kind->servers_max) {
            return error_set(error, STATUS_USAGE, "%s %s: more than %u addresses", option, binding,
                             kind->servers_max);
        }
        if (grpc_address_check(address, &why) != STATUS_OK) {
            return error_set(error, STATUS_USAGE, "%s %s: %s", option, binding, why.text);
        }
        if (!places->allow_remote && !grpc_address_is_local(address)) {
            return error_set(error, STATUS_USAGE,
                             "%s %s: %s is another machine, and the connection has no TLS; "
                             "--allow-remote allows it",
                             option, binding, address);
        }
    }
    return count > 0 ? STATUS_OK
                     : error_set(error, STATUS_USAGE, "%s %s: expected NAME=HOST:PORT%s", option,
                                 binding, more(kind));
}

enum status contract_places_check(const struct contract_kind *kind,
                                  const struct contract_places *places, struct error *error)
{
    for (uint32_t i = 0; i < places->count; i++) {
        const char *binding = places->bindings[i];
        size_t name_bytes = strcspn(binding, "=");
        if (!contract_is_name(binding, name_bytes) || binding[name_bytes] == '\0') {
            return error_set(error, STATUS_USAGE,
                             "%s %s: expected NAME=HOST:PORT%s; a name has "
                             "letters, digits, \".\", \"_\" and \"-\"",
                             kind->option, binding, more(kind));
        }
        TRY(addresses_check(kind, places, binding, binding + name_bytes + 1, error));
        for (uint32_t j = 0; j < i; j++) {
            if (strncmp(places->bindings[j], binding, name_bytes + 1) == 0) {
                return error_set(error, STATUS_USAGE,
                                 "%s %s: the name was given addresses before (%s)", kind->option,
                                 binding, places->bindings[j]);
            }
        }
    }
    return STATUS_OK;
}

enum status contract_addresses(const struct contract_kind *kind,
                               const struct contract_places *places, const char *name,
                               char addresses[CONTRACT_SERVERS_MAX][GRPC_ADDRESS_BYTES],
                               uint32_t *count, struct error *error)
{
    size_t bytes = strlen(name);
    for (uint32_t i = 0; places != NULL && i < places->count; i++) {
        const char *binding = places->bindings[i];
        if (strncmp(binding, name, bytes) == 0 && binding[bytes] == '=') {
            const char *list = binding + bytes + 1;
            *count = 0;
            while (*count < CONTRACT_SERVERS_MAX && next_address(&list, addresses[*count])) {
                (*count)++;
            }
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_NOT_FOUND,
                     "no server is known by the name %s here; expected %s %s=HOST:PORT", name,
                     kind->option, name);
}
