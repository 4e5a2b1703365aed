/*
 * Scores of the field of each outcome, as columns of the table: PDMS, lane keeping, EPDMS.
 *
 * Lane keeping is no member of an outcome: it is read from the recorded drive, so these columns are
 * made on demand alone.
 */
#ifndef SWERVE_WORKER_EXPORT_EXPORT_FIELD_H
#define SWERVE_WORKER_EXPORT_EXPORT_FIELD_H

#include "engine/traffic/roadmap.h"
#include "worker/report/report_drive.h"

enum export_field_value {
    EXPORT_FIELD_PDMS = 0,
    EXPORT_FIELD_LANE_KEEPING,
    EXPORT_FIELD_EPDMS,
    EXPORT_FIELD_COUNT
};

extern const char *const export_field_names[EXPORT_FIELD_COUNT];

/* The drive that was read last, with its route. A zeroed one is empty. */
struct export_field {
    struct report_drive drive;
    char scenario_hash[SHA256_HEX_BYTES]; /* of the route */
    struct roadmap *roadmap;
    struct route *route;
};

void export_field_finish(struct export_field *field);

/* NAN where a score does not apply: verdicts that are no results, logs of the controls challenge,
 * drives that were not kept; EPDMS also where the scenario has lights that its criteria do not
 * judge. */
enum status export_field_read(struct export_field *field, struct store *store,
                              const struct outcome *outcome, double values[EXPORT_FIELD_COUNT],
                              struct error *error);

#endif
