/*
 * A drive as a film: the road from above, large, the cameras at their own size, figures and charts,
 * a frame a tick. With a rig its cameras, drawn again, stand in place of the road; of a learned
 * world those of its cameras that were kept, as it made them.
 */
#ifndef SWERVE_REPORT_DRAW_DRAW_VIDEO_H
#define SWERVE_REPORT_DRAW_DRAW_VIDEO_H

#include "report/report_drive.h"
#include "schemas/limits.h"
#include "schemas/rig/rig.h"

/* `rig`: NULL: none; of a drive whose pictures a model made, one that the drive has cameras of, by
 * their ids, else USAGE. Writes FILE.mp4 or
 * FILE.gif through the ffmpeg program, FILE.png (animated) by itself. Where there is no ffmpeg, an
 * animated PNG is written in place of the others, beside the name that was asked for. `written`
 * receives the file's name, *instead whether it is such a replacement. USAGE: another ending. */
enum status draw_video(struct report_drive *drive, const struct outcome *outcome,
                       const struct rig *rig, const char *path, char written[LIMIT_PATH_BYTES],
                       bool *instead, struct error *error);

#endif
