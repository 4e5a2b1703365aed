/*
 * Quantities of test protocols, measured in a resolved scenario at its nominal start (seed 0) and
 * along its scripts, for an ego that keeps its speed. Ticks are not: a trigger fires up to 0.1 s
 * later in a rollout, which moves an impact by as much as the agent walks in that time.
 */
#include "base/geom.h"
#include "scenarios/protocol/protocol.h"

#include <math.h>

#define INTRUSION_M 0.3 /* UN R157, 5.2.5.2 */
#define INTRUSION_DECEL_MPS2 6.0
#define INTRUSION_DELAY_S 0.35
#define TTC_NEVER_S 99.0
#define QUINTIC_SLOPE_MAX 1.875 /* of 10 u^3 - 15 u^4 + 6 u^5, at u = 1/2 */
#define CENTRED_M 0.005
#define MOVES_MPS 0.01
#define SEARCH_STEPS 10000

const char *const protocol_quantity_names[PROTOCOL_QUANTITY_COUNT] = {
    "ego_speed_kph",
    "weather",
    "light",
    "speed_kph",
    "final_speed_kph",
    "decel_mps2",
    "length_m",
    "width_m",
    "gap_m",
    "headway_s",
    "ttc_s",
    "overlap_percent",
    "impact_percent",
    "lateral_m",
    "near_edge_m",
    "side_gap_m",
    "run_up_m",
    "distance_m",
    "lane_change_m",
    "lane_change_length_m",
    "lane_change_end_ttc_s",
    "lateral_speed_mps",
    "visible_s",
    "intrusion_ttc_s",
    "intrusion_margin_s",
};

/* A box in the frame of ego's lane. */
struct placed {
    double s_m;
    double offset_m;
    double heading_rad; /* relative to the lane's */
    double half_along_m;
    double half_across_m;
    double speed_mps; /* along the lane, at the start */
};

static struct placed place(const struct scenario *scenario, struct pose pose, double length_m,
                           double width_m, double speed_mps)
{
    const struct lane *lane = &scenario->map.lanes[scenario->ego.route[0]];
    struct polyline_projection at =
        polyline_project(lane->centre_line, lane->point_count, (struct vec2){pose.x_m, pose.y_m});
    double heading_rad = pose.heading_rad - at.heading_rad;
    double c = fabs(cos(heading_rad));
    double s = fabs(sin(heading_rad));
    return (struct placed){
        .s_m = at.s_m,
        .offset_m = at.offset_m,
        .heading_rad = heading_rad,
        .half_along_m = (c * length_m + s * width_m) / 2,
        .half_across_m = (s * length_m + c * width_m) / 2,
        .speed_mps = speed_mps * cos(heading_rad),
    };
}

static struct placed place_ego(const struct scenario *scenario)
{
    const struct ego *ego = &scenario->ego;
    return place(scenario, ego->pose, ego->length_m, ego->width_m, ego->speed_mps);
}

static struct placed place_agent(const struct scenario *scenario, const struct agent *agent)
{
    return place(scenario, agent->pose, agent->length_m, agent->width_m, agent->speed_mps);
}

static double free_distance_m(const struct placed *a, const struct placed *b)
{
    return fabs(b->s_m - a->s_m) - a->half_along_m - b->half_along_m;
}

static const struct manoeuvre *first_of(const struct agent *agent, enum manoeuvre_kind kind)
{
    for (uint32_t i = 0; i < agent->manoeuvre_count; i++) {
        if (agent->manoeuvres[i].kind == kind) {
            return &agent->manoeuvres[i];
        }
    }
    return NULL;
}

/* ---- crossing ---- */

static double run_up_m(const struct manoeuvre *path)
{
    return path->speed_mps * path->speed_mps / (2 * path->rate_mps2);
}

/* Distance it has come when ego's front reaches its box, for a start by ego's time to arrival. */
static bool walked_m(const struct scenario *scenario, const struct placed *agent,
                     const struct manoeuvre *path, double *out)
{
    double ego_mps = scenario->ego.speed_mps;
    if (path->trigger.kind != TRIGGER_EGO_TTA || ego_mps < MOVES_MPS) {
        return false;
    }
    double time_s = path->trigger.value - agent->half_along_m / ego_mps;
    double rising_s = path->speed_mps / path->rate_mps2;
    *out = time_s < rising_s ? 0.5 * path->rate_mps2 * fmax(time_s, 0.0) * fmax(time_s, 0.0)
                             : run_up_m(path) + path->speed_mps * (time_s - rising_s);
    return true;
}

