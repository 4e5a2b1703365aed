/*
 * Answers of careful drivers, and what they are asked about. See careful.h.
 */
#include "schemas/careful/careful.h"

#include <math.h>

/* Reasons that are no matter of safety. */
#define UNSAFE_REASONS \
    (~(uint32_t)(REASON_GOAL_NOT_REACHED | REASON_UNCOMFORTABLE | REASON_PROGRESS | REASON_SCORE))

const char *const careful_names[CAREFUL_MODELS] = {"driver", "fuzzy"};

bool careful_is_safe(enum verdict verdict, uint32_t reasons, const struct metrics *metrics)
{
    return verdict <= VERDICT_FAIL && metrics->collision_count == 0 &&
           (reasons & UNSAFE_REASONS) == 0;
}

bool careful_asked(const struct outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && outcome->verdict == VERDICT_FAIL &&
           !careful_is_safe(outcome->verdict, outcome->reasons, &outcome->metrics);
}

static json_t *drive_json(const struct careful_drive *drive)
{
    json_t *json = json_pack("{s:b, s:b}", "avoids", drive->avoids, "collides", drive->collides);
    if (drive->collides) {
        json_object_set_new(json, "agent", json_integer(drive->agent));
        json_object_set_new(json, "impact_mps", json_real(drive->impact_mps));
    }
    if (isfinite(drive->min_ttc_s)) {
        json_object_set_new(json, "min_ttc_s", json_real(drive->min_ttc_s));
    }
    return json;
}

json_t *careful_json(const struct careful *careful)
{
    if (careful->outside[0] != '\0') {
        return json_pack("{s:s}", "outside", careful->outside);
    }
    json_t *json = json_object();
    for (int m = 0; m < CAREFUL_MODELS; m++) {
        json_object_set_new(json, careful_names[m], drive_json(&careful->drives[m]));
    }
    return json;
}
