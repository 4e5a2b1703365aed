/*
 * Job codec: the tables, and the outcomes of a completion.
 */
#include "schemas/job_json.h"

#include "base/array.h"
#include "base/check.h"
#include "schemas/json_record.h"
#include "schemas/outcome_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPEC(member, kind) JSON_FIELD(struct job_spec, member, kind)
#define LEASE(member, kind) JSON_FIELD(struct job_lease, member, kind)
#define COMPLETION(member, kind) JSON_FIELD(struct job_completion, member, kind)
#define TOTALS(member, kind) JSON_FIELD(struct ledger_totals, member, kind)

static const struct json_field spec_fields[] = {
    SPEC(key, JSON_FIELD_TEXT),
    SPEC(suite_id, JSON_FIELD_TEXT),
    SPEC(scenario_id, JSON_FIELD_TEXT),
    SPEC(scenario_hash, JSON_FIELD_TEXT),
    SPEC(planner, JSON_FIELD_TEXT),
    SPEC(planner_hash, JSON_FIELD_TEXT),
    SPEC(pool, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct job_spec, tier, tier_names, TIER_COUNT),
    SPEC(model_hash, JSON_FIELD_TEXT),
    SPEC(sampler, JSON_FIELD_TEXT),
    SPEC(backend, JSON_FIELD_TEXT),
    SPEC(revision, JSON_FIELD_TEXT),
    SPEC(seed, JSON_FIELD_U64),
    SPEC(priority, JSON_FIELD_I32),
    SPEC(rollout_count, JSON_FIELD_U32),
    SPEC(attempts_max, JSON_FIELD_U32),
    SPEC(parent_job_id, JSON_FIELD_I64),
    SPEC(prefix_key, JSON_FIELD_TEXT),
    SPEC(audit_key, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct job_spec, follows, JSON_FIELD_BOOL),
    JSON_FIELD_OPTIONAL(struct job_spec, evaluates, JSON_FIELD_BOOL),
    JSON_FIELD_OPTIONAL(struct job_spec, escalate_pool, JSON_FIELD_TEXT),
    {.name = "escalate_tier",
     .kind = JSON_FIELD_NAME,
     .offset = offsetof(struct job_spec, escalate_tier),
     .bytes = sizeof((struct job_spec *)0)->escalate_tier,
     .names = tier_names,
     .name_count = TIER_COUNT,
     .optional = true},
    JSON_FIELD_OPTIONAL(struct job_spec, escalate_model_hash, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct job_spec, escalate_sampler, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct job_spec, rig, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct job_spec, makes, JSON_FIELD_TEXT),
    {.name = "route_reason",
     .kind = JSON_FIELD_NAME,
     .offset = offsetof(struct job_spec, route_reason),
     .bytes = sizeof((struct job_spec *)0)->route_reason,
     .names = route_reason_names,
     .name_count = ROUTE_REASON_COUNT,
     .optional = true},
    JSON_FIELD_OPTIONAL(struct job_spec, route_own, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct job_spec, route_other, JSON_FIELD_I64),
};

const struct json_field_list job_spec_field_list = JSON_FIELD_LIST(spec_fields);

enum { SHARED_FIRST = 4, SHARED_COUNT = 8 }; /* from the planner to the revision */

const struct json_field_list job_shared_field_list = {spec_fields + SHARED_FIRST, SHARED_COUNT};

static const struct json_field lease_fields[] = {
    LEASE(job_id, JSON_FIELD_I64),
    LEASE(epoch, JSON_FIELD_I64),
    LEASE(attempt, JSON_FIELD_U32),
    LEASE(lost, JSON_FIELD_U32),
    {.name = "class",
     .kind = JSON_FIELD_NAME,
     .offset = offsetof(struct job_lease, of_class),
     .bytes = sizeof((struct job_lease *)0)->of_class,
     .names = suite_class_names,
     .name_count = SUITE_CLASS_COUNT,
     .optional = true},
    JSON_FIELD_OBJECT("spec", offsetof(struct job_lease, spec), &job_spec_field_list),
};

