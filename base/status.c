/*
 * Statuses and errors. See status.h; this file only formats, it never prints or exits.
 */
#include "base/status.h"

#include "base/check.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

const char *const status_names[STATUS_COUNT] = {
    [STATUS_OK] = "ok",
    [STATUS_USAGE] = "usage",
    [STATUS_BAD_INPUT] = "bad_input",
    [STATUS_LIMIT] = "limit",
    [STATUS_NO_MEMORY] = "no_memory",
    [STATUS_IO] = "io",
    [STATUS_NOT_FOUND] = "not_found",
    [STATUS_CONFLICT] = "conflict",
    [STATUS_STALE] = "stale",
    [STATUS_BUSY] = "busy",
    [STATUS_TIMEOUT] = "timeout",
    [STATUS_STORE] = "store",
    [STATUS_DEVICE] = "device",
    [STATUS_PLANNER] = "planner",
    [STATUS_MISMATCH] = "mismatch",
    [STATUS_CANCELLED] = "cancelled",
    [STATUS_GONE] = "gone",
};

const char *status_name(enum status status)
{
    if ((int)status < 0 || status >= STATUS_COUNT) {
        return "unknown";
    }
    return status_names[status];
}

int status_exit_code(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return 0;
    case STATUS_MISMATCH:
        return 1;
    case STATUS_USAGE:
        return 2;
    case STATUS_BAD_INPUT:
    case STATUS_LIMIT:
    case STATUS_NOT_FOUND:
    case STATUS_GONE:
        return 3;
    case STATUS_DEVICE:
        return 5;
    case STATUS_PLANNER:
        return 6;
    case STATUS_BUSY:
        return 7;
    default:
        return 4;
    }
}

/* A sentence may quote what a damaged file holds, is kept in stores and ends up on terminals. */
static void make_printable(char *text)
{
    size_t left = strlen(text);
    for (unsigned char *at = (unsigned char *)text; left > 0;) {
        size_t bytes = text_shown_bytes(at, left, TEXT_LINES);
        if (bytes == 0) {
            *at = '?';
            bytes = 1;
        }
        at += bytes;
        left -= bytes;
    }
}

enum status error_setv(struct error *error, enum status status, const char *format, va_list args)
{
    CHECK(status != STATUS_OK);
    if (error != NULL) {
        error->status = status;
        vsnprintf(error->text, sizeof error->text, format, args);
        make_printable(error->text);
    }
    return status;
}

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_setv(error, status, format, args);
    va_end(args);
    return status;
}

enum status memory_check(const void *memory, struct error *error, const char *format, ...)
{
    if (memory != NULL) {
        return STATUS_OK;
    }
    va_list args;
    va_start(args, format);
    error_setv(error, STATUS_NO_MEMORY, format, args);
    va_end(args);
    return STATUS_NO_MEMORY;
}

enum status error_prefix(struct error *error, const char *format, ...)
{
    char prefixed[ERROR_TEXT_BYTES];
    va_list args;

    CHECK(error != NULL);
    va_start(args, format);
    int used = vsnprintf(prefixed, sizeof prefixed, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof prefixed) {
        int wrote = snprintf(prefixed + used, sizeof prefixed - (size_t)used, ": %s", error->text);
        CHECK(wrote >= 0); /* a longer text is cut, which is what the contract says */
    }
    make_printable(prefixed);
    memcpy(error->text, prefixed, sizeof prefixed);
    return error->status;
}
