/*
 * Parts that both ends of the HTTP API share. See http_wire.h.
 */
#include "store/wire/http_wire.h"

#include "base/check.h"
#include "base/text.h"
#include "base/utf8.h"
#include "schemas/job_json.h"
#include "schemas/outcome_json.h"

#include <string.h>

/* ---- statuses ---- */

int http_code_of(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return 200;
    case STATUS_USAGE:
    case STATUS_BAD_INPUT:
        return 400;
    case STATUS_NOT_FOUND:
        return 404;
    case STATUS_CONFLICT:
    case STATUS_STALE:
    case STATUS_MISMATCH:
    case STATUS_CANCELLED:
        return 409;
    case STATUS_GONE:
        return 410;
    case STATUS_LIMIT:
        return 413;
    case STATUS_BUSY:
        return 503;
    case STATUS_TIMEOUT:
        return 504;
    default:
        return 500;
    }
}

json_t *http_error_encode(const struct error *error)
{
    return json_pack("{s:{s:s, s:o}}", "error", "status", status_name(error->status), "text",
                     json_text_new(error->text, sizeof error->text));
}

static enum status status_by_name(const char *name)
{
    for (int i = 1; i < STATUS_COUNT; i++) {
        if (strcmp(name, status_name((enum status)i)) == 0) {
            return (enum status)i;
        }
    }
    return STATUS_STORE;
}

enum status http_error_decode(const char *what, int code, const char *body, size_t bytes,
                              struct error *error)
{
    json_t *root = NULL;
    char name[LIMIT_ID_BYTES];
    char text[ERROR_TEXT_BYTES];
    enum status status = json_read_text(what, body, bytes, &root, NULL);
    if (status == STATUS_NO_MEMORY) {
        return error_set(error, status, "%s: out of memory for the answer", what);
    }
    if (status == STATUS_OK) {
        struct json_cursor cursor = json_cursor_root(what, root);
        struct json_cursor member = json_cursor_member(&cursor, "error");
        status = json_member_text(&member, "status", true, name, sizeof name, NULL);
        THEN(status, json_member_text(&member, "text", true, text, sizeof text, NULL));
        json_decref(root);
    }
    if (status == STATUS_OK) {
        return error_set(error, status_by_name(name), "%s", text);
    }
    return error_set(error, STATUS_STORE,
                     "%s: expected the store's answer, found HTTP code %d with another body "
                     "(is this a Swerve store?)",
                     what, code);
}

enum status http_id_check(const char *what, const char *id, size_t capacity, struct error *error)
{
    if (strnlen(id, capacity) == capacity) {
        return error_set(error, STATUS_LIMIT, "%s: expected at most %zu bytes", what, capacity - 1);
    }
    if (!utf8_valid(id)) {
        return error_set(error, STATUS_BAD_INPUT, "%s: expected UTF-8, found other bytes", what);
    }
    return STATUS_OK;
}

size_t http_document_bytes(const char *text, size_t bytes)
{
    /* jansson's, measured: an object or array, and a member or element with its value and key. */
    enum { CONTAINER_BYTES = 320, VALUE_BYTES = 160 };
    size_t containers = 0;
    size_t commas = 0;
    for (size_t i = 0; i < bytes; i++) {
        containers += text[i] == '{' || text[i] == '[';
        commas += text[i] == ',';
    }
    return bytes + containers * (CONTAINER_BYTES + VALUE_BYTES) + commas * VALUE_BYTES;
}

/* ---- percent-coding ---- */

static bool unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

bool http_percent_encode(const char *text, char *out, size_t capacity)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = strlen(out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        size_t need = unreserved(c) ? 1 : 3;
        if (used + need >= capacity) {
            return false;
        }
        if (need == 1) {
            out[used++] = (char)c;
        } else {
            out[used++] = '%';
            out[used++] = digits[c >> 4];
            out[used++] = digits[c & 15];
        }
        out[used] = '\0';
    }
    return true;
}

