/*
 * Signals in the document of a drive (docs/player.md), from the scenario's programme: lights,
 * where they hold traffic and what they showed, and what branches change. Traces do not keep the
 * lights; they follow from phases and branches. And what the planner meant, from the trace.
 */
#ifndef SWERVE_REPORT_DRIVE_SIGNALS_H
#define SWERVE_REPORT_DRIVE_SIGNALS_H

#include "base/geom.h"
#include "engine/trace/trace.h"
#include "schemas/json_scan.h"
#include "schemas/scenario.h"

#include <stdint.h>

/* The stop line of the signal's lane number k: its left and its right end. */
void drive_signals_line(const struct map *map, const struct traffic_signal *signal, uint32_t k,
                        struct vec2 line[2]);

/* `,"signals":[{"lines":[[x1,y1,x2,y2],..]},..]`: stop lines in metres, of each signal. */
void drive_signals_map(struct json_text *text, const struct map *map);

/* `,"signals":[[[tick,"red"],..],..]`: for each signal its light at the first of `count` ticks, and
 * where it changes. */
void drive_signals_rollout(struct json_text *text, const struct scenario *scenario,
                           const char *branch_id, uint32_t first_tick, uint32_t count);

/* `,"interventions":[{"tick":..,"kind":..,"agent":..},..]` of the branch. */
void drive_interventions(struct json_text *text, const struct scenario *scenario,
                         const char *branch_id);

/* `,"plans":[[tick,x,y,..],..],"perceived":[[tick,[x,y,heading,length,width],..],..]` of the ticks
 * of a rollout's own that have them: centimetres and milliradians, places from ego's at that tick.
 * Nothing where the planner gave none. */
void drive_plans(struct json_text *text, const struct trace_reader *reader, int32_t rollout);

#endif
