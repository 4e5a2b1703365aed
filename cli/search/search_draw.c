/*
 * A picture of what a search found: for each logical scenario a panel over its first two numbers
 * that vary, what was driven as points, and from each failing end of a boundary to its passing one.
 * With one number the other axis is the margin. Sentences of the boundaries stand below.
 */
#include "cli/search/search_run.h"

#include "base/file.h"
#include "base/text.h"
#include "report/draw/draw_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 760,
    LEFT = 90,
    RIGHT = 20,
    PLOT_HEIGHT = 320,
    HEAD = 56,
    FOOT = 40,
    LINE = 16,
    SENTENCES_MAX = 6,
    PANEL_HEIGHT = HEAD + PLOT_HEIGHT + FOOT + SENTENCES_MAX * LINE,
    PANELS_MAX = PAINTER_SIDE_MAX / PANEL_HEIGHT,
    LINE_CHARACTERS = 98
};

struct panel {
    struct painter *painter;
    const struct search_logical *logical;
    double top;
    int32_t axis[2]; /* its numbers; axis[1] -1: the margin */
};

/* Place of a point, whose margin stands upwards where there is one number. */
static struct vec2 place(const struct panel *panel, const struct search_point *point, double margin)
{
    double x = panel->axis[0] >= 0 ? point->at[panel->axis[0]] : 0.5;
    double y = panel->axis[1] >= 0 ? point->at[panel->axis[1]]
                                   : (fmin(fmax(margin, -2.0), 1.0) + 2.0) / 3.0;
    return (struct vec2){LEFT + x * (WIDTH - LEFT - RIGHT),
                         panel->top + HEAD + (1.0 - y) * PLOT_HEIGHT};
}

static void choose_axes(struct panel *panel)
{
    int found = 0;
    panel->axis[0] = panel->axis[1] = -1;
    for (uint32_t d = 0; d < panel->logical->space.count && found < 2; d++) {
        if (panel->logical->space.dimensions[d].choice_count == 0) {
            panel->axis[found++] = (int32_t)d;
        }
    }
}

static void paint_frame(const struct panel *panel)
{
    struct painter *painter = panel->painter;
    double bottom = panel->top + HEAD + PLOT_HEIGHT;
    const struct range *ranges = panel->logical->scenario->ranges;
    char text[LIMIT_ID_BYTES + 2 * SEARCH_VALUE_BYTES];
    char value[SEARCH_VALUE_BYTES];
    const struct vec2 frame[4] = {{LEFT, panel->top + HEAD},
                                  {LEFT, bottom},
                                  {WIDTH - RIGHT, bottom},
                                  {WIDTH - RIGHT, panel->top + HEAD}};
    static const struct colour paper = {0xff, 0xff, 0xff, 1};
    painter_polygon(painter, frame, 4, paper);
    painter_line(painter, frame, 3, 1, 0, draw_soft);
    painter_text(painter, 12, panel->top + 16, 12, draw_ink, panel->logical->scenario->id);
    snprintf(text, sizeof text, "%u of %u points fail (red), the others pass (green)%s",
             panel->logical->failure_count, panel->logical->drive_count,
             panel->logical->space.count > 2 ? "; further parameters vary too" : "");
    painter_text(painter, 12, panel->top + 34, 9, draw_soft, text);
    for (int i = 0; i <= 2 && panel->axis[0] >= 0; i++) {
        const struct range *range = &ranges[panel->axis[0]];
        double x = LEFT + 0.5 * i * (WIDTH - LEFT - RIGHT);
        search_value_text(range, 0.5 * i, value);
        snprintf(text, sizeof text, "%s%s%s", i == 1 ? range->name : "", i == 1 ? " " : "", value);
        double width = painter_text_width(text, 9);
        painter_text(painter, fmin(x - (i > 0 ? width / 2 : 0), WIDTH - RIGHT - width), bottom + 14,
                     9, draw_ink, text);
    }
    for (int i = 0; i <= 2; i++) {
        double y = bottom - 0.5 * i * PLOT_HEIGHT;
        if (panel->axis[1] >= 0) {
            search_value_text(&ranges[panel->axis[1]], 0.5 * i, value);
        } else {
            snprintf(value, sizeof value, "%.1f", -2.0 + 1.5 * i);
        }
        painter_text(painter, LEFT - 8 - painter_text_width(value, 9), y, 9, draw_ink, value);
    }
    painter_text(painter, 12, panel->top + HEAD - 10, 9, draw_ink,
                 panel->axis[1] >= 0 ? ranges[panel->axis[1]].name : "margin");
}

