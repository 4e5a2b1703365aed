/*
 * Log: one line per event to a file descriptor that the caller chose, written with a single
 * write(2) so that lines of several processes do not mix. Libraries receive a logger; they never
 * print.
 */
#ifndef SWERVE_BASE_LOG_H
#define SWERVE_BASE_LOG_H

enum log_level { LOG_ERROR = 0, LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct logger {
    int fd;               /* < 0: silent */
    enum log_level level; /* events above it are dropped */
    const char *name;     /* put in front of each line; owned by the caller, outlives the logger */
};

/* Formats "name: level: text\n" (cut at 1 KiB), spells out what a terminal would obey or hide, line
 * feeds included (base/text.h), and writes it. logger may be NULL (silent). */
void log_event(const struct logger *logger, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
