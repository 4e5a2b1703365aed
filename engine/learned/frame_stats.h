/*
 * Signs of a generated frame, as the worker's health checks read them.
 */
#ifndef SWERVE_ENGINE_LEARNED_FRAME_STATS_H
#define SWERVE_ENGINE_LEARNED_FRAME_STATS_H

#include <stdint.h>

/* What a learned world measured of the frame it just committed; the worker judges it. */
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
    double camera_layout_corr; /* correlation of the cameras with their layout, -1..1, as they are
                                  or in what differs between left and right, the worse; NAN: none */
    double ego_step_m;         /* ego's motion in this tick */
    double jump_m;             /* largest unexplained step of an extracted agent (map, none) */
    uint32_t lost_agents;      /* extracted agents that vanished in view (map, none) */
    uint32_t horizon_ticks;    /* trusted horizon of the model in this degree */
};

#endif
