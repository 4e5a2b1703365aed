/*
 * Scan: a strict reader of JSON texts without building a tree: for the two that come with a world
 * model (the header of a safetensors file and its configuration), because the engine builds with
 * libc alone, and for the messages that a fleet sends all the time (schemas/json_scan.h).
 *
 * The caller walks the text in the order in which it stands. The first mistake fills the error with
 * source, byte offset, what was expected and what was found; every later call then returns false,
 * so a walk may be checked once at its end. Recursion is the caller's: there is none here.
 */
#ifndef SWERVE_BASE_SCAN_H
#define SWERVE_BASE_SCAN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan {
    const char *source; /* file name, for errors */
    const char *part;   /* "header", "config" */
    const char *text;   /* need not be terminated */
    size_t bytes;
    size_t at;
    enum status status;
    struct error *error; /* may be NULL */
};

struct scan scan_begin(const char *source, const char *part, const char *text, size_t bytes,
                       struct error *error);

/* Records "source: part: ..., at byte N" unless something failed before; always false. */
bool scan_fail(struct scan *scan, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Skips white space and takes `c`, or fails. */
bool scan_expect(struct scan *scan, char c);

/* Behind `text` and true, when that comes next to the byte; else false, which is no failure. */
bool scan_literal(struct scan *scan, const char *text);

/* Only white space is left, or fails. */
bool scan_end(struct scan *scan);

/* A string, unescaped and terminated, UTF-8 checked; U+0000 is refused. room counts the
 * terminator; *length (may be NULL) does not. */
bool scan_string(struct scan *scan, char *out, size_t room, size_t *length);

/* Digits alone; above 2^63 - 1 is refused. */
bool scan_integer(struct scan *scan, uint64_t *out);

/* An integer within the bounds, with a sign or without; -2^63 is refused. */
bool scan_signed(struct scan *scan, int64_t min, int64_t max, int64_t *out);

/* Any JSON number. */
bool scan_number(struct scan *scan, double *out);

/* for (bool first = true; scan_member(..);): the next key of an object whose '{' was taken, its
 * colon taken too; false at '}' (taken) or when something failed. */
bool scan_member(struct scan *scan, bool *first, char *key, size_t room);

/* The same for the elements of an array whose '[' was taken; the element itself is the caller's. */
bool scan_element(struct scan *scan, bool *first);

#endif
