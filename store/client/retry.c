/*
 * Retrying client: repeats calls until they are answered. See retry.h.
 */
#include "store/client/retry.h"

#include "base/rng.h"
#include "base/units.h"
#include "store/api/calls.h"
#include "store/wire/http_wire.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BACKOFF_MS_MIN = 2, BACKOFF_MS_MAX = 250 };

struct retry {
    struct store store;
    struct store_ops ops; /* its */
    struct retry_source source;
    int64_t deadline_ms;
    atomic_uint_least64_t jitter;
};

static struct retry *retry_of(struct store *store)
{
    return (struct retry *)store;
}

static int64_t retry_now_ns(const struct retry *retry)
{
    return clock_now_ns(retry->source.pace != NULL ? retry->source.pace->clock : clock_system());
}

/* ---- repeating ---- */

struct retry_call {
    struct retry *retry;
    struct store *inner;
    enum status status; /* of the last try */
    struct error error;
    uint32_t tries;
    int64_t deadline_ns; /* from the first loss */
};

static void call_begin(struct retry_call *call, struct store *store)
{
    memset(call, 0, offsetof(struct retry_call, error));
    call->retry = retry_of(store);
    call->error.status = STATUS_OK;
    call->error.text[0] = '\0';
    call->tries = 0;
    call->deadline_ns = 0;
}

static bool unanswered(enum status status)
{
    return status == HTTP_LOST || status == HTTP_UNREACHED;
}

/* Full jitter below a doubling bound: a crowd that lost its owner does not come back in step. */
static void back_off(struct retry_call *call)
{
    uint32_t doublings = call->tries < 16 ? call->tries : 16;
    int64_t bound_ms = INT64_C(1) << doublings;
    bound_ms = bound_ms < BACKOFF_MS_MIN   ? BACKOFF_MS_MIN
               : bound_ms > BACKOFF_MS_MAX ? BACKOFF_MS_MAX
                                           : bound_ms;
    const struct retry_pace *pace = call->retry->source.pace;
    uint64_t draw = rng_mix(atomic_fetch_add(&call->retry->jitter, 1));
    int64_t wait_ns = (int64_t)(draw % (uint64_t)(bound_ms * NS_PER_MS));
    if (pace != NULL) {
        pace->pause(pace->context, wait_ns);
        return;
    }
    struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
    nanosleep(&wait, NULL);
}

static void give_up(struct retry_call *call)
{
    char who[LIMIT_SPEC_BYTES];
    char last[ERROR_TEXT_BYTES];
    memcpy(last, call->error.text, sizeof last);
    call->retry->source.describe(call->retry->source.context, who, sizeof who);
    call->status =
        error_set(&call->error, STATUS_TIMEOUT, "%.400s did not answer for %lld s: %.500s", who,
                  (long long)(call->retry->deadline_ms / 1000), last);
}

/* True: try (again) on call->inner. False: call->status is final. */
static bool call_next(struct retry_call *call)
{
    struct retry *retry = call->retry;
    bool lost = call->tries > 0;
    if (lost && !unanswered(call->status)) {
        return false;
    }
    for (;;) {
        if (lost) {
            int64_t now_ns = retry_now_ns(retry);
            if (call->deadline_ns == 0) {
                call->deadline_ns = now_ns + retry->deadline_ms * NS_PER_MS;
            }
            if (now_ns >= call->deadline_ns) {
                give_up(call);
                return false;
            }
            back_off(call);
        }
        call->tries++;
        call->status =
            retry->source.locate(retry->source.context, lost, &call->inner, &call->error);
        if (call->status == STATUS_OK) {
            return true;
        }
        if (!unanswered(call->status)) {
            return false;
        }
        lost = true;
    }
}

static enum status call_end(const struct retry_call *call, struct error *error)
{
    if (call->status != STATUS_OK && error != NULL) {
        *error = call->error;
        error->status = call->status;
    }
    return call->status;
}

/* ---- calls ---- */

/* Waits no longer in all than the first try would have, and not at all once told to stop. */
static int64_t wait_left_ms(const struct retry_call *call, int64_t wait_ms, int64_t end_ns)
{
    const atomic_bool *stop = call->retry->source.stop;
    int64_t left_ms = (end_ns - retry_now_ns(call->retry)) / NS_PER_MS;
    if (call->tries == 1) {
        return wait_ms;
    }
    return left_ms > 0 && (stop == NULL || !atomic_load(stop)) ? left_ms : 0;
}

static enum status claim_once(struct retry_call *call, const struct store_args_claim *args,
                              int64_t start_ns)
{
    struct store_args_claim left = *args;
    left.wait_ms = wait_left_ms(call, args->wait_ms, start_ns + args->wait_ms * NS_PER_MS);
    return store_call(call->inner->ops, call->inner, STORE_CALL_claim, &left, &call->error);
}

static enum status repeat_call(struct store *store, unsigned number, const void *args,
                               struct error *error)
{
    struct retry_call call;
    int64_t start_ns = number == STORE_CALL_claim ? retry_now_ns(retry_of(store)) : 0;
    call_begin(&call, store);
    while (call_next(&call)) {
        call.status = number == STORE_CALL_claim
                          ? claim_once(&call, args, start_ns)
                          : store_call(call.inner->ops, call.inner, number, args, &call.error);
    }
    return call_end(&call, error);
}

/* ---- life ---- */

static void retry_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    struct retry *retry = retry_of(store);
    retry->source.close(retry->source.context);
    free(retry);
}

enum status retry_create(const struct retry_source *source, int64_t deadline_ms, struct store **out,
                         struct error *error)
{
    struct retry *retry = calloc(1, sizeof *retry);
    if (retry == NULL) {
        source->close(source->context);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a store");
    }
    retry->ops = (struct store_ops){.name = "shared", .close = retry_close, .call = repeat_call};
    store_calls_relay(&retry->ops, STORE_KIND_HERE, 0);
    retry->store.ops = &retry->ops;
    retry->source = *source;
    retry->deadline_ms = deadline_ms;
    atomic_init(&retry->jitter,
                source->pace != NULL
                    ? source->pace->seed
                    : rng_mix((uint64_t)clock_now_ns(clock_system()) ^ (uint64_t)getpid() << 40));
    *out = &retry->store;
    return STATUS_OK;
}
