/*
 * Versions of models in a store, as `swerve model VERB --store URL` lists, adds and moves them.
 */
#ifndef SWERVE_CLI_MODEL_MODEL_STORE_H
#define SWERVE_CLI_MODEL_MODEL_STORE_H

#include "base/status.h"
#include "store/api/store.h"
#include "worker/models/models.h"

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_SHARE_DEFAULT = -1 }; /* --share was not given */

struct model_store_command {
    const char *url;
    const char *verb; /* "ls", "show", "add", "shadow", "canary", "promote", "retire", .. */
    const char *name; /* of a version, a file (add) or a tier (rollback); NULL: none */
    const char *as;   /* add: its name; NULL: the file's */
    const char *parents;
    const char *note;
    const char *evidence;
    const char *against;   /* evaluate */
    const char *html;      /* report: a file for the page */
    const char *policy;    /* likewise, and watch, shadow */
    const char *frozen;    /* likewise: a suite of frozen seeds */
    const char *layouts;   /* likewise */
    const char *drive;     /* likewise: a suite */
    const char *plan;      /* likewise */
    const char *directory; /* of models, as given */
    int64_t jobs;          /* evaluate: the most that are driven */
    int64_t workers;       /* likewise */
    const char *planner;   /* likewise */
    int64_t days;          /* likewise */
    int64_t percent;
    bool force;
    bool json;
    struct models *models; /* add: reads the file */
    enum nn_precision precision;
};

/* A tier that models answer for, by its name. STATUS_USAGE: no such tier. */
enum status model_store_tier(const char *name, enum tier *out, struct error *error);

/* Name of the caller, for events of a store that is a file: $USER, which timers and containers
 * lack, else the name that the system has for the process's user, else its number. */
void model_store_user(char out[LIMIT_ID_BYTES]);

/* Events of one version (NULL: of all), oldest first. */
enum status model_store_each_event(struct store *store, const char *name,
                                   void (*visit)(void *context, const struct model_event *event),
                                   void *context, struct error *error);

bool model_store_has(const char *verb);

/* STATUS_USAGE: no such verb. */
enum status model_store_run(const struct model_store_command *command, struct error *error);

#endif
