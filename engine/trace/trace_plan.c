/*
 * Planners' trajectories and perceived objects in trace artifacts. See trace_plan.h.
 *
 * The reader checks order, sizes and numbers once; who walks the records then does not look again.
 */
#include "engine/trace/trace_plan.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Nothing that a planner may answer lies farther away, in metres (schemas/planner.md). */
#define REACH_M 20000.0f

enum { CAPACITY_MIN_BYTES = 8192 };

static size_t record_bytes(const struct trace_plan *head)
{
    return sizeof *head + head->point_count * sizeof(struct trace_plan_point) +
           head->object_count * sizeof(struct trace_plan_object);
}

static uint8_t *reserve(struct trace_plans *plans, size_t bytes)
{
    if (plans->capacity_bytes - plans->bytes < bytes) {
        size_t capacity = 2 * plans->capacity_bytes + CAPACITY_MIN_BYTES;
        uint8_t *data = realloc(plans->data, capacity);
        if (data == NULL) {
            return NULL;
        }
        plans->data = data;
        plans->capacity_bytes = capacity;
    }
    return plans->data + plans->bytes;
}

/* Writes so many points, chosen evenly, the first and the last among them. */
static void put_points(uint8_t *out, uint32_t count, struct vec2 ego,
                       const struct swerve_answer *answer)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = count > 1 ? i * (answer->point_count - 1) / (count - 1) : 0;
        const struct swerve_trajectory_point *point = &answer->points[from];
        const struct trace_plan_point kept = {
            (float)point->t_s,
            (float)(point->x_m - ego.x_m),
            (float)(point->y_m - ego.y_m),
        };
        memcpy(out + i * sizeof kept, &kept, sizeof kept);
    }
}

static void put_objects(uint8_t *out, uint32_t count, struct vec2 ego,
                        const struct swerve_surroundings *around)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_object *object = &around->objects[i];
        const struct trace_plan_object kept = {
            (float)(object->x_m - ego.x_m), (float)(object->y_m - ego.y_m),
            (float)object->heading_rad,     (float)object->length_m,
            (float)object->width_m,
        };
        memcpy(out + i * sizeof kept, &kept, sizeof kept);
    }
}

static uint32_t at_most(uint32_t count, uint32_t most)
{
    return count < most ? count : most;
}

void trace_keep_plan(struct trace *trace, uint32_t tick, struct vec2 ego,
                     const struct swerve_answer *answer, const struct swerve_surroundings *around)
{
    struct trace_plans *plans = &trace->plans;
    bool perceived = around != NULL && (around->objects_source == SWERVE_OBJECTS_SEEN ||
                                        around->objects_source == SWERVE_OBJECTS_GENERATED);
    const struct trace_plan head = {
        .tick = tick,
        .point_count = at_most(answer->point_count, TRACE_PLAN_POINTS_MAX),
        .object_count = perceived ? at_most(around->object_count, TRACE_PLAN_OBJECTS_MAX) : 0,
    };
    size_t bytes = record_bytes(&head);
    uint8_t *out = head.point_count + head.object_count > 0 ? reserve(plans, bytes) : NULL;
    if (out == NULL) {
        return;
    }
    memcpy(out, &head, sizeof head);
    put_points(out + sizeof head, head.point_count, ego, answer);
    put_objects(out + sizeof head + head.point_count * sizeof(struct trace_plan_point),
                head.object_count, ego, around);
    plans->bytes += bytes;
    plans->count++;
}

size_t trace_plan_bytes(const struct trace *const *traces, uint32_t count, size_t room)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += traces[i]->plans.bytes;
    }
    bytes += bytes > 0 ? sizeof(struct trace_plan_header) : 0;
    return bytes <= room ? bytes : 0;
}

