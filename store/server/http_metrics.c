/*
 * Counting and the text of /metrics. See http_metrics.h.
 */
#include "store/server/http_metrics.h"

#include "base/check.h"
#include "base/units.h"
#include "store/server/http_routes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORE_TEXT_S_MIN = 10, STORE_TEXT_FACTOR = 100 };

/* Codes that the server answers with; the last entry stands for any other. */
static const int codes[HTTP_METRICS_CODES] = {200, 400, 401, 403, 404, 405, 408, 409, 411,
                                              413, 415, 429, 431, 500, 503, 504, 0};

static const int64_t bounds_ns[HTTP_METRICS_BUCKETS - 1] = {
    500000,       2 * NS_PER_MS, 5 * NS_PER_MS, 20 * NS_PER_MS, 100 * NS_PER_MS,
    NS_PER_S / 2, 2 * NS_PER_S,  10 * NS_PER_S, 60 * NS_PER_S};

void http_metrics_init(struct http_metrics *metrics)
{
    memset(metrics, 0, sizeof *metrics);
    pthread_mutex_init(&metrics->mutex, NULL);
}

void http_metrics_finish(struct http_metrics *metrics)
{
    pthread_mutex_destroy(&metrics->mutex);
    free(metrics->store_text);
}

void http_metrics_count(struct http_metrics *metrics, size_t route, int code)
{
    size_t index = 0;
    route = route < HTTP_METRICS_ROUTES_MAX ? route : HTTP_METRICS_ROUTES_MAX;
    while (index < HTTP_METRICS_CODES - 1 && codes[index] != code) {
        index++;
    }
    atomic_fetch_add(&metrics->routes[route].codes[index], 1);
}

void http_metrics_time(struct http_metrics *metrics, size_t route, int64_t ns)
{
    size_t bucket = 0;
    route = route < HTTP_METRICS_ROUTES_MAX ? route : HTTP_METRICS_ROUTES_MAX;
    while (bucket < HTTP_METRICS_BUCKETS - 1 && ns > bounds_ns[bucket]) {
        bucket++;
    }
    atomic_fetch_add(&metrics->routes[route].buckets[bucket], 1);
    atomic_fetch_add(&metrics->routes[route].ns, (uint_least64_t)ns);
}

/* ---- text ---- */

/* Grows; `failed` once memory has run out. */
struct text {
    char *data;
    size_t bytes;
    size_t capacity;
    bool failed;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    va_list args;
    for (;;) {
        size_t room = text->capacity - text->bytes;
        va_start(args, format);
        int need = vsnprintf(text->data + text->bytes, room, format, args);
        va_end(args);
        if (text->failed || (size_t)need < room) {
            text->bytes += text->failed ? 0 : (size_t)need;
            return;
        }
        size_t capacity = 2 * text->capacity + (size_t)need + 1;
        char *grown = realloc(text->data, capacity);
        if (grown == NULL) {
            text->failed = true;
            return;
        }
        text->data = grown;
        text->capacity = capacity;
    }
}

static bool begin(struct text *text)
{
    *text = (struct text){.data = malloc(1 << 14), .capacity = 1 << 14};
    if (text->data != NULL) {
        text->data[0] = '\0';
    }
    return text->data != NULL;
}

