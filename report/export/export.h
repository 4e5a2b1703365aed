/*
 * Export: what a store holds, in the formats of other tools. Tables have a row per outcome and a
 * column per member of it, each grid parameter of the scenarios a column of its own; a drive has a
 * message per tick.
 *
 * Tables are written to a stream while they are read from the store, page by page: memory does not
 * grow with the number of outcomes. JUnit and Markdown count as report/summary.h does.
 */
#ifndef SWERVE_REPORT_EXPORT_EXPORT_H
#define SWERVE_REPORT_EXPORT_EXPORT_H

#include "base/status.h"
#include "report/report_drive.h"
#include "schemas/outcome.h"
#include "store/api/store.h"

#include <stdint.h>
#include <stdio.h>

struct rig;

struct export_request {
    struct store *store;   /* borrowed */
    const char *store_url; /* for the commands that a file names; NULL: not to be shown */
    const char *suite_id;  /* NULL: every suite of the store; tables only */
    bool field;            /* tables: with scores of the field */
    const struct rig *rig; /* mcap: whose sensors; NULL: that of the scenario, where it was driven
                              with */
    FILE *out;             /* borrowed */
    const char *place;     /* name of `out` in errors */
};

/* A writer of a whole export; path: the file behind `out`. */
typedef enum status export_writer(const void *context, const struct export_request *request,
                                  const char *path, struct error *error);

/* Writes into a file beside `path` that takes its name when it is whole; request->out and place are
 * set here. IO. */
enum status export_to_file(struct export_request *request, const char *path, export_writer *write,
                           const void *context, struct error *error);

/* RFC 4180 with "\n" between rows. Numbers have the fewest digits that read back exactly; "inf" and
 * "-inf" are infinite, an empty cell is no value, text is quoted where it must be. */
enum status export_csv(const struct export_request *request, struct error *error);

/* One JSON object with the columns and their types ("int64", "uint64", "double", "bool", "string"),
 * then one JSON array per row: what the converters to Arrow and Parquet read. */
enum status export_rows(const struct export_request *request, struct error *error);

/* JUnit XML of one suite: a case per main line, its time that of the simulated drive. A main line
 * that fails is a failure, one whose planner broke an error, one that a health check flagged is
 * skipped unless the teacher answered; one that was not driven is an error. */
enum status export_junit(const struct export_request *request, struct error *error);

/* Markdown of one suite for a CI page: verdicts, slices, and what did not pass. */
enum status export_markdown(const struct export_request *request, struct error *error);

/* MCAP of one outcome: ego and agents tick by tick as Foxglove's SceneUpdate and FrameTransform,
 * the front camera and the bird's-eye view as CompressedImage, ego's state and action as
 * "swerve.EgoState"; of a drive with a rig its cameras and lidars (export_mcap_rig.h), drawn again,
 * in place of the built-in front camera. Chunks are compressed by zstd and indexed. */
enum status export_mcap(const struct export_request *request, const struct outcome *outcome,
                        struct error *error);

/* ASAM OSI trace file (.osi) of one outcome: a GroundTruth message per tick, with ego as the host
 * vehicle, agents, lanes and boundaries, signals and conditions. */
enum status export_osi(const struct export_request *request, const struct outcome *outcome,
                       struct error *error);

/* Arrow IPC file ("arrow") or Parquet, through Python and pyarrow. DEVICE: neither python3 nor
 * pyarrow is there, with a sentence that says what to install. */
enum status export_arrow(const struct export_request *request, const char *format, const char *path,
                         struct error *error);

/* ---- for the writers ---- */

/* IO with the place when the stream has failed. */
enum status export_stream_check(const struct export_request *request, struct error *error);

/* The recorded drive of an outcome and which rollout of its job it is. NOT_FOUND: no trace was
 * kept. To be closed after failures too. */
enum status export_drive_open(struct report_drive *drive, struct store *store,
                              const struct outcome *outcome, int32_t *rollout, struct error *error);

#endif