const struct json_field_list job_lease_field_list = JSON_FIELD_LIST(lease_fields);

static const struct json_field completion_fields[] = {
    COMPLETION(job_id, JSON_FIELD_I64),
    COMPLETION(epoch, JSON_FIELD_I64),
    COMPLETION(worker_id, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct job_completion, kind, completion_kind_names, COMPLETION_KIND_COUNT),
    COMPLETION(device_ns, JSON_FIELD_I64),
    COMPLETION(metres_mm, JSON_FIELD_I64),
    COMPLETION(mflop, JSON_FIELD_I64),
    COMPLETION(artifact_hash, JSON_FIELD_TEXT),
    COMPLETION(escalate_pool, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct job_completion, escalate_tier, tier_names, TIER_COUNT),
    COMPLETION(escalate_model_hash, JSON_FIELD_TEXT),
    COMPLETION(escalate_sampler, JSON_FIELD_TEXT),
    COMPLETION(escalate_key, JSON_FIELD_TEXT),
    COMPLETION(error, JSON_FIELD_TEXT),
};

const struct json_field_list job_completion_field_list = JSON_FIELD_LIST(completion_fields);

static const struct json_field totals_fields[] = {
    TOTALS(attempts, JSON_FIELD_I64),  TOTALS(device_ns, JSON_FIELD_I64),
    TOTALS(metres_mm, JSON_FIELD_I64), TOTALS(mflop, JSON_FIELD_I64),
    TOTALS(cost_uusd, JSON_FIELD_I64),
};

const struct json_field_list ledger_totals_field_list = JSON_FIELD_LIST(totals_fields);

uint32_t job_clip_ticks(const struct job_spec *spec)
{
    const char *digits = spec->makes + strlen(JOB_MAKES_CLIP);
    uint32_t ticks = 0;
    if (strncmp(spec->makes, JOB_MAKES_CLIP, strlen(JOB_MAKES_CLIP)) != 0 || digits[0] == '0') {
        return 0;
    }
    for (; *digits >= '0' && *digits <= '9' && ticks <= JOB_CLIP_TICKS_MAX; digits++) {
        ticks = ticks * 10 + (uint32_t)(*digits - '0');
    }
    return *digits == '\0' && ticks <= JOB_CLIP_TICKS_MAX ? ticks : 0;
}

void job_futures_put(uint32_t tick, uint32_t draws, struct job_spec *spec)
{
    snprintf(spec->makes, sizeof spec->makes, JOB_MAKES_FUTURES "%u:%u", tick, draws);
}

bool job_futures(const struct job_spec *spec, uint32_t *tick, uint32_t *draws)
{
    struct job_spec same;
    uint32_t at = 0;
    uint32_t of_each = 0;
    /* Text that is written back as it was read has no other form. */
    if (sscanf(spec->makes, JOB_MAKES_FUTURES "%5u:%2u", &at, &of_each) != 2) {
        return false;
    }
    job_futures_put(at, of_each, &same);
    bool good = strcmp(same.makes, spec->makes) == 0 && at < LIMIT_HORIZON_TICKS && of_each >= 1 &&
                of_each <= OUTCOME_DRAWS_MAX;
    if (good && tick != NULL) {
        *tick = at;
    }
    if (good && draws != NULL) {
        *draws = of_each;
    }
    return good;
}

bool job_has_maker(const struct job_spec *spec)
{
    return job_clip_ticks(spec) > 0 || job_futures(spec, NULL, NULL);
}

bool job_makes_known(const struct job_spec *spec)
{
    return spec->makes[0] == '\0' || strcmp(spec->makes, JOB_MAKES_GOLDEN) == 0 ||
           job_has_maker(spec);
}

json_t *job_spec_encode(const struct job_spec *spec, const struct job_spec *common)
{
    return json_record_encode(&job_spec_field_list, spec, common);
}

