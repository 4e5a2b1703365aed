/*
 * CSV files of the controls challenge, as the reference's pandas reads them: lines of white space
 * are none, of columns of one name the first counts, a byte order mark is none of a name. Numbers
 * are read with strtod, which rounds correctly, but for hexadecimal ones.
 */
#include "engine/tinyphysics/controls_log.h"

#include "base/dmath.h"
#include "engine/tinyphysics/tinyphysics_episode.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GRAVITY_MPS2 9.81 /* the challenge's */

enum { FIELDS_MAX = 64, CELL_BYTES = 64 };

enum column { COLUMN_SPEED = 0, COLUMN_ACCEL, COLUMN_ROLL, COLUMN_TARGET, COLUMN_STEER, COLUMNS };

static const char *const column_names[COLUMNS] = {"vEgo", "aEgo", "roll",
                                                  "targetLateralAcceleration", "steerCommand"};

struct reader {
    const char *source;
    const char *at, *end;
    uint32_t line; /* of `at`, from 1 */
    uint32_t field_count;
    int columns[FIELDS_MAX]; /* which field is which column; -1: ignored */
    struct error *error;
};

/* Moves on to the next line that holds something. */
static void skip_blank_lines(struct reader *reader)
{
    for (const char *at = reader->at; at < reader->end; at++) {
        if (*at == '\n') {
            reader->line++;
            reader->at = at + 1;
        } else if (*at != ' ' && *at != '\t' && *at != '\r') {
            return;
        }
    }
    reader->at = reader->end;
}

/* The next cell of the line, terminated; *last: nothing follows it in this line. */
static enum status take_cell(struct reader *reader, char cell[CELL_BYTES], bool *last)
{
    size_t length = 0;
    const char *from = reader->at;
    while (reader->at < reader->end && *reader->at != ',' && *reader->at != '\n') {
        reader->at++;
    }
    length = (size_t)(reader->at - from);
    *last = reader->at == reader->end || *reader->at == '\n';
    if (reader->at < reader->end) {
        reader->at++;
    }
    if (*last && length > 0 && from[length - 1] == '\r') {
        length--;
    }
    if (length >= CELL_BYTES || memchr(from, 0, length) != NULL) {
        return error_set(reader->error, STATUS_BAD_INPUT,
                         "%s:%u: expected cells of at most %d characters, found %zu bytes",
                         reader->source, reader->line, CELL_BYTES - 1, length);
    }
    memcpy(cell, from, length);
    cell[length] = 0;
    return STATUS_OK;
}

static enum status read_header(struct reader *reader)
{
    bool found[COLUMNS] = {false};
    bool last = false;
    while (!last) {
        char cell[CELL_BYTES];
        TRY(take_cell(reader, cell, &last));
        if (reader->field_count == FIELDS_MAX) {
            return error_set(reader->error, STATUS_LIMIT,
                             "%s:%u: expected at most %d columns, found more", reader->source,
                             reader->line, FIELDS_MAX);
        }
        int *column = &reader->columns[reader->field_count++];
        *column = -1;
        for (int i = 0; i < COLUMNS; i++) {
            if (!found[i] && strcmp(cell, column_names[i]) == 0) {
                *column = i;
                found[i] = true;
            }
        }
    }
    for (int i = 0; i < COLUMNS; i++) {
        if (!found[i]) {
            return error_set(reader->error, STATUS_BAD_INPUT,
                             "%s:%u: expected a column \"%s\", found none", reader->source,
                             reader->line, column_names[i]);
        }
    }
    return STATUS_OK;
}

/* Empty cells are allowed for steer where the controller steers. */
static enum status read_number(const struct reader *reader, const char *cell, int column,
                               uint32_t row, double *out)
{
    char *end;
    if (cell[0] == 0 && column == COLUMN_STEER && row >= TINYPHYSICS_CONTROL_STEP) {
        *out = 0.0;
        return STATUS_OK;
    }
    *out = strtod(cell, &end);
    if (end == cell || *end != 0 || strpbrk(cell, "xX") != NULL || !isfinite(*out) ||
        fabs(*out) > 1e4) {
        return error_set(reader->error, STATUS_BAD_INPUT,
                         "%s:%u: %s: expected a number within +-10,000, found \"%s\"",
                         reader->source, reader->line, column_names[column], cell);
    }
    return STATUS_OK;
}

/* *empty: a row without all numbers behind those that count, where a log ends. */
static enum status read_row(struct reader *reader, uint32_t row, struct controls_row *out,
                            bool *empty)
{
    double values[COLUMNS] = {0};
    uint32_t field = 0;
    bool last = false;
    for (; !last; field++) {
        char cell[CELL_BYTES];
        TRY(take_cell(reader, cell, &last));
        if (field < reader->field_count && reader->columns[field] >= 0) {
            const int column = reader->columns[field];
            *empty = cell[0] == 0 && column != COLUMN_STEER && row >= TINYPHYSICS_COST_END;
            if (*empty) {
                return STATUS_OK;
            }
            TRY(read_number(reader, cell, column, row, &values[column]));
        }
    }
    if (field != reader->field_count) {
        return error_set(reader->error, STATUS_BAD_INPUT, "%s:%u: expected %u cells, found %u",
                         reader->source, reader->line, reader->field_count, field);
    }
    *out = (struct controls_row){
        .target_mps2 = values[COLUMN_TARGET],
        .roll_lataccel_mps2 = dmath_sin(values[COLUMN_ROLL]) * GRAVITY_MPS2,
        .v_ego_mps = values[COLUMN_SPEED],
        .a_ego_mps2 = values[COLUMN_ACCEL],
        .steer = -values[COLUMN_STEER],
    };
    return STATUS_OK;
}

static enum status read_rows(struct reader *reader, struct controls_log *log)
{
    bool empty = false;
    skip_blank_lines(reader);
    TRY(read_header(reader));
    reader->line++;
    for (skip_blank_lines(reader); reader->at < reader->end; skip_blank_lines(reader)) {
        if (log->count == CONTROLS_ROWS_MAX) {
            return error_set(reader->error, STATUS_LIMIT,
                             "%s:%u: expected at most %d rows, found more", reader->source,
                             reader->line, CONTROLS_ROWS_MAX);
        }
        TRY(read_row(reader, log->count, &log->rows[log->count], &empty));
        if (empty) {
            break;
        }
        log->count++;
        reader->line++;
    }
    if (log->count < CONTROLS_ROWS_MIN) {
        return error_set(reader->error, STATUS_BAD_INPUT,
                         "%s: expected at least %d rows (control begins at row %d), found %u",
                         reader->source, CONTROLS_ROWS_MIN, TINYPHYSICS_CONTROL_STEP, log->count);
    }
    return STATUS_OK;
}

enum status controls_log_parse(const char *source, const char *text, size_t bytes,
                               struct controls_log *log, struct error *error)
{
    struct reader reader = {
        .source = source, .at = text, .end = text + bytes, .line = 1, .error = error};
    size_t lines = 1;
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        reader.at += 3;
    }
    for (size_t i = 0; i < bytes; i++) {
        lines += text[i] == '\n';
    }
    lines = lines < CONTROLS_ROWS_MAX ? lines : CONTROLS_ROWS_MAX;
    *log = (struct controls_log){.rows = malloc(lines * sizeof *log->rows)};
    TRY(memory_check(log->rows, error, "%s: no memory for %zu rows", source, lines));
    enum status status = read_rows(&reader, log);
    if (status != STATUS_OK) {
        controls_log_free(log);
    }
    return status;
}

void controls_log_free(struct controls_log *log)
{
    free(log->rows);
    *log = (struct controls_log){0};
}
