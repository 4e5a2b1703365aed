/*
 * Charts. The map is drawn in metres (the viewBox is the view), culled to the view and thinned to
 * what can be seen, so that a city's map costs no more than a junction's.
 */
#include "report/report_chart.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>

#define VIEW_MARGIN_M 9.0
#define VIEW_MIN_M 56.0
#define VIEW_ASPECT 2.1   /* width over height */
#define MARKING_M 0.28    /* drawn width of a lane's edge */
#define VIEW_AGENT_M 60.0 /* how near an agent must be to ego to widen the view */

enum {
    MAP_POINTS_MAX = 6000,
    BOXES_MAX = 80,
    SPEED_W = 520,
    SPEED_H = 130,
    SPEED_LEFT = 56,
    LABEL_W = 28 /* of the longest time, "120 s" */
};

/* World to view: x ahead of where ego set off, y to its right (down on paper). */
struct view {
    struct vec2 origin;
    double sine;
    double cosine;
    double heading_rad;
    double left_m, top_m, right_m, bottom_m;
    uint32_t points; /* drawn so far */
};

static struct vec2 to_view(const struct view *view, double x_m, double y_m)
{
    double dx = x_m - view->origin.x_m;
    double dy = y_m - view->origin.y_m;
    return (struct vec2){view->cosine * dx + view->sine * dy, view->sine * dx - view->cosine * dy};
}

static void include_point(struct view *view, double x_m, double y_m)
{
    struct vec2 p = to_view(view, x_m, y_m);
    view->left_m = fmin(view->left_m, p.x_m);
    view->right_m = fmax(view->right_m, p.x_m);
    view->top_m = fmin(view->top_m, p.y_m);
    view->bottom_m = fmax(view->bottom_m, p.y_m);
}

static void include_line(struct view *view, const struct report_drive *drive,
                         const struct report_line *line, int32_t agent)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    for (uint32_t t = line->first_tick; t <= line->last_tick; t++) {
        if (!trace_reader_tick(&drive->reader, line->rollout, t, &at, agents)) {
            continue;
        }
        include_point(view, at.x_m, at.y_m);
        if (agent >= 0 && agents[agent].present &&
            hypot(agents[agent].x_m - at.x_m, agents[agent].y_m - at.y_m) < VIEW_AGENT_M) {
            include_point(view, agents[agent].x_m, agents[agent].y_m);
        }
    }
}

static void fit_view(struct view *view)
{
    double width = fmax(view->right_m - view->left_m + 2 * VIEW_MARGIN_M, VIEW_MIN_M);
    double height = view->bottom_m - view->top_m + 2 * VIEW_MARGIN_M;
    width = fmax(width, height * VIEW_ASPECT);
    height = width / VIEW_ASPECT;
    double x = (view->left_m + view->right_m) / 2;
    double y = (view->top_m + view->bottom_m) / 2;
    view->left_m = x - width / 2;
    view->right_m = x + width / 2;
    view->top_m = y - height / 2;
    view->bottom_m = y + height / 2;
}

static bool segment_seen(const struct view *view, struct vec2 a, struct vec2 b, double margin_m)
{
    return fmax(a.x_m, b.x_m) > view->left_m - margin_m &&
           fmin(a.x_m, b.x_m) < view->right_m + margin_m &&
           fmax(a.y_m, b.y_m) > view->top_m - margin_m &&
           fmin(a.y_m, b.y_m) < view->bottom_m + margin_m;
}

/* The part of a polyline that the view shows, as path commands; false: none of it. */
static bool polyline(struct view *view, const struct vec2 *points, uint32_t count, double margin_m,
                     struct html *html, const char *head)
{
    double thin_m = (view->right_m - view->left_m) / 250;
    bool open = false;
    bool any = false;
    struct vec2 last = {0, 0};
    for (uint32_t i = 1; i < count && view->points < MAP_POINTS_MAX; i++) {
        struct vec2 a = to_view(view, points[i - 1].x_m, points[i - 1].y_m);
        struct vec2 b = to_view(view, points[i].x_m, points[i].y_m);
        if (!segment_seen(view, a, b, margin_m)) {
            open = false;
            continue;
        }
        if (!any) {
            html_raw(html, head);
        }
        if (!open) {
            html_format(html, "M%.1f %.1f", a.x_m, a.y_m);
            last = a;
        }
        double moved_m = hypot(b.x_m - last.x_m, b.y_m - last.y_m);
        if (moved_m >= thin_m || i + 1 == count || !open) {
            html_format(html, "L%.1f %.1f", b.x_m, b.y_m);
            last = b;
            view->points++;
        }
        open = true;
        any = true;
    }
    return any;
}