enum status http_percent_decode(const char *what, const char *text, size_t bytes, char *out,
                                size_t capacity, struct error *error)
{
    size_t used = 0;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < bytes ? text_hex_digit((unsigned char)text[i + 1]) : -1;
            int low = i + 2 < bytes ? text_hex_digit((unsigned char)text[i + 2]) : -1;
            if (high < 0 || low < 0 || (high | low) == 0) {
                return error_set(error, STATUS_BAD_INPUT,
                                 "%s: expected %%XX of a byte other than 00", what);
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (used + 1 >= capacity) {
            return error_set(error, STATUS_LIMIT, "%s: expected at most %zu bytes", what,
                             capacity - 1);
        }
        out[used++] = c;
    }
    out[used] = '\0';
    return STATUS_OK;
}

/* ---- codecs ---- */

#define SUBMIT_RESULT(member, kind) JSON_FIELD(struct store_submit_result, member, kind)
#define PROGRESS(member, kind) JSON_FIELD(struct store_progress, member, kind)
#define SUITE(member, kind) JSON_FIELD(struct store_suite_status, member, kind)
#define RESULT(member, kind) JSON_FIELD(struct store_completion_result, member, kind)
#define ROW(member, kind) JSON_FIELD(struct store_ledger_row, member, kind)
#define AWAITED(member) JSON_FIELD(struct store_awaited, member, JSON_FIELD_I64)
#define DEMAND(member, kind) JSON_FIELD(struct store_demand, member, kind)
#define JOB(member, kind) JSON_FIELD(struct store_job, member, kind)

static const struct json_field submit_result_fields[] = {
    SUBMIT_RESULT(job_id, JSON_FIELD_I64),
    SUBMIT_RESULT(existed, JSON_FIELD_BOOL),
    SUBMIT_RESULT(lost, JSON_FIELD_BOOL),
    SUBMIT_RESULT(memoised, JSON_FIELD_BOOL),
};

static const struct json_field progress_fields[] = {
    PROGRESS(job_id, JSON_FIELD_I64),
    PROGRESS(epoch, JSON_FIELD_I64),
    PROGRESS(device_ns, JSON_FIELD_I64),
    PROGRESS(metres_mm, JSON_FIELD_I64),
    PROGRESS(mflop, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_progress, ticks, JSON_FIELD_I64),
};

static const struct json_field completion_result_fields[] = {
    JSON_FIELD_ENUM(struct store_completion_result, status, status_names, STATUS_COUNT),
    RESULT(escalated_job_id, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_completion_result, excused, JSON_FIELD_BOOL),
};

/* Named as job_state_names has them. */
static const struct json_field job_state_fields[] = {
    JSON_FIELD_COUNT("queued", JOB_QUEUED), JSON_FIELD_COUNT("leased", JOB_LEASED),
    JSON_FIELD_COUNT("done", JOB_DONE),     JSON_FIELD_COUNT("flagged", JOB_FLAGGED),
    JSON_FIELD_COUNT("dead", JOB_DEAD),     JSON_FIELD_COUNT("cancelled", JOB_CANCELLED),
};

/* As verdict_names; a client from before there was "invalid" reads a suite that has none. */
static const struct json_field verdict_fields[] = {
    JSON_FIELD_COUNT("pass", VERDICT_PASS),
    JSON_FIELD_COUNT("fail", VERDICT_FAIL),
    JSON_FIELD_COUNT("planner_error", VERDICT_PLANNER_ERROR),
    JSON_FIELD_COUNT("flagged", VERDICT_FLAGGED),
    JSON_FIELD_COUNT("invalid", VERDICT_INVALID, .optional = true),
};

_Static_assert(COUNT_OF(job_state_fields) == JOB_STATE_COUNT &&
                   COUNT_OF(verdict_fields) == VERDICT_COUNT,
               "counts of a suite");

