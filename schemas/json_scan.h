/*
 * Records from and to JSON text without a document in between, for the few messages that a fleet
 * sends all the time (completions, leases): a tenth of the time of building and reading one.
 *
 * The scanner understands exactly what the encoders of json_record.h and the writer below put out:
 * every member, in the order of the table, without spaces, text without escapes and in ASCII.
 * It never refuses: at anything else it says that it did not understand, and the caller reads the
 * text the other way, which finds the same record or the error. What it takes is what
 * json_record_decode takes, bit for bit.
 */
#ifndef SWERVE_SCHEMAS_JSON_SCAN_H
#define SWERVE_SCHEMAS_JSON_SCAN_H

#include "schemas/json_record.h"

/* ---- reading ---- */

struct json_scan {
    const char *at; /* next byte; borrowed text */
    const char *end;
};

static inline struct json_scan json_scan_begin(const void *text, size_t bytes)
{
    const char *at = text != NULL ? (const char *)text : "";
    return (struct json_scan){.at = at, .end = at + bytes};
}

/* True and behind it, when the text goes on with `expected`; else it stays where it is. */
bool json_scan_literal(struct json_scan *scan, const char *expected);

/* The members of one record, the first right behind the brace; the brace after the last is left.
 * The record may be partly written when it is not understood. */
bool json_scan_fields(struct json_scan *scan, const struct json_field_list *list, void *record);

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
