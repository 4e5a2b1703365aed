/*
 * Batches of drives, each from its start to its end on the thread that took it.
 */
#include "engine/tinyphysics/tinyphysics_run.h"

#include <stdatomic.h>

const char *const tinyphysics_controller_names[TINYPHYSICS_CONTROLLER_COUNT] = {"pid", "zero"};

struct run {
    const struct tinyphysics_model *model;
    enum tinyphysics_controller controller;
    struct tinyphysics_drive *drives;
    atomic_bool failed; /* for want of memory */
};

static double controller_action(enum tinyphysics_controller controller, struct tinyphysics_pid *pid,
                                const struct tinyphysics_episode *episode)
{
    if (controller == TINYPHYSICS_ZERO) {
        return 0.0;
    }
    return tinyphysics_pid_update(pid, episode->log->rows[episode->step].target_mps2,
                                  tinyphysics_episode_lataccel(episode));
}

/* Logs may differ in length: an episode that is done leaves the batch. */
static enum status drive_batch(const struct run *run, struct tinyphysics_workspace *workspace,
                               struct tinyphysics_episode *episodes, uint32_t count)
{
    struct tinyphysics_pid pids[TINYPHYSICS_BATCH] = {{0}};
    uint32_t left;
    do {
        struct tinyphysics_episode *batch[TINYPHYSICS_BATCH];
        double actions[TINYPHYSICS_BATCH];
        left = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (!tinyphysics_episode_done(&episodes[i])) {
                actions[left] = controller_action(run->controller, &pids[i], &episodes[i]);
                batch[left++] = &episodes[i];
            }
        }
        TRY(tinyphysics_episode_step(run->model, workspace, batch, actions, left, NULL));
    } while (left > 0);
    return STATUS_OK;
}

/* Drives first .. first + count - 1 in one batch. */
static enum status run_batch(const struct run *run, struct tinyphysics_workspace *workspace,
                             uint32_t first, uint32_t count)
{
    struct tinyphysics_episode episodes[TINYPHYSICS_BATCH] = {{0}};
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count; i++) {
        const struct tinyphysics_drive *drive = &run->drives[first + i];
        THEN(status, tinyphysics_episode_start(&episodes[i], drive->log, drive->seed, NULL));
    }
    THEN(status, drive_batch(run, workspace, episodes, count));
    for (uint32_t i = 0; i < count; i++) {
        if (status == STATUS_OK) {
            run->drives[first + i].costs = tinyphysics_episode_costs(&episodes[i]);
        }
        tinyphysics_episode_end(&episodes[i]);
    }
    return status;
}

static void run_chunk(void *context, uint32_t first, uint32_t end)
{
    struct run *run = context;
    struct tinyphysics_workspace *workspace = NULL;
    enum status status = tinyphysics_workspace_make(&workspace, NULL);
    const uint32_t part = tinyphysics_part(end - first, TINYPHYSICS_BATCH);
    while (status == STATUS_OK && first < end) {
        const uint32_t count = end - first < part ? end - first : part;
        status = run_batch(run, workspace, first, count);
        first += count;
    }
    if (status != STATUS_OK) {
        atomic_store(&run->failed, true);
    }
    tinyphysics_workspace_free(workspace);
}

enum status tinyphysics_run(const struct tinyphysics_model *model,
                            enum tinyphysics_controller controller, struct threads *threads,
                            struct tinyphysics_drive *drives, uint32_t count, struct error *error)
{
    struct run run = {.model = model, .controller = controller, .drives = drives};
    const uint32_t share = (count + threads_count(threads) - 1) / threads_count(threads);
    threads_run(threads, count, tinyphysics_part(share, TINYPHYSICS_BATCH), run_chunk, &run);
    if (atomic_load(&run.failed)) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to drive %u logs", count);
    }
    return STATUS_OK;
}