static void polygon(struct view *view, const struct polygon *area, const char *style,
                    struct html *html)
{
    double left = INFINITY;
    double right = -INFINITY;
    double top = INFINITY;
    double bottom = -INFINITY;
    for (uint32_t i = 0; i < area->point_count; i++) {
        struct vec2 p = to_view(view, area->points[i].x_m, area->points[i].y_m);
        left = fmin(left, p.x_m);
        right = fmax(right, p.x_m);
        top = fmin(top, p.y_m);
        bottom = fmax(bottom, p.y_m);
    }
    if (right < view->left_m || left > view->right_m || bottom < view->top_m ||
        top > view->bottom_m || view->points + area->point_count > MAP_POINTS_MAX) {
        return;
    }
    view->points += area->point_count;
    html_format(html, "<polygon class=\"%s\" points=\"", style);
    for (uint32_t i = 0; i < area->point_count; i++) {
        struct vec2 p = to_view(view, area->points[i].x_m, area->points[i].y_m);
        html_format(html, "%.1f,%.1f ", p.x_m, p.y_m);
    }
    html_raw(html, "\"/>");
}

/* Every lane twice: its edge, then, over all edges, its surface. */
static void lanes(struct view *view, const struct map *map, struct html *html)
{
    static const char *const styles[LANE_KIND_COUNT] = {"driving", "shoulder", "cycle", "walk"};
    for (int pass = 0; pass < 2; pass++) {
        view->points = 0;
        for (uint32_t i = 0; i < map->lane_count; i++) {
            const struct lane *lane = &map->lanes[i];
            double width_m = lane->width_m[lane->point_count / 2];
            double drawn_m = width_m + (pass == 0 ? MARKING_M : -MARKING_M);
            char head[128];
            snprintf(head, sizeof head, "<path class=\"%s\" stroke-width=\"%.2f\" d=\"",
                     pass == 0 ? "edge" : styles[lane->kind], drawn_m > 0.1 ? drawn_m : 0.1);
            if (polyline(view, lane->centre_line, lane->point_count, width_m, html, head)) {
                html_raw(html, "\"/>");
            }
        }
        for (uint32_t i = 0; pass == 0 && i < map->drivable_count; i++) {
            polygon(view, &map->drivable[i], "area", html);
        }
    }
    for (uint32_t i = 0; i < map->crosswalk_count; i++) {
        polygon(view, &map->crosswalks[i], "crosswalk", html);
    }
    for (uint32_t i = 0; i < map->surface_count; i++) {
        polygon(view, &map->surfaces[i].area, "surface", html);
    }
}

static void box(const struct view *view, const char *style, double x_m, double y_m,
                double heading_rad, double length_m, double width_m, const char *name,
                struct html *html)
{
    struct vec2 p = to_view(view, x_m, y_m);
    double degrees = (view->heading_rad - heading_rad) * 180.0 / PI_RAD;
    html_format(
        html,
        "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" rx=\"0.4\" "
        "transform=\"translate(%.2f %.2f) rotate(%.1f)\"><title>%s</title></rect>",
        style, -length_m / 2, -width_m / 2, length_m, width_m, p.x_m, p.y_m, fmod(degrees, 360.0),
        name);
}

/* Path of ego (agent < 0) or of an agent during a drive. */
static void path(const struct view *view, const struct report_drive *drive,
                 const struct report_line *line, int32_t agent, const char *style,
                 struct html *html)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    char move = 'M';
    html_format(html, "<path class=\"path %s\" d=\"", style);
    for (uint32_t t = line->first_tick; t <= line->last_tick; t++) {
        if (!trace_reader_tick(&drive->reader, line->rollout, t, &at, agents) ||
            (agent >= 0 && !agents[agent].present)) {
            continue;
        }
        struct vec2 p = agent >= 0 ? to_view(view, agents[agent].x_m, agents[agent].y_m)
                                   : to_view(view, at.x_m, at.y_m);
        html_format(html, "%c%.1f %.1f", move, p.x_m, p.y_m);
        move = 'L';
    }
    html_format(html, "\"><title>%s</title></path>", line->name);
}

