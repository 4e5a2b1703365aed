/*
 * Slots of version 4 of the exec protocol: a directory of sensors, then their frames. See
 * planner_wire.h.
 *
 * Where frames lie follows from what each sensor takes at most, so a slot's layout is the same in
 * every tick.
 */
#include "worker/wire/planner_wire.h"

#include "base/check.h"

#include <stddef.h>
#include <string.h>

static size_t page_up(size_t bytes)
{
    return (bytes + WIRE_PLANE_BYTES - 1) / WIRE_PLANE_BYTES * WIRE_PLANE_BYTES;
}

static size_t directory_bytes(uint32_t count)
{
    return page_up(sizeof(struct wire_directory) + count * sizeof(struct wire_sensor));
}

size_t wire_slot_bytes(uint32_t count, const size_t *plane_bytes)
{
    size_t bytes = directory_bytes(count);
    for (uint32_t i = 0; i < count; i++) {
        bytes += page_up(plane_bytes[i]);
    }
    return bytes;
}

/* All that comes before the place of the frames is alike in both records, and all behind it. */
static void copy_but_place(void *to, const void *from)
{
    static const size_t head = offsetof(struct wire_sensor, offset);
    static const size_t rest = offsetof(struct wire_sensor, stride);
    _Static_assert(
        sizeof(struct swerve_sensor) == sizeof(struct wire_sensor) &&
            offsetof(struct swerve_sensor, frames) == offsetof(struct wire_sensor, offset) &&
            offsetof(struct swerve_sensor, stride) == offsetof(struct wire_sensor, stride),
        "a pointer takes the room of a place");
    memcpy(to, from, head);
    memcpy((uint8_t *)to + rest, (const uint8_t *)from + rest, sizeof(struct wire_sensor) - rest);
}

void wire_slot_write(uint8_t *slot, const size_t *plane_bytes, const struct swerve_sensors *sensors)
{
    const struct wire_directory head = {sensors->count, sizeof(struct wire_sensor), 0};
    size_t at = directory_bytes(sensors->count);
    memcpy(slot, &head, sizeof head);
    for (uint32_t i = 0; i < sensors->count; i++) {
        const struct swerve_sensor *from = &sensors->sensors[i];
        struct wire_sensor record;
        copy_but_place(&record, from);
        record.offset = at;
        memcpy(slot + sizeof head + i * sizeof record, &record, sizeof record);
        for (uint32_t k = 0; k < from->count; k++) {
            CHECK(k * from->stride + from->bytes[k] <= plane_bytes[i]);
            memcpy(slot + at + k * from->stride, from->frames + k * from->stride, from->bytes[k]);
        }
        at += page_up(plane_bytes[i]);
    }
}

/* Whether every frame lies within the slot. */
static bool is_inside(const struct wire_sensor *record, size_t slot_bytes)
{
    if (record->count > SWERVE_SENSOR_FRAMES || record->offset > slot_bytes ||
        record->stride > slot_bytes) {
        return false;
    }
    for (uint32_t k = 0; k < record->count; k++) {
        if (record->offset + k * record->stride > slot_bytes ||
            record->bytes[k] > slot_bytes - record->offset - k * record->stride) {
            return false;
        }
    }
    return true;
}

bool wire_slot_read(const uint8_t *slot, size_t slot_bytes, struct swerve_sensor *out, uint32_t max,
                    uint32_t *count)
{
    struct wire_directory head;
    if (slot_bytes < sizeof head) {
        return false;
    }
    memcpy(&head, slot, sizeof head);
    if (head.count > max || head.record_bytes != sizeof(struct wire_sensor) ||
        directory_bytes(head.count) > slot_bytes) {
        return false;
    }
    for (uint32_t i = 0; i < head.count; i++) {
        struct wire_sensor record;
        memcpy(&record, slot + sizeof head + i * sizeof record, sizeof record);
        if (!is_inside(&record, slot_bytes)) {
            return false;
        }
        copy_but_place(&out[i], &record);
        out[i].id[SWERVE_SENSOR_ID_BYTES - 1] = '\0';
        out[i].frames = slot + record.offset;
    }
    *count = head.count;
    return true;
}