static const struct json_field_list job_state_list = JSON_FIELD_LIST(job_state_fields);
static const struct json_field_list verdict_list = JSON_FIELD_LIST(verdict_fields);

#define MAINS(member, kind) JSON_FIELD(struct store_mains, member, kind)

static const struct json_field mains_fields[] = {
    JSON_FIELD_OBJECT("verdicts", offsetof(struct store_mains, verdicts), &verdict_list),
    MAINS(no_answer, JSON_FIELD_I64),
    MAINS(scenarios, JSON_FIELD_I64),
    MAINS(logical, JSON_FIELD_I64),
    MAINS(rate, JSON_FIELD_F64),
    MAINS(worst, JSON_FIELD_F64),
    MAINS(best, JSON_FIELD_F64),
    JSON_FIELD_OPTIONAL(struct store_mains, cancelled, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_mains, waiting, JSON_FIELD_I64),
};
static const struct json_field_list mains_list = JSON_FIELD_LIST(mains_fields);

/* Named as tier_names has them; there where the suite has main lines in it. */
#define MAINS_OF(tier_name, tier)                                                           \
    {                                                                                       \
        .name = (tier_name), .kind = JSON_FIELD_RECORD,                                     \
        .offset = (tier) * sizeof(struct store_mains), .bytes = sizeof(struct store_mains), \
        .list = &mains_list, .optional = true                                               \
    }
static const struct json_field tier_mains_fields[] = {
    MAINS_OF("replay", TIER_REPLAY),   MAINS_OF("object", TIER_OBJECT),
    MAINS_OF("student", TIER_STUDENT), MAINS_OF("teacher", TIER_TEACHER),
    MAINS_OF("golden", TIER_GOLDEN),
};
_Static_assert(COUNT_OF(tier_mains_fields) == TIER_COUNT, "main lines of each tier");
static const struct json_field_list tier_mains_list = JSON_FIELD_LIST(tier_mains_fields);

static const struct json_field planner_mains_fields[] = {
    JSON_FIELD(struct store_planner_mains, planner, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct store_planner_mains, tier, tier_names, TIER_COUNT),
    JSON_FIELD_OBJECT("mains", offsetof(struct store_planner_mains, mains), &mains_list),
};

static const struct json_field suite_status_fields[] = {
    SUITE(rollouts_total, JSON_FIELD_I64),
    SUITE(ticks, JSON_FIELD_I64),
    SUITE(prefix_ticks_saved, JSON_FIELD_I64),
    SUITE(metres_mm, JSON_FIELD_I64),
    SUITE(device_ns, JSON_FIELD_I64),
    SUITE(cost_uusd, JSON_FIELD_I64),
    SUITE(memoised_jobs, JSON_FIELD_I64),
    SUITE(rollouts_audit, JSON_FIELD_I64),
    SUITE(mflop, JSON_FIELD_I64),
    SUITE(audits_dead, JSON_FIELD_I64),
    JSON_FIELD_OBJECT("jobs", offsetof(struct store_suite_status, jobs), &job_state_list),
    JSON_FIELD_OBJECT("rollouts", offsetof(struct store_suite_status, rollouts), &verdict_list),
    JSON_FIELD_OBJECT("mains", offsetof(struct store_suite_status, mains), &tier_mains_list),
    JSON_FIELD_OPTIONAL(struct store_suite_status, submitted_s, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_suite_status, planner, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_suite_status, planner_count, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_suite_status, planner_hash, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_suite_status, rig, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_suite_status, note, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_suite_status, commit, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_suite_status, tags, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_suite_status, baselines, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_suite_status, ticks_planned, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_suite_status, ticks_ended, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_suite_status, ticks_running, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_suite_status, eta_ms, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_suite_status, unstarted_hosts, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_suite_status, unstarted, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_suite_status, budget_uusd, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_suite_status, stopped_by_budget, JSON_FIELD_BOOL),
    {.name = "class",
     .kind = JSON_FIELD_NAME,
     .offset = offsetof(struct store_suite_status, of_class),
     .bytes = sizeof((struct store_suite_status *)0)->of_class,
     .names = suite_class_names,
     .name_count = SUITE_CLASS_COUNT,
     .optional = true},
    JSON_FIELD_OPTIONAL(struct store_suite_status, jobs_handed_back, JSON_FIELD_I64),
};

