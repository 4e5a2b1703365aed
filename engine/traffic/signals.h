/*
 * Traffic lights and signs: what lights show at a tick, and where traffic stops for both.
 *
 * A signal's light is a function of time, unless an intervention holds it; scene->signal_light has
 * the lights of its tick. Stop lines lie across the lanes that a signal controls, `stop_m` before
 * their ends.
 */
#ifndef SWERVE_ENGINE_TRAFFIC_SIGNALS_H
#define SWERVE_ENGINE_TRAFFIC_SIGNALS_H

#include "engine/traffic/roadmap.h"
#include "engine/traffic/track.h"
#include "schemas/scene.h"

#include <stdbool.h>

/* Light that the signal's phases show at a time since the start, interventions apart. */
enum traffic_light signal_light_at(const struct traffic_signal *signal, double time_s);

/* Sets scene->signal_light for scene->tick. */
void signals_update(const struct map *map, struct scene *scene);

/* From now on the signal shows a light. */
void signals_hold(const struct map *map, uint32_t signal, enum traffic_light light,
                  struct scene *scene);

/* Sets the lights of a recorded scene, which has its tick alone: by the phases and by what the
 * branch of that id ("": the main line) does to signals. */
void signals_recorded(const struct scenario *scenario, const char *branch_id, struct scene *scene);

/* Traffic that sees one of these waits, if it can still stop. */
static inline bool signal_stops(enum traffic_light light)
{
    return light == TRAFFIC_LIGHT_RED || light == TRAFFIC_LIGHT_RED_YELLOW;
}

struct stop_line {
    struct pose pose; /* its middle, heading as traffic drives */
    struct vec2 left; /* its ends, on the lane's borders */
    struct vec2 right;
};

/* The stop line of signal->lanes[index]. */
struct stop_line signal_stop_line(const struct roadmap *roadmap,
                                  const struct traffic_signal *signal, uint32_t index);

/* ---- stops along tracks ---- */

struct track_stop {
    double s_m; /* of the stop line */
    uint32_t signal;
};

/* Stop lines that tracks cross: those of track t are stops[first[t]] to stops[first[t + 1] - 1]. */
struct track_stops {
    uint32_t *first; /* [track_count + 1] */
    struct track_stop *stops;
};

/* A map without signals leaves *out zeroed. */
enum status track_stops_create(const struct roadmap *roadmap, struct track *const *tracks,
                               uint32_t track_count, struct track_stops *out, struct error *error);
void track_stops_finish(struct track_stops *stops); /* accepts a zeroed one */

#endif