static void agent_box(const struct view *view, const struct report_drive *drive,
                      const struct trace_agent *agents, uint32_t i, const char *style,
                      struct html *html)
{
    const struct agent *agent = &drive->document->scenario.agents[i];
    box(view, style, agents[i].x_m, agents[i].y_m, agents[i].heading_rad, agent->length_m,
        agent->width_m, agent->id, html);
}

/* Those at the end of a drive but `agent`, which is drawn over everything else. */
static void agents_at_end(const struct view *view, const struct report_drive *drive,
                          const struct report_line *line, int32_t agent, struct html *html)
{
    const struct scenario *scenario = &drive->document->scenario;
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    uint32_t drawn = 0;
    if (!trace_reader_tick(&drive->reader, line->rollout, line->last_tick, &at, agents)) {
        return;
    }
    for (uint32_t i = 0; i < scenario->agent_count && drawn < BOXES_MAX; i++) {
        struct vec2 p = to_view(view, agents[i].x_m, agents[i].y_m);
        if (agents[i].present && (int32_t)i != agent && segment_seen(view, p, p, 3.0)) {
            agent_box(view, drive, agents, i, "box", html);
            drawn++;
        }
    }
}

static void scale_bar(const struct view *view, struct html *html)
{
    double width_m = view->right_m - view->left_m;
    double bar_m = width_m > 250 ? 50 : width_m > 90 ? 20 : 10;
    double x = view->left_m + width_m * 0.025;
    double y = view->bottom_m - width_m * 0.025;
    html_format(html,
                "<path class=\"bar\" d=\"M%.1f %.1fh%.0f\"/><text x=\"%.1f\" y=\"%.1f\" "
                "font-size=\"%.1f\">%.0f m</text>",
                x, y, bar_m, x, y - width_m * 0.012, width_m * 0.026, bar_m);
}

void report_chart_map(const struct report_drive *drive, const struct report_line *lines,
                      uint32_t count, int32_t agent, struct html *html)
{
    const struct ego *ego = &drive->document->scenario.ego;
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    if (count == 0 ||
        !trace_reader_tick(&drive->reader, lines[0].rollout, lines[0].first_tick, &at, agents)) {
        return;
    }
    struct view view = {
        .origin = {at.x_m, at.y_m},
        .heading_rad = at.heading_rad,
        .left_m = INFINITY,
        .top_m = INFINITY,
        .right_m = -INFINITY,
        .bottom_m = -INFINITY,
    };
    dmath_sincos(at.heading_rad, &view.sine, &view.cosine);
    for (uint32_t i = 0; i < count; i++) {
        include_line(&view, drive, &lines[i], i == 0 ? agent : -1);
    }
    fit_view(&view);
    html_format(html,
                "<svg class=\"map\" viewBox=\"%.1f %.1f %.1f %.1f\" role=\"img\" "
                "aria-label=\"paths seen from above\">",
                view.left_m, view.top_m, view.right_m - view.left_m, view.bottom_m - view.top_m);
    lanes(&view, &drive->document->scenario.map, html);
    box(&view, "box start", at.x_m, at.y_m, at.heading_rad, ego->length_m, ego->width_m,
        "ego at the start of the path", html);
    if (agent >= 0) {
        path(&view, drive, &lines[0], agent, "other", html);
    }
    agents_at_end(&view, drive, &lines[0], agent, html);
    for (uint32_t i = 0; i < count; i++) {
        path(&view, drive, &lines[i], -1, lines[i].style, html);
        if (trace_reader_tick(&drive->reader, lines[i].rollout, lines[i].last_tick, &at, agents)) {
            char style[64];
            snprintf(style, sizeof style, "box end %s", lines[i].style);
            box(&view, style, at.x_m, at.y_m, at.heading_rad, ego->length_m, ego->width_m,
                lines[i].name, html);
        }
    }
    if (agent >= 0 &&
        trace_reader_tick(&drive->reader, lines[0].rollout, lines[0].last_tick, &at, agents) &&
        agents[agent].present) {
        agent_box(&view, drive, agents, (uint32_t)agent, "box other", html);
    }
    scale_bar(&view, html);
    html_raw(html, "</svg>");
}