static const struct json_field ledger_row_fields[] = {
    ROW(pool, JSON_FIELD_TEXT),
    ROW(device, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct store_ledger_row, tier, tier_names, TIER_COUNT),
    ROW(audit, JSON_FIELD_BOOL),
    JSON_FIELD_OPTIONAL(struct store_ledger_row, shadow, JSON_FIELD_BOOL),
    ROW(end, JSON_FIELD_TEXT),
    JSON_FIELD_OBJECT("totals", offsetof(struct store_ledger_row, totals),
                      &ledger_totals_field_list),
};

static const struct json_field awaited_fields[] = {
    AWAITED(jobs_silent),
    AWAITED(silent_ms),
    AWAITED(jobs_delayed),
    AWAITED(delayed_ms),
};

static const struct json_field demand_fields[] = {
    DEMAND(pool, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct store_demand, tier, tier_names, TIER_COUNT),
    DEMAND(jobs_queued, JSON_FIELD_I64),
    DEMAND(jobs_leased, JSON_FIELD_I64),
    DEMAND(ticks_queued, JSON_FIELD_I64),
    DEMAND(age_ms, JSON_FIELD_I64),
    DEMAND(workers_alive, JSON_FIELD_I64),
    DEMAND(workers_busy, JSON_FIELD_I64),
    DEMAND(rollouts_seen, JSON_FIELD_I64),
    DEMAND(tick_ns, JSON_FIELD_I64),
    DEMAND(tick_p99_ns, JSON_FIELD_I64),
};

#define AUDIT(member, kind) JSON_FIELD(struct store_audit, member, kind)
static const struct json_field audit_fields[] = {
    AUDIT(id, JSON_FIELD_I64),    AUDIT(at_s, JSON_FIELD_I64),    AUDIT(name, JSON_FIELD_TEXT),
    AUDIT(role, JSON_FIELD_TEXT), AUDIT(action, JSON_FIELD_TEXT), AUDIT(subject, JSON_FIELD_TEXT),
    AUDIT(code, JSON_FIELD_I64),
};

static const struct json_field job_fields[] = {
    JOB(id, JSON_FIELD_I64),
    JSON_FIELD_ENUM(struct store_job, state, job_state_names, JOB_STATE_COUNT),
    JOB(epoch, JSON_FIELD_I64),
    JOB(attempts, JSON_FIELD_U32),
    JOB(worker_id, JSON_FIELD_TEXT),
    JOB(error, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_job, freeze, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_job, token, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct store_job, handed_back, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct store_job, handed_back_for, JSON_FIELD_TEXT),
    JSON_FIELD_OBJECT("spec", offsetof(struct store_job, spec), &job_spec_field_list),
};

/* A text under another name than its member's. */
#define NAMED(text, record, member, ...)                                             \
    {                                                                                \
        .name = (text), .kind = JSON_FIELD_TEXT, .offset = offsetof(record, member), \
        .bytes = sizeof(((record *)0)->member), ##__VA_ARGS__                        \
    }

static const struct json_field author_fields[] = {
    NAMED("token", struct store_author, holder, .optional = true),
    NAMED("worker", struct store_author, worker_id, .optional = true),
};

#define PLANNER(member) JSON_FIELD(struct store_planner, member, JSON_FIELD_TEXT)
static const struct json_field planner_fields[] = {PLANNER(planner), PLANNER(planner_hash)};
static const struct json_field planner_in_world_fields[] = {
    PLANNER(planner),
    PLANNER(planner_hash),
    JSON_FIELD_ENUM(struct store_planner, tier, tier_names, TIER_COUNT),
    PLANNER(model_hash),
    PLANNER(sampler),
    PLANNER(backend),
    JSON_FIELD_OPTIONAL(struct store_planner, revision, JSON_FIELD_TEXT),
};