static void family(struct text *text, const char *name, const char *type, const char *help)
{
    add(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: backslash, quote and line feed are escaped. */
static const char *label(const char *value, char out[2 * LIMIT_ID_BYTES])
{
    size_t used = 0;
    for (; *value != '\0' && used + 3 < 2 * LIMIT_ID_BYTES; value++) {
        if (*value == '\\' || *value == '"' || *value == '\n') {
            out[used++] = '\\';
        }
        out[used++] = (char)(*value == '\n' ? 'n' : *value);
    }
    out[used] = '\0';
    return out;
}

static void add_requests(struct text *text, struct http_metrics *metrics)
{
    family(text, "swerve_http_requests_total", "counter", "Requests answered by this listener.");
    for (size_t i = 0; i <= HTTP_METRICS_ROUTES_MAX; i++) {
        for (size_t j = 0; j < HTTP_METRICS_CODES; j++) {
            unsigned long long count = atomic_load(&metrics->routes[i].codes[j]);
            char code[16] = "other";
            if (codes[j] != 0) {
                snprintf(code, sizeof code, "%d", codes[j]);
            }
            if (count > 0) {
                add(text,
                    "swerve_http_requests_total{method=\"%s\",route=\"%s\",code=\"%s\"} %llu\n",
                    http_route_method(i), http_route_pattern(i), code, count);
            }
        }
    }
    family(text, "swerve_http_request_seconds", "histogram",
           "From a request's first line to its answer's last byte; claims wait for jobs.");
    for (size_t i = 0; i <= HTTP_METRICS_ROUTES_MAX; i++) {
        const char *method = http_route_method(i);
        const char *pattern = http_route_pattern(i);
        unsigned long long sum = 0;
        for (size_t j = 0; j < HTTP_METRICS_BUCKETS; j++) {
            sum += atomic_load(&metrics->routes[i].buckets[j]);
        }
        if (sum == 0) {
            continue;
        }
        sum = 0;
        for (size_t j = 0; j < HTTP_METRICS_BUCKETS; j++) {
            char bound[32] = "+Inf";
            sum += atomic_load(&metrics->routes[i].buckets[j]);
            if (j < HTTP_METRICS_BUCKETS - 1) {
                snprintf(bound, sizeof bound, "%g", (double)bounds_ns[j] / NS_PER_S);
            }
            add(text,
                "swerve_http_request_seconds_bucket{method=\"%s\",route=\"%s\",le=\"%s\"} %llu\n",
                method, pattern, bound, sum);
        }
        add(text,
            "swerve_http_request_seconds_sum{method=\"%s\",route=\"%s\"} %.9g\n"
            "swerve_http_request_seconds_count{method=\"%s\",route=\"%s\"} %llu\n",
            method, pattern, (double)atomic_load(&metrics->routes[i].ns) / NS_PER_S, method,
            pattern, sum);
    }
}

static void add_server(struct text *text, struct http_connections *connections,
                       const struct http_budget *budget)
{
    static const char *const phases[HTTP_PHASE_COUNT] = {"idle", "receiving", "handling",
                                                         "replying"};
    size_t counts[HTTP_PHASE_COUNT];
    http_connections_count(connections, counts);
    family(text, "swerve_http_connections", "gauge", "Open connections by what they are doing.");
    for (size_t i = 0; i < HTTP_PHASE_COUNT; i++) {
        add(text, "swerve_http_connections{phase=\"%s\"} %zu\n", phases[i], counts[i]);
    }
    family(text, "swerve_http_buffered_bytes", "gauge", "Bodies and replies in memory.");
    add(text, "swerve_http_buffered_bytes %zu\n", atomic_load(&budget->bytes));
    family(text, "swerve_http_uploads", "gauge", "Artifacts on their way in.");
    add(text, "swerve_http_uploads %zu\n", atomic_load(&budget->uploads));
    family(text, "swerve_http_downloads", "gauge", "Artifacts on their way out.");
    add(text, "swerve_http_downloads %zu\n", atomic_load(&budget->downloads));
}

/* ---- the store's part ---- */

static void add_jobs(struct text *text, const struct store_stats *stats)
{
    family(text, "swerve_store_jobs", "gauge",
           "Jobs by pool and state; leased is what workers have.");
    for (uint32_t i = 0; i < stats->pool_count; i++) {
        char pool[2 * LIMIT_ID_BYTES];
        for (int state = 0; state < JOB_STATE_COUNT; state++) {
            add(text, "swerve_store_jobs{pool=\"%s\",state=\"%s\"} %lld\n",
                label(stats->pools[i].pool, pool), job_state_names[state],
                (long long)stats->pools[i].jobs[state]);
        }
    }
    family(text, "swerve_store_jobs_handed_back_total", "counter",
           "Times that a job made way for one of a higher class.");
    for (uint32_t i = 0; i < stats->pool_count; i++) {
        char pool[2 * LIMIT_ID_BYTES];
        add(text, "swerve_store_jobs_handed_back_total{pool=\"%s\"} %lld\n",
            label(stats->pools[i].pool, pool), (long long)stats->pools[i].handed_back);
    }
    family(text, "swerve_store_workers", "gauge", "Workers with a live lease.");
    add(text, "swerve_store_workers %lld\n", (long long)stats->workers_alive);
}

static void add_commits(struct text *text, const struct store_stats *stats)
{
    long long sum = 0;
    family(text, "swerve_store_group_operations", "histogram",
           "Operations that shared one commit.");
    for (size_t i = 0; i < STORE_STATS_BUCKETS; i++) {
        char bound[32] = "+Inf";
        sum += (long long)stats->group_buckets[i];
        if (i < STORE_STATS_BUCKETS - 1) {
            snprintf(bound, sizeof bound, "%u", store_stats_group_bounds[i]);
        }
        add(text, "swerve_store_group_operations_bucket{le=\"%s\"} %lld\n", bound, sum);
    }
    add(text, "swerve_store_group_operations_sum %lld\nswerve_store_group_operations_count %lld\n",
        (long long)stats->operations, sum);
    family(text, "swerve_store_operations_waiting", "gauge",
           "Operations that no commit has taken up yet.");
    add(text, "swerve_store_operations_waiting %lld\n", (long long)stats->waiting);
    sum = 0;
    family(text, "swerve_store_commit_seconds", "histogram",
           "COMMIT of the writer, which waits for the disk (fsync).");
    for (size_t i = 0; i < STORE_STATS_BUCKETS; i++) {
        char bound[32] = "+Inf";
        sum += (long long)stats->commit_buckets[i];
        if (i < STORE_STATS_BUCKETS - 1) {
            snprintf(bound, sizeof bound, "%g", (double)store_stats_commit_bounds_ns[i] / NS_PER_S);
        }
        add(text, "swerve_store_commit_seconds_bucket{le=\"%s\"} %lld\n", bound, sum);
    }
    add(text, "swerve_store_commit_seconds_sum %.9g\nswerve_store_commit_seconds_count %lld\n",
        (double)stats->commit_ns / NS_PER_S, sum);
}

/* One counter of the ledger, a sample per row. */
static void add_ledger_counter(struct text *text, const char *name, const char *help,
                               const struct store_ledger_row *rows, uint32_t count, size_t offset,
                               double scale)
{
    family(text, name, "counter", help);
    for (uint32_t i = 0; i < count; i++) {
        char pool[2 * LIMIT_ID_BYTES];
        char device[2 * LIMIT_ID_BYTES];
        int64_t value;
        memcpy(&value, (const char *)&rows[i].totals + offset, sizeof value);
        add(text, "%s{pool=\"%s\",device=\"%s\",tier=\"%s\",audit=\"%s\",end=\"%s\"} %.15g\n", name,
            label(rows[i].pool, pool), label(rows[i].device, device), tier_names[rows[i].tier],
            rows[i].shadow  ? "shadow"
            : rows[i].audit ? "true"
                            : "false",
            rows[i].end, (double)value * scale);
    }
}

static void add_ledger(struct text *text, const struct store_ledger_row *rows, uint32_t count)
{
    int64_t accepted = 0;
    int64_t stale = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_stale = strcmp(rows[i].end, "stale") == 0;
        bool is_lost = strcmp(rows[i].end, "lost") == 0; /* ended without a completion */
        stale += is_stale ? rows[i].totals.attempts : 0;
        accepted += is_stale || is_lost ? 0 : rows[i].totals.attempts;
    }
    family(text, "swerve_store_completions_total", "counter",
           "Completions that counted, and those of attempts that were fenced off.");
    add(text,
        "swerve_store_completions_total{result=\"accepted\"} %lld\n"
        "swerve_store_completions_total{result=\"stale\"} %lld\n",
        (long long)accepted, (long long)stale);
    add_ledger_counter(text, "swerve_ledger_attempts_total", "Attempts by how they ended.", rows,
                       count, offsetof(struct ledger_totals, attempts), 1.0);
    add_ledger_counter(text, "swerve_ledger_device_seconds_total", "Device time of attempts.", rows,
                       count, offsetof(struct ledger_totals, device_ns), 1e-9);
    add_ledger_counter(text, "swerve_ledger_metres_total", "Metres driven in attempts.", rows,
                       count, offsetof(struct ledger_totals, metres_mm), 1e-3);
    add_ledger_counter(text, "swerve_ledger_flop_total",
                       "Floating-point operations of world models.", rows, count,
                       offsetof(struct ledger_totals, mflop), 1e6);
    add_ledger_counter(text, "swerve_ledger_cost_usd_total", "What attempts cost.", rows, count,
                       offsetof(struct ledger_totals, cost_uusd), 1e-6);
}

static void add_pages(struct text *text, const struct store_stats *stats)
{
    family(text, "swerve_world_pages_free_min_ratio", "gauge",
           "Share of frame pages that was free at the fullest, over the newest rollouts of worlds "
           "that have pages.");
    for (uint32_t i = 0; i < stats->pages_count; i++) {
        char pool[2 * LIMIT_ID_BYTES];
        add(text, "swerve_world_pages_free_min_ratio{pool=\"%s\",tier=\"%s\"} %.15g\n",
            label(stats->pages[i].pool, pool), tier_names[stats->pages[i].tier],
            (double)(100 - stats->pages[i].used_percent) / 100.0);
    }
}

/* One gauge of the tenants, a sample for each. */
static void add_tenant_gauge(struct text *text, const char *name, const char *help,
                             const struct tenant *tenants, uint32_t count, size_t offset,
                             double scale)
{
    family(text, name, "gauge", help);
    for (uint32_t i = 0; i < count; i++) {
        char tenant[2 * LIMIT_ID_BYTES];
        int64_t value;
        memcpy(&value, (const char *)&tenants[i] + offset, sizeof value);
        add(text, "%s{tenant=\"%s\"} %.15g\n", name, label(tenants[i].name, tenant),
            (double)value * scale);
    }
}

static enum status add_tenants(struct store *store, struct text *text, struct error *error)
{
    uint32_t count = 0;
    struct tenant *tenants = calloc(HTTP_METRICS_TENANTS_MAX, sizeof *tenants);
    enum status status = memory_check(tenants, error, "out of memory for metrics");
    THEN(status, store->ops->tenants(store, "", tenants, HTTP_METRICS_TENANTS_MAX, &count, error));
    if (status == STATUS_OK && count > 0) {
        add_tenant_gauge(text, "swerve_tenant_weight", "Share beside other tenants with work.",
                         tenants, count, offsetof(struct tenant, weight), 1.0);
        add_tenant_gauge(text, "swerve_tenant_jobs_queued", "Jobs of its suites that wait.",
                         tenants, count, offsetof(struct tenant, jobs_queued), 1.0);
        add_tenant_gauge(text, "swerve_tenant_jobs_leased", "Jobs of its suites with a worker.",
                         tenants, count, offsetof(struct tenant, jobs_leased), 1.0);
        add_tenant_gauge(text, "swerve_tenant_units_leased",
                         "Device time of these, in rollouts of the object world.", tenants, count,
                         offsetof(struct tenant, units_leased), 1.0);
        add_tenant_gauge(text, "swerve_tenant_scenario_bytes", "Of scenarios that it has brought.",
                         tenants, count, offsetof(struct tenant, scenario_bytes), 1.0);
        add_tenant_gauge(text, "swerve_tenant_day_usd", "Booked on this day (UTC).", tenants, count,
                         offsetof(struct tenant, uusd_day), 1e-6);
        add_tenant_gauge(text, "swerve_tenant_month_usd", "Booked in this month (UTC).", tenants,
                         count, offsetof(struct tenant, uusd_month), 1e-6);
    }
    free(tenants);
    return status;
}

/* Figures of the store now; stores behind a connection of their own say nothing. */
static enum status store_text(struct store *store, struct text *text, struct error *error)
{
    uint32_t count = 0;
    struct store_stats *stats = malloc(sizeof *stats);
    struct store_ledger_row *rows = calloc(HTTP_METRICS_LEDGER_MAX, sizeof *rows);
    enum status status = STATUS_OK;
    if (stats == NULL || rows == NULL || !begin(text)) {
        free(stats);
        free(rows);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for metrics");
    }
    if (store->ops->stats != NULL) {
        status = store->ops->stats(store, stats, error);
        THEN(status, store->ops->ledger(store, NULL, rows, HTTP_METRICS_LEDGER_MAX, &count, error));
        if (status == STATUS_OK) {
            add_jobs(text, stats);
            add_commits(text, stats);
            add_ledger(text, rows, count);
            add_pages(text, stats);
        }
    }
    if (status == STATUS_OK && store->ops->tenants != NULL) {
        status = add_tenants(store, text, error);
    }
    free(stats);
    free(rows);
    if (status == STATUS_OK && text->failed) {
        status = error_set(error, STATUS_NO_MEMORY, "out of memory for metrics");
    }
    if (status != STATUS_OK) {
        free(text->data);
    }
    return status;
}

/* One gauge of the pairs of models that were asked the same: over all slices, and never mixed. */
static void add_agreement_gauge(struct text *text, const json_t *rows, const char *name,
                                const char *help, bool agreeing)
{
    static const char *const names[] = {"student", "sampler", "teacher", "teacher_sampler"};
    const json_t *row;
    size_t i;
    family(text, name, "gauge", help);
    json_array_foreach (rows, i, row) {
        const json_t *verdict = json_object_get(json_object_get(row, "agree"), "verdict");
        if (json_object_size(json_object_get(row, "slice")) > 0) {
            continue;
        }
        add(text, "%s{shadow=\"%s\"", name,
            json_is_true(json_object_get(row, "shadow")) ? "true" : "false");
        for (size_t k = 0; k < COUNT_OF(names); k++) {
            const char *value = json_string_value(json_object_get(row, names[k]));
            char cut[LIMIT_ID_BYTES];
            char escaped[2 * LIMIT_ID_BYTES];
            /* Hashes are told apart by 12 digits everywhere. */
            snprintf(cut, sizeof cut, "%.*s", k % 2 == 0 ? 12 : LIMIT_ID_BYTES - 1,
                     value != NULL ? value : "");
            add(text, ",%s=\"%s\"", names[k], label(cut, escaped));
        }
        add(text, "} %lld\n",
            (long long)json_integer_value(json_object_get(agreeing ? verdict : row, "pairs")));
    }
}

/* Freezes of the store, whatever a policy says now. */
static void add_freezes(struct text *text, const json_t *freezes)
{
    const json_t *freeze;
    size_t i;
    int64_t holding = 0;
    int64_t moved = 0;
    int64_t in_flight = 0;
    json_array_foreach (freezes, i, freeze) {
        holding += json_object_get(freeze, "thawed_by") == NULL;
        moved += json_integer_value(json_object_get(freeze, "jobs_moved"));
        in_flight += json_integer_value(json_object_get(freeze, "jobs_in_flight"));
    }
    family(text, "swerve_trust_freezes_holding", "gauge", "Freezes of the store that hold.");
    add(text, "swerve_trust_freezes_holding %lld\n", (long long)holding);
    family(text, "swerve_trust_jobs_moved", "gauge", "Jobs that freezes gave to the teacher.");
    add(text, "swerve_trust_jobs_moved %lld\n", (long long)moved);
    family(text, "swerve_trust_jobs_in_flight", "gauge",
           "Jobs that were the student's on their way when a freeze came.");
    add(text, "swerve_trust_jobs_in_flight %lld\n", (long long)in_flight);
}

static void add_agreement(struct text *text, const json_t *agreement)
{
    const json_t *rows = json_object_get(agreement, "rows");
    if (agreement != NULL) {
        add_agreement_gauge(text, rows, "swerve_agreement_pairs",
                            "Rollouts with a verdict of both models.", false);
        add_agreement_gauge(text, rows, "swerve_agreement_same_verdict",
                            "Of these, rollouts on which they agree.", true);
        family(text, "swerve_agreement_slices_frozen", "gauge", "Slices frozen to the teacher.");
        add(text, "swerve_agreement_slices_frozen %lld\n",
            (long long)json_integer_value(json_object_get(agreement, "frozen")));
        add_freezes(text, json_object_get(agreement, "freezes"));
    }
}

/* Sessions that are relayed: their workers, and what passes. */
static void add_relay(struct text *text, const json_t *relay)
{
    static const struct {
        const char *member, *name, *type, *help;
    } totals[] = {
        {"begun", "swerve_relay_sessions_total", "counter", "Sessions that began."},
        {"refused", "swerve_relay_refused_total", "counter",
         "Sessions that had no place, or one more than the tenant may have."},
        {"attached", "swerve_relay_workers_total", "counter", "Workers that attached."},
        {"gone", "swerve_relay_workers_gone_total", "counter", "Of these, workers that left."},
        {"moved", "swerve_relay_moved_total", "counter",
         "Sessions that another worker took up when theirs had gone."},
        {"ended", "swerve_relay_ended_total", "counter", "Sessions that ended with their worker."},
    };
    static const struct {
        const char *member, *name, *type, *help;
    } own[] = {
        {"places", "swerve_relay_places", "gauge", "Sessions that a worker may have."},
        {"taken", "swerve_relay_taken", "gauge", "Sessions that it has."},
        {"room", "swerve_relay_room", "gauge", "Sessions that it has time for in all."},
        {"messages", "swerve_relay_messages_total", "counter", "Messages of clients to it."},
        {"answers", "swerve_relay_answers_total", "counter", "Texts of it to clients."},
        {"frames", "swerve_relay_frames_total", "counter", "Frames of it to clients."},
        {"bytes", "swerve_relay_bytes_total", "counter", "Bytes of all of these."},
    };
    const json_t *worker;
    size_t index;
    if (relay == NULL) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        family(text, totals[i].name, totals[i].type, totals[i].help);
        add(text, "%s %lld\n", totals[i].name,
            (long long)json_integer_value(json_object_get(relay, totals[i].member)));
    }
    family(text, "swerve_relay_gap_seconds_total", "counter",
           "What sessions that moved were without a worker.");
    add(text, "swerve_relay_gap_seconds_total %.3f\n",
        json_real_value(json_object_get(relay, "gap_s")));
    add(text, "%s", json_string_value(json_object_get(relay, "ticks")));
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        family(text, own[i].name, own[i].type, own[i].help);
        json_array_foreach (json_object_get(relay, "workers"), index, worker) {
            const json_t *value = json_object_get(worker, own[i].member);
            char escaped[2 * LIMIT_ID_BYTES];
            if (value != NULL) { /* who has gone has no places */
                add(text, "%s{worker=\"%s\"} %lld\n", own[i].name,
                    label(json_string_value(json_object_get(worker, "worker")), escaped),
                    (long long)json_integer_value(value));
            }
        }
    }
}

