/*
 * The workers' calls of the raw HTTP backend: heartbeats, claims, completions.
 *
 * What is more than a request may carry goes out in several.
 */
#include "schemas/job_json.h"
#include "schemas/json_record.h"
#include "store/client/http_call.h"
#include "store/client/http_client_internal.h"

enum { HEARTBEAT_MS_MAX = 5000 };

static enum status worker_check(const struct store_worker *worker, struct error *error)
{
    TRY(http_id_check("worker", worker->worker_id, LIMIT_ID_BYTES, error));
    TRY(http_id_check("pool", worker->pool, sizeof worker->pool, error));
    return http_id_check("device", worker->device, sizeof worker->device, error);
}

/* Record of the worker that goes with its calls; NULL when memory runs out. */
static json_t *worker_body(const struct store_worker *worker)
{
    return json_pack("{s:o, s:o}", "pool", json_text_new(worker->pool, sizeof worker->pool),
                     "device", json_text_new(worker->device, sizeof worker->device));
}

/* The answers to a heartbeat and to a claim: a time to live, a list of at most `max` records and,
 * unless `claim_id` is NULL, the id of the next claim. Consumes `root`; writes *ttl_ms and
 * *claim_id on success only. */
static enum status decode_beat(const struct http_path *path, json_t *root, const char *list_key,
                               const struct wire_codec *codec, void *out, uint32_t max,
                               uint32_t *count, int64_t *ttl_ms, int64_t *claim_id,
                               struct error *error)
{
    const char *const keys[] = {list_key, "ttl_ms", claim_id != NULL ? "next_claim_id" : NULL,
                                NULL};
    int64_t ttl = 0;
    int64_t next_id = 0;
    struct json_cursor cursor = json_cursor_root(path->text, root);
    struct json_cursor list = json_cursor_member(&cursor, list_key);
    enum status status = json_object_begin(&cursor, keys, error);
    THEN(status, json_member_integer(&cursor, "ttl_ms", true, 0, INT64_MAX, &ttl, error));
    if (claim_id != NULL) {
        THEN(status, json_member_integer(&cursor, "next_claim_id", true, *claim_id, INT64_MAX,
                                         &next_id, error));
    }
    THEN(status, wire_list_decode(codec, &list, out, max, count, error));
    json_decref(root);
    if (status == STATUS_OK) {
        *ttl_ms = ttl;
        if (claim_id != NULL) {
            *claim_id = next_id;
        }
    }
    return status;
}

enum status http_client_heartbeat(struct store *store, const struct store_worker *worker,
                                  const struct store_progress *progress, uint32_t count,
                                  int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                  struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    uint32_t found = 0;
    uint32_t listed = progress != NULL ? count : 0;
    TRY(worker_check(worker, error));
    http_path_make(&path, "/v1/workers/%s/heartbeat", worker->worker_id);
    json_t *body = worker_body(worker);
    if (body != NULL &&
        !json_put(body, "progress", wire_list_encode(&wire_progress, progress, listed))) {
        json_decref(body);
        body = NULL;
    }
    /* Better repeated than waited for: the lease runs meanwhile. */
    struct http_call call = {.method = "POST", .path = path.text, .limit_ms = HEARTBEAT_MS_MAX};
    TRY(http_exchange_json(http_client_of(store)->transport, &call, body, &root, error));
    TRY(decode_beat(&path, root, "cancelled", &wire_i64, cancelled, listed, &found, ttl_ms, NULL,
                    error));
    if (cancelled_count != NULL) {
        *cancelled_count = found;
    }
    return STATUS_OK;
}

