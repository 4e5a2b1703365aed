/*
 * Columns of records. See columns.h.
 */
#include "store/statements/columns.h"

#include "base/check.h"
#include "schemas/job_json.h"
#include "schemas/outcome_json.h"
#include "store/api/labels.h"
#include "store/api/models.h"
#include "store/api/tenants.h"
#include "store/api/trust.h"
#include "store/statements/statements.h"

#include <stdlib.h>
#include <string.h>

#define AS(record, member, column)                           \
    {                                                        \
        .offset = offsetof(record, member), .name = (column) \
    }
#define READ(record, member, expression)                        \
    {                                                           \
        .offset = offsetof(record, member), .sql = (expression) \
    }

#define SPEC(member, expression) READ(struct job_spec, member, expression)
#define OUTCOME(member, expression) READ(struct outcome, member, expression)
#define TENANT(member, expression) READ(struct tenant, member, expression)
#define TOLD(member, expression) READ(struct trust_event, member, expression)

/* Of job `j` with the joins of STATEMENT_SPEC_JOINS. Several tables have a part each. */
static const struct column spec_columns[] = {
    SPEC(suite_id, "u.name"),
    SPEC(scenario_hash, "x.hash"),
    SPEC(planner, "c.planner"),
    SPEC(planner_hash, "c.planner_hash"),
    SPEC(pool, "c.pool"),
    SPEC(tier, "c.tier"),
    SPEC(model_hash, "c.model_hash"),
    SPEC(sampler, "c.sampler"),
    SPEC(backend, "c.backend"),
    SPEC(revision, "c.revision"),
    SPEC(priority, "j.priority"),
    SPEC(rollout_count, "j.rollouts"),
    SPEC(parent_job_id, "s.parent_job"),
    SPEC(prefix_key, "p.key"),
    SPEC(audit_key, "s.audit_key"),
    SPEC(follows, "j.follows"),
    SPEC(evaluates, "j.evaluates"),
    SPEC(escalate_pool, "e.pool"),
    SPEC(escalate_tier, "e.tier"),
    SPEC(escalate_model_hash, "e.model_hash"),
    SPEC(escalate_sampler, "e.sampler"),
};

static const struct column lease_columns[] = {
    AS(struct job_lease, job_id, "id"),
    AS(struct job_lease, attempt, "attempts"),
    READ(struct job_lease, of_class, "u.class"),
};

/* The freeze that the job of outcome `o` was moved by, or in flight at; 0: none. */
#define FREEZE_OF_OUTCOME "COALESCE((SELECT f.freeze_event FROM jobs f WHERE f.id = o.job), 0)"

/* `j` is the job that the outcome is reported under, with spec `r`; `o` the outcome, its job's
 * spec `s`. What it repeats of its job is NULL, but for outcomes of earlier versions. */
static const struct column outcome_columns[] = {
    OUTCOME(id, "o.id"),
    OUTCOME(job_id, "j.id"),
    OUTCOME(epoch, "o.epoch"),
    OUTCOME(suite_id, "u.name"),
    OUTCOME(scenario_id, "COALESCE(o.scenario_id, s.scenario_id)"),
    OUTCOME(scenario_hash, "COALESCE(o.scenario_hash, x.hash)"),
    OUTCOME(branch_id, "o.branch_id"),
    OUTCOME(planner, "c.planner"),
    OUTCOME(planner_hash, "c.planner_hash"),
    OUTCOME(tier, "c.tier"),
    OUTCOME(pool, "c.pool"),
    OUTCOME(model_hash, "c.model_hash"),
    OUTCOME(sampler, "c.sampler"),
    OUTCOME(backend, "c.backend"),
    OUTCOME(revision, "c.revision"),
    OUTCOME(rig, "s.rig"),
    OUTCOME(seed, "COALESCE(o.seed, s.seed)"),
    /* All of a check are NULL where there was none. */
    OUTCOME(health_check, "o.health_check"),
    OUTCOME(health_tick, "o.health_tick"),
    OUTCOME(health_value, "CASE WHEN o.health_check IS NULL THEN 0.0 ELSE o.health_value END"),
    OUTCOME(health_threshold,
            "CASE WHEN o.health_check IS NULL THEN 0.0 ELSE o.health_threshold END"),
    OUTCOME(evidence_hash, "o.evidence_hash"),
    OUTCOME(parent_job_id, "r.parent_job"),
    OUTCOME(audit_of,
            "CASE WHEN r.makes <> '' AND r.audit_key IS NULL THEN r.job ELSE"
            " (SELECT t.job FROM job_specs t WHERE t.key = r.audit_key AND t.suite = r.suite) END"),
    OUTCOME(at_ms, "o.at_ms"),
    OUTCOME(shadow, "j.shadow IS NOT NULL"),
    OUTCOME(freeze, FREEZE_OF_OUTCOME),
    OUTCOME(in_flight, FREEZE_OF_OUTCOME " > 0 AND c.tier = 2"),
    OUTCOME(route_reason, "r.route_reason"),
    OUTCOME(route_own, "r.route_own"),
    OUTCOME(route_other, "r.route_other"),
};

#define SUITES_SUM(counter) \
    "COALESCE((SELECT SUM(u." counter ") FROM suites u WHERE u.tenant = t.id), 0)"
#define DAYS_SUM(days)                                                                           \
    "COALESCE((SELECT SUM(d.cost_uusd) FROM tenant_days d WHERE d.tenant = t.id AND " days "), " \
    "0)"