static bool impact_percent(const struct scenario *scenario, const struct agent *agent,
                           const struct placed *at, double *out)
{
    const struct manoeuvre *path = first_of(agent, MANOEUVRE_PATH);
    double walked = 0.0;
    if (path != NULL && !walked_m(scenario, at, path, &walked)) {
        return false;
    }
    double left_m = fabs(at->offset_m) - walked; /* to go to ego's centre line */
    *out = 100.0 * (0.5 - left_m / scenario->ego.width_m);
    return true;
}

static double overlap_percent(const struct scenario *scenario, const struct placed *at)
{
    double width_m = scenario->ego.width_m;
    double offset_m = fabs(at->offset_m - place_ego(scenario).offset_m);
    if (offset_m < CENTRED_M) {
        return 100.0;
    }
    double covered_m = width_m / 2 + at->half_across_m - offset_m;
    return 100.0 * fmax(0.0, fmin(covered_m, width_m)) / width_m;
}

/* ---- lane changes ---- */

struct cut_in {
    double start_s; /* of the lane change; 0 when another event starts it */
    double visible_s;
    double gap_m; /* at the intrusion */
    double closing_mps;
};

static double quintic(double u)
{
    return u * u * u * (10.0 + u * (6.0 * u - 15.0));
}

/* When the near side of the agent is 0.3 m inside ego's lane. False: it does not come so far. */
static bool find_cut_in(const struct scenario *scenario, const struct agent *agent,
                        const struct manoeuvre *change, struct cut_in *out)
{
    const struct lane *lane = &scenario->map.lanes[scenario->ego.route[0]];
    struct placed ego = place_ego(scenario);
    struct placed at = place_agent(scenario, agent);
    double side = at.offset_m < 0.0 ? -1.0 : 1.0;
    double direction = cos(at.heading_rad) < 0.0 ? -1.0 : 1.0;
    double shift_m = direction * change->offset_m;
    double goal_m = lane->width_m[0] / 2 - INTRUSION_M + at.half_across_m;
    if (change->trigger.kind != TRIGGER_TIME || change->duration_s <= 0.0) {
        return false;
    }
    for (int i = 0; i <= SEARCH_STEPS; i++) {
        double u = (double)i / SEARCH_STEPS;
        if (side * (at.offset_m + shift_m * quintic(u)) <= goal_m) {
            double time_s = change->trigger.value + u * change->duration_s;
            *out = (struct cut_in){
                .start_s = change->trigger.value,
                .visible_s = u * change->duration_s,
                .closing_mps = ego.speed_mps - at.speed_mps,
            };
            out->gap_m = free_distance_m(&ego, &at) - out->closing_mps * time_s;
            return true;
        }
    }
    return false;
}

static double ttc_s(double gap_m, double closing_mps)
{
    return closing_mps < MOVES_MPS ? TTC_NEVER_S : fmin(gap_m / closing_mps, TTC_NEVER_S);
}

static bool measure_lane_change(const struct scenario *scenario, enum protocol_quantity quantity,
                                const struct agent *agent, double *out)
{
    const struct manoeuvre *change = first_of(agent, MANOEUVRE_LANE_CHANGE);
    struct cut_in cut;
    if (change == NULL) {
        return false;
    }
    struct placed ego = place_ego(scenario);
    struct placed at = place_agent(scenario, agent);
    double closing_mps = ego.speed_mps - at.speed_mps;
    double end_s = change->trigger.value + change->duration_s;
    switch (quantity) {
    case PROTOCOL_LANE_CHANGE_M:
        *out = fabs(change->offset_m);
        return true;
    case PROTOCOL_LANE_CHANGE_LENGTH_M:
        *out = agent->speed_mps * change->duration_s;
        return true;
    case PROTOCOL_LANE_CHANGE_END_TTC_S:
        *out = ttc_s(free_distance_m(&ego, &at) - closing_mps * end_s, closing_mps);
        return change->trigger.kind == TRIGGER_TIME;
    case PROTOCOL_LATERAL_SPEED_MPS:
        *out = QUINTIC_SLOPE_MAX * fabs(change->offset_m) / change->duration_s;
        return true;
    default:
        break;
    }
    if (!find_cut_in(scenario, agent, change, &cut)) {
        return false;
    }
    double ttc = ttc_s(cut.gap_m, cut.closing_mps);
    double needed_s = fmax(cut.closing_mps, 0.0) / (2 * INTRUSION_DECEL_MPS2) + INTRUSION_DELAY_S;
    *out = quantity == PROTOCOL_VISIBLE_S         ? cut.visible_s
           : quantity == PROTOCOL_INTRUSION_TTC_S ? ttc
                                                  : ttc - needed_s;
    return true;
}

