/*
 * Sensors of a rig as MCAP messages: of each camera "/camera/ID" (foxglove.CompressedImage, JPEG)
 * and "/camera/ID/calibration" (foxglove.CameraCalibration), of each lidar "/lidar/ID"
 * (foxglove.PointCloud), and their places on ego in "/tf".
 */
#ifndef SWERVE_REPORT_EXPORT_EXPORT_MCAP_RIG_H
#define SWERVE_REPORT_EXPORT_EXPORT_MCAP_RIG_H

#include "report/export/mcap.h"
#include "report/report_drive.h"
#include "schemas/rig/rig.h"

struct mcap_rig;

/* Opens channels in `file`; `tf` is that of transforms; schema(name): the text of a schema. `rig`
 * is borrowed. */
enum status mcap_rig_create(const struct rig *rig, struct mcap *file, uint16_t tf,
                            const char *(*schema)(const char *name), struct mcap_rig **out,
                            struct error *error);
void mcap_rig_destroy(struct mcap_rig *sensors); /* accepts NULL */

/* What was taken since the tick before: to be written before the tick's other messages. */
enum status mcap_rig_before(struct mcap_rig *sensors, struct report_drive *drive, int32_t rollout,
                            uint32_t tick, uint64_t seed, struct error *error);
/* What was taken at the tick itself; at the first one with the sensors' places and lenses. */
enum status mcap_rig_at(struct mcap_rig *sensors, struct error *error);

#endif
