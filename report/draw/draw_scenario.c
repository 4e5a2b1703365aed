/*
 * Paths are what the document says, not a drive: logged trajectories, paths of manoeuvres, the way
 * straight on that a scripted agent keeps, lanes of an agent's route. What an agent will do besides
 * depends on ego: triggers are told in words.
 */
#include "report/draw/draw_scenario.h"

#include "base/text.h"
#include "base/units.h"
#include "engine/sensors/prepared.h"
#include "engine/traffic/roadmap.h"
#include "engine/traffic/signals.h"
#include "report/draw/draw_scene.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 1200,
    HEIGHT_MIN = 320,
    HEIGHT_MAX = 700,
    MARGIN = 24,
    ROUTE_POINTS = 200,
    LINE_BYTES = 320,
    LINES_MAX = 400,
    LEGEND_LINE = 17,
    LABEL_SIZE = 11,
    PATH_MAX = LIMIT_TRAJECTORY_POINTS + 2,
    CROSSINGS_MAX = 16,
};

struct crossing {
    struct vec2 place;
    double ego_m; /* along ego's route from its start */
};

/* Middle of a number in the picture and half its sides, pixels. */
struct label {
    double x, y, half_width, half_height;
};

struct sketch {
    const struct scenario *scenario;
    struct prepared *prepared;
    struct vec2 route[ROUTE_POINTS]; /* what ego may drive */
    double route_m;
    struct vec2 path[PATH_MAX]; /* of the agent at hand */
    uint32_t path_count;
    char (*lines)[LINE_BYTES];
    uint32_t line_count;
    double left, right, bottom, top;   /* of what is shown, metres */
    struct label labels[LIMIT_AGENTS]; /* numbers that stand in the picture */
    uint32_t label_count;
};

/* ---- paths ---- */

static void path_add(struct sketch *sketch, struct vec2 point)
{
    if (sketch->path_count < PATH_MAX) {
        sketch->path[sketch->path_count++] = point;
    }
}

static struct vec2 ahead(struct pose pose, double metres)
{
    return (struct vec2){pose.x_m + metres * cos(pose.heading_rad),
                         pose.y_m + metres * sin(pose.heading_rad)};
}

/* Path that the document gives the agent; an agent that stands or follows its lane has no path. */
static void take_path(struct sketch *sketch, const struct agent *agent)
{
    double seconds = sketch->scenario->horizon_ticks * TICK_S;
    bool given = false;
    sketch->path_count = 0;
    for (uint32_t i = 0; i < agent->trajectory.point_count; i++) {
        const struct trajectory_point *point = &agent->trajectory.points[i];
        path_add(sketch, (struct vec2){point->x_m, point->y_m});
        given = true;
    }
    for (uint32_t m = 0; !given && m < agent->manoeuvre_count; m++) {
        for (uint32_t i = 0; i < agent->manoeuvres[m].path_count; i++) {
            if (sketch->path_count == 0) {
                path_add(sketch, (struct vec2){agent->pose.x_m, agent->pose.y_m});
            }
            path_add(sketch, agent->manoeuvres[m].path[i]);
        }
    }
    if (sketch->path_count == 0 && agent->behaviour == BEHAVIOUR_SCRIPT &&
        fabs(agent->speed_mps) > 0) {
        path_add(sketch, (struct vec2){agent->pose.x_m, agent->pose.y_m});
        path_add(sketch, ahead(agent->pose, agent->speed_mps * seconds));
    }
}

static bool meets(struct vec2 a, struct vec2 b, struct vec2 c, struct vec2 d, struct vec2 *at)
{
    double rx = b.x_m - a.x_m;
    double ry = b.y_m - a.y_m;
    double sx = d.x_m - c.x_m;
    double sy = d.y_m - c.y_m;
    double cross = rx * sy - ry * sx;
    if (fabs(cross) < 1e-9) {
        return false; /* one along the other: they share a way, they do not cross */
    }
    double t = ((c.x_m - a.x_m) * sy - (c.y_m - a.y_m) * sx) / cross;
    double u = ((c.x_m - a.x_m) * ry - (c.y_m - a.y_m) * rx) / cross;
    *at = (struct vec2){a.x_m + t * rx, a.y_m + t * ry};
    return t >= 0 && t <= 1 && u >= 0 && u <= 1;
}

