/*
 * Text files compiled into the binary by scripts/embed.py: SQL migrations, the report's style and
 * script.
 */
#ifndef SWERVE_BASE_EMBEDDED_H
#define SWERVE_BASE_EMBEDDED_H

#include <stddef.h>

struct embedded_text {
    const char *name; /* file name without its folder */
    const char *text; /* terminated */
};

#endif
