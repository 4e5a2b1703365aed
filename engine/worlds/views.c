/*
 * Records of views. See views.h.
 */
#include "engine/worlds/views.h"

/* A lost rollout sees nothing. */
static uint8_t device_view_update(enum view_update look, bool lost)
{
    static const uint8_t looks[] = {
        [VIEW_KEEP] = DEVICE_VIEW_KEEP,
        [VIEW_DRAW] = DEVICE_VIEW_DRAW,
        [VIEW_CLEAR] = DEVICE_VIEW_CLEAR,
    };
    return lost && look == VIEW_DRAW ? (uint8_t)DEVICE_VIEW_NOTHING : looks[look];
}

void views_record(const struct world_view *view, const struct views_source *source,
                  struct device_view *record, uint8_t *planes)
{
    *record = (struct device_view){
        .view = view->view,
        .conditioning = (uint32_t)source->conditioning,
        .bev = device_view_update(view->bev, source->lost),
        .map = DEVICE_NO_MAP,
    };
    for (int i = 0; i < CAMERA_COUNT; i++) {
        record->camera[i] = device_view_update(view->cameras[i], source->lost);
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
    if (planes == NULL || record->bev != DEVICE_VIEW_DRAW ||
        source->conditioning == CONDITIONING_NONE) {
        return;
    }
    record->map = source->map;
    if (source->map != DEVICE_NO_MAP) {
        layout_observe_window(source->prepared, source->scene, &record->window);
        record->window.texels = NULL;
    } else {
        layout_observe_map(source->prepared, source->scene, planes);
    }
}
