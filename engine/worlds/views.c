/*
 * Records of views. See views.h.
 */
#include "engine/worlds/views.h"

/* A lost rollout sees nothing. */
static uint8_t device_look(enum view_look look, bool lost)
{
    static const uint8_t looks[] = {
        [VIEW_KEEP] = DEVICE_LOOK_KEEP,
        [VIEW_DRAW] = DEVICE_LOOK_DRAW,
        [VIEW_CLEAR] = DEVICE_LOOK_CLEAR,
    };
    return lost && look == VIEW_DRAW ? (uint8_t)DEVICE_LOOK_NOTHING : looks[look];
}

void views_record(const struct world_view *view, const struct views_source *source,
                  struct device_view *record, uint8_t *planes)
{
    *record = (struct device_view){
        .view = view->view,
        .degree = (uint32_t)source->degree,
        .bev = device_look(view->bev, source->lost),
        .map = DEVICE_NO_MAP,
    };
    for (int i = 0; i < CAMERA_COUNT; i++) {
        record->camera[i] = device_look(view->cameras[i], source->lost);
    }
    if (source->lost) {
        return;
    }
    struct layout_walk walk = layout_walk(source->scene, source->anchor, source->window);
    record->page = source->page_frame;
    record->row = walk.row;
    record->col = walk.col;
    record->row_per_row = walk.row_per_row;
    record->col_per_row = walk.col_per_row;
    record->row_per_col = walk.row_per_col;
    record->col_per_col = walk.col_per_col;
    if (planes == NULL || record->bev != DEVICE_LOOK_DRAW || source->degree == LAYOUT_NONE) {
        return;
    }
    record->map = source->map;
    if (source->map != DEVICE_NO_MAP) {
        layout_observe_window(source->stage, source->scene, &record->window);
        record->window.texels = NULL;
    } else {
        layout_observe_map(source->stage, source->scene, planes);
    }
}