enum status job_spec_decode(const struct json_cursor *cursor, const struct job_spec *common,
                            struct job_spec *out, struct error *error)
{
    struct job_spec scratch;
    if (common != NULL) {
        scratch = *common;
    } else {
        memset(&scratch, 0, sizeof scratch);
    }
    TRY(json_record_decode(&job_spec_field_list, NULL, common == NULL, cursor, &scratch, error));
    *out = scratch;
    return STATUS_OK;
}

json_t *job_completion_encode(const struct job_completion *completion)
{
    json_t *object = json_record_encode(&job_completion_field_list, completion, NULL);
    json_t *outcomes = json_array();
    bool good = object != NULL && outcomes != NULL;
    for (uint32_t i = 0; good && i < completion->outcome_count; i++) {
        good = json_array_append_new(outcomes, outcome_encode(&completion->outcomes[i])) == 0;
    }
    if (good) {
        good = json_put(object, "outcomes", json_incref(outcomes));
    }
    json_decref(outcomes);
    if (!good) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static enum status decode_outcomes(const struct json_cursor *cursor, struct outcome **out,
                                   uint32_t *out_count, struct error *error)
{
    size_t count;
    TRY(json_array_begin(cursor, 0, 1 + LIMIT_BRANCHES, &count, error));
    enum status status = STATUS_OK;
    struct outcome *outcomes = NULL;
    if (count > 0) {
        outcomes = malloc(count * sizeof *outcomes);
        TRY(memory_check(outcomes, error, "out of memory for %zu outcomes", count));
    }
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        status = outcome_decode(&element, &outcomes[i], error);
    }
    if (status != STATUS_OK) {
        free(outcomes);
        return status;
    }
    *out = outcomes;
    *out_count = (uint32_t)count;
    return STATUS_OK;
}

enum status job_completion_decode(const struct json_cursor *cursor, struct job_completion *out,
                                  struct outcome **outcomes, struct error *error)
{
    static const char *const extra_keys[] = {"outcomes", NULL};
    struct job_completion scratch;
    memset(&scratch, 0, sizeof scratch);
    TRY(json_record_decode(&job_completion_field_list, extra_keys, true, cursor, &scratch, error));
    struct outcome *list = NULL;
    struct json_cursor array = json_cursor_member(cursor, "outcomes");
    TRY(decode_outcomes(&array, &list, &scratch.outcome_count, error));
    scratch.outcomes = list;
    *out = scratch;
    *outcomes = list;
    return STATUS_OK;
}

/* ---- without a document ---- */

static bool scan_outcome(struct scan *scan, struct outcome *out)
{
    memset(out, 0, sizeof *out);
    return scan_literal(scan, "{") && json_scan_fields(scan, &outcome_record, out) &&
           scan_literal(scan, "}");
}

/* Behind the bracket, the closing one included. */
static bool scan_outcomes(struct scan *scan, struct outcome **outcomes, uint32_t *count)
{
    while (!scan_literal(scan, "]")) {
        if (*count == 1 + LIMIT_BRANCHES || (*count > 0 && !scan_literal(scan, ","))) {
            return false;
        }
        if (array_room(outcomes, *count, sizeof **outcomes, NULL) != STATUS_OK ||
            !scan_outcome(scan, &(*outcomes)[*count])) {
            return false;
        }
        (*count)++;
    }
    return true;
}

bool job_completion_scan(struct scan *scan, struct job_completion *out, struct outcome **outcomes)
{
    struct outcome *list = NULL;
    memset(out, 0, sizeof *out);
    if (!scan_literal(scan, "{") || !json_scan_fields(scan, &job_completion_field_list, out) ||
        !scan_literal(scan, ",\"outcomes\":[") ||
        !scan_outcomes(scan, &list, &out->outcome_count) || !scan_literal(scan, "}")) {
        free(list);
        return false;
    }
    out->outcomes = list;
    *outcomes = list;
    return true;
}
