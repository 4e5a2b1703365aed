/*
 * Risk of a suite's results: events per distance and time on the road, from outcomes, exposures and
 * what contacts do to people. One study for each planner in each tier, since neither are
 * comparable draws.
 *
 * What scheduler/risk.h draws from are logical scenarios; this room says which outcome belongs to
 * which, what happened in it, and shows the result. A logical scenario without an exposure is in no
 * rate, and is named.
 */
#ifndef SWERVE_REPORT_RISK_RISK_H
#define SWERVE_REPORT_RISK_RISK_H

#include "report/risk/exposure.h"
#include "report/summary.h"
#include "scenarios/scenarios.h"
#include "scheduler/risk.h"

enum risk_event {
    RISK_FAIL = 0, /* the scenario's criteria were not met */
    RISK_CONTACT,
    RISK_AT_FAULT,   /* a contact that was ego's fault */
    RISK_VRU_SEVERE, /* somebody outside a car injured with AIS 4 or more */
    RISK_FATAL,      /* somebody killed */
    RISK_EVENT_COUNT,
    RISK_VRU_CONTACT = RISK_EVENT_COUNT, /* with somebody outside a car: counted, not printed */
    RISK_VALUE_COUNT
};

extern const char *const risk_event_names[RISK_EVENT_COUNT];
extern const char *const risk_event_texts[RISK_EVENT_COUNT];

/* A logical scenario. */
struct risk_logical {
    char name[LIMIT_ID_BYTES];
    uint32_t class_index;
    double weight;
    int64_t drives;
    double draws[RISK_VALUE_COUNT];  /* concrete scenarios that say whether it happened */
    double events[RISK_VALUE_COUNT]; /* sum of their values */
    double probability[RISK_EVENT_COUNT];
    double jobs; /* further ones, after the plan */
};

/* A drive in which ego touched something. */
struct risk_contact {
    uint32_t outcome; /* index in the summary */
    uint32_t count;
    bool vru;                   /* somebody outside a car was touched */
    struct severity_harm worst; /* of its contacts, the one most likely to kill */
    double vru_severe;          /* of all its contacts together */
    double fatal;
};

struct risk_study {
    const struct exposure_file *file; /* borrowed */
    const char *planner;              /* borrowed from the summary */
    enum tier tier;
    uint32_t logical_count;
    struct risk_logical *logical; /* owned */
    uint32_t contact_count;
    struct risk_contact *contacts;   /* owned */
    uint32_t outside;                /* contacts beyond what curves hold for */
    uint32_t untraced;               /* contacts without a recording: by impact speed alone */
    int64_t unknown;                 /* drives that say nothing: flagged, invalid */
    uint32_t foreign_count;          /* logical scenarios without an exposure */
    char (*foreign)[LIMIT_ID_BYTES]; /* owned */
    struct risk_estimate estimates[RISK_EVENT_COUNT];
    double exposed; /* sum of all exposures, per million km */
    bool planned;
    enum risk_event plan_event;
    struct risk_plan plan;
};

/* Studies of what the summary has: every planner in every tier with main lines. */
enum status risk_studies_load(struct store *store, const struct summary *summary,
                              const struct exposure_file *file, struct risk_study **out,
                              uint32_t *count, struct error *error);
void risk_studies_free(struct risk_study *studies, uint32_t count);

/* Fills `jobs` and `plan`. */
enum status risk_study_plan(struct risk_study *study, enum risk_event event, double precision,
                            struct error *error);

/* ---- risk_contacts.c ---- */

/* Effects of a drive's contacts; `drive` keeps what is open from call to call. */
struct risk_drive;
enum status risk_drive_open(struct store *store, struct risk_drive **out, struct error *error);
void risk_drive_close(struct risk_drive *drive); /* accepts NULL */
enum status risk_drive_harm(struct risk_drive *drive, const struct kept_outcome *outcome,
                            const struct severity_model *model, struct risk_contact *out,
                            bool *outside, bool *untraced, struct error *error);

/* ---- risk_print.c ---- */

void risk_study_print(const struct risk_study *study, const struct summary *summary, FILE *out);
/* New reference or NULL. */
json_t *risk_study_json(const struct risk_study *study, const struct summary *summary);
/* Classes of situations whose rate was not read where it was published. */
uint32_t risk_unverified(const struct risk_study *study);
/* A chapter in Markdown, under a heading of the caller's. */
void risk_study_markdown(const struct risk_study *study, FILE *out);

/* ---- risk_suite.c ---- */

/* The plan's jobs as a suite file beside or above the suite's scenarios: new points between those
 * that the suite has. Logical scenarios whose parameters the suite does not vary get none;
 * *unvaried counts their jobs. */
enum status risk_plan_write(const struct risk_study *study, const struct suite *suite,
                            const char *path, uint32_t *entries, double *unvaried,
                            struct error *error);

#endif