static const struct json_field worker_fields[] = {
    NAMED("worker", struct store_live_worker, worker_id),
    JSON_FIELD(struct store_live_worker, pool, JSON_FIELD_TEXT),
    JSON_FIELD(struct store_live_worker, device, JSON_FIELD_TEXT),
    JSON_FIELD(struct store_live_worker, host, JSON_FIELD_TEXT),
    JSON_FIELD(struct store_live_worker, jobs, JSON_FIELD_I64),
};

static const struct json_field text_id_field = {.kind = JSON_FIELD_TEXT, .bytes = LIMIT_ID_BYTES};
static const struct json_field i64_field = {.kind = JSON_FIELD_I64, .bytes = sizeof(int64_t)};

#define LIST(fields) &(const struct json_field_list)JSON_FIELD_LIST(fields)
#define CODEC(name, type, list) \
    const struct wire_codec wire_##name = {sizeof(struct type), (list), NULL}

CODEC(submit_result, store_submit_result, LIST(submit_result_fields));
CODEC(progress, store_progress, LIST(progress_fields));
CODEC(completion_result, store_completion_result, LIST(completion_result_fields));
CODEC(suite_status, store_suite_status, LIST(suite_status_fields));
CODEC(planner_mains, store_planner_mains, LIST(planner_mains_fields));
CODEC(ledger_row, store_ledger_row, LIST(ledger_row_fields));
CODEC(awaited, store_awaited, LIST(awaited_fields));
CODEC(demand, store_demand, LIST(demand_fields));
CODEC(job, store_job, LIST(job_fields));
CODEC(lease, job_lease, &job_lease_field_list);
CODEC(outcome, outcome, &outcome_record);
CODEC(model, model_version, &model_version_fields);
CODEC(model_event, model_event, &model_event_fields);
CODEC(tenant, tenant, &tenant_fields);
CODEC(trust_event, trust_event, &trust_event_fields);
CODEC(golden, golden_set, &golden_set_fields);
CODEC(label, label, &label_fields);
CODEC(audit, store_audit, LIST(audit_fields));
CODEC(author, store_author, LIST(author_fields));
CODEC(planner, store_planner, LIST(planner_fields));
CODEC(planner_in_world, store_planner, LIST(planner_in_world_fields));
CODEC(live_worker, store_live_worker, LIST(worker_fields));
const struct wire_codec wire_text_id = {LIMIT_ID_BYTES, NULL, &text_id_field};
const struct wire_codec wire_i64 = {sizeof(int64_t), NULL, &i64_field};

json_t *wire_encode(const struct wire_codec *codec, const void *record)
{
    return codec->list != NULL ? json_record_encode(codec->list, record, NULL)
                               : json_record_value(codec->field, record);
}

enum status wire_decode(const struct wire_codec *codec, const struct json_cursor *cursor,
                        void *record, struct error *error)
{
    return codec->list != NULL ? json_record_decode(codec->list, NULL, true, cursor, record, error)
                               : json_record_take(codec->field, cursor, record, error);
}

json_t *wire_list_encode(const struct wire_codec *codec, const void *records, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < count; i++) {
        const char *record = (const char *)records + i * codec->bytes;
        if (json_array_append_new(array, wire_encode(codec, record)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

enum status wire_list_decode(const struct wire_codec *codec, const struct json_cursor *cursor,
                             void *records, size_t max, uint32_t *count, struct error *error)
{
    size_t found;
    TRY(json_array_begin(cursor, 0, max, &found, error));
    for (size_t i = 0; i < found; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        TRY(wire_decode(codec, &element, (char *)records + i * codec->bytes, error));
    }
    *count = (uint32_t)found;
    return STATUS_OK;
}
