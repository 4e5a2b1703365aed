/*
 * A job's drives as one JSON document, "swerve-drive/1": map, sizes of the boxes, and every rollout
 * with its states, actions, events and pictures. The player in a browser (web/player.js) reads
 * nothing else; docs/player.md describes the members.
 *
 * Numbers are whole: centimetres, centimetres a second, milliradians, in columns by tick that hold
 * differences, so that they pack well. Untrusted traces and scenarios give a document or an error,
 * never more than DRIVE_JSON_BYTES_MAX.
 */
#ifndef SWERVE_REPORT_DRIVE_JSON_H
#define SWERVE_REPORT_DRIVE_JSON_H

#include "base/status.h"
#include "report/report_drive.h"
#include "schemas/json_scan.h"

#include <stdint.h>

enum {
    DRIVE_JSON_BYTES_MAX = 48 << 20,
    DRIVE_JSON_OTHERS_BYTES = 4 << 20, /* rollouts that were not asked for are added up to here */
    DRIVE_JSON_FRAMES_MAX = 200,       /* pictures of one rollout */
};

struct drive_json_options {
    int64_t outcome_id;     /* this one and its parents first, with pictures; 0: as they come */
    uint32_t picture_ticks; /* a front camera at every so many ticks; 0: no pictures */
    uint64_t others_bytes;  /* rollouts that were not asked for are left out beyond this */
};

/* The document of an opened drive. outcomes[count]: those of its job, in any order; rollouts of the
 * trace without an outcome are shown too. LIMIT when what was asked for is larger than the bound.
 * text is empty before and owned by the caller, also on failure. */
enum status drive_json_encode(struct report_drive *drive, const struct outcome *outcomes,
                              uint32_t count, const struct drive_json_options *options,
                              struct json_text *text, struct error *error);

/* The document of a scenario before it is driven: one rollout of no ticks, whose signals are those
 * of the whole horizon. *text as above. */
enum status drive_json_begin(const struct scenario_document *document, struct json_text *text,
                             struct error *error);

/* The document of the job that an outcome is of, read from a store. *json is malloc'ed, not
 * terminated, owned by the caller. NOT_FOUND: no such outcome, or no trace of it was kept. */
enum status drive_json_fetch(struct store *store, int64_t outcome_id, char **json, size_t *bytes,
                             struct error *error);

#endif
