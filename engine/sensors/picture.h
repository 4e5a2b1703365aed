/*
 * Picture: a BEV observation as an RGB image for people (reports, debugging). Pure.
 */
#ifndef SWERVE_ENGINE_SENSORS_PICTURE_H
#define SWERVE_ENGINE_SENSORS_PICTURE_H

#include "schemas/observation.h"

#include <stdint.h>

/* Draws bev [BEV_BYTES] into rgb [BEV_ROWS * scale][BEV_COLS * scale][3], ego looking up: the top
 * row is the farthest ahead, the left column the farthest left. Road grey, markings white, returns
 * orange, unseen darkened, ego blue (a nominal 4.6 m x 1.9 m, for the grid does not hold its size).
 * scale 1..16; above 1 the layers are interpolated. */
void picture_bev(const uint8_t *bev, uint32_t scale, uint8_t *rgb);

#endif
