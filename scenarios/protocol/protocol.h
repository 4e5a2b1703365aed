/*
 * Test protocols: whether scenarios that carry a protocol's name hold the protocol's values.
 *
 * A register (protocols.schema.json) lists, per scenario file, the protocol with version and
 * clause, the values that the protocol prescribes with the source of each, and the deviations that
 * are known and why. The check measures each quantity in the resolved scenario, at its nominal
 * start and along its scripts, and compares. A value outside what is prescribed must be declared.
 * Nothing here drives: what a planner does after the start is not looked at.
 */
#ifndef SWERVE_SCENARIOS_PROTOCOL_PROTOCOL_H
#define SWERVE_SCENARIOS_PROTOCOL_PROTOCOL_H

#include "scenarios/scenarios.h"

enum {
    PROTOCOL_NUMBERS_MAX = 16, /* choices of one value */
    PROTOCOL_VALUES_MAX = 64,  /* of one file; deviations too */
    PROTOCOL_FILES_MAX = 1024,
    PROTOCOL_EXPECTED_BYTES = 256,
};

/* Measured at the start unless said otherwise, in the frame of the first lane of ego's route. */
enum protocol_quantity {
    PROTOCOL_EGO_SPEED_KPH = 0,
    PROTOCOL_WEATHER, /* text: weather_names */
    PROTOCOL_LIGHT,   /* text: light_names */
    /* Of an agent. */
    PROTOCOL_SPEED_KPH,       /* its own, or that of its first path when it stands at the start */
    PROTOCOL_FINAL_SPEED_KPH, /* of its first change of speed */
    PROTOCOL_DECEL_MPS2,      /* of its first change of speed */
    PROTOCOL_LENGTH_M,
    PROTOCOL_WIDTH_M,
    PROTOCOL_GAP_M,           /* bumper to bumper along the lane */
    PROTOCOL_HEADWAY_S,       /* that gap at ego's speed */
    PROTOCOL_TTC_S,           /* that gap at the closing speed */
    PROTOCOL_OVERLAP_PERCENT, /* of ego's width covered by the agent's; centred counts as 100 */
    PROTOCOL_IMPACT_PERCENT,  /* place on ego's width, 0 at the side that the agent comes from */
    PROTOCOL_LATERAL_M,       /* its centre from ego's centre line, without sign */
    PROTOCOL_NEAR_EDGE_M,     /* its nearest edge from ego's centre line */
    PROTOCOL_SIDE_GAP_M,      /* that edge from ego's side */
    PROTOCOL_RUN_UP_M,        /* distance in which it reaches the speed of its first path */
    PROTOCOL_DISTANCE_M,      /* free distance along the lane to the agent in "of" */
    PROTOCOL_LANE_CHANGE_M,   /* sideways, of its first lane change */
    PROTOCOL_LANE_CHANGE_LENGTH_M,  /* along the lane, at its speed */
    PROTOCOL_LANE_CHANGE_END_TTC_S, /* to an ego that kept its speed */
    PROTOCOL_LATERAL_SPEED_MPS,     /* greatest, of its first lane change */
    /* Of a cut-in against an ego that keeps its speed; UN R157, 5.2.5.2. Intrusion: its near side
     * is 0.3 m inside ego's lane. */
    PROTOCOL_VISIBLE_S,          /* from the first lateral motion to the intrusion */
    PROTOCOL_INTRUSION_TTC_S,    /* at the intrusion; 99 when the gap does not close */
    PROTOCOL_INTRUSION_MARGIN_S, /* that less closing speed / (2 * 6 m/s2) + 0.35 s: > 0 is to be
                                    avoided */
    PROTOCOL_QUANTITY_COUNT
};

extern const char *const protocol_quantity_names[PROTOCOL_QUANTITY_COUNT];

/* Value of a quantity; agents by index, -1: none. False: the scenario has no such thing. */
bool protocol_measure(const struct scenario *scenario, enum protocol_quantity quantity,
                      int32_t agent, int32_t other, double *out);

