/*
 * Drives of the controls challenge on the device: every steering command and lateral acceleration
 * has the bits of the CPU's. Method: weights and logs made up, rows up to a few beyond row 100,
 * where the network begins; drives of several lengths beside each other, both controllers, all
 * schedules.
 */
#include "base/check.h"
#include "engine/tinyphysics/tinyphysics_entry.h"
#include "engine/tinyphysics/tinyphysics_episode.h"
#include "kernels/cuda/tinyphysics/rollout.h"
#include "tests/cuda/rig.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

enum { DRIVES = 3, ROWS = ROLLOUT_ROWS };

static struct tinyphysics_weights weights;
static struct tinyphysics_entry entry;
static struct controls_row rows[DRIVES][ROWS];
static struct error error;

/* -1 .. 1 */
static float made_up(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7FEB352D;
    x ^= x >> 15;
    x *= 0x846CA68B;
    x ^= x >> 16;
    return ((float)(x >> 16) - 32768.0f) / 32768.0f;
}

static void make_up_norm(struct tinyphysics_norm *norm, uint32_t number)
{
    for (uint32_t i = 0; i < TINYPHYSICS_WIDTH; i++) {
        norm->scale[i] = 1.0f + 0.25f * made_up(number << 20 | i);
    }
}

static void make_up(void)
{
    float *all = (float *)&weights;
    for (uint32_t i = 0; i < sizeof weights / sizeof *all; i++) {
        all[i] = 0.25f * made_up(i);
    }
    for (uint32_t i = 0; i < TINYPHYSICS_BLOCKS; i++) {
        make_up_norm(&weights.blocks[i].attention_norm, 2 * i + 1);
        make_up_norm(&weights.blocks[i].mlp_norm, 2 * i + 2);
    }
    make_up_norm(&weights.last_norm, 2 * TINYPHYSICS_BLOCKS + 1);
    tinyphysics_entry_make(&weights, &entry);
    for (uint32_t i = 0; i < DRIVES * ROWS; i++) {
        rows[i / ROWS][i % ROWS] = (struct controls_row){
            .target_mps2 = 3.0 * (double)made_up(i / 7 + 0x10000000),
            .roll_lataccel_mps2 = 0.3 * (double)made_up(i + 0x20000000),
            .v_ego_mps = 20.0 + (double)made_up(i + 0x30000000),
            .a_ego_mps2 = (double)made_up(i + 0x40000000),
            .steer = 2.5 * (double)made_up(i + 0x50000000), /* beyond what is clipped */
        };
    }
}

/* The same drives on the CPU. */
static void drive_on_cpu(const uint32_t *ends, uint32_t count, bool controlled, double *actions,
                         double *lataccel)
{
    struct tinyphysics_model *model = NULL;
    struct tinyphysics_workspace *workspace = NULL;
    EXPECT_OK(tinyphysics_model_make(&weights, NN_FP32, 0, &model, &error), error);
    EXPECT_OK(tinyphysics_workspace_make(&workspace, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        const struct controls_log log = {ends[i], rows[i]};
        struct tinyphysics_pid pid = {0};
        struct tinyphysics_episode episode;
        struct tinyphysics_episode *one = &episode;
        EXPECT_OK(tinyphysics_episode_start(&episode, &log, 7 + i, &error), error);
        while (!tinyphysics_episode_done(&episode)) {
            double action = tinyphysics_pid_update(&pid, log.rows[episode.step].target_mps2,
                                                   tinyphysics_episode_lataccel(&episode));
            action = controlled ? action : 0.0;
            EXPECT_OK(tinyphysics_episode_step(model, workspace, &one, &action, 1, &error), error);
        }
        memcpy(actions + i * ROWS, episode.actions, ends[i] * sizeof *actions);
        memcpy(lataccel + i * ROWS, episode.lataccel_mps2, ends[i] * sizeof *lataccel);
        tinyphysics_episode_end(&episode);
    }
    tinyphysics_workspace_free(workspace);
    tinyphysics_model_free(model);
}

static void compare(unsigned schedule, const uint32_t *ends, uint32_t count, bool controlled)
{
    static double uniforms[DRIVES * ROWS];
    static double actions[2][DRIVES * ROWS];
    static double lataccel[2][DRIVES * ROWS];
    const size_t bytes = (size_t)count * ROWS * sizeof(double);
    memset(actions, 0, sizeof actions);
    memset(lataccel, 0, sizeof lataccel);
    for (uint32_t i = 0; i < count; i++) {
        tinyphysics_episode_uniforms(7 + i, ends[i], uniforms + i * ROWS);
        for (uint32_t row = 0; row < TINYPHYSICS_CONTEXT; row++) {
            actions[0][i * ROWS + row] = rows[i][row].steer;
            lataccel[0][i * ROWS + row] = rows[i][row].target_mps2;
        }
    }
    rig_begin(schedule);
    const struct rollout r = {
        .count = count,
        .controlled = controlled,
        .weights = rig_upload(&weights, sizeof weights),
        .entry = rig_upload(&entry, sizeof entry),
        .rows = rig_upload(rows, count * sizeof rows[0]),
        .uniforms = rig_upload(uniforms, bytes),
        .ends = rig_upload(ends, count * sizeof *ends),
        .actions = rig_upload(actions[0], bytes),
        .lataccel = rig_upload(lataccel[0], bytes),
    };
    rollout_launch(&r, rig_stream());
    RIG_CHECK(rig_download(actions[0], r.actions, bytes));
    RIG_CHECK(rig_download(lataccel[0], r.lataccel, bytes));
    RIG_CHECK(rig_end());
    drive_on_cpu(ends, count, controlled, actions[1], lataccel[1]);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t row = 0; row < ends[i]; row++) {
            const size_t at = (size_t)i * ROWS + row;
            if (actions[0][at] != actions[1][at] || lataccel[0][at] != lataccel[1][at]) {
                TEST_FAIL("drive %u row %u: expected %a after %a, found %a after %a", i, row,
                          lataccel[1][at], actions[1][at], lataccel[0][at], actions[0][at]);
            }
        }
    }
}

static void drives_have_the_bits_of_the_cpu(void)
{
    static const uint32_t ends[DRIVES] = {101, 102, 100};
    _Static_assert(sizeof(struct controls_row) == ROLLOUT_ROW_NUMBERS * sizeof(double), "as rows");
    make_up();
    compare(0, ends, DRIVES, true);
}

/* Every third one: a step of the network takes the emulator a second. */
static void schedules_do_not_matter(void)
{
    static const uint32_t ends[] = {101};
    for (unsigned schedule = 1; schedule < rig_schedules(); schedule += 3) {
        compare(schedule, ends, 1, schedule % 2 == 0);
    }
}

int main(void)
{
    return TEST_RUN(TEST(drives_have_the_bits_of_the_cpu), TEST(schedules_do_not_matter));
}
