/*
 * The options that say what a suite's jobs are (planner, world, seeds), shared by `run` and
 * `submit`.
 */
#ifndef SWERVE_CLI_SUITE_OPTIONS_H
#define SWERVE_CLI_SUITE_OPTIONS_H

#include "cli/choice/choice.h"
#include "cli/cli.h"
#include "worker/planner/planner.h"
#include "worker/submission/submission.h"

struct suite_options {
    const char *planner;
    const char *guardian; /* "monitor" or "act": planners without a choice of their own */
    const char *world;    /* a tier, or a foreign world that answers as the student */
    /* A foreign world that answers as the teacher, or "teacher": ours; NULL: ours does for our
     * student, and nobody for a foreign one. */
    const char *audit_world;
    const char *device;
    const char *models;
    const char *layout;
    const char *precision;
    const char *skip_steps; /* of the student's sampler, in each tick: a number, or all */
    const char *previous;
    const char *audit;
    const char *trust;     /* policy: the store says in which slices the student is frozen */
    const char *store_url; /* as given; for `trust` and for goldens */
    const char *horizon;   /* what becomes of scenarios longer than the models are trusted */
    bool allow_degraded;   /* the object world may answer what asks for a model that is not there */
    const char *rig; /* file of the sensors that planners are offered; NULL: each scenario's */
    struct choice_options choice;
    int64_t seeds;
    bool nominal; /* seed 0, before those of --seeds */
    int64_t attempts;
    int64_t weight;
    const char *of_class; /* interactive, regression or mining; NULL: nothing is said of it */
    const struct model_version *version; /* of the store: the student that answers; NULL: whoever is
                                            promoted does */
    bool evaluation;   /* the student answers in frozen slices too, and every job is audited */
    const char *makes; /* of struct submission_options; nothing moves such jobs to the teacher */
    bool fresh;        /* what was driven before is driven again */
    bool untried;      /* planners that do not start here may start where workers are */
    int64_t start_ms;  /* that such planners have here; 0: as `confinement` says */
    const struct planner_confinement *confinement; /* to start planners under; NULL: none */
};

/* Seeds of the command line; 0 would be none. */
enum { SEEDS_NOT_GIVEN = -1 };

#define SUITE_OPTIONS_DEFAULT                                                                      \
    {                                                                                              \
        .planner = "builtin:reference", .guardian = "monitor", .world = "auto", .device = "auto",  \
        .layout = "agents", .precision = "bf16", .horizon = "refuse", .attempts = 3, .weight = 10, \
        .skip_steps = "0", .seeds = SEEDS_NOT_GIVEN, .choice = CHOICE_OPTIONS_DEFAULT              \
    }

/* Rows for a command's option table: what is driven, and in what. */
#define SUITE_OPTION_ROWS_DRIVE(options)                                                          \
    {"--planner", "SPEC", "builtin:NAME, plugin:FILE.so or exec:COMMAND (builtin:reference)",     \
     .text = &(options).planner, .group = "Planner and world"},                                   \
        {"--guardian", "monitor|act", "whether the guardian brakes for the planner (monitor)",    \
         .text = &(options).guardian},                                                            \
        {"--world", "NAME|SPEC",                                                                  \
         "auto, replay, object, student, teacher, or a world of yours: plugin:FILE.so, "          \
         "exec:COMMAND, onnx:MODEL.onnx (auto; docs/worlds.md); golden:NAME (docs/goldens.md)",   \
         .text = &(options).world},                                                               \
        {"--audit-world", "SPEC",                                                                 \
         "who audits a world of yours and answers its flagged jobs: another, or teacher: ours "   \
         "(nobody)",                                                                              \
         .text = &(options).audit_world},                                                         \
        {"--device", "NAME", "auto, cpu or cuda:N (auto)", .text = &(options).device},            \
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",               \
         .text = &(options).models},                                                              \
        {"--layout", "CONDITIONING", "it is given agents, map, none, foresee or tokens (agents)", \
         .text = &(options).layout},                                                              \
        {"--precision", "NAME", "of a world model: fp32, bf16, int8, or auto (bf16)",             \
         .text = &(options).precision},                                                           \
        {"--skip-steps", "N|all",                                                                 \
         "steps of the student's sampler that each tick leaves out, on the CPU; all: drawn (0)",  \
         .text = &(options).skip_steps},                                                          \
        {"--previous", "MODEL",                                                                   \
         "that makes the ticks of saved drives which it made at the wheel, on the CPU",           \
         .text = &(options).previous},                                                            \
        {"--allow-degraded", NULL, "without world models the object world answers for them",      \
         .flag = &(options).allow_degraded},                                                      \
        {"--horizon", "refuse|clip|route",                                                        \
         "scenarios longer than the model is trusted: the trusted part, or another world "        \
         "(refuse)",                                                                              \
         .text = &(options).horizon},                                                             \
        {"--rig", "FILE", "sensors that planners are offered, a rig.json (docs/rigs.md)",         \
         .text = &(options).rig},                                                                 \
        {"--seeds", "N", "seeds 1 to N instead of the suite's", .number = &(options).seeds,       \
         .group = "Jobs"},                                                                        \
    {                                                                                             \
        "--nominal", NULL, "seed 0, which varies nothing, instead of the suite's seeds",          \
            .flag = &(options).nominal                                                            \
    }

/* Those and what becomes of the jobs in a store. */
#define SUITE_OPTION_ROWS(options)                                                                 \
    SUITE_OPTION_ROWS_DRIVE(options),                                                              \
        {"--fresh", NULL, "drive again what has results already", .flag = &(options).fresh,        \
         .group = "Jobs in the store"},                                                            \
        {"--attempts", "N", "tries per job before it is dead (3)", .number = &(options).attempts}, \
        {"--weight", "N", "the suite's share among others, 1 to 100 (10)",                         \
         .number = &(options).weight},                                                             \
        {"--class", "NAME",                                                                        \
         "whom the tenant's other suites give way to: interactive, regression or mining "          \
         "(as it was, at first regression)",                                                       \
         .text = &(options).of_class},                                                             \
        {"--trust", "FILE",                                                                        \
         "policy by which slices whose audits disagree go to the teacher (docs/trust.md)",         \
         .text = &(options).trust, .group = "Trust and audits"},                                   \
    {                                                                                              \
        "--audit", "FILE|off", "policy by which the teacher repeats student jobs (README)",        \
            .text = &(options).audit                                                               \
    }

/* The same for commands whose jobs may be the evidence that a thaw asks for. */
#define SUITE_OPTION_ROW_EVALUATION(options)                                                    \
    {                                                                                           \
        "--evaluation", NULL,                                                                   \
            "what the student is worth: it answers in frozen slices too, every job is audited", \
            .flag = &(options).evaluation                                                       \
    }

/* Loads the suite, starts each planner that is apart (planner_spec.h) once to learn what it is,
 * checks every scenario, route and planner, and builds the jobs; nothing is sent. The submission
 * borrows from the suite. */
enum status suite_options_build(const struct suite_options *options, const char *path,
                                struct suite **suite, struct submission *submission,
                                struct error *error);

/* The jobs of a suite that is loaded already. */
enum status suite_options_build_of(const struct suite_options *options, const struct suite *suite,
                                   struct submission *submission, struct error *error);

/* submission_renew() for jobs of `suite_id`, each planner started once. */
enum status suite_options_renew(const struct suite_options *options, const char *suite_id,
                                struct job_spec *specs, uint32_t count, struct error *error);

#endif
