/*
 * Drives as the device takes them: rows, draws and contexts one after the other.
 */
#include "engine/tinyphysics/tinyphysics_device.h"

#include "engine/tinyphysics/tinyphysics_entry.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = DEVICE_ROLLOUT_ROWS };

_Static_assert((int)ROWS == (int)TINYPHYSICS_COST_END, "the device has room for what costs");

struct drive_memory {
    struct tinyphysics_entry *entry;
    double *rows, *uniforms, *actions, *lataccel;
    uint32_t *ends;
};

static enum status make_memory(struct drive_memory *memory, size_t count, struct error *error)
{
    memory->entry = malloc(sizeof *memory->entry);
    memory->rows = calloc(count, ROWS * DEVICE_ROLLOUT_NUMBERS * sizeof *memory->rows);
    memory->uniforms = calloc(count, ROWS * sizeof *memory->uniforms);
    memory->actions = calloc(count, ROWS * sizeof *memory->actions);
    memory->lataccel = calloc(count, ROWS * sizeof *memory->lataccel);
    memory->ends = calloc(count, sizeof *memory->ends);
    TRY(memory_check(memory->entry, error, "no memory for tinyphysics"));
    TRY(memory_check(memory->rows, error, "no memory for %zu drives", count));
    TRY(memory_check(memory->uniforms, error, "no memory for %zu drives", count));
    TRY(memory_check(memory->actions, error, "no memory for %zu drives", count));
    TRY(memory_check(memory->lataccel, error, "no memory for %zu drives", count));
    return memory_check(memory->ends, error, "no memory for %zu drives", count);
}

static void free_memory(struct drive_memory *memory)
{
    free(memory->entry);
    free(memory->rows);
    free(memory->uniforms);
    free(memory->actions);
    free(memory->lataccel);
    free(memory->ends);
}

static void fill(struct drive_memory *memory, size_t index, const struct tinyphysics_drive *drive)
{
    const struct controls_log *log = drive->log;
    const uint32_t end = log->count < ROWS ? log->count : ROWS;
    memory->ends[index] = end;
    tinyphysics_episode_uniforms(drive->seed, end, memory->uniforms + index * ROWS);
    for (uint32_t row = 0; row < end; row++) {
        const struct controls_row *from = &log->rows[row];
        const double numbers[DEVICE_ROLLOUT_NUMBERS] = {from->target_mps2, from->roll_lataccel_mps2,
                                                        from->v_ego_mps, from->a_ego_mps2,
                                                        from->steer};
        memcpy(memory->rows + (index * ROWS + row) * DEVICE_ROLLOUT_NUMBERS, numbers,
               sizeof numbers);
    }
    for (uint32_t row = 0; row < TINYPHYSICS_CONTEXT; row++) {
        memory->actions[index * ROWS + row] = log->rows[row].steer;
        memory->lataccel[index * ROWS + row] = log->rows[row].target_mps2;
    }
}

enum status tinyphysics_device_run(const struct device *device,
                                   const struct tinyphysics_weights *weights,
                                   enum tinyphysics_controller controller,
                                   struct tinyphysics_drive *drives, uint32_t count,
                                   double *device_s, struct error *error)
{
    struct drive_memory memory = {0};
    struct device_rollouts job = {
        .weights = weights, .count = count, .controlled = controller == TINYPHYSICS_PID};
    enum status status = make_memory(&memory, count, error);
    if (status == STATUS_OK) {
        tinyphysics_entry_make(weights, memory.entry);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        fill(&memory, i, &drives[i]);
    }
    job.entry = memory.entry;
    job.rows = memory.rows;
    job.uniforms = memory.uniforms;
    job.ends = memory.ends;
    job.actions = memory.actions;
    job.lataccel = memory.lataccel;
    THEN(status, device_rollouts_run(device, &job, error));
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        const struct tinyphysics_episode driven = {
            .log = drives[i].log,
            .step = memory.ends[i],
            .end = memory.ends[i],
            .lataccel_mps2 = memory.lataccel + (size_t)i * ROWS,
        };
        drives[i].costs = tinyphysics_episode_costs(&driven);
    }
    *device_s = job.device_ms * 1e-3;
    free_memory(&memory);
    return status;
}
