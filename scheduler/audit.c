/*
 * The audit policy and its choices. See audit.h.
 */
#include "scheduler/audit.h"

#include "schemas/json_read.h"
#include "schemas/scenario_json.h"

#include <string.h>

enum { POLICY_BYTES_MAX = 1 << 16 };

struct audit_policy audit_policy_default(void)
{
    return (struct audit_policy){.rate = 0.05, .safety_critical_rate = 0.1};
}

static enum status read_rule(const struct json_cursor *cursor, struct audit_rule *out,
                             struct error *error)
{
    static const char *const keys[] = {"kind", "value", "rate", NULL};
    int kind = 0;
    enum status status = json_object_begin(cursor, keys, error);
    THEN(status,
         json_member_choice(cursor, "kind", true, slice_names, SLICE_KIND_COUNT, &kind, error));
    THEN(status, json_member_text(cursor, "value", true, out->value, sizeof out->value, error));
    THEN(status, json_member_number(cursor, "rate", true, 0.0, 1.0, &out->rate, error));
    out->kind = (enum slice_kind)kind;
    return status;
}

static enum status read_policy(const struct json_cursor *cursor, struct audit_policy *out,
                               struct error *error)
{
    static const char *const keys[] = {"rate", "safety_critical_rate", "slices", NULL};
    size_t count = 0;
    enum status status = json_object_begin(cursor, keys, error);
    THEN(status, json_member_number(cursor, "rate", true, 0.0, 1.0, &out->rate, error));
    out->safety_critical_rate = out->rate;
    THEN(status, json_member_number(cursor, "safety_critical_rate", false, 0.0, 1.0,
                                    &out->safety_critical_rate, error));
    struct json_cursor rules = json_cursor_member(cursor, "slices");
    if (status == STATUS_OK && json_cursor_present(&rules)) {
        status = json_array_begin(&rules, 0, AUDIT_RULES_MAX, &count, error);
    }
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor element = json_cursor_element(&rules, i);
        status = read_rule(&element, &out->rules[i], error);
    }
    out->rule_count = (uint32_t)count;
    return status;
}

enum status audit_policy_load(const char *path, struct audit_policy *out, struct error *error)
{
    json_t *root = NULL;
    struct audit_policy policy = {0};
    TRY(json_read_file(path, POLICY_BYTES_MAX, &root, error));
    struct json_cursor cursor = json_cursor_root(path, root);
    enum status status = read_policy(&cursor, &policy, error);
    json_decref(root);
    if (status == STATUS_OK) {
        *out = policy;
    }
    return status;
}

double audit_rate(const struct audit_policy *policy, const struct slices *slices)
{
    double rate = policy->rate;
    if (slices->safety_critical && policy->safety_critical_rate > rate) {
        rate = policy->safety_critical_rate;
    }
    for (uint32_t i = 0; i < policy->rule_count; i++) {
        const struct audit_rule *rule = &policy->rules[i];
        if (rule->rate > rate && strcmp(slices->value[rule->kind], rule->value) == 0) {
            rate = rule->rate;
        }
    }
    return rate;
}