/* Crossings of the path at hand with ego's route. */
static uint32_t find_crossings(const struct sketch *sketch, struct crossing out[CROSSINGS_MAX])
{
    uint32_t count = 0;
    double step_m = sketch->route_m / (ROUTE_POINTS - 1);
    for (uint32_t r = 1; r < ROUTE_POINTS; r++) {
        for (uint32_t i = 1; i < sketch->path_count && count < CROSSINGS_MAX; i++) {
            struct vec2 at;
            if (meets(sketch->route[r - 1], sketch->route[r], sketch->path[i - 1], sketch->path[i],
                      &at) &&
                (count == 0 || hypot(at.x_m - out[count - 1].place.x_m,
                                     at.y_m - out[count - 1].place.y_m) > 0.5)) {
                out[count++] = (struct crossing){at, (r - 0.5) * step_m};
            }
        }
    }
    return count;
}

/* Ego's route from its start, as far as it may come within the horizon. */
static enum status take_route(struct sketch *sketch, struct error *error)
{
    const struct ego *ego = &sketch->scenario->ego;
    TRY(prepared_create(sketch->scenario, &sketch->prepared, error));
    const struct route *route = prepared_route(sketch->prepared);
    struct vec2 start = {ego->pose.x_m, ego->pose.y_m};
    double from_m = route_project(route, start, -1).s_m;
    double seconds = sketch->scenario->horizon_ticks * TICK_S;
    double reach_m = fmax(fmax(ego->speed_mps, 8.0) * seconds * 1.1, 30.0);
    sketch->route_m = fmin(reach_m, fmax(route_length_m(route) - from_m, 5.0));
    for (uint32_t i = 0; i < ROUTE_POINTS; i++) {
        struct pose pose =
            route_pose_at(route, from_m + sketch->route_m * i / (ROUTE_POINTS - 1), 0);
        sketch->route[i] = (struct vec2){pose.x_m, pose.y_m};
    }
    return STATUS_OK;
}

/* ---- words ---- */

__attribute__((format(printf, 2, 3))) static void say(struct sketch *sketch, const char *format,
                                                      ...)
{
    va_list args;
    if (sketch->line_count == LINES_MAX) {
        return;
    }
    va_start(args, format);
    vsnprintf(sketch->lines[sketch->line_count++], LINE_BYTES, format, args);
    va_end(args);
}

static const char *trigger_words(const struct trigger *trigger, char out[64])
{
    static const char *const words[TRIGGER_COUNT] = {
        [TRIGGER_TIME] = "at %.3g s",
        [TRIGGER_EGO_DISTANCE] = "when ego is nearer than %.3g m",
        [TRIGGER_EGO_TTA] = "when ego is less than %.3g s away",
        [TRIGGER_EGO_PASSED] = "when ego is %.3g m past it",
        [TRIGGER_AFTER] = "%.3g s after that",
    };
    const char *text = words[trigger->kind];
    const char *hole = strstr(text, "%.3g");
    snprintf(out, 64, "%.*s%.3g%s", (int)(hole - text), text, trigger->value, hole + 4);
    return out;
}

static void say_manoeuvre(struct sketch *sketch, const struct manoeuvre *manoeuvre)
{
    char when[64];
    trigger_words(&manoeuvre->trigger, when);
    switch (manoeuvre->kind) {
    case MANOEUVRE_SPEED:
        say(sketch, "       %s: to %.3g m/s at %.3g m/s2", when, manoeuvre->speed_mps,
            manoeuvre->rate_mps2);
        break;
    case MANOEUVRE_LANE_CHANGE:
        say(sketch, "       %s: %.3g m to the %s in %.3g s", when, fabs(manoeuvre->offset_m),
            manoeuvre->offset_m > 0 ? "left" : "right", manoeuvre->duration_s);
        break;
    case MANOEUVRE_PATH:
        say(sketch, "       %s: leaves along a path at %.3g m/s", when, manoeuvre->speed_mps);
        break;
    case MANOEUVRE_APPEAR:
    case MANOEUVRE_VANISH:
    case MANOEUVRE_COUNT:
        say(sketch, "       %s: %ss", when, manoeuvre_names[manoeuvre->kind]);
        break;
    }
}