/* The planners that it leaves alone; NULL when memory runs out. */
static json_t *without_list(const struct store_worker *worker)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < worker->without_count; i++) {
        const struct store_planner *one = &worker->without[i];
        if (json_array_append_new(
                list, wire_encode(one->in_world ? &wire_planner_in_world : &wire_planner, one)) !=
            0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Facts that a worker has to say only now and then: servers of earlier versions know neither. */
static bool put_host(json_t *body, const struct store_worker *worker)
{
    return (worker->host[0] == '\0' ||
            json_put(body, "host", json_text_new(worker->host, sizeof worker->host))) &&
           (worker->without_count == 0 || json_put(body, "without", without_list(worker)));
}

static json_t *claim_body(const struct store_worker *worker, uint32_t max, int64_t wait_ms,
                          int64_t claim_id)
{
    json_t *body = worker_body(worker);
    if (body == NULL || !put_host(body, worker) || !json_put(body, "max", json_integer(max)) ||
        !json_put(body, "wait_ms", json_integer(wait_ms)) ||
        !json_put(body, "claim_id", json_integer(claim_id))) {
        json_decref(body);
        return NULL;
    }
    return body;
}

enum status http_client_claim(struct store *store, const struct store_worker *worker,
                              int64_t *claim_id, uint32_t max, int64_t wait_ms,
                              struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                              struct error *error)
{
    struct http_client *client = http_client_of(store);
    struct http_path path;
    json_t *root = NULL;
    TRY(worker_check(worker, error));
    http_path_make(&path, "/v1/workers/%s/claim", worker->worker_id);
    if (wait_ms > HTTP_WAIT_MS_MAX) {
        wait_ms = HTTP_WAIT_MS_MAX; /* a caller that finds nothing asks again */
    }
    if (max > LIMIT_CLAIM_JOBS) {
        return error_set(error, STATUS_LIMIT, "a claim takes at most %d jobs, not %u",
                         LIMIT_CLAIM_JOBS, max);
    }
    struct http_call call = {
        .method = "POST",
        .path = path.text,
        .stop = wait_ms > 0 ? client->stop : NULL,
        .wait_ms = wait_ms > 0 ? wait_ms : 0,
    };
    json_t *body = claim_body(worker, max, call.wait_ms, *claim_id);
    TRY(http_exchange_json(client->transport, &call, body, &root, error));
    return decode_beat(&path, root, "leases", &wire_lease, leases, max, count, ttl_ms, claim_id,
                       error);
}

static json_t *completions_body(const struct job_completion *completions, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        if (json_array_append_new(list, job_completion_encode(&completions[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:o}", "completions", list);
}

/* Number of completions that fit into one request; at least one. */
static uint32_t completions_part(const struct job_completion *completions, uint32_t count)
{
    uint64_t outcomes = 0;
    uint32_t part = 0;
    while (part < count && part < HTTP_COMPLETIONS_MAX) {
        outcomes += completions[part].outcome_count;
        if (part > 0 && outcomes > HTTP_COMPLETION_OUTCOMES_MAX) {
            break;
        }
        part++;
    }
    return part;
}

enum status http_client_complete(struct store *store, const struct job_completion *completions,
                                 uint32_t count, struct store_completion_result *results,
                                 struct error *error)
{
    struct http_path path;
    http_path_make(&path, "/v1/completions");
    for (uint32_t done = 0; done < count;) {
        uint32_t part = completions_part(completions + done, count - done);
        json_t *root = NULL;
        uint32_t found = 0;
        TRY(http_ask(http_client_of(store)->transport, "POST", &path,
                     completions_body(completions + done, part), &root, error));
        TRY(http_take_list(path.text, root, "results", &wire_completion_result, results + done,
                           part, &found, error));
        if (found != part) {
            return error_set(error, STATUS_STORE, "%s: expected %u results, found %u", path.text,
                             part, found);
        }
        done += part;
    }
    return STATUS_OK;
}

enum status http_client_awaited(struct store *store, const struct store_worker *worker,
                                int64_t since_ms, struct store_awaited *out, struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    TRY(http_id_check("worker", worker->worker_id, LIMIT_ID_BYTES, error));
    http_path_make(&path, "/v1/workers/%s/awaited?since_ms=%lld", worker->worker_id,
                   (long long)since_ms);
    http_path_add(&path, "&pool=%s", worker->pool);
    TRY(http_ask(http_client_of(store)->transport, "GET", &path, NULL, &root, error));
    return http_take_record(path.text, root, &wire_awaited, out, error);
}
