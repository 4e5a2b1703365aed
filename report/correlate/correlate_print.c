/*
 * Errors by model and horizon, for people and programs.
 */
#include "report/correlate/correlate.h"

#include "base/text.h"
#include "report/page/page.h"
#include "schemas/json_record.h"

#include <math.h>

#define WIDE 100.0 /* of such an end nobody needs decimals */
enum { CELL_BYTES = 48 };

static const char *const model_texts[CORRELATE_MODEL_COUNT] = {
    "ego, kinematic",      "ego, single-track", "  going straight on",     "reactive traffic",
    "  going straight on", "foreseen traffic",  "  accelerating, turning", "  by tokens"};

static const char *cell_text(const struct correlate_error *errors, char out[CELL_BYTES])
{
    struct correlate_estimate at = correlate_estimate(errors);
    if (isnan(at.mean)) {
        snprintf(out, CELL_BYTES, "-");
    } else if (isnan(at.low)) {
        snprintf(out, CELL_BYTES, "%.2f", at.mean);
    } else {
        snprintf(out, CELL_BYTES, "%.2f [%.2f-%.*f]", at.mean, fmax(at.low, 0),
                 at.high < WIDE ? 2 : 0, at.high);
    }
    return out;
}

/* Of a difference. */
static const char *signed_text(const struct correlate_error *errors, char out[CELL_BYTES])
{
    struct correlate_estimate at = correlate_estimate(errors);
    if (isnan(at.mean)) {
        snprintf(out, CELL_BYTES, "-");
    } else if (isnan(at.low)) {
        snprintf(out, CELL_BYTES, "%+.2f", at.mean);
    } else {
        snprintf(out, CELL_BYTES, "%+.2f [%+.2f, %+.2f]", at.mean, at.low, at.high);
    }
    return out;
}

/* Tokens, the last one, are there if there is a network. */
static int models_of(const struct correlate *correlate)
{
    return correlate->tokens != NULL ? CORRELATE_MODEL_COUNT : CORRELATE_TOKENS;
}

static void print_errors(const struct correlate *correlate, const char *title, bool speed,
                         FILE *out)
{
    char text[CELL_BYTES];
    text_print(out, "%-24s", title);
    for (int h = 0; h < CORRELATE_HORIZONS; h++) {
        text_print(out, " %17.0f s", correlate_horizons_s[h]);
    }
    text_print(out, "\n");
    for (int m = 0; m < models_of(correlate); m++) {
        text_print(out, "  %-22s", model_texts[m]);
        for (int h = 0; h < CORRELATE_HORIZONS; h++) {
            const struct correlate_cell *cell = &correlate->cells[m][h];
            text_print(out, " %19s", cell_text(speed ? &cell->speed_mps : &cell->position_m, text));
        }
        text_print(out, "\n");
    }
}

static const char *const cells_names[CORRELATE_CELLS_COUNT] = {"foreseen", "straight",
                                                               "accelerating"};

static void print_foresight(const struct correlate *correlate, FILE *out)
{
    static const char *const names[CORRELATE_CELLS_COUNT] = {
        "foreseen traffic", "  going straight on", "  accelerating, turning"};
    char text[CELL_BYTES];
    text_print(out, "%-24s\n", "foresight");
    text_print(out, "  %-22s", "error, m, less accel.");
    for (int h = 0; h < CORRELATE_HORIZONS; h++) {
        text_print(out, " %19s", signed_text(&correlate->foreseen_less_m[h], text));
    }
    if (correlate->tokens != NULL) {
        text_print(out, "\n  %-22s", "tokens, m, less fores.");
        for (int h = 0; h < CORRELATE_HORIZONS; h++) {
            text_print(out, " %19s", signed_text(&correlate->tokens_less_m[h], text));
        }
    }
    text_print(out, "\n%-24s\n", "moving IoU");
    for (int c = 0; c < CORRELATE_CELLS_COUNT; c++) {
        text_print(out, "  %-22s", names[c]);
        for (int h = 0; h < CORRELATE_HORIZONS; h++) {
            text_print(out, " %19s", cell_text(&correlate->moving_iou[c][h], text));
        }
        text_print(out, "\n");
    }
    text_print(out, "  %-22s", "more than straight on");
    for (int h = 0; h < CORRELATE_HORIZONS; h++) {
        text_print(out, " %19s", signed_text(&correlate->moving_iou_more[h], text));
    }
    text_print(out, "\n");
}

