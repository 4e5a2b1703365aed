/*
 * Members of a scenario's parts: a row each says its name, what it may be, which kinds of the part
 * have it and what it is where it is absent, for decoder and encoder alike. What a row cannot say
 * (lists, ids) is a row all the same, so that a part's keys are its rows; its codec reads and
 * writes it by hand. Without a fallback the default is what the record holds before it is decoded.
 *
 * Private to schemas.
 */
#ifndef SWERVE_SCHEMAS_SCENARIO_MEMBERS_H
#define SWERVE_SCHEMAS_SCENARIO_MEMBERS_H

#include "schemas/scenario_parts.h"

enum member_kind {
    MEMBER_OTHER = 0, /* read and written by hand */
    MEMBER_NUMBER,    /* a double, min to max */
    MEMBER_ANGLE,     /* a double, radians from -2 pi to 2 pi */
    MEMBER_FLAG,      /* a bool */
    MEMBER_CHOICE,    /* an enum by its name */
    MEMBER_INDEX      /* an int32_t, -1 where it is absent; read by hand */
};

struct member {
    const char *name;
    enum member_kind kind;
    size_t offset;
    double min, max;
    const char *const *names; /* [name_count], of the enum from 0 */
    size_t name_count;
    int refers;     /* what an index is of, as its codec numbers it */
    uint32_t kinds; /* a bit per kind of the part that has it; 0: all */
    bool required;
    bool optional;   /* absent, it is read as the fallback; equal to it, it is not written */
    double fallback; /* or the number of a choice, 1 of a flag that is true */
};

struct member_list {
    const struct member *members;
    size_t count;
};

enum { MEMBERS_MAX = 40 };
#define MEMBER_KINDS_ALL UINT32_MAX
enum { SIGNAL_IS_LIGHT = 1 << 0, SIGNAL_IS_SIGN = 1 << 1 };

/* A part's list: PART_members. */
#define MEMBERS(part, ...)                                    \
    static const struct member part##_rows[] = {__VA_ARGS__}; \
    const struct member_list part##_members = {part##_rows,   \
                                               sizeof part##_rows / sizeof *part##_rows}
#define OPTIONAL(value) .optional = true, .fallback = (value)
#define OTHER(member_name, ...)              \
    {                                        \
        .name = (member_name), ##__VA_ARGS__ \
    }
/* Under another name than the record's member. */
#define NUMBER_AS(member_name, record, member, low, high, ...)                            \
    {                                                                                     \
        .name = (member_name), .kind = MEMBER_NUMBER, .offset = offsetof(record, member), \
        .min = (low), .max = (high), ##__VA_ARGS__                                        \
    }
#define NUMBER(record, member, low, high, ...) \
    NUMBER_AS(#member, record, member, low, high, ##__VA_ARGS__)
#define ANGLE(record, member, ...)                                                               \
    {                                                                                            \
        .name = #member, .kind = MEMBER_ANGLE, .offset = offsetof(record, member), ##__VA_ARGS__ \
    }
#define FLAG(record, member, ...)                                                               \
    {                                                                                           \
        .name = #member, .kind = MEMBER_FLAG, .offset = offsetof(record, member), ##__VA_ARGS__ \
    }
#define CHOICE_AS(member_name, record, member, enum_names, enum_count, ...)               \
    {                                                                                     \
        .name = (member_name), .kind = MEMBER_CHOICE, .offset = offsetof(record, member), \
        .names = (enum_names), .name_count = (enum_count), ##__VA_ARGS__                  \
    }
#define CHOICE(record, member, enum_names, enum_count, ...) \
    CHOICE_AS(#member, record, member, enum_names, enum_count, ##__VA_ARGS__)
#define INDEX(record, member, what)                                                \
    {                                                                              \
        .name = #member, .kind = MEMBER_INDEX, .offset = offsetof(record, member), \
        .refers = (what), .optional = true, .fallback = -1                         \
    }

extern const struct member_list pose_members;
extern const struct member_list conditions_members;
extern const struct member_list goal_members; /* of a struct ego */
extern const struct member_list ego_members;
extern const struct member_list criteria_members;
extern const struct member_list lane_members;
extern const struct member_list surface_members;
extern const struct member_list signal_phase_members;
extern const struct member_list signal_members; /* kinds: a light, a sign */
extern const struct member_list idm_members;
extern const struct member_list manoeuvre_members; /* kinds: enum manoeuvre_kind */
extern const struct member_list agent_members;
extern const struct member_list intervention_members; /* kinds: enum intervention_kind */

/* The object has no key but those of rows of these kinds. */
enum status members_begin(const struct json_cursor *cursor, const struct member_list *list,
                          uint32_t kinds, struct error *error);
/* Reads all that rows of these kinds say; what is absent and not required is left alone. */
enum status members_decode(const struct json_cursor *cursor, const struct member_list *list,
                           uint32_t kinds, void *record, struct error *error);
/* Both, of parts that have no kinds. */
enum status members_read(const struct json_cursor *cursor, const struct member_list *list,
                         void *record, struct error *error);
/* Reads the one of this name, before others whose defaults depend on it. */
enum status member_decode(const struct json_cursor *cursor, const struct member_list *list,
                          const char *name, void *record, struct error *error);
/* Writes all that rows of these kinds say. */
void members_encode(struct json_builder *builder, json_t *object, const struct member_list *list,
                    uint32_t kinds, const void *record);
/* A new object of them, of parts that have no kinds. */
json_t *members_object(struct json_builder *builder, const struct member_list *list,
                       const void *record);

#endif
