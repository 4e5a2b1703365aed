/*
 * Labels: what people say of a suite, for those who look for it later. Tags and a note come with
 * the run, so does the commit that its client stood in; a baseline is a name for one suite, and
 * moves from one to the next; `files` names an artifact that keeps a planner's files.
 */
#ifndef SWERVE_STORE_API_LABELS_H
#define SWERVE_STORE_API_LABELS_H

#include "schemas/json_record.h"
#include "schemas/limits.h"

enum label_kind {
    LABEL_TAG = 0,
    LABEL_NOTE,     /* one of a suite: a later one takes its place */
    LABEL_BASELINE, /* of one suite of a tenant: the name leaves the suite that had it */
    LABEL_COMMIT,   /* as a note */
    LABEL_FILES,    /* hash of a planner, blank, hash of the artifact with its files */
    LABEL_KIND_COUNT
};
extern const char *const label_kind_names[LABEL_KIND_COUNT];

enum {
    LABEL_BYTES = 256,
    LABEL_NAME_BYTES = 48, /* of a tag, a baseline or a run, to whose name eight digits are added */
    LABELS_MAX = 8,        /* of one kind, a suite */
    LABEL_FILES_BYTES = 12 << 20, /* of the artifact that a label `files` names */
    LABEL_NAMES_BYTES = LABELS_MAX * (LABEL_NAME_BYTES + 2),
};

struct label {
    int64_t id; /* set by the store, as at_s */
    char suite[LIMIT_ID_BYTES];
    enum label_kind kind;
    char text[LABEL_BYTES];
    int64_t at_s; /* seconds since 1970 */
};

extern const struct json_field_list label_fields;

/* Whether the text may be one of that kind: BAD_INPUT says what it has to be. */
enum status label_check(const struct label *label, struct error *error);

/* Whether the text may be a tag's, a baseline's or a run's name; `what` is for the sentence. */
enum status label_name_check(const char *what, const char *name, struct error *error);

#endif
