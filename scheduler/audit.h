/*
 * Audit sampling: which student jobs the teacher runs as well. The choice is a pure function of the
 * job's key and a policy, so that running a suite again asks for the same audit jobs, and a higher
 * rate only adds to them.
 *
 * Policy document: {"rate": 0.05, "safety_critical_rate": 0.1, "slices": [{"kind": "weather",
 * "value": "fog", "rate": 0.2}]}; every rate lies in 0..1, the highest that applies counts.
 */
#ifndef SWERVE_SCHEDULER_AUDIT_H
#define SWERVE_SCHEDULER_AUDIT_H

#include "base/status.h"
#include "schemas/job.h"
#include "schemas/scenario.h"

#include <stdbool.h>
#include <stdint.h>

enum { AUDIT_RULES_MAX = 64 };

struct audit_rule {
    enum slice_kind kind;
    char value[LIMIT_ID_BYTES];
    double rate;
};

struct audit_policy {
    double rate;
    double safety_critical_rate;
    uint32_t rule_count;
    struct audit_rule rules[AUDIT_RULES_MAX];
};

/* One job in twenty; of safety-critical scenarios one in ten. */
struct audit_policy audit_policy_default(void);

/* BAD_INPUT names the file and the member. */
enum status audit_policy_load(const char *path, struct audit_policy *out, struct error *error);

/* The rate at which jobs of this scenario are sampled: which ones says trust_audit_sampled(). */
double audit_rate(const struct audit_policy *policy, const struct slices *slices);

#endif
