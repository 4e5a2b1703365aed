/*
 * Statistics of a generated frame, as the worker's health checks read them.
 */
#ifndef SWERVE_ENGINE_LEARNED_FRAME_STATS_H
#define SWERVE_ENGINE_LEARNED_FRAME_STATS_H

#include "kernels/agent_sums.h"

#include <stdbool.h>
#include <stdint.h>

/* Measures of one agent in a frame (engine/learned/agent_measure.h). */
struct agent_stats {
    uint32_t agent; /* index in the scenario */
    bool vru;
    double due_cells;     /* returns that the conditioning raster has of it */
    double missing_share; /* of these, without a generated return in or beside their cell, 0..1 */
    double offset_m;      /* between the middles of both, NAN where there is too little of one */
};

enum { FRAME_FAULT_BYTES = 384 };

/* Measures by a learned world of the frame it just committed; the worker judges it. */
struct frame_stats {
    uint32_t tick;
    uint64_t not_finite;    /* latents that were NaN or infinite, or lost with a spilled page */
    double saturated_share; /* of all latents */
    double bev_change;      /* mean absolute change of occupancy where both frames reach, 0..1 */
    double camera_change;   /* mean absolute change of the cameras, 0..1 */
    double occupancy_cells; /* summed occupancy, in cells */
    double vru_cells;
    double layout_cells;       /* the same of the noise-free layout (agents), else NAN */
    double layout_iou;         /* soft overlap with the layout's occupancy (agents), else NAN */
    double surplus_cells;      /* returns where the layout has none (agents), else NAN .. */
    double surplus_vru_cells;  /* .. of vulnerable road users */
    double camera_layout_corr; /* correlation of the cameras with their layout, -1..1, as they are
                                  or in what differs between left and right, the worse; NAN: none */
    double ego_step_m;         /* ego's motion in this tick */
    double jump_m;             /* largest unexplained step of an extracted agent (map, none) */
    uint32_t lost_agents;      /* extracted agents that vanished in view (map, none) */
    uint32_t horizon_ticks;    /* trusted horizon of the model with this conditioning */
    uint32_t agent_count;      /* agents near the window (agents), else 0 */
    struct agent_stats agents[AGENT_GATES_MAX];
    /* Of a world that shows what was recorded: the drive has left it, by so much in metres or
     * radians, of ego (-1) or an agent; or it goes on longer than the recording, in ticks. */
    bool diverged;
    int32_t diverged_agent;
    double diverged_by, diverged_max;
    char fault[FRAME_FAULT_BYTES]; /* of a foreign world: how it broke its word; "": it kept it */
    bool outage; /* it is no fault of the world's: who serves it cannot be reached any more */
};

#endif
