/*
 * Parts that all worlds share: their tables by tier, the bounds of a batch.
 */
#include "engine/worlds/world_internal.h"

enum status world_check_slots(const char *name, uint32_t slot_count, struct error *error)
{
    if (slot_count < 1 || slot_count > LIMIT_SLOTS) {
        return error_set(error, STATUS_LIMIT, "world %s: expected 1..%d slots, found %u", name,
                         LIMIT_SLOTS, slot_count);
    }
    return STATUS_OK;
}

const struct world_ops *world_ops_for_tier(enum tier tier)
{
    switch (tier) {
    case TIER_OBJECT:
        return &world_object_ops;
    case TIER_REPLAY:
        return &world_replay_ops;
    case TIER_STUDENT:
        return &world_student_ops;
    case TIER_TEACHER:
        return &world_teacher_ops;
    case TIER_GOLDEN: /* worker/golden: it comes with its recordings (foreign.h, native) */
    case TIER_COUNT:
        break;
    }
    return NULL;
}
