/*
 * Storyboard codec, private to its room: the members of its records as tables, which decoding and
 * encoding read. A member that has its default is not written.
 */
#ifndef SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_FIELDS_H
#define SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_FIELDS_H

#include "schemas/scenario_parts.h"
#include "schemas/storyboard/storyboard.h"

#include <stddef.h>

struct story_number {
    const char *key;
    size_t offset; /* of a double */
    double min;
    double max;
    double fallback;
};

struct story_choice {
    const char *key;
    size_t offset; /* of an enum */
    const char *const *names;
    size_t count;
    int fallback; /* -1: required */
};

struct story_flag {
    const char *key;
    size_t offset; /* of a bool */
};

enum story_reference_kind {
    STORY_REFERS_PATH,
    STORY_REFERS_ACTOR,
    STORY_REFERS_ACTION,
    STORY_REFERS_EVENT
};

/* An index; -1 where the member is absent. */
struct story_reference {
    const char *key;
    size_t offset; /* of an int32_t */
    enum story_reference_kind kind;
};

/* One record as tables, each ending with a NULL key. */
struct story_record {
    const char *const *keys;
    const struct story_choice *choices;
    const struct story_reference *references;
    const struct story_flag *flags;
    const struct story_number *numbers;
};

extern const struct story_record story_actor_record;
extern const struct story_record story_condition_record;
extern const struct story_record story_action_record;
extern const struct story_record story_event_record;

#endif