static void say_agent(struct sketch *sketch, uint32_t index)
{
    const struct agent *agent = &sketch->scenario->agents[index];
    struct crossing crossings[CROSSINGS_MAX];
    say(sketch, "  %u  %s: %s, %.3g m x %.3g m, %s, %.3g m/s%s", index + 1, agent->id,
        agent_kind_names[agent->kind], agent->length_m, agent->width_m,
        behaviour_names[agent->behaviour], agent->speed_mps,
        agent->hidden ? ", hidden until it appears" : "");
    for (uint32_t m = 0; m < agent->manoeuvre_count; m++) {
        say_manoeuvre(sketch, &agent->manoeuvres[m]);
    }
    take_path(sketch, agent);
    uint32_t count = find_crossings(sketch, crossings);
    for (uint32_t i = 0; i < count; i++) {
        say(sketch, "       its path crosses ego's route %.1f m ahead of ego", crossings[i].ego_m);
    }
}

static void say_signals(struct sketch *sketch)
{
    const struct map *map = &sketch->scenario->map;
    uint32_t lines[TRAFFIC_LIGHT_COUNT] = {0};
    uint32_t signs[TRAFFIC_SIGN_COUNT] = {0};
    char text[LINE_BYTES] = "";
    size_t used = 0;
    if (map->signal_count == 0) {
        return;
    }
    for (uint32_t i = 0; i < map->signal_count; i++) {
        const struct traffic_signal *signal = &map->signals[i];
        uint32_t *counter = signal->sign != TRAFFIC_SIGN_NONE
                                ? &signs[signal->sign]
                                : &lines[signal_light_at(signal, 0.0)];
        *counter += signal->lane_count;
    }
    for (int light = 0; light < TRAFFIC_LIGHT_COUNT; light++) {
        if (lines[light] > 0) {
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%u %s", used > 0 ? ", " : "",
                                 lines[light], traffic_light_names[light]);
        }
    }
    if (used > 0) {
        say(sketch, "stop lines of traffic lights at the start: %s", text);
    }
    if (signs[TRAFFIC_SIGN_STOP] > 0 || signs[TRAFFIC_SIGN_YIELD] > 0) {
        say(sketch, "stop lines of signs: %u stop, %u yield", signs[TRAFFIC_SIGN_STOP],
            signs[TRAFFIC_SIGN_YIELD]);
    }
    if (signs[TRAFFIC_SIGN_PRIORITY] > 0) {
        say(sketch, "lanes with priority signs: %u", signs[TRAFFIC_SIGN_PRIORITY]);
    }
    if (signs[TRAFFIC_SIGN_GIVE_WAY] > 0 || signs[TRAFFIC_SIGN_GIVE_WAY_RIGHT] > 0) {
        say(sketch, "lanes that give way without a sign: %u to the crossing road, %u to the right",
            signs[TRAFFIC_SIGN_GIVE_WAY], signs[TRAFFIC_SIGN_GIVE_WAY_RIGHT]);
    }
    if (signs[TRAFFIC_SIGN_GIVE_WAY_ONCOMING] > 0) {
        say(sketch, "lanes that turn across oncoming traffic: %u",
            signs[TRAFFIC_SIGN_GIVE_WAY_ONCOMING]);
    }
}

static void say_all(struct sketch *sketch)
{
    const struct scenario *scenario = sketch->scenario;
    const struct ego *ego = &scenario->ego;
    const struct conditions *c = &scenario->conditions;
    say(sketch, "%s", scenario->id);
    if (scenario->title[0] != '\0') {
        say(sketch, "%s", scenario->title);
    }
    say(sketch, "%s, %s, friction %.3g, visibility %.0f m; %.1f s; %u lane%s",
        weather_names[c->weather], light_names[c->light], c->friction, c->visibility_m,
        scenario->horizon_ticks * TICK_S, scenario->map.lane_count,
        scenario->map.lane_count == 1 ? "" : "s");
    say(sketch, "ego: %.3g m/s, %u lane%s of route, %.0f m of it within reach%s", ego->speed_mps,
        ego->route_count, ego->route_count == 1 ? "" : "s", sketch->route_m,
        ego->has_goal ? "" : ", no goal");
    if (ego->has_goal && ego->goal_area.point_count == 0) {
        say(sketch, "goal: within %.3g m of (%.1f, %.1f), %.0f m from ego's start",
            ego->goal_radius_m, ego->goal.x_m, ego->goal.y_m,
            hypot(ego->goal.x_m - ego->pose.x_m, ego->goal.y_m - ego->pose.y_m));
    } else if (ego->has_goal) {
        say(sketch, "goal: an area of %u corners", ego->goal_area.point_count);
    }
    say_signals(sketch);
    say(sketch, "agents: %u", scenario->agent_count);
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        say_agent(sketch, i);
    }
    if (scenario->branch_count > 0) {
        say(sketch, "branches: %u", scenario->branch_count);
    }
    for (uint32_t i = 0; i < scenario->branch_count; i++) {
        const struct branch *branch = &scenario->branches[i];
        say(sketch, "  at %.1f s  %s: %s", branch->at_tick * TICK_S, branch->id,
            branch->intervention_count > 0 ? intervention_names[branch->interventions[0].kind]
                                           : "nothing");
    }
}

