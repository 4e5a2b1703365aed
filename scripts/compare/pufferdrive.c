/*
 * Steps environments of PufferDrive's Drive on one map, one after the other, and prints how many
 * steps of all of them a time of processor took. Compiled by pufferdrive.py against a checkout of
 * PufferDrive, whose drive.h is copied with the calls of compute_observations behind a switch: its
 * step has none.
 *
 * usage: pufferdrive MAP observed|blind ENVIRONMENTS SECONDS
 */
static int observing;
#include "drive_switched.h"

static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Settings of PufferDrive's own drive.ini. */
static Drive drive_of(char *map)
{
    return (Drive){
        .dynamics_model = CLASSIC,
        .reward_vehicle_collision = -0.5f,
        .reward_offroad_collision = -0.5f,
        .reward_goal = 1.0f,
        .reward_goal_post_respawn = 0.25f,
        .goal_radius = 2.0f,
        .goal_speed = 100.0f,
        .goal_target_distance = 25.0f,
        .dt = 0.1f,
        .episode_length = 91,
        .termination_mode = 1,
        .control_mode = CONTROL_VEHICLES,
        .init_mode = INIT_ALL_VALID,
        .map_name = map,
    };
}

int main(int argc, char **argv)
{
    enum { DRAWN = 1024, ACTIONS = 7 * 13 };
    int count = argc == 5 ? atoi(argv[3]) : 0;
    if (count < 1) {
        fprintf(stderr, "usage: %s MAP observed|blind ENVIRONMENTS SECONDS\n", argv[0]);
        return 2;
    }
    observing = strcmp(argv[2], "observed") == 0;
    double limit_s = atof(argv[4]);
    Drive *drives = calloc((size_t)count, sizeof *drives);
    for (int k = 0; k < count; k++) {
        drives[k] = drive_of(argv[1]);
        allocate(&drives[k]);
        c_reset(&drives[k]);
    }
    int agents = drives[0].active_agent_count;
    int *drawn = malloc(sizeof(int) * DRAWN * (size_t)(agents + 1));
    srand(1);
    for (int i = 0; i < DRAWN * agents; i++) {
        drawn[i] = rand() % ACTIONS;
    }
    long steps = 0;
    double began_s = processor_s();
    double took_s = 0.0;
    while (took_s < limit_s) {
        for (int k = 0; k < count; k++, steps++) {
            memcpy(drives[k].actions, drawn + (steps % DRAWN) * agents,
                   sizeof(int) * (size_t)agents);
            c_step(&drives[k]);
        }
        took_s = processor_s() - began_s;
    }
    printf("{\"agents\": %d, \"steps\": %ld, \"seconds\": %.6f}\n", agents, steps, took_s);
    return 0;
}
