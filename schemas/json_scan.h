/*
 * Records from and to JSON text without a document in between, for the few messages that a fleet
 * sends all the time (completions, leases): a tenth of the time of building and reading one.
 *
 * The scanner understands what the encoders of json_record.h and the writer below put out: every
 * member, in the order of the table, reals with a fraction or an exponent.
 * It never refuses: at anything else it says that it did not understand, and the caller reads the
 * text the other way, which finds the same record or the error. What it takes is what
 * json_record_decode takes, bit for bit.
 */
#ifndef SWERVE_SCHEMAS_JSON_SCAN_H
#define SWERVE_SCHEMAS_JSON_SCAN_H

#include "base/scan.h"
#include "schemas/json_record.h"

/* ---- reading ---- */

/* The members of one record, the first right behind the brace; the brace after the last is left.
 * The record may be partly written when it is not understood. */
bool json_scan_fields(struct scan *scan, const struct json_field_list *list, void *record);

/* ---- writing ---- */

/* A text that grows; zero-initialised it is empty. */
struct json_text {
    char *data; /* malloc'ed, not terminated; the owner frees it */
    size_t bytes;
    size_t capacity;
    bool failed; /* memory ran out: what was written is void */
};

void json_write_literal(struct json_text *text, const char *literal);
void json_write_integer(struct json_text *text, int64_t value);
/* The object that json_record_encode makes. */
void json_write_record(struct json_text *text, const struct json_field_list *list,
                       const void *record);

#endif