/* With the mutex held: the cached text is there and not too old. */
static enum status refresh_store_text(struct http_metrics *metrics, struct store *store,
                                      struct error *error)
{
    struct text text;
    int64_t start_ns = clock_now_ns(clock_system());
    if (metrics->store_text != NULL && start_ns < metrics->store_text_until_ns) {
        return STATUS_OK;
    }
    TRY(store_text(store, &text, error));
    int64_t end_ns = clock_now_ns(clock_system());
    int64_t rest_ns = (end_ns - start_ns) * STORE_TEXT_FACTOR;
    free(metrics->store_text);
    metrics->store_text = text.data;
    metrics->store_text_until_ns =
        end_ns + (rest_ns > STORE_TEXT_S_MIN * NS_PER_S ? rest_ns : STORE_TEXT_S_MIN * NS_PER_S);
    return STATUS_OK;
}

enum status http_metrics_text(struct http_metrics *metrics, struct store *store,
                              struct http_connections *connections,
                              const struct http_budget *budget, const json_t *agreement,
                              const json_t *relay, char **out, size_t *bytes, struct error *error)
{
    struct text text;
    if (!begin(&text)) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for metrics");
    }
    add_requests(&text, metrics);
    add_server(&text, connections, budget);
    pthread_mutex_lock(&metrics->mutex);
    enum status status = refresh_store_text(metrics, store, error);
    if (status == STATUS_OK) {
        add(&text, "%s", metrics->store_text);
    }
    pthread_mutex_unlock(&metrics->mutex);
    add_agreement(&text, agreement);
    add_relay(&text, relay);
    if (status == STATUS_OK && text.failed) {
        status = error_set(error, STATUS_NO_MEMORY, "out of memory for metrics");
    }
    if (status != STATUS_OK) {
        free(text.data);
        return status;
    }
    *out = text.data;
    *bytes = text.bytes;
    return STATUS_OK;
}
