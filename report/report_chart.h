/*
 * Charts of recorded drives as inline SVG: a map seen from above with the paths driven, and speed
 * over time. Colours come from the style sheet by class.
 */
#ifndef SWERVE_REPORT_REPORT_CHART_H
#define SWERVE_REPORT_REPORT_CHART_H

#include "report/report_drive.h"

/* One drive on a chart. */
struct report_line {
    int32_t rollout;
    uint32_t first_tick;
    uint32_t last_tick;
    const char *style; /* class: "ego", "pass", "fail", .. */
    const char *name;  /* tooltip; escaped here */
};

enum { REPORT_LINES_MAX = 13 };

/* Lanes, the drives' paths with ego's box at their ends, and the first drive's agents at its end;
 * `agent` (-1: none) with its path. Turned so that ego sets off to the right. */
void report_chart_map(const struct report_drive *drive, const struct report_line *lines,
                      uint32_t count, int32_t agent, struct html *html);

/* Speed over time; thin marks at marks[mark_count] ticks. */
void report_chart_speed(const struct report_drive *drive, const struct report_line *lines,
                        uint32_t count, const uint32_t *marks, uint32_t mark_count,
                        struct html *html);

#endif
