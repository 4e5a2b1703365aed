/*
 * Limits: the published bound on everything that comes from outside. A document that exceeds one is
 * rejected with STATUS_LIMIT and a sentence that names the limit; nothing is silently cut.
 */
#ifndef SWERVE_SCHEMAS_LIMITS_H
#define SWERVE_SCHEMAS_LIMITS_H

enum {
    LIMIT_ID_BYTES = 64,       /* identifiers, terminator included */
    LIMIT_TEXT_BYTES = 256,    /* names, slice values */
    LIMIT_PROMPT_BYTES = 512,  /* language prompt */
    LIMIT_SPEC_BYTES = 1024,   /* planner specs, URLs */
    LIMIT_PATH_BYTES = 4096,   /* file names */
    LIMIT_LANES = 2048,        /* lanes of one map */
    LIMIT_LANE_POINTS = 2048,  /* points of one centre line */
    LIMIT_MAP_POINTS = 200000, /* points of one map, all lanes and polygons */
    LIMIT_LANE_LINKS = 16,     /* successors of one lane */
    LIMIT_POLYGONS = 1024,     /* drivable areas, crosswalks, surface patches, each */
    LIMIT_SIGNALS = 64,        /* traffic signals of one map */
    LIMIT_SIGNAL_LANES = 16,   /* lanes that one of them controls */
    LIMIT_SIGNAL_PHASES = 256, /* phases of one */
    LIMIT_AGENTS = 256,        /* agents of one scenario, those of branches included */
    LIMIT_TRAJECTORY_POINTS = 4096,
    LIMIT_MANOEUVRES = 16,    /* of one agent */
    LIMIT_BRANCHES = 256,     /* of one scenario */
    LIMIT_INTERVENTIONS = 16, /* of one branch */
    LIMIT_ACTIONS = 1024,     /* of one given action sequence */
    LIMIT_SAMPLER_STEPS = 64, /* of a world model's sampler */
    LIMIT_TRACE_LINKS = 16,   /* hazards, conditions, requirements of one scenario, each */
    LIMIT_ROUTE_LANES = 256,
    LIMIT_HORIZON_TICKS = 6000,    /* 10 minutes */
    LIMIT_SUITE_SCENARIOS = 4096,  /* entries of one suite file */
    LIMIT_SUITE_JOBS = 1000000,    /* expanded jobs of one submission */
    LIMIT_SUITE_BYTES = 256 << 20, /* memory of one suite's scenarios */
    LIMIT_SUITE_DEPTH = 8,         /* suites that include suites */
    LIMIT_PARAMETERS = 32,         /* of one scenario or grid */
    LIMIT_SEEDS = 10000,
    LIMIT_PLANNERS = 64, /* of one suite */
    LIMIT_JSON_DEPTH = 32,
    LIMIT_JSON_CONTAINERS = 1 << 20, /* objects and arrays of one document */
    LIMIT_DOCUMENT_BYTES = 16 << 20, /* a scenario or suite file */
    LIMIT_XML_BYTES = 64 << 20,      /* an imported file */
    LIMIT_SCENARIO_ARENA_BYTES = 64 << 20,
    LIMIT_ARTIFACT_BYTES = 256 << 20, /* expanded size of one artifact */
    LIMIT_CONTROLS_ROWS_MIN = 102,    /* of a log of the controls challenge: two that cost */
    LIMIT_CONTROLS_ROWS = 4096,
    LIMIT_SLOTS = 1024,     /* static slots of one worker */
    LIMIT_CLAIM_JOBS = 256, /* of one claim */
    LIMIT_CAMERAS = 3,
};

#endif
