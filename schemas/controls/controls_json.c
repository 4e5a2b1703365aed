/*
 * Controls codec: the log of the controls challenge in a scenario's document, both ways.
 *
 * Invariant: a decoded log holds finite numbers, and enough rows for the scenario's horizon.
 */
#include "schemas/scenario_parts.h"

#include "base/check.h"

enum { SEED_MAX = 9999, ROW_COLUMNS = 5 };

#define NUMBER_MAX 1e6

static enum status decode_row(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              void *out)
{
    struct controls_row *row = out;
    double *const columns[ROW_COLUMNS] = {&row->target_mps2, &row->roll_lataccel_mps2,
                                          &row->v_ego_mps, &row->a_ego_mps2, &row->steer};
    size_t count;
    TRY(json_array_begin(cursor, ROW_COLUMNS, ROW_COLUMNS, &count, decoder->error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        TRY(json_value_number(&element, -NUMBER_MAX, NUMBER_MAX, columns[i], decoder->error));
    }
    return STATUS_OK;
}

enum status decode_controls(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                            struct scenario *out)
{
    static const char *const keys[] = {"seed", "rows", NULL};
    int64_t seed = 0;
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(cursor, keys, decoder->error));
    TRY(json_member_integer(cursor, "seed", true, 0, SEED_MAX, &seed, decoder->error));
    struct json_cursor rows = json_cursor_member(cursor, "rows");
    struct controls controls = {.seed = (uint32_t)seed};
    TRY(decode_list(&rows, LIMIT_CONTROLS_ROWS_MIN, LIMIT_CONTROLS_ROWS, decoder, decode_row,
                    sizeof *controls.log.rows, &controls.log.rows, &controls.log.count));
    const uint32_t last =
        controls.log.count < CONTROLS_COST_END ? controls.log.count : CONTROLS_COST_END;
    if (out->horizon_ticks > last - CONTROLS_CONTEXT) {
        return json_fail(&rows, decoder->error,
                         "expected a horizon of at most %g s, which %u rows are good for, found "
                         "%g s",
                         (last - CONTROLS_CONTEXT) / 10.0, controls.log.count,
                         out->horizon_ticks / 10.0);
    }
    out->controls = controls;
    return STATUS_OK;
}

json_t *encode_controls(struct json_builder *builder, const struct controls *controls)
{
    json_t *object = json_object();
    json_t *rows = json_array();
    for (uint32_t i = 0; i < controls->log.count; i++) {
        const struct controls_row *row = &controls->log.rows[i];
        const double values[ROW_COLUMNS] = {row->target_mps2, row->roll_lataccel_mps2,
                                            row->v_ego_mps, row->a_ego_mps2, row->steer};
        build_element(builder, rows, encode_row(builder, values, ROW_COLUMNS));
    }
    build_member(builder, object, "seed", json_integer(controls->seed));
    build_member(builder, object, "rows", rows);
    return object;
}
