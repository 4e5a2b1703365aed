/*
 * Parquet files of a map, as the public ClipGT schema has them: rows of `key`, one group of fields
 * that is called after the table, and `version`. Plain, uncompressed, one row group, one page for
 * each column.
 *
 * Calls for a row come in this order: parquet_row, then one for each field. Memory that runs out is
 * told by parquet_finish.
 *
 * Source: apache/parquet-format (Encodings.md, LogicalTypes.md, parquet.thrift), Thrift's compact
 * protocol.
 */
#ifndef SWERVE_WORKER_OMNIDREAMS_PARQUET_H
#define SWERVE_WORKER_OMNIDREAMS_PARQUET_H

#include "base/geom.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum parquet_kind {
    PARQUET_TEXT = 0,
    PARQUET_FLAG,   /* a boolean */
    PARQUET_TEXTS,  /* a list of texts */
    PARQUET_POINT,  /* x, y, z as double */
    PARQUET_TURN,   /* a quaternion x, y, z, w */
    PARQUET_POINTS, /* a list of points */
};

struct parquet_field {
    const char *name;
    enum parquet_kind kind;
};

struct parquet;

enum { PARQUET_FIELDS_MAX = 8 };

/* An empty table. Names are borrowed until parquet_finish. */
enum status parquet_create(const char *table, const struct parquet_field *fields, uint32_t count,
                           struct parquet **out, struct error *error);

/* A row's key; `map_id` is an element's number. */
void parquet_row(struct parquet *parquet, const char *clip, int64_t timestamp_us, uint32_t map_id);

void parquet_text(struct parquet *parquet, uint32_t field, const char *text);
void parquet_flag(struct parquet *parquet, uint32_t field, bool flag);
void parquet_texts(struct parquet *parquet, uint32_t field, const char *text, uint32_t times);
void parquet_point(struct parquet *parquet, uint32_t field, double x, double y, double z);
void parquet_turn(struct parquet *parquet, uint32_t field, double heading_rad);
/* Points at a height of 0. */
void parquet_points(struct parquet *parquet, uint32_t field, const struct vec2 *points,
                    uint32_t count);

uint32_t parquet_rows(const struct parquet *parquet);

/* The file's bytes, malloc'ed, the caller's. The table is gone in any case. NO_MEMORY. */
enum status parquet_finish(struct parquet *parquet, uint8_t **bytes, size_t *count,
                           struct error *error);

#endif