static enum status sketch_make(const struct scenario *scenario, struct sketch **out,
                               struct error *error)
{
    struct sketch *sketch = calloc(1, sizeof *sketch);
    TRY(memory_check(sketch, error, "draw: out of memory"));
    sketch->scenario = scenario;
    sketch->lines = calloc(LINES_MAX, sizeof *sketch->lines);
    enum status status = memory_check(sketch->lines, error, "draw: out of memory");
    THEN(status, take_route(sketch, error));
    if (status == STATUS_OK) {
        say_all(sketch);
    }
    *out = sketch;
    return status;
}

static void sketch_destroy(struct sketch *sketch)
{
    prepared_unref(sketch->prepared);
    free(sketch->lines);
    free(sketch);
}

/* ---- the picture ---- */

static void include(struct sketch *sketch, struct vec2 point)
{
    sketch->left = fmin(sketch->left, point.x_m);
    sketch->right = fmax(sketch->right, point.x_m);
    sketch->bottom = fmin(sketch->bottom, point.y_m);
    sketch->top = fmax(sketch->top, point.y_m);
}

/* Extent that has to be seen; agents far away from everything else are left to the words. */
static void take_bounds(struct sketch *sketch)
{
    const struct scenario *scenario = sketch->scenario;
    const struct ego *ego = &scenario->ego;
    sketch->left = sketch->right = ego->pose.x_m;
    sketch->bottom = sketch->top = ego->pose.y_m;
    for (uint32_t i = 0; i < ROUTE_POINTS; i++) {
        include(sketch, sketch->route[i]);
    }
    if (ego->has_goal && ego->goal_area.point_count == 0) {
        include(sketch, ego->goal);
    }
    double far_m = fmax(2 * sketch->route_m, 200);
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct pose *pose = &scenario->agents[i].pose;
        if (hypot(pose->x_m - ego->pose.x_m, pose->y_m - ego->pose.y_m) < far_m) {
            include(sketch, (struct vec2){pose->x_m, pose->y_m});
        }
    }
    double least_m = 12; /* a straight road has a width */
    sketch->bottom -= least_m;
    sketch->top += least_m;
    sketch->left -= least_m;
    sketch->right += least_m;
}

static void draw_agents(struct sketch *sketch, struct painter *painter,
                        const struct draw_view *view)
{
    const struct scenario *scenario = sketch->scenario;
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        struct colour colour = draw_agent_colour(agent->kind);
        struct crossing crossings[CROSSINGS_MAX];
        struct colour fill = colour;
        fill.alpha = agent->hidden ? 0 : 1;
        take_path(sketch, agent);
        draw_path(painter, view, sketch->path, sketch->path_count, 2, 6, colour);
        draw_box(painter, view, agent->pose, agent->length_m, agent->width_m, fill,
                 agent->hidden ? colour : draw_ink);
        uint32_t count = find_crossings(sketch, crossings);
        for (uint32_t k = 0; k < count; k++) {
            struct vec2 at = draw_view_point(view, crossings[k].place);
            const struct vec2 up[2] = {{at.x_m - 6, at.y_m - 6}, {at.x_m + 6, at.y_m + 6}};
            const struct vec2 down[2] = {{at.x_m - 6, at.y_m + 6}, {at.x_m + 6, at.y_m - 6}};
            painter_line(painter, up, 2, 3, 0, draw_contact);
            painter_line(painter, down, 2, 3, 0, draw_contact);
        }
    }
}