static const char *const futures_names[CORRELATE_FUTURES] = {"recorded", "drivers", "tokens"};

static void print_samples(const struct correlate *correlate, FILE *out)
{
    static const char *const rows[2] = {"drivers that differ", "tokens"};
    char text[CELL_BYTES];
    text_print(out, "%u futures of each: energy score of places, m\n", correlate->samples);
    for (int m = 0; m < 3; m++) {
        text_print(out, "  %-22s", m < 2 ? rows[m] : "tokens less drivers");
        for (int h = 0; h < CORRELATE_HORIZONS; h++) {
            text_print(out, " %19s",
                       m < 2 ? cell_text(&correlate->energy_m[m][h], text)
                             : signed_text(&correlate->energy_less_m[h], text));
        }
        text_print(out, "\n");
    }
    for (int f = 0; f < CORRELATE_FUTURES; f++) {
        text_print(out, "  %-22s overlaps %.2f%%, off the road %.2f%%", futures_names[f],
                   100 * correlate_estimate(&correlate->overlaps[f]).mean,
                   100 * correlate_estimate(&correlate->off_road[f]).mean);
        struct correlate_estimate answers = correlate_estimate(&correlate->answers[f]);
        if (!isnan(answers.mean)) {
            text_print(out, ", slower behind a braking ego %.1f%% of %.0f", 100 * answers.mean,
                       answers.windows);
        }
        text_print(out, "\n");
    }
}

static void print_realism(const struct correlate *correlate, FILE *out)
{
    static const char *const names[2] = {"reactive traffic", "  going straight on"};
    struct page page = {.out = out};
    page_table(&page, "",
               "24 realism of traffic| #9 speed| #9 accel| #9 yaw rate| #9 yaw accel| #9 nearest| "
               "#9 TTC| #9 contacts| #9 off road| #9 mean");
    for (int row = 0; row < 2; row++) {
        page_cells(&page, 0, "  %s", names[row]);
        for (uint32_t f = 0; f <= REALISM_FEATURES; f++) {
            page_cells(&page, 1 + f, "%.2f", correlate_estimate(&correlate->realism[row][f]).mean);
        }
        page_row_end(&page);
    }
}

void correlate_print(const struct correlate *correlate, FILE *out)
{
    text_print(out, "%u recorded vehicle%s in %u scene%s; %u scenario%s without a recording\n",
               correlate->recordings, correlate->recordings == 1 ? "" : "s", correlate->scenes,
               correlate->scenes == 1 ? "" : "s", correlate->empty,
               correlate->empty == 1 ? "" : "s");
    print_errors(correlate, "position, m", false, out);
    print_errors(correlate, "speed, m/s", true, out);
    print_foresight(correlate, out);
    if (correlate->samples > 0) {
        print_samples(correlate, out);
    }
    print_realism(correlate, out);
    text_print(out, "realism: how likely the recording is under the run, 0 to 1, 1 is best "
                    "(docs/correlation.md)\n");
    text_print(
        out,
        "means over windows, 95%% intervals over scenes (of five scenes or more; they hold "
        "the truth in 95 to 97%% of drawn scenes); windows at 1 and 5 s: "
        "%.0f and %.0f of ego's models, %.0f and %.0f of traffic\n",
        correlate_estimate(&correlate->cells[CORRELATE_KINEMATIC][0].position_m).windows,
        correlate_estimate(
            &correlate->cells[CORRELATE_KINEMATIC][CORRELATE_HORIZONS - 1].position_m)
            .windows,
        correlate_estimate(&correlate->cells[CORRELATE_TRAFFIC][0].position_m).windows,
        correlate_estimate(&correlate->cells[CORRELATE_TRAFFIC][CORRELATE_HORIZONS - 1].position_m)
            .windows);
}

