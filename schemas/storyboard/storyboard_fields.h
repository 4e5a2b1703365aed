/*
 * Storyboard codec, private to its room: the members of its records, which decoding and encoding go
 * by.
 */
#ifndef SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_FIELDS_H
#define SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_FIELDS_H

#include "schemas/scenario_members.h"
#include "schemas/storyboard/storyboard.h"

/* Kinds of things that an index may be of. */
enum story_reference_kind {
    STORY_REFERS_PATH,
    STORY_REFERS_ACTOR,
    STORY_REFERS_ACTION,
    STORY_REFERS_EVENT,
    STORY_REFERS_VARIABLE
};

extern const struct member_list story_actor_members;
extern const struct member_list story_condition_members;
extern const struct member_list story_action_members;
extern const struct member_list story_event_members;

#endif
