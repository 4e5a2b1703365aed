/*
 * `swerve model retrain --store URL --work DIR`: from what a store's student got wrong to its
 * successor in the shadow of production: scenarios chosen, training shards, a trainer that begins
 * with the promoted weights, health bounds, a version of the store, the gate, a shadow. Each stage
 * is one that people call by hand; this joins them, and goes on where it was stopped or killed.
 */
#ifndef SWERVE_CLI_MODEL_RETRAIN_H
#define SWERVE_CLI_MODEL_RETRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct retrain_options {
    const char *store_url;
    const char *work;     /* folder of the plan and of all that is made */
    const char *hours;    /* a number; NULL: as long as it takes */
    const char *trainer;  /* a command line; NULL: $SWERVE_TRAINER, else scripts/train/retrain.py */
    const char *held_out; /* share of the logical scenarios */
    const char *name;     /* of the version; NULL: "retrained-", and digits of its hash */
    const char *policy;   /* of the gate; NULL: the defaults */
    const char *drive;    /* suite that the gate drives; NULL: what was held out */
    const char *calibrate; /* suite of healthy drives; NULL: the library's */
    const char *planner;   /* calibrates and is evaluated with */
    const char *models;    /* directory, of the teacher where the store has none; NULL: as usual */
    int64_t seconds;       /* of training at the most */
    int64_t clips;
    int64_t clip_frames;
    int64_t healthy; /* healthy scenarios for each that differs */
    int64_t seed;
    int64_t jobs; /* of the evaluation at the most */
    int64_t workers;
    int64_t days;    /* for which a pass counts */
    int64_t percent; /* share of the shadow; MODEL_SHARE_DEFAULT: the policy's, else none */
    bool again;      /* makes anew what was made from something else, and what follows */
    bool json;
};

#define RETRAIN_DEFAULTS \
    .held_out = "0.2", .seconds = 1200, .clips = 256, .clip_frames = 16, .healthy = 1, .seed = 1

/* Rows of the option table of `swerve model`. */
#define RETRAIN_OPTION_ROWS(options)                                                              \
    {"--work",                                                                                    \
     "DIR",                                                                                       \
     "folder of the plan and of what is made; the same command goes on there",                    \
     .text = &(options).work,                                                                     \
     .group = "retrain (docs/models.md#retraining)",                                              \
     .verbs = "retrain"},                                                                         \
        {"--hours", "H", "all of it at the most; what is made is kept (as long as it takes)",     \
         .text = &(options).hours, .verbs = "retrain"},                                           \
        {"--healthy", "N", "healthy scenarios for each with another verdict, of like slices (1)", \
         .number = &(options).healthy, .verbs = "retrain"},                                       \
        {"--held-out", "SHARE", "logical scenarios that end the training instead (0.2)",          \
         .text = &(options).held_out, .verbs = "retrain"},                                        \
        {"--clips", "N", "training clips (256)", .number = &(options).clips, .verbs = "retrain"}, \
        {"--clip-frames", "N", "ticks of a clip (16)", .number = &(options).clip_frames,          \
         .verbs = "retrain"},                                                                     \
        {"--seconds", "N", "of training at the most (1200)", .number = &(options).seconds,        \
         .verbs = "retrain"},                                                                     \
        {"--seed", "N", "of clips and training (1)", .number = &(options).seed,                   \
         .verbs = "retrain"},                                                                     \
        {"--trainer", "COMMAND", "who trains ($SWERVE_TRAINER, else PyTorch)",                    \
         .text = &(options).trainer, .verbs = "retrain"},                                         \
    {                                                                                             \
        "--again", NULL, "makes anew what was made from something else, and what follows",        \
            .flag = &(options).again, .verbs = "retrain"                                          \
    }

/* Tells what it does and returns the exit code: 0 in shadow, 1 not passed, 3 out of --hours, else
 * that of the error. */
int model_retrain(const struct retrain_options *options);

#endif