/* Prescribed or declared numbers: choices, or a range when `range` is set (then count is 2). */
struct protocol_numbers {
    bool range;
    uint32_t count; /* 0: any */
    double number[PROTOCOL_NUMBERS_MAX];
    double tolerance;
};

struct protocol_subject {
    enum protocol_quantity quantity;
    char agent[LIMIT_ID_BYTES]; /* "": ego or the whole scene */
    char of[LIMIT_ID_BYTES];    /* "": none */
};

struct protocol_value {
    struct protocol_subject subject;
    struct protocol_numbers numbers;
    bool conditional; /* applies only where `when` holds */
    struct protocol_subject when;
    struct protocol_numbers when_numbers;
    bool verified;      /* read in the source; false: not found in one that was at hand */
    const char *source; /* where the value stands */
};

struct protocol_deviation {
    bool measured; /* false: words alone, about what no quantity measures */
    struct protocol_subject subject;
    struct protocol_numbers numbers;
    const char *reason;
    bool found; /* by a check, since the register was loaded */
};

struct protocol_file {
    const char *file;     /* relative to the register */
    const char *protocol; /* title and version */
    const char *clause;
    const char *compared_with;
    uint64_t device;
    uint64_t inode;
    bool sizes; /* the protocol prescribes its targets' sizes */
    uint32_t value_count;
    struct protocol_value *values;
    uint32_t deviation_count;
    struct protocol_deviation *deviations;
    bool checked;
};

struct protocol_register {
    struct arena arena;
    uint32_t file_count;
    struct protocol_file *files;
    uint32_t folder_count; /* every scenario in these folders must have an entry */
    const char **folders;
};

/* Errors name file, JSON path, expected and found; a listed scenario file that is not there too. */
enum status protocol_register_load(const char *path, struct protocol_register **out,
                                   struct error *error);
void protocol_register_destroy(struct protocol_register *protocols); /* accepts NULL */

enum protocol_finding_kind {
    PROTOCOL_UNDECLARED = 0, /* a value that the protocol does not prescribe, and nobody says why */
    PROTOCOL_UNMEASURED,     /* the register names a quantity that the scenario does not have */
    PROTOCOL_UNCOVERED,      /* speed or size of a participant that the register does not name */
    PROTOCOL_UNREGISTERED,   /* a scenario in a protocol's folder without an entry */
    PROTOCOL_STALE,    /* a deviation that no checked scenario shows: no fault of a scenario */
    PROTOCOL_DECLARED, /* a deviation that the register declares */
    PROTOCOL_FINDING_COUNT
};

extern const char *const protocol_finding_names[PROTOCOL_FINDING_COUNT];

struct protocol_finding {
    enum protocol_finding_kind kind;
    const char *file;
    const char *scenario;                   /* id; "" where the finding is about the file */
    const struct protocol_subject *subject; /* NULL: words alone */
    double measured;                        /* NAN: not */
    const char *expected;                   /* "", or what is prescribed */
    const char *reason;                     /* "", or what the register says */
};

typedef void (*protocol_report)(void *context, const struct protocol_finding *finding);

struct protocol_counts {
    uint32_t scenarios; /* that the register has */
    uint32_t values;    /* measured and compared */
    uint32_t problems;  /* findings of the first four kinds */
    uint32_t declared;
};

/* Compares every scenario of the suite; findings in the suite's order. */
void protocol_check(struct protocol_register *protocols, const struct suite *suite,
                    protocol_report report, void *context, struct protocol_counts *counts);

/* After all suites: deviations in words of the files that were checked, and stale ones. */
void protocol_check_finish(struct protocol_register *protocols, protocol_report report,
                           void *context, struct protocol_counts *counts);

/* "12 or 40" or "10 to 60". */
void protocol_numbers_text(const struct protocol_subject *subject,
                           const struct protocol_numbers *numbers, char *out, size_t capacity);

/* A measured value in words: a number, or the name of a weather or light. */
void protocol_number_text(enum protocol_quantity quantity, double value, char *out,
                          size_t capacity);

#endif
