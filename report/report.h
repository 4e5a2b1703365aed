/*
 * Report: one self-contained HTML file of a suite: the whole in a paragraph, verdicts by slice with
 * confidence intervals, miles and $/mile by tier and pool, failures with their criteria, paths and
 * strips of keyframes, branches side by side. Frames are redrawn from the traces; nothing is
 * simulated. Bounded however long the suite is: caps with a note (report_internal.h).
 */
#ifndef SWERVE_REPORT_REPORT_H
#define SWERVE_REPORT_REPORT_H

#include "report/summary.h"
#include "schemas/careful/careful.h"
#include "schemas/scenario.h"
#include "store/api/store.h"

/* Somebody who drives, asked what a careful driver would have done in a failure's scenario. */
struct report_careful {
    enum status (*ask)(struct report_careful *careful, const struct scenario *scenario,
                       const struct outcome *failure, struct careful *out, struct error *error);
};

struct report_drive;

/* Pictures of the cameras at a tick of an opened drive, of at most width_max columns, as JSON that
 * the player reads: draw_frames() of report/draw. *json is malloc'ed and terminated, the
 * caller's. */
typedef enum status report_frames(struct report_drive *drive, const struct outcome *outcome,
                                  uint32_t tick, uint32_t width_max, char **json, size_t *bytes,
                                  struct error *error);

/* Writes to a temporary name beside `path`, then renames: a reader never sees half a report. The
 * summary is that of the suite. store_url (NULL: unknown) only appears in the commands shown; one
 * that carries credentials does not. careful NULL: cards say nothing of careful drivers; frames
 * NULL: the player shows no cameras of rigs. IO: the file cannot be written; errors of the store
 * and of `careful`. */
enum status report_write(struct store *store, const char *store_url, const char *suite_id,
                         const struct summary *summary, struct report_careful *careful,
                         report_frames *frames, const char *path, struct error *error);

/* Whether a report can be written at `path`, told before the work: creates and removes the
 * temporary file beside it. BAD_INPUT: no. */
enum status report_check(const char *path, struct error *error);

#endif
