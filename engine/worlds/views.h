/*
 * Drawing a view: from a request of the worker's (engine/worlds/world.h) to the record
 * that a device reads (kernels/device.h). Pure: all trigonometry of an observation is here and in
 * layout_walk, so that the device only adds integers.
 */
#ifndef SWERVE_ENGINE_WORLDS_VIEWS_H
#define SWERVE_ENGINE_WORLDS_VIEWS_H

#include "engine/sensors/layout.h"
#include "engine/worlds/world.h"
#include "kernels/device.h"

#include <stdbool.h>

/* The slot that is looked at. */
struct views_source {
    const struct prepared *prepared;
    const struct scene *scene;
    const struct anchor *anchor;
    enum conditioning conditioning;
    uint32_t map;         /* of the prepared scenario on the device, or DEVICE_NO_MAP */
    bool lost;            /* nothing is seen; window and page_frame are not read then */
    struct window window; /* of its newest frame */
    uint32_t page_frame;  /* where the device has that */
};

/* planes: drivable area and markings [2][BEV_CELLS], written where the grid is drawn and neither
 * the frame nor a map on the device has them; NULL: views have no grid. */
void views_record(const struct world_view *view, const struct views_source *source,
                  struct device_view *record, uint8_t *planes);

#endif
