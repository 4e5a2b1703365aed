/*
 * One write(2) per event; a failed write is dropped, because there is nowhere left to say so.
 */
#include "base/log.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void log_event(const struct logger *logger, enum log_level level, const char *format, ...)
{
    static const char *const level_names[] = {"error", "warning", "info", "debug"};
    char line[1024];
    char text[sizeof line];
    va_list args;

    if (logger == NULL || logger->fd < 0 || level > logger->level) {
        return;
    }
    int used = snprintf(line, sizeof line, "%s: %s: ", logger->name, level_names[level]);
    if (used < 0 || (size_t)used >= sizeof line - 1) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t bytes = (size_t)used;
    bytes += text_escape(text, TEXT_LINE, line + used, sizeof line - (size_t)used - 1);
    line[bytes++] = '\n';
    ssize_t written = write(logger->fd, line, bytes);
    (void)written;
}
