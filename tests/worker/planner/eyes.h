/*
 * A planner of version 4 that is shown made-up frames: which ones, and the law that it drives by,
 * so that the ways to it (in this process, apart, in Python) can be compared.
 */
#ifndef SWERVE_TESTS_WORKER_PLANNER_EYES_H
#define SWERVE_TESTS_WORKER_PLANNER_EYES_H

#include "schemas/planner.h"

/* Sums of powers of two: the same bits in every language. */
static inline struct swerve_action eyes_law(const struct swerve_sensors *sensors)
{
    struct swerve_action action = {0.0, 0.0};
    for (uint32_t i = 0; i < sensors->count; i++) {
        const struct swerve_sensor *sensor = &sensors->sensors[i];
        const uint8_t *newest = sensor->frames + (sensor->count - 1) * sensor->stride;
        const uint32_t bytes = sensor->bytes[sensor->count - 1];
        const double sum = newest[0] + 3.0 * newest[bytes - 1] + 5.0 * newest[bytes / 2];
        action.accel_mps2 -= sum * 0.0009765625 * (i + 1);
        action.steer_rad += (double)sensor->time_ns[sensor->count - 1] * 0x1p-40;
        action.steer_rad += (sensor->width + 2.0 * sensor->height) * 0x1p-20;
    }
    return action;
}

#ifdef SWERVE_TESTS_HARNESS_H

#include "worker/planner/planner.h"

enum { EYES_SESSIONS = 3, EYES_TICKS = 4, EYES_BYTES = 1280 * 720 * 3 };

/* A wide camera packed as JPEG, the grid, and a plain camera of odd size. */
#define EYES_CHOICE "{\"sensors\":[{\"id\":\"wide\",\"encoding\":\"jpeg:90\"},\"bev\",\"small\"]}"

static inline void eyes_rig(struct rig *out)
{
    rig_swerve(out);
    strcpy(out->id, "eyes");
    strcpy(out->cameras[0].id, "wide");
    out->cameras[0].width = 1280;
    out->cameras[0].height = 720;
    strcpy(out->cameras[1].id, "small");
    out->cameras[1].width = 33;
    out->cameras[1].height = 17;
}

/* Drives sessions that are shown bytes of their own; actions [EYES_TICKS][EYES_SESSIONS]. */
static inline void eyes_drive(struct planner *planner,
                              struct swerve_action actions[EYES_TICKS][EYES_SESSIONS])
{
    static uint8_t frames[EYES_SESSIONS][3][EYES_BYTES];
    const struct rig_choice *choice = planner_choice(planner);
    struct error error = {0};
    EXPECT_INT(choice->count, 3);
    for (uint32_t i = 0; i < EYES_SESSIONS; i++) {
        const struct swerve_episode episode = {
            .session = i, .horizon_ticks = 9, .tick_s = 0.1, .scenario_id = "s", .prompt = "p"};
        EXPECT_OK(planner_reset(planner, &episode, &error), error);
    }
    for (uint32_t tick = 0; tick < EYES_TICKS; tick++) {
        struct swerve_observation seen[EYES_SESSIONS] = {0};
        struct swerve_sensor list[EYES_SESSIONS][3] = {0};
        struct swerve_sensors sensors[EYES_SESSIONS];
        uint8_t failed[EYES_SESSIONS];
        for (uint32_t i = 0; i < EYES_SESSIONS; i++) {
            seen[i] = (struct swerve_observation){.session = i, .tick = tick};
            sensors[i] = (struct swerve_sensors){.count = 3, .sensors = list[i]};
            for (uint32_t k = 0; k < 3; k++) {
                const struct rig_chosen *chosen = &choice->sensors[k];
                struct swerve_sensor *sensor = &list[i][k];
                const size_t room = rig_chosen_bytes(planner_rig(planner), chosen);
                memset(frames[i][k], (int)(7 * i + 3 * k + 5 * tick), room);
                strcpy(sensor->id, rig_chosen_id(planner_rig(planner), chosen));
                sensor->format = k == 0   ? SWERVE_FORMAT_JPEG
                                 : k == 1 ? SWERVE_FORMAT_GRID
                                          : SWERVE_FORMAT_RGB8;
                rig_chosen_size(planner_rig(planner), chosen, &sensor->width, &sensor->height);
                sensor->count = 1;
                sensor->frames = frames[i][k];
                sensor->stride = room;
                sensor->bytes[0] = (uint32_t)(k == 0 ? 4000 + i : room);
                frames[i][k][sensor->bytes[0] - 1] = (uint8_t)(11 + tick);
                sensor->time_ns[0] = 100000000 * (int64_t)tick - 1;
            }
        }
        EXPECT_OK(planner_drive(planner, EYES_SESSIONS, seen, NULL, sensors, actions[tick], failed,
                                &error),
                  error);
        for (uint32_t i = 0; i < EYES_SESSIONS; i++) {
            const struct swerve_action right = eyes_law(&sensors[i]);
            EXPECT(memcmp(&right, &actions[tick][i], sizeof right) == 0);
        }
    }
    EXPECT(memcmp(&actions[1][0], &actions[1][1], sizeof actions[1][0]) != 0);
}

#endif
#endif