/* ---- the rest ---- */

static bool measure_script(enum protocol_quantity quantity, const struct agent *agent, double *out)
{
    const struct manoeuvre *path = first_of(agent, MANOEUVRE_PATH);
    const struct manoeuvre *speed = first_of(agent, MANOEUVRE_SPEED);
    switch (quantity) {
    case PROTOCOL_SPEED_KPH:
        *out = 3.6 *
               (agent->speed_mps < MOVES_MPS && path != NULL ? path->speed_mps : agent->speed_mps);
        return true;
    case PROTOCOL_RUN_UP_M:
        *out = path != NULL ? run_up_m(path) : NAN;
        return path != NULL;
    case PROTOCOL_FINAL_SPEED_KPH:
        *out = speed != NULL ? 3.6 * speed->speed_mps : NAN;
        return speed != NULL;
    case PROTOCOL_DECEL_MPS2:
        *out = speed != NULL ? speed->rate_mps2 : NAN;
        return speed != NULL;
    default:
        return false;
    }
}

static bool measure_place(const struct scenario *scenario, enum protocol_quantity quantity,
                          const struct agent *agent, const struct agent *other, double *out)
{
    struct placed ego = place_ego(scenario);
    struct placed at = place_agent(scenario, agent);
    double gap_m = free_distance_m(&ego, &at);
    double near_m = fabs(at.offset_m) - at.half_across_m;
    switch (quantity) {
    case PROTOCOL_LENGTH_M:
        *out = agent->length_m;
        return true;
    case PROTOCOL_WIDTH_M:
        *out = agent->width_m;
        return true;
    case PROTOCOL_GAP_M:
        *out = gap_m;
        return true;
    case PROTOCOL_HEADWAY_S:
        *out = gap_m / ego.speed_mps;
        return ego.speed_mps >= MOVES_MPS;
    case PROTOCOL_TTC_S:
        *out = ttc_s(gap_m, ego.speed_mps - at.speed_mps);
        return true;
    case PROTOCOL_OVERLAP_PERCENT:
        *out = overlap_percent(scenario, &at);
        return true;
    case PROTOCOL_IMPACT_PERCENT:
        return impact_percent(scenario, agent, &at, out);
    case PROTOCOL_LATERAL_M:
        *out = fabs(at.offset_m);
        return true;
    case PROTOCOL_NEAR_EDGE_M:
        *out = near_m;
        return true;
    case PROTOCOL_SIDE_GAP_M:
        *out = near_m - scenario->ego.width_m / 2;
        return true;
    case PROTOCOL_DISTANCE_M:
        if (other != NULL) {
            struct placed third = place_agent(scenario, other);
            *out = free_distance_m(&at, &third);
        }
        return other != NULL;
    default:
        return false;
    }
}

bool protocol_measure(const struct scenario *scenario, enum protocol_quantity quantity,
                      int32_t agent, int32_t other, double *out)
{
    switch (quantity) {
    case PROTOCOL_EGO_SPEED_KPH:
        *out = 3.6 * scenario->ego.speed_mps;
        return true;
    case PROTOCOL_WEATHER:
        *out = scenario->conditions.weather;
        return true;
    case PROTOCOL_LIGHT:
        *out = scenario->conditions.light;
        return true;
    default:
        break;
    }
    if (agent < 0) {
        return false;
    }
    const struct agent *subject = &scenario->agents[agent];
    const struct agent *of = other >= 0 ? &scenario->agents[other] : NULL;
    return measure_script(quantity, subject, out) ||
           measure_place(scenario, quantity, subject, of, out) ||
           measure_lane_change(scenario, quantity, subject, out);
}
