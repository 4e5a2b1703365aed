/*
 * Choice of one scenario to draw, by the beginning of its id.
 */
#ifndef SWERVE_CLI_DRAW_DRAW_CHOICE_H
#define SWERVE_CLI_DRAW_DRAW_CHOICE_H

#include "scenarios/scenarios.h"

#include <string.h>

/* The suite's first whose id begins with `id`; NULL: its first. BAD_INPUT: none does. */
static inline enum status draw_choose(const struct suite *suite, const char *id,
                                      const struct scenario **out, struct error *error)
{
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        *out = &suite->entries[i].document->scenario;
        if (id == NULL || strncmp((*out)->id, id, strlen(id)) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "--scenario: none of the %u scenarios has an id that begins with %s",
                     suite->entry_count, id);
}

#endif
