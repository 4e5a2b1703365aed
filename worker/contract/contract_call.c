/*
 * Calls that AlpaSim's contracts have alike. See contract_call.h.
 */
#include "worker/contract/contract_call.h"

#include "base/clock.h"
#include "base/units.h"

#include "schemas/proto/egodriver.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VERSION_MEMORY_BYTES = 1 << 20 };

/* ---- memory ---- */

static void *take(void *data, size_t bytes)
{
    struct contract_memory *memory = data;
    if (bytes > memory->left_bytes) {
        return NULL;
    }
    memory->left_bytes -= bytes;
    return malloc(bytes);
}

static void give(void *data, void *block)
{
    (void)data;
    free(block);
}

void contract_memory_init(struct contract_memory *out, size_t bytes)
{
    *out = (struct contract_memory){{take, give, out}, bytes};
}

/* ---- connecting ---- */

enum status contract_connect(const char *address, int64_t deadline_ms, bool patient,
                             const atomic_bool *abandoned, struct grpc_client **out,
                             struct error *error)
{
    enum { PAUSE_MS = 200 };
    int64_t end_ns = clock_monotonic_ns() + deadline_ms * NS_PER_MS;
    for (;;) {
        const struct timespec pause = {.tv_nsec = PAUSE_MS * NS_PER_MS};
        enum status status = grpc_open(address, deadline_ms, abandoned, out, error);
        if (status != STATUS_IO || !patient || clock_monotonic_ns() > end_ns) {
            return status;
        }
        if (abandoned != NULL && atomic_load(abandoned)) {
            return error_set(error, STATUS_CANCELLED, "%s: was given up", address);
        }
        nanosleep(&pause, NULL);
    }
}

static bool version_read(const uint8_t *data, size_t bytes, struct contract_version *out)
{
    struct contract_memory memory;
    contract_memory_init(&memory, VERSION_MEMORY_BYTES);
    Ego__Version *read = ego__version__unpack(&memory.allocator, bytes, data);
    if (read == NULL) {
        return false;
    }
    const Ego__ApiVersion *api = read->api;
    snprintf(out->line, sizeof out->line, "%s %s %u.%u.%u", read->version_id, read->git_hash,
             api != NULL ? api->major : 0, api != NULL ? api->minor : 0,
             api != NULL ? api->patch : 0);
    snprintf(out->version, sizeof out->version, "%s", read->version_id);
    ego__version__free_unpacked(read, &memory.allocator);
    return true;
}

enum status contract_ask_version(struct grpc_client *client, const char *method,
                                 int64_t deadline_ms, struct contract_version *out,
                                 struct error *error)
{
    struct grpc_call *call = NULL;
    size_t bytes = 0;
    const char *address = grpc_address(client);
    TRY(grpc_begin(client, method, "", 0, NULL, &call, error));
    TRY(grpc_wait(&client, 1, deadline_ms, error));
    if (grpc_call_code(call) != GRPC_OK) {
        return error_set(error, STATUS_PLANNER, "%s answers get_version with %s: %s", address,
                         grpc_call_code_name(call), grpc_call_sentence(call));
    }
    const uint8_t *reply = grpc_call_reply(call, &bytes);
    if (!version_read(reply, bytes, out)) {
        return error_set(error, STATUS_PLANNER, "%s: the answer to get_version is no VersionId",
                         address);
    }
    snprintf(out->revision, sizeof out->revision, "%s", grpc_call_revision(call));
    grpc_call_free(client, call);
    return STATUS_OK;
}
