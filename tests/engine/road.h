/*
 * Road of the tests of pictures and points: along x from -100 m to 300 m, 8 m wide, with a solid
 * line on either side. It points into itself and so must stay where it is.
 */
#ifndef SWERVE_TESTS_ENGINE_ROAD_H
#define SWERVE_TESTS_ENGINE_ROAD_H

#include "engine/sensors/raster.h"
#include "schemas/scenario.h"
#include "tests/harness.h"

struct road {
    struct vec2 points[2];
    double widths[2];
    struct lane lane;
    struct map map;
};

/* The caller destroys the layers. */
static inline struct raster_layers *road_init(struct road *road)
{
    struct raster_layers *layers = NULL;
    struct error error;
    road->points[0] = (struct vec2){-100, 0};
    road->points[1] = (struct vec2){300, 0};
    road->widths[0] = road->widths[1] = 8.0;
    road->lane = (struct lane){.point_count = 2,
                               .centre_line = road->points,
                               .width_m = road->widths,
                               .left = -1,
                               .right = -1,
                               .left_marking = MARKING_SOLID,
                               .right_marking = MARKING_SOLID};
    road->map = (struct map){.lane_count = 1, .lanes = &road->lane};
    EXPECT_OK(raster_layers_create(&road->map, &layers, &error), error);
    return layers;
}

#endif
