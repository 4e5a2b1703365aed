/*
 * Pictures of what the cameras and lidars of a rig see: of a scenario's first moment, or of a
 * recorded tick.
 */
#ifndef SWERVE_REPORT_DRAW_DRAW_RIG_H
#define SWERVE_REPORT_DRAW_DRAW_RIG_H

#include "schemas/rig/rig.h"
#include "schemas/scenario.h"
#include "store/api/store.h"

/* Whether every camera's lens can be drawn. */
enum status draw_rig_check(const char *name, const struct rig *rig, struct errors *errors,
                           struct error *error);

/* Writes FOLDER/SENSOR.png of each camera and, from above, of each lidar, the world's first moment;
 * makes the folder. */
enum status draw_rig_start(const struct rig *rig, const struct scenario *scenario, uint64_t seed,
                           const char *folder, struct error *error);

/* The same of a tick of an outcome's drive, drawn anew. NOT_FOUND: it was not recorded. */
enum status draw_rig_tick(const struct rig *rig, struct store *store, const struct outcome *outcome,
                          uint32_t tick, const char *folder, struct error *error);

#endif