/* As they stand on day ?2 of the month that began on day ?3. */
static const struct column tenant_columns[] = {
    TENANT(jobs_queued, SUITES_SUM("jobs_queued")),
    TENANT(jobs_leased, SUITES_SUM("jobs_leased")),
    TENANT(uusd_day, DAYS_SUM("d.day = ?2")),
    TENANT(uusd_month, DAYS_SUM("d.day >= ?3 AND d.day <= ?2")),
    TENANT(units_leased, STATEMENT_TENANT_LEASED),
    TENANT(scenario_bytes,
           "COALESCE((SELECT b.bytes FROM tenant_scenarios b WHERE b.tenant = t.id), 0)"),
};

static const struct column model_event_columns[] = {
    READ(struct model_event, model, "m.name"),
};

/* Jobs that the event's freeze concerned. */
#define FREEZE_JOBS(which)                                                                     \
    "(SELECT COUNT(*) FROM jobs j JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = " \
    "s.context WHERE j.freeze_event = t.id AND " which ")"

static const struct column trust_columns[] = {
    AS(struct trust_event, freeze, "freeze_event"),
    AS(struct trust_event, actor, "actor_name"),
    TOLD(thawed_by, "COALESCE((SELECT MIN(e.id) FROM trust_events e WHERE e.kind = 1"
                    " AND e.freeze_event = t.id), 0)"),
    TOLD(jobs_moved, FREEZE_JOBS("j.audit = 0 AND c.tier = 3")),
    TOLD(jobs_in_flight, FREEZE_JOBS("c.tier = 2")),
};

static const struct column label_columns[] = {READ(struct label, suite, "u.name")};

#define OTHERS(rows) .others = (rows), .other_count = COUNT_OF(rows)

const struct columns record_columns[RECORD_COUNT] = {
    [RECORD_CONTEXT] = {"context", "c", &job_shared_field_list, NULL, 0},
    [RECORD_SPEC] = {"spec", "s", &job_spec_field_list, OTHERS(spec_columns)},
    [RECORD_LEASE] = {"lease", "j", &job_lease_field_list, OTHERS(lease_columns)},
    [RECORD_OUTCOME] = {"outcome", "o", &outcome_record, OTHERS(outcome_columns)},
    [RECORD_TENANT] = {"tenant", "t", &tenant_fields, OTHERS(tenant_columns)},
    [RECORD_MODEL] = {"model", "m", &model_version_fields, NULL, 0},
    [RECORD_MODEL_EVENT] = {"model_event", "e", &model_event_fields, OTHERS(model_event_columns)},
    [RECORD_GOLDEN] = {"golden", "g", &golden_set_fields, NULL, 0},
    [RECORD_LABEL] = {"label", "l", &label_fields, OTHERS(label_columns)},
    [RECORD_TRUST] = {"trust", "t", &trust_event_stored_fields, OTHERS(trust_columns)},
    [RECORD_TRUST_TOLD] = {"trust_told", "t", &trust_event_fields, OTHERS(trust_columns)},
};

const struct column *columns_other(const struct columns *columns, size_t offset)
{
    size_t low = 0;
    size_t high = columns->other_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (columns->others[middle].offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < columns->other_count && columns->others[low].offset == offset;
    return found ? &columns->others[low] : NULL;
}

/* A list that is being written. */
struct listing {
    FILE *out;
    const struct columns *columns;
    enum { LIST_READ, LIST_NAMES, LIST_PARAMETERS } form;
    long parameter; /* the next */
    const char *between;
};

static void put_member(struct listing *list, const char *name, const struct column *other)
{
    if (other != NULL && other->name != NULL) {
        name = other->name;
        other = NULL;
    }
    if (other != NULL && list->form != LIST_READ) {
        return;
    }
    fputs(list->between, list->out);
    list->between = ", ";
    if (other != NULL) {
        fputs(other->sql, list->out);
    } else if (list->form == LIST_READ) {
        fprintf(list->out, "%s.%s", list->columns->table, name);
    } else if (list->form == LIST_NAMES) {
        fputs(name, list->out);
    } else {
        fprintf(list->out, "?%ld", list->parameter++);
    }
}

/* A record that is a member of another has its own columns. NULL: there is no such record. */
static const struct columns *columns_of(const struct json_field_list *fields)
{
    for (size_t i = 0; i < RECORD_COUNT && fields != NULL; i++) {
        if (record_columns[i].fields == fields) {
            return &record_columns[i];
        }
    }
    return NULL;
}

static void put_members(struct listing *list, const struct json_field_list *fields, size_t offset)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct json_field *field = &fields->fields[i];
        size_t at = offset + field->offset;
        const struct columns *own = columns_of(field->list);
        if (own != NULL) {
            const struct columns *outer = list->columns;
            list->columns = own;
            put_members(list, own->fields, 0);
            list->columns = outer;
        } else if (field->kind == JSON_FIELD_RECORD) {
            put_members(list, field->list, at);
        } else {
            put_member(list, field->name, columns_other(list->columns, at));
        }
    }
}

void columns_put(FILE *out, const char *mark, size_t bytes)
{
    size_t name_bytes = strcspn(mark, " }");
    struct listing list = {.out = out, .form = LIST_READ, .between = ""};

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const char *name = record_columns[i].mark;
        if (strlen(name) == name_bytes && strncmp(name, mark, name_bytes) == 0) {
            list.columns = &record_columns[i];
        }
    }
    CHECK(list.columns != NULL);
    for (size_t i = 1; i < list.columns->other_count; i++) {
        CHECK(list.columns->others[i - 1].offset < list.columns->others[i].offset);
    }
    if (name_bytes < bytes) {
        const char *form = mark + name_bytes + 1;
        list.form = form[0] == '?' ? LIST_PARAMETERS : LIST_NAMES;
        list.parameter = form[0] == '?' ? strtol(form + 1, NULL, 10) : 0;
    }
    put_members(&list, list.columns->fields, 0);
}
