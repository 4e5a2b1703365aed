/*
 * Draw list: what goes up of a slot's layout in place of its bytes, when the device draws it: the
 * agents that a lidar may see, prepared with the host's trigonometry, and where the map is sampled.
 * One per slot lies in pinned memory, the head, then its agents, then what the cameras need; only
 * the bytes in use cross the bus. The layout that comes of it (kernels/cuda/student/draw_list*.cu)
 * has the bytes of engine/sensors/layout.c.
 *
 * What does not fit (more agents, say) the host draws: device_slot.given says so.
 */
#ifndef SWERVE_KERNELS_DRAW_LIST_H
#define SWERVE_KERNELS_DRAW_LIST_H

#include "kernels/lidar.h"
#include "kernels/raster.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DRAW_LIST_HALVES = 2,       /* of the window, along v: each a grid of kernels/lidar.h */
    DRAW_LIST_AGENTS_MAX = 128, /* within the window and between it and the sensor */
    DRAW_LIST_ALIGN = 16,       /* of the parts */
    DRAW_LIST_CAMERA_BYTES_MAX = 64 << 10, /* the shipped library: 25 KB at most, 3.6 on average */
};

/* The conditioning, ego and the window's place are in the slot's record (kernels/device.h). */
struct draw_list {
    uint32_t bytes; /* in use, from here on; a multiple of DRAW_LIST_ALIGN */
    uint32_t map;   /* its number; not read with conditioning none */
    uint32_t
        agent_count; /* of struct lidar_agent, behind this head; 0 but with conditioning agents */
    uint32_t camera_at;    /* where the cameras' part begins, in bytes from here */
    uint32_t camera_bytes; /* 0: none */
    uint32_t reserved[3];
    double visibility_m;
    double x_min_m, y_min_m[DRAW_LIST_HALVES]; /* the halves' corners as the sensor sees them */
    struct raster_window windows[DRAW_LIST_HALVES]; /* texels NULL: those of the map */
};

/* A multiple of DRAW_LIST_ALIGN, as are the agents' bytes, rounded up. */
enum {
    DRAW_LIST_AGENTS_BYTES_MAX = DRAW_LIST_AGENTS_MAX * (int)sizeof(struct lidar_agent),
    DRAW_LIST_BYTES_MAX =
        (int)sizeof(struct draw_list) + DRAW_LIST_AGENTS_BYTES_MAX + DRAW_LIST_CAMERA_BYTES_MAX,
};

/* Bytes of a draw list with so many agents and nothing for the cameras. */
BOTH_FN uint32_t draw_list_bytes(uint32_t agent_count)
{
    uint32_t bytes =
        (uint32_t)(sizeof(struct draw_list) + agent_count * sizeof(struct lidar_agent));
    return (bytes + DRAW_LIST_ALIGN - 1) / DRAW_LIST_ALIGN * DRAW_LIST_ALIGN;
}

/* The agents of a draw list that lies in memory of DRAW_LIST_BYTES_MAX. */
BOTH_FN struct lidar_agent *draw_list_agents(struct draw_list *draw_list)
{
    return (struct lidar_agent *)(draw_list + 1);
}

BOTH_FN const struct lidar_agent *draw_list_agents_of(const struct draw_list *draw_list)
{
    return (const struct lidar_agent *)(draw_list + 1);
}

#endif