static json_t *error_json(const struct correlate_error *errors)
{
    struct correlate_estimate at = correlate_estimate(errors);
    return json_pack("{s:o, s:o, s:o, s:o, s:f, s:i}", "mean", json_finite_new(at.mean), "low",
                     json_finite_new(at.low), "high", json_finite_new(at.high), "most",
                     json_finite_new(at.most), "windows", at.windows, "scenes", (int)at.scenes);
}

static json_t *samples_json(const struct correlate *correlate)
{
    json_t *horizons = json_array();
    json_t *models = json_object();
    for (int h = 0; h < CORRELATE_HORIZONS; h++) {
        json_array_append_new(
            horizons, json_pack("{s:f, s:o, s:o, s:o}", "horizon_s", correlate_horizons_s[h],
                                "drivers_m", error_json(&correlate->energy_m[0][h]), "tokens_m",
                                error_json(&correlate->energy_m[1][h]), "tokens_less_drivers_m",
                                error_json(&correlate->energy_less_m[h])));
    }
    for (int f = 0; f < CORRELATE_FUTURES; f++) {
        json_object_set_new(models, futures_names[f],
                            json_pack("{s:o, s:o, s:o}", "overlaps",
                                      error_json(&correlate->overlaps[f]), "off_road",
                                      error_json(&correlate->off_road[f]), "answers",
                                      error_json(&correlate->answers[f])));
    }
    return json_pack("{s:i, s:o, s:o}", "futures", (int)correlate->samples, "energy", horizons,
                     "of", models);
}

json_t *correlate_json(const struct correlate *correlate)
{
    json_t *models = json_object();
    for (int m = 0; m < models_of(correlate); m++) {
        json_t *horizons = json_array();
        for (int h = 0; h < CORRELATE_HORIZONS; h++) {
            const struct correlate_cell *cell = &correlate->cells[m][h];
            json_array_append_new(horizons, json_pack("{s:f, s:o, s:o, s:o}", "horizon_s",
                                                      correlate_horizons_s[h], "position_m",
                                                      error_json(&cell->position_m), "along_m",
                                                      error_json(&cell->along_m), "speed_mps",
                                                      error_json(&cell->speed_mps)));
        }
        json_object_set_new(models, correlate_names[m], horizons);
    }
    json_t *foresight = json_array();
    for (int h = 0; h < CORRELATE_HORIZONS; h++) {
        json_t *iou = json_object();
        for (int c = 0; c < CORRELATE_CELLS_COUNT; c++) {
            json_object_set_new(iou, cells_names[c], error_json(&correlate->moving_iou[c][h]));
        }
        json_t *at =
            json_pack("{s:f, s:o, s:o, s:o}", "horizon_s", correlate_horizons_s[h],
                      "foreseen_less_accelerating_m", error_json(&correlate->foreseen_less_m[h]),
                      "moving_iou", iou, "foreseen_more_than_straight",
                      error_json(&correlate->moving_iou_more[h]));
        if (correlate->tokens != NULL) {
            json_object_set_new(at, "tokens_less_foreseen_m",
                                error_json(&correlate->tokens_less_m[h]));
        }
        json_array_append_new(foresight, at);
    }
    json_t *realism = json_object();
    for (int row = 0; row < 2; row++) {
        json_t *features = json_object();
        for (int f = 0; f <= REALISM_FEATURES; f++) {
            json_object_set_new(features, f < REALISM_FEATURES ? realism_names[f] : "mean",
                                error_json(&correlate->realism[row][f]));
        }
        json_object_set_new(realism, correlate_names[CORRELATE_TRAFFIC + row], features);
    }
    json_t *json =
        json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "recordings", (int)correlate->recordings,
                  "scenes", (int)correlate->scenes, "without_recording", (int)correlate->empty,
                  "models", models, "realism", realism, "foresight", foresight);
    if (correlate->samples > 0) {
        json_object_set_new(json, "samples", samples_json(correlate));
    }
    return json;
}
