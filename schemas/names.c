/*
 * The text names of enumerations that travel in JSON, SQL and on the screen.
 */
#include "base/check.h"
#include "schemas/job.h"
#include "schemas/outcome.h"

#include <stdio.h>

const char *const tier_names[TIER_COUNT] = {"replay", "object", "student", "teacher", "golden"};

const char *const verdict_names[VERDICT_COUNT] = {"pass", "fail", "planner_error", "flagged",
                                                  "invalid"};

const char *const reason_names[REASON_BIT_COUNT] = {
    "at_fault_collision", "collision",     "off_drivable", "wrong_direction",
    "goal_not_reached",   "uncomfortable", "ttc",          "distance",
    "impact_speed",       "progress",      "score",        "speed",
    "red_light",          "cost",          "stop_sign",
};

const char *reasons_text(uint32_t reasons, const char *separator, char out[REASONS_TEXT_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if ((reasons >> bit & 1) != 0) {
            used += (size_t)snprintf(out + used, REASONS_TEXT_BYTES - used, "%s%s",
                                     used > 0 ? separator : "", reason_names[bit]);
            CHECK(used < REASONS_TEXT_BYTES);
        }
    }
    return out;
}

const char *const collision_kind_names[COLLISION_KIND_COUNT] = {
    "none", "stopped_ego", "stopped_track", "rear", "front", "lateral",
};

const char *const job_state_names[JOB_STATE_COUNT] = {
    "queued", "leased", "done", "flagged", "dead", "cancelled",
};

const char *const completion_kind_names[COMPLETION_KIND_COUNT] = {
    "done", "flagged", "failed", "released", "unstarted", "partial",
};