/* ---- speed ---- */

struct scale {
    uint32_t first_tick;
    double per_tick; /* viewBox units */
    double top_mps;
};

static double speed_x(const struct scale *scale, uint32_t tick)
{
    return SPEED_LEFT + ((double)tick - scale->first_tick) * scale->per_tick;
}

static double speed_y(const struct scale *scale, double mps)
{
    return SPEED_H - 18 - mps / scale->top_mps * (SPEED_H - 30);
}

static struct scale fit_scale(const struct report_drive *drive, const struct report_line *lines,
                              uint32_t count)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    struct scale scale = {.first_tick = UINT32_MAX, .top_mps = 1.0};
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        scale.first_tick =
            lines[i].first_tick < scale.first_tick ? lines[i].first_tick : scale.first_tick;
        last = lines[i].last_tick > last ? lines[i].last_tick : last;
        for (uint32_t t = lines[i].first_tick; t <= lines[i].last_tick; t++) {
            if (trace_reader_tick(&drive->reader, lines[i].rollout, t, &at, agents)) {
                scale.top_mps = fmax(scale.top_mps, at.speed_mps);
            }
        }
    }
    scale.per_tick =
        (SPEED_W - SPEED_LEFT - 8.0) / (last > scale.first_tick ? last - scale.first_tick : 1);
    return scale;
}

static void speed_axes(const struct scale *scale, struct html *html)
{
    double span_ticks = (SPEED_W - SPEED_LEFT - 8.0) / scale->per_tick;
    uint32_t step = span_ticks > 600 ? 200 : span_ticks > 300 ? 100 : span_ticks > 120 ? 50 : 10;
    for (int i = 0; i <= 2; i++) {
        double mps = scale->top_mps * i / 2;
        html_format(html,
                    "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
                    "text-anchor=\"end\">%.1f%s</text>",
                    SPEED_LEFT, speed_y(scale, mps), SPEED_W - 8, SPEED_LEFT - 4,
                    speed_y(scale, mps) + 3, mps, i == 2 ? " m/s" : "");
    }
    for (uint32_t t = (scale->first_tick + step - 1) / step * step;
         t <= scale->first_tick + span_ticks + 0.5; t += step) {
        /* The last one would stick out on the right. */
        bool out = speed_x(scale, t) + LABEL_W / 2 > SPEED_W;
        html_format(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%.0f s</text>",
                    out ? SPEED_W - 1.0 : speed_x(scale, t), SPEED_H - 4, out ? "end" : "middle",
                    t * TICK_S);
    }
}

void report_chart_speed(const struct report_drive *drive, const struct report_line *lines,
                        uint32_t count, const uint32_t *marks, uint32_t mark_count,
                        struct html *html)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    if (count == 0) {
        return;
    }
    struct scale scale = fit_scale(drive, lines, count);
    html_format(html,
                "<svg class=\"speed\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"speed over "
                "time\">",
                SPEED_W, SPEED_H);
    speed_axes(&scale, html);
    for (uint32_t i = 0; i < mark_count; i++) {
        html_format(html, "<path class=\"mark\" d=\"M%.1f 8V%d\"/>", speed_x(&scale, marks[i]),
                    SPEED_H - 18);
    }
    for (uint32_t i = 0; i < count; i++) {
        /* Long drives need no more points than the chart has pixels. */
        uint32_t step = 1 + (lines[i].last_tick - lines[i].first_tick) / 400;
        html_format(html, "<polyline class=\"%s\" points=\"", lines[i].style);
        for (uint32_t t = lines[i].first_tick; t <= lines[i].last_tick; t += step) {
            if (trace_reader_tick(&drive->reader, lines[i].rollout, t, &at, agents)) {
                html_format(html, "%.1f,%.1f ", speed_x(&scale, t), speed_y(&scale, at.speed_mps));
            }
        }
        html_format(html, "\"><title>%s</title></polyline>", lines[i].name);
    }
    html_raw(html, "</svg>");
}
