/*
 * Layout, described for a device that draws it (kernels/drawing.h): which agents a lidar may see,
 * turned into the sensor's frame, and where the map is sampled. Everything that needs the host's
 * trigonometry or its map is done here; layout.c draws the same on the CPU.
 */
#include "engine/sensors/layout_internal.h"
#include "engine/sensors/stage_internal.h"
#include "kernels/drawing.h"

#include <string.h>

static bool describe_agents(const struct stage *stage, const struct scene *scene,
                            const struct raster_view *view, struct drawing *drawing)
{
    struct lidar_agent *agents = drawing_agents(drawing);
    if (!raster_lidar_agents(stage->scenario, scene, view, DRAWING_AGENTS_MAX, agents,
                             &drawing->agent_count)) {
        return false;
    }
    for (uint32_t i = 0; i < drawing->agent_count; i++) {
        double speed = scene->agents[agents[i].agent].speed_mps;
        agents[i].velocity[0] = layout_velocity_byte(speed * agents[i].cos_heading);
        agents[i].velocity[1] = layout_velocity_byte(speed * agents[i].sin_heading);
    }
    return true;
}

bool layout_describe(const struct stage *stage, const struct scene *scene,
                     const struct anchor *anchor, struct window window, enum layout_degree degree,
                     uint32_t map, struct drawing *drawing)
{
    bool fits = true;
    memset(drawing, 0, sizeof *drawing);
    drawing->map = map;
    drawing->visibility_m = scene->conditions.visibility_m;
    for (int half = 0; half < DRAWING_HALVES; half++) {
        struct raster_view view = layout_half_view(scene, anchor, window, half);
        drawing->x_min_m = view.x_min_m;
        drawing->y_min_m[half] = view.y_min_m;
        /* The halves see the same agents: those between the window's bounds and the sensor. */
        if (half == 0 && degree == LAYOUT_AGENTS &&
            !describe_agents(stage, scene, &view, drawing)) {
            drawing->agent_count = 0;
            fits = false;
        }
        if (degree != LAYOUT_NONE) {
            view = layout_map_view(anchor, window, half);
            raster_map_window(stage->layers, &view, &drawing->windows[half]);
            drawing->windows[half].texels = NULL;
        }
    }
    drawing->bytes = drawing_bytes(drawing->agent_count);
    return fits;
}
