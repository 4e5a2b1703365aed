/*
 * Exposures: how often traffic brings about the situations of a suite, from a file of the user's
 * (exposure.schema.json) in which every figure names its source. A class of situations has one
 * rate; the logical scenarios that stand for it share it by weight.
 */
#ifndef SWERVE_REPORT_RISK_EXPOSURE_H
#define SWERVE_REPORT_RISK_EXPOSURE_H

#include "base/arena.h"
#include "base/status.h"
#include "report/risk/severity.h"
#include "scheduler/risk.h"

enum { EXPOSURE_CLASSES_MAX = 1024, EXPOSURE_MEMBERS_MAX = 1024 };

struct exposure_member {
    char logical[LIMIT_ID_BYTES]; /* name of a logical scenario, or the start of one and "*" */
    double weight;
};

struct exposure_class {
    char id[LIMIT_ID_BYTES];
    char source[4 * LIMIT_TEXT_BYTES];
    bool verified;          /* its figures were read where they were published */
    struct risk_class rate; /* per million kilometres */
    uint32_t member_count;
    struct exposure_member *members; /* in the arena */
};

enum exposure_basis {
    EXPOSURE_ENCOUNTERS = 0, /* how often the situation is met */
    EXPOSURE_CRASHES,        /* how often it ended in a crash of human drivers */
    EXPOSURE_BASIS_COUNT
};

struct exposure_file {
    struct arena arena;
    char title[LIMIT_TEXT_BYTES];
    enum exposure_basis basis;
    double mean_speed_kmh; /* hours to kilometres */
    struct severity_model severity;
    uint32_t class_count;
    struct exposure_class *classes; /* in the arena */
};

extern const char *const exposure_basis_names[EXPOSURE_BASIS_COUNT];

/* Strict: unknown members, scenarios named twice and figures without a source are errors. */
enum status exposure_load(const char *path, struct exposure_file **out, struct error *error);
void exposure_destroy(struct exposure_file *file); /* accepts NULL */

/* The class and member that a logical scenario belongs to: the one that names it in full, else the
 * first whose start it has. False: none. */
bool exposure_find(const struct exposure_file *file, const char *logical, uint32_t *class_index,
                   uint32_t *member);

#endif