void trace_plan_pack(const struct trace *const *traces, uint32_t count, size_t bytes, uint8_t *out)
{
    struct trace_plan_header header = {.plan_count = 0};
    if (bytes == 0) {
        return;
    }
    uint8_t *at = out + sizeof header;
    for (uint32_t i = 0; i < count; i++) {
        const struct trace_plans *plans = &traces[i]->plans;
        for (size_t from = 0; from < plans->bytes;) {
            struct trace_plan head;
            memcpy(&head, plans->data + from, sizeof head);
            size_t size = record_bytes(&head);
            memcpy(at, plans->data + from, size);
            memcpy(at + offsetof(struct trace_plan, rollout), &i, sizeof i);
            at += size;
            from += size;
        }
        header.plan_count += plans->count;
    }
    memcpy(header.magic, TRACE_PLAN_MAGIC, sizeof header.magic);
    memcpy(out, &header, sizeof header);
    CHECK((size_t)(at - out) == bytes);
}

/* ---- reading ---- */

static void read_record(const uint8_t *at, struct trace_plan_view *out)
{
    memcpy(&out->head, at, sizeof out->head);
    at += sizeof out->head;
    memcpy(out->points, at, out->head.point_count * sizeof *out->points);
    at += out->head.point_count * sizeof *out->points;
    memcpy(out->objects, at, out->head.object_count * sizeof *out->objects);
}

static bool is_near(float value)
{
    return isfinite(value) && fabsf(value) <= REACH_M;
}

/* Whether every number of a record is one that can be drawn. */
static bool is_drawable(const struct trace_plan_view *plan)
{
    bool good = true;
    for (uint32_t i = 0; i < plan->head.point_count; i++) {
        const struct trace_plan_point *point = &plan->points[i];
        good = good && is_near(point->t_s) && is_near(point->x_m) && is_near(point->y_m);
    }
    for (uint32_t i = 0; i < plan->head.object_count; i++) {
        const struct trace_plan_object *object = &plan->objects[i];
        good = good && is_near(object->x_m) && is_near(object->y_m) &&
               is_near(object->heading_rad) && is_near(object->length_m) &&
               is_near(object->width_m);
    }
    return good;
}

enum status trace_plan_read(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                            size_t *used, struct error *error)
{
    struct trace_plan_header header;
    struct trace_plan_view plan;
    size_t at = sizeof header;
    uint64_t last = 0;
    if (bytes < sizeof header || memcmp(data, TRACE_PLAN_MAGIC, sizeof header.magic) != 0) {
        return STATUS_OK;
    }
    memcpy(&header, data, sizeof header);
    for (uint32_t i = 0; i < header.plan_count; i++) {
        struct trace_plan head = {.point_count = UINT32_MAX};
        if (bytes - at >= sizeof head) {
            memcpy(&head, data + at, sizeof head);
        }
        uint64_t key = (uint64_t)head.rollout << 32 | head.tick;
        if (head.point_count > TRACE_PLAN_POINTS_MAX ||
            head.object_count > TRACE_PLAN_OBJECTS_MAX || record_bytes(&head) > bytes - at ||
            head.rollout >= reader->header.rollout_count || (i > 0 && key <= last)) {
            return error_set(error, STATUS_BAD_INPUT,
                             "trace: plan %u: rollout %u, tick %u, %u points and %u objects do not "
                             "fit",
                             i, head.rollout, head.tick, head.point_count, head.object_count);
        }
        read_record(data + at, &plan);
        if (!is_drawable(&plan)) {
            return error_set(error, STATUS_BAD_INPUT,
                             "trace: plan %u: expected places within %.0f m, found another", i,
                             (double)REACH_M);
        }
        last = key;
        at += record_bytes(&head);
    }
    reader->plans = data + sizeof header;
    reader->plans_bytes = at - sizeof header;
    *used += at;
    return STATUS_OK;
}

bool trace_reader_plan_next(const struct trace_reader *reader, int32_t rollout, size_t *at,
                            struct trace_plan_view *out)
{
    while (*at < reader->plans_bytes) {
        struct trace_plan head;
        memcpy(&head, reader->plans + *at, sizeof head);
        if ((int64_t)head.rollout == rollout) {
            read_record(reader->plans + *at, out);
            *at += record_bytes(&head);
            return true;
        }
        *at += record_bytes(&head);
    }
    return false;
}

bool trace_reader_plan(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                       struct trace_plan_view *out)
{
    size_t at = 0;
    rollout = trace_reader_owner(reader, rollout, tick);
    while (rollout >= 0 && trace_reader_plan_next(reader, rollout, &at, out)) {
        if (out->head.tick == tick) {
            return true;
        }
    }
    return false;
}
