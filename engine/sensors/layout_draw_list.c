/*
 * Layout, described for a device that draws it (kernels/draw_list.h): which agents a lidar may see,
 * turned into the sensor's frame, and where the map is sampled. Everything that needs the host's
 * trigonometry or its map is done here; layout.c draws the same on the CPU.
 */
#include "engine/sensors/layout_internal.h"
#include "engine/sensors/prepared_internal.h"
#include "kernels/draw_list.h"

#include <string.h>

static bool describe_agents(const struct prepared *prepared, const struct scene *scene,
                            const struct raster_view *view, struct draw_list *draw_list)
{
    struct lidar_agent *agents = draw_list_agents(draw_list);
    if (!raster_lidar_agents(prepared->scenario, scene, view, DRAW_LIST_AGENTS_MAX, agents,
                             &draw_list->agent_count)) {
        return false;
    }
    for (uint32_t i = 0; i < draw_list->agent_count; i++) {
        double speed = scene->agents[agents[i].agent].speed_mps;
        agents[i].velocity[0] = layout_velocity_byte(speed * agents[i].cos_heading);
        agents[i].velocity[1] = layout_velocity_byte(speed * agents[i].sin_heading);
    }
    return true;
}

bool layout_describe(const struct prepared *prepared, const struct scene *scene,
                     const struct anchor *anchor, struct window window,
                     enum conditioning conditioning, uint32_t map, struct draw_list *draw_list)
{
    bool fits = true;
    memset(draw_list, 0, sizeof *draw_list);
    draw_list->map = map;
    draw_list->visibility_m = scene->conditions.visibility_m;
    for (int half = 0; half < DRAW_LIST_HALVES; half++) {
        struct raster_view view = layout_half_view(scene, anchor, window, half);
        draw_list->x_min_m = view.x_min_m;
        draw_list->y_min_m[half] = view.y_min_m;
        /* The halves see the same agents: those between the window's bounds and the sensor. */
        if (half == 0 && conditioning == CONDITIONING_AGENTS &&
            !describe_agents(prepared, scene, &view, draw_list)) {
            draw_list->agent_count = 0;
            fits = false;
        }
        if (conditioning != CONDITIONING_NONE) {
            view = layout_map_view(anchor, window, half);
            raster_map_window(prepared->layers, &view, &draw_list->windows[half]);
            draw_list->windows[half].texels = NULL;
        }
    }
    draw_list->bytes = draw_list_bytes(draw_list->agent_count);
    return fits;
}
