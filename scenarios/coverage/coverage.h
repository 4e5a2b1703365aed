/*
 * Coverage: which part of an operational design domain the scenarios of a suite lie in, value by
 * value and in pairs, and which part of each logical scenario's parameters they take.
 *
 * Attributes and values follow the taxonomy of ISO 34503:2023 and BSI PAS 1883:2020 (scenery,
 * environmental conditions, dynamic elements), as far as a scenario of this simulator has them;
 * what it cannot express is listed too, since that is never covered. Tags are derived from the
 * resolved scenario, not written by hand. Counted are concrete scenarios: how often they are
 * driven, or whether a planner passes, does not enter, and what is counted here is presence, not
 * exposure.
 */
#ifndef SWERVE_SCENARIOS_COVERAGE_COVERAGE_H
#define SWERVE_SCENARIOS_COVERAGE_COVERAGE_H

#include "scenarios/scenarios.h"

#include <jansson.h>

enum odd_attribute {
    ODD_ROAD_TYPE = 0,
    ODD_GEOMETRY,
    ODD_LANES,
    ODD_LANE_WIDTH,
    ODD_TRAFFIC_SIDE,
    ODD_EDGE,
    ODD_SURFACE,
    ODD_JUNCTION,
    ODD_MANOEUVRE,
    ODD_STRUCTURE,
    ODD_PRECIPITATION,
    ODD_PARTICULATES,
    ODD_ILLUMINATION,
    ODD_AGENT,
    ODD_DENSITY,
    ODD_EGO_SPEED,
    ODD_ATTRIBUTE_COUNT
};

enum { ODD_VALUES_MAX = 10, COVERAGE_TEXT_BYTES = 64 };

struct odd_axis {
    const char *name;
    const char *group; /* scenery, environment, dynamic */
    const char *term;  /* the taxonomy's */
    uint32_t count;
    const char *values[ODD_VALUES_MAX];
};

extern const struct odd_axis odd_axes[ODD_ATTRIBUTE_COUNT];

/* Parts that the taxonomy has and scenarios cannot express; NULL-terminated. */
extern const char *const odd_not_expressible[];

/* Values of one attribute that hold in the scenario, as bits; never 0 but for agents of none. */
uint32_t odd_tags(const struct scenario *scenario, enum odd_attribute attribute);

/* A parameter of a logical scenario, over the suite's concrete ones. */
struct coverage_parameter {
    char name[LIMIT_ID_BYTES];
    bool words;
    double least; /* of numbers */
    double most;
    uint32_t distinct;
    char (*values)[COVERAGE_TEXT_BYTES]; /* [distinct], in order of appearance; owned */
};

struct coverage_logical {
    const char *id; /* as reports count them: id_bytes of a scenario's id, the suite's */
    size_t id_bytes;
    const char *file; /* of the first, the suite's */
    uint32_t concrete;
    uint32_t points; /* of concrete: with parameter values of their own */
    uint32_t parameter_count;
    struct coverage_parameter parameters[LIMIT_PARAMETERS];
    json_t *seen; /* texts of parameter values */
};

struct coverage {
    uint32_t scenarios;
    uint32_t count[ODD_ATTRIBUTE_COUNT][ODD_VALUES_MAX]; /* scenarios that have the value */
    uint32_t pair[ODD_ATTRIBUTE_COUNT][ODD_VALUES_MAX][ODD_ATTRIBUTE_COUNT][ODD_VALUES_MAX];
    uint32_t logical_count;
    struct coverage_logical *logical; /* owned; in the suite's order */
};

/* Borrows file names from the suite, which must outlive it. */
enum status coverage_load(const struct suite *suite, struct coverage **out, struct error *error);
void coverage_destroy(struct coverage *coverage); /* accepts NULL */

/* Of the values, or of the pairs of values of two different attributes, how many any scenario has.
 */
void coverage_values(const struct coverage *coverage, uint32_t *covered, uint32_t *all);
void coverage_pairs(const struct coverage *coverage, uint32_t *covered, uint32_t *all);
void coverage_crossed(const struct coverage *coverage, enum odd_attribute a, enum odd_attribute b,
                      uint32_t *covered, uint32_t *all);

/* Attribute of that name; -1: none. */
int odd_attribute_find(const char *name);

/* Everything, with the cells that no scenario covers. New reference or NULL. */
json_t *coverage_json(const struct coverage *coverage);

#endif