static void paint_points(const struct panel *panel)
{
    const struct search_logical *logical = panel->logical;
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        const struct search_sample *sample = &logical->drives[i].sample;
        if (!isnan(sample->margin)) {
            painter_circle(panel->painter, place(panel, &sample->point, sample->margin), 3, 2,
                           sample->margin < 0.0 ? draw_contact : draw_goal);
        }
    }
}

/* From failing to passing; one that fails to the end leads there. */
static void paint_boundaries(const struct panel *panel)
{
    for (uint32_t b = 0; b < panel->logical->boundary_count; b++) {
        const struct search_line *line = &panel->logical->boundaries[b].line;
        if (line->state == SEARCH_LINE_FOUND) {
            struct vec2 ends[2] = {place(panel, &line->failing, 0.0),
                                   place(panel, &line->passing, 0.0)};
            struct vec2 middle = {(ends[0].x_m + ends[1].x_m) / 2, (ends[0].y_m + ends[1].y_m) / 2};
            painter_line(panel->painter, ends, 2, 3, 0, draw_ink);
            painter_circle(panel->painter, middle, 7, 2, draw_ink);
        }
    }
}

/* Text in lines that end between words; returns how many. */
static uint32_t paint_lines(const struct panel *panel, const char *text, uint32_t first)
{
    double y = panel->top + HEAD + PLOT_HEIGHT + FOOT;
    while (*text != '\0' && first < SENTENCES_MAX) {
        char line[LINE_CHARACTERS + 1];
        size_t bytes = strlen(text);
        if (bytes > LINE_CHARACTERS) {
            bytes = LINE_CHARACTERS;
            while (bytes > 1 && text[bytes] != ' ') {
                bytes--;
            }
        }
        snprintf(line, sizeof line, "%.*s", (int)bytes, text);
        painter_text(panel->painter, 12, y + LINE * first++, 9, draw_ink, line);
        text += bytes;
        text += *text == ' ';
    }
    return first;
}

static void paint_panel(struct panel *panel)
{
    const struct search_logical *logical = panel->logical;
    uint32_t lines = 0;
    choose_axes(panel);
    paint_frame(panel);
    paint_points(panel);
    paint_boundaries(panel);
    for (uint32_t c = 0; c < logical->cluster_count; c++) {
        char kind[SEARCH_KIND_BYTES];
        char sentence[SEARCH_SENTENCE_BYTES];
        char whole[SEARCH_KIND_BYTES + SEARCH_SENTENCE_BYTES + 32];
        uint32_t count;
        search_describe(search_cluster_sum(logical, c, &count), kind);
        search_sentence(logical, c, sentence);
        snprintf(whole, sizeof whole, "%u x %s%s%s", count, kind, sentence[0] != '\0' ? ": " : "",
                 sentence);
        lines = paint_lines(panel, whole, lines);
    }
}

enum status search_draw_picture(const struct search_run *run, const char *path, struct error *error)
{
    struct painter painter = {0};
    void *data = NULL;
    size_t bytes = 0;
    bool svg;
    uint32_t shown = run->count < PANELS_MAX ? run->count : PANELS_MAX;
    TRY(painter_kind("--draw", path, &svg, error));
    TRY(painter_init(&painter, WIDTH, shown * PANEL_HEIGHT, svg, draw_ground, error));
    for (uint32_t l = 0; l < shown; l++) {
        struct panel panel = {
            .painter = &painter, .logical = &run->logicals[l], .top = (double)l * PANEL_HEIGHT};
        paint_panel(&panel);
    }
    painter_end(&painter);
    enum status status = painter_take(&painter, &data, &bytes, error);
    THEN(status, file_replace(path, data, bytes, 0644, error));
    if (status == STATUS_OK) {
        text_print(stderr, "picture: %s\n", path);
    }
    if (status == STATUS_OK && shown < run->count) {
        text_print(stderr, "picture: the first %u of %u logical scenarios\n", shown, run->count);
    }
    free(data);
    painter_finish(&painter);
    return status;
}
