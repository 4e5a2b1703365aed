/*
 * Drives: the main lines that students of a store were asked, audited or not, as the few numbers
 * that monitors of flags and of a suite's inputs need; 32 bytes each, and 64 where measures of
 * health are kept.
 */
#ifndef SWERVE_REPORT_TRUST_DRIVES_H
#define SWERVE_REPORT_TRUST_DRIVES_H

#include "scheduler/trust.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stdint.h>

enum { DRIVES_VALUES_MAX = 4096 }; /* different values of one kind of slice, or students */

/* Texts that occur, numbered in the order of their first occurrence. */
struct drives_texts {
    uint32_t count;
    char (*texts)[SHA256_HEX_BYTES]; /* owned; a slice's value is shorter */
};

/* A student: weights, and how they are sampled and in which precision ("euler2/bf16"). */
struct drives_student {
    char hash[SHA256_HEX_BYTES];
    char sampler[LIMIT_ID_BYTES];
};
struct drives_student drives_student_of(const char hash[SHA256_HEX_BYTES],
                                        const char sampler[LIMIT_ID_BYTES]);
bool drives_same(const struct drives_student *a, const struct drives_student *b);
/* The part of an outcome's sampler that follows its conditioning. */
const char *drives_sampler(const char *sampler);

struct drives_drive {
    int64_t outcome_id;
    int64_t at_ms;                    /* 0: not known */
    uint16_t value[SLICE_KIND_COUNT]; /* into drives.values */
    uint16_t student;                 /* into drives.students */
    bool safety_critical;
    bool flagged;
};

/* Measures of a drive's pictures. */
struct drives_measures {
    uint64_t scenario;         /* number of the scenario and of the world's conditioning */
    float mean[MEASURE_COUNT]; /* over the drive; NAN: not known */
};

/* Begins as zeros. */
struct drives {
    bool keeps_measures;              /* set before the first drive is added */
    struct drives_measures *measures; /* [count], owned; NULL: they are not kept */
    uint32_t count;
    struct drives_drive *drives; /* owned; ascending outcomes */
    struct drives_texts values[SLICE_KIND_COUNT];
    uint32_t student_count;
    struct drives_student *students; /* owned; in the order of their first drives */
};

/* Adds a main line of a student; outcomes come in ascending order. LIMIT, NO_MEMORY. */
enum status drives_add(struct drives *drives, const struct outcome *outcome, struct error *error);
void drives_finish(struct drives *drives);

/* State of a slice's monitor of the flags of a student's drives. */
struct trust_monitor drives_flags(const struct drives *drives, const struct trust_policy *policy,
                                  const struct drives_student *student,
                                  const struct trust_slice *slice);

/* Whether a drive was the student's and of the slice. */
bool drives_is_in(const struct drives *drives, uint32_t drive, const struct drives_student *student,
                  const struct trust_slice *slice);

/* Distribution of a kind of slice up to the outcome that an evaluation saw last, and after. */
struct drives_drift {
    int64_t before; /* drives */
    int64_t after;
    double index;                        /* population stability; 0 where there are too few jobs */
    uint32_t unseen;                     /* values that came only after */
    char unseen_value[SHA256_HEX_BYTES]; /* one of them; "" */
};
struct drives_drift drives_drift(const struct drives *drives, enum slice_kind kind,
                                 const struct drives_student *student, int64_t evaluated_until);

#endif