static bool label_is_free(const struct sketch *sketch, const struct draw_view *view,
                          const struct label *label)
{
    const struct scenario *scenario = sketch->scenario;
    for (uint32_t i = 0; i < sketch->label_count; i++) {
        const struct label *other = &sketch->labels[i];
        if (fabs(other->x - label->x) < other->half_width + label->half_width &&
            fabs(other->y - label->y) < other->half_height + label->half_height) {
            return false;
        }
    }
    for (uint32_t i = 0; i <= scenario->agent_count; i++) {
        const struct agent *agent = i < scenario->agent_count ? &scenario->agents[i] : NULL;
        const struct pose *pose = agent != NULL ? &agent->pose : &scenario->ego.pose;
        double length_m = agent != NULL ? agent->length_m : scenario->ego.length_m;
        double width_m = agent != NULL ? agent->width_m : scenario->ego.width_m;
        struct vec2 at = draw_view_point(view, (struct vec2){pose->x_m, pose->y_m});
        double along = fabs(cos(pose->heading_rad));
        double across = fabs(sin(pose->heading_rad));
        double reach_x = (length_m * along + width_m * across) * view->scale / 2;
        double reach_y = (length_m * across + width_m * along) * view->scale / 2;
        if (fabs(at.x_m - label->x) < reach_x + label->half_width &&
            fabs(at.y_m - label->y) < reach_y + label->half_height) {
            return false;
        }
    }
    return true;
}

/* Places a number beside its agent where it covers no other number and nobody: around it, then
 * around it farther off. With no such place above it, whatever is there. */
static struct label label_place(const struct sketch *sketch, const struct draw_view *view,
                                const struct agent *agent, double half_width)
{
    enum { RINGS = 4, DIRECTIONS = 8 };
    struct vec2 at = draw_view_point(view, (struct vec2){agent->pose.x_m, agent->pose.y_m});
    double half_m = fmax(agent->length_m, agent->width_m) / 2;
    double across = fabs(sin(agent->pose.heading_rad));
    double rise = (agent->width_m / 2 * (1 - across) + half_m * across) * view->scale;
    struct label above = {at.x_m, at.y_m - rise - LABEL_SIZE, half_width, LABEL_SIZE / 2.0 + 1};
    if (label_is_free(sketch, view, &above)) {
        return above;
    }
    for (int ring = 0; ring < RINGS; ring++) {
        double far = half_m * view->scale + LABEL_SIZE * (1 + ring);
        for (int k = 0; k < DIRECTIONS; k++) {
            double turn = k * (2 * PI_RAD / DIRECTIONS);
            struct label label = above;
            label.x = at.x_m + far * sin(turn);
            label.y = at.y_m - far * cos(turn);
            if (label_is_free(sketch, view, &label)) {
                return label;
            }
        }
    }
    return above;
}

/* Numbers after everything else, so that nobody is drawn over one. */
static void draw_numbers(struct sketch *sketch, struct painter *painter,
                         const struct draw_view *view)
{
    for (uint32_t i = 0; i < sketch->scenario->agent_count; i++) {
        const struct agent *agent = &sketch->scenario->agents[i];
        struct vec2 at = draw_view_point(view, (struct vec2){agent->pose.x_m, agent->pose.y_m});
        char number[16];
        snprintf(number, sizeof number, "%u", i + 1);
        double half = painter_text_width(number, LABEL_SIZE) / 2;
        struct label label = label_place(sketch, view, agent, half + 1);
        const struct vec2 thread[2] = {at, {label.x, label.y}};
        if (hypot(label.x - at.x_m, label.y - at.y_m) > 2.5 * LABEL_SIZE) {
            painter_line(painter, thread, 2, 1, 0, draw_soft);
        }
        sketch->labels[sketch->label_count++] = label;
        painter_text(painter, label.x - half, label.y, LABEL_SIZE, draw_ink, number);
    }
}

/* A scale of a round number of metres. */
static void draw_ruler(struct painter *painter, double scale, double y)
{
    static const double lengths_m[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000};
    double length_m = lengths_m[0];
    char text[32];
    for (size_t i = 0; i < sizeof lengths_m / sizeof *lengths_m; i++) {
        length_m = lengths_m[i] * scale < 160 ? lengths_m[i] : length_m;
    }
    const struct vec2 bar[2] = {{MARGIN, y}, {MARGIN + length_m * scale, y}};
    painter_line(painter, bar, 2, 3, 0, draw_ink);
    snprintf(text, sizeof text, "%g m", length_m);
    painter_text(painter, MARGIN + length_m * scale + 8, y, 11, draw_ink, text);
}

