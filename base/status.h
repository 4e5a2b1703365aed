/*
 * Statuses and errors: how every fallible function in Swerve reports what went wrong.
 *
 * A fallible function returns `enum status`; STATUS_OK is 0. On failure it fills the caller's
 * `struct error` with one sentence that a user can act on (file, place, expected, found) and leaves
 * its out-parameters untouched. A programming error is not a status: it aborts through CHECK().
 */
#ifndef SWERVE_BASE_STATUS_H
#define SWERVE_BASE_STATUS_H

#include <stdarg.h>

#define ERROR_TEXT_BYTES 1024

enum status {
    STATUS_OK = 0,
    STATUS_USAGE,     /* the command line is wrong */
    STATUS_BAD_INPUT, /* a document, file or message is wrong */
    STATUS_LIMIT,     /* a well-formed input exceeds a published limit */
    STATUS_NO_MEMORY, /* an allocation failed */
    STATUS_IO,        /* the operating system refused a read, write, open, connect .. */
    STATUS_NOT_FOUND, /* a named thing does not exist */
    STATUS_CONFLICT,  /* the request contradicts what is stored */
    STATUS_STALE,     /* fenced off: the job was claimed again under a newer epoch */
    STATUS_BUSY,      /* try again later; nothing was changed */
    STATUS_TIMEOUT,   /* a deadline passed */
    STATUS_STORE,     /* the job store failed */
    STATUS_DEVICE,    /* a compute device or model failed */
    STATUS_PLANNER,   /* the user's planner failed */
    STATUS_MISMATCH,  /* a replay or gate comparison did not hold */
    STATUS_CANCELLED, /* stopped on request */
    STATUS_GONE,      /* it was there, and was let go on purpose */
    STATUS_COUNT
};

struct error {
    enum status status;
    char text[ERROR_TEXT_BYTES];
};

/* Stable lower-case name ("bad_input"), for JSON and logs. Never NULL. */
extern const char *const status_names[STATUS_COUNT];
const char *status_name(enum status status);

/* Process exit code of the command-line contract for a status (0 to 7). */
int status_exit_code(enum status status);

/* Fills *error (may be NULL) with a formatted sentence and returns `status`, so that callers write
 * `return error_set(error, STATUS_IO, "...")`. Text that does not fit is cut, always terminated;
 * bytes that are not printable UTF-8 become "?". */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with a va_list. */
enum status error_setv(struct error *error, enum status status, const char *format, va_list args);

/* Puts "prefix: " in front of the text of an error that is already set; returns its status. */
enum status error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* STATUS_NO_MEMORY with the sentence when an allocation gave NULL. */
enum status memory_check(const void *memory, struct error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4), access(none, 1)));

/* Returns early with a failed status; only where nothing has to be released. */
#define TRY(call)                        \
    do {                                 \
        enum status try_status = (call); \
        if (try_status != STATUS_OK) {   \
            return try_status;           \
        }                                \
    } while (0)

/* The next step of several, taken unless one before it failed: for functions that have something to
 * release before they return the status. */
#define THEN(status, call)                                    \
    do {                                                      \
        (status) = (status) == STATUS_OK ? (call) : (status); \
    } while (0)

#endif
