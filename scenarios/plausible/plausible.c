/*
 * Speeds and sizes beside what is seen on roads.
 */
#include "scenarios/plausible/plausible.h"

#include "schemas/scenario_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* The most that is believed without asking. Speeds: sprints of 100 m (10 m/s), bicycles on the
 * flat, legal limits and half as much again; an animal is a deer or a horse at a gallop. */
static const struct {
    double speed_mps;
    double length_m;
    double height_m;
} most[AGENT_KIND_COUNT] = {
    [AGENT_CAR] = {70, 7, 2.6},          [AGENT_VAN] = {60, 14, 3.5},
    [AGENT_TRUCK] = {45, 30, 5},         [AGENT_BUS] = {45, 25, 5},
    [AGENT_MOTORCYCLE] = {70, 3.5, 2.4}, [AGENT_CYCLIST] = {16, 4, 2.4},
    [AGENT_PEDESTRIAN] = {10, 2.5, 2.4}, [AGENT_ANIMAL] = {22, 7, 5},
    [AGENT_OBJECT] = {40, 60, 10},
};

struct sentences {
    plausible_sink *sink;
    void *context;
};

static void say(const struct sentences *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct sentences *out, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    out->sink(out->context, text);
}

/* Fastest that the agent is asked to be. */
static double top_speed_mps(const struct agent *agent)
{
    double top = agent->speed_mps;
    if (agent->behaviour == BEHAVIOUR_IDM) {
        top = fmax(top, agent->idm.desired_speed_mps);
    }
    for (uint32_t i = 0; i < agent->manoeuvre_count; i++) {
        const struct manoeuvre *manoeuvre = &agent->manoeuvres[i];
        bool has_speed = manoeuvre->kind == MANOEUVRE_SPEED || manoeuvre->kind == MANOEUVRE_PATH;
        top = has_speed && manoeuvre->speed_mps > top ? manoeuvre->speed_mps : top;
    }
    return top;
}

static void check_agent(const struct agent *agent, const struct sentences *out)
{
    const char *kind = agent_kind_names[agent->kind];
    double top = top_speed_mps(agent);
    if (top > most[agent->kind].speed_mps) {
        say(out, "agent \"%s\": a %s at %.4g m/s (%.0f km/h)%s", agent->id, kind, top, top * 3.6,
            top / 3.6 <= most[agent->kind].speed_mps ? "; was it meant in km/h (\"=x/3.6\")?" : "");
    }
    if (agent->length_m > most[agent->kind].length_m) {
        say(out, "agent \"%s\": a %s of %.4g m length", agent->id, kind, agent->length_m);
    }
    if (agent->height_m > most[agent->kind].height_m) {
        say(out, "agent \"%s\": a %s of %.4g m height", agent->id, kind, agent->height_m);
    }
}

void plausible_check(const struct scenario *scenario, plausible_sink *sink, void *context)
{
    const struct sentences out = {.sink = sink, .context = context};
    double limit = 0.0;
    for (uint32_t i = 0; i < scenario->map.lane_count; i++) {
        limit = fmax(limit, scenario->map.lanes[i].speed_limit_mps);
    }
    if (limit > 0.0 && scenario->ego.speed_mps > 2.0 * limit) {
        say(&out, "ego: starts at %.4g m/s (%.0f km/h), where %.4g m/s (%.0f km/h) are allowed",
            scenario->ego.speed_mps, scenario->ego.speed_mps * 3.6, limit, limit * 3.6);
    }
    if (limit > 70.0) {
        say(&out, "map: a speed limit of %.4g m/s (%.0f km/h); was it meant in km/h (\"=x/3.6\")?",
            limit, limit * 3.6);
    }
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        check_agent(&scenario->agents[i], &out);
    }
}