/* Key of the marks, then the words of the scenario. */
static void draw_legend(const struct sketch *sketch, struct painter *painter, double y)
{
    static const struct colour paper = {0xff, 0xff, 0xff, 1};
    const struct vec2 sheet[4] = {
        {0, y}, {WIDTH, y}, {WIDTH, painter->height}, {0, painter->height}};
    double at = y + LEGEND_LINE;
    painter_polygon(painter, sheet, 4, paper);
    painter_text(painter, MARGIN, at, 10, draw_ego, "blue: ego, its route as a band");
    painter_text(painter, MARGIN + 330, at, 10, draw_goal, "green: goal");
    painter_text(painter, MARGIN + 450, at, 10, draw_soft, "dashed: paths; hollow: hidden");
    painter_text(painter, MARGIN + 720, at, 10, draw_contact, "cross: a path crosses ego's route");
    if (sketch->scenario->map.signal_count > 0) {
        at += LEGEND_LINE;
        painter_text(
            painter, MARGIN, at, 10, draw_soft,
            "bars across lanes: stop lines, in their light's colour at the start; dashed: of stop "
            "(red), priority (yellow), other signs");
    }
    for (uint32_t i = 0; i < sketch->line_count; i++) {
        at += LEGEND_LINE;
        painter_text(painter, MARGIN, at, 10, i == 0 ? draw_ink : draw_soft, sketch->lines[i]);
    }
}

static void paint(struct sketch *sketch, struct painter *painter, double scale, uint32_t height)
{
    const struct ego *ego = &sketch->scenario->ego;
    struct draw_view view = draw_view_make(
        (struct vec2){(sketch->left + sketch->right) / 2, (sketch->bottom + sketch->top) / 2}, 0,
        scale, WIDTH / 2.0, height / 2.0, WIDTH, height);
    draw_map(painter, &view, &sketch->scenario->map);
    draw_path(painter, &view, sketch->route, ROUTE_POINTS, fmax(1.6 * scale, 2), 0, draw_route);
    draw_goal_area(painter, &view, ego);
    uint8_t lights[LIMIT_SIGNALS] = {0};
    for (uint32_t i = 0; i < sketch->scenario->map.signal_count; i++) { /* at the start */
        lights[i] = (uint8_t)signal_light_at(&sketch->scenario->map.signals[i], 0.0);
    }
    draw_signals(painter, &view, &sketch->scenario->map, lights);
    draw_agents(sketch, painter, &view);
    draw_box(painter, &view, ego->pose, ego->length_m, ego->width_m, draw_ego, draw_ink);
    draw_numbers(sketch, painter, &view);
    draw_ruler(painter, scale, height - 14.0);
    draw_legend(sketch, painter, height);
    painter_end(painter);
}

enum status draw_scenario_picture(const struct scenario *scenario, bool svg, void **data,
                                  size_t *bytes, struct error *error)
{
    struct sketch *sketch = NULL;
    struct painter painter = {0};
    enum status status = sketch_make(scenario, &sketch, error);
    if (status != STATUS_OK) {
        if (sketch != NULL) {
            sketch_destroy(sketch);
        }
        return status;
    }
    take_bounds(sketch);
    double wide_m = sketch->right - sketch->left;
    double high_m = sketch->top - sketch->bottom;
    double scale = fmin((WIDTH - 2.0 * MARGIN) / wide_m, (HEIGHT_MAX - 2.0 * MARGIN) / high_m);
    scale = fmin(scale, 24);
    uint32_t height = (uint32_t)fmax(high_m * scale + 2 * MARGIN, HEIGHT_MIN);
    uint32_t whole = height + (sketch->line_count + 3) * LEGEND_LINE;
    status = painter_init(&painter, WIDTH, whole < PAINTER_SIDE_MAX ? whole : PAINTER_SIDE_MAX, svg,
                          draw_ground, error);
    if (status == STATUS_OK) {
        paint(sketch, &painter, scale, height);
        status = painter_take(&painter, data, bytes, error);
    }
    painter_finish(&painter);
    sketch_destroy(sketch);
    return status;
}

enum status draw_scenario_print(const struct scenario *scenario, FILE *stream, struct error *error)
{
    struct sketch *sketch = NULL;
    enum status status = sketch_make(scenario, &sketch, error);
    for (uint32_t i = 0; status == STATUS_OK && i < sketch->line_count; i++) {
        text_print(stream, "%s\n", sketch->lines[i]);
    }
    if (sketch != NULL) {
        sketch_destroy(sketch);
    }
    return status;
}
