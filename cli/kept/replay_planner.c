/*
 * Planner of a replay. See replay_planner.h.
 */
#include "cli/kept/replay_planner.h"

#include "base/check.h"
#include "base/text.h"
#include "cli/kept/kept.h"
#include "worker/planner/planner_spec.h"

#include <stdio.h>
#include <string.h>

/* Opens the runner by the planner's files as they are in this folder. */
static enum status open_here(struct replay_planner *planner, const struct runner_source *source,
                             const struct job_spec *spec, const struct rig *rig,
                             struct error *error)
{
    TRY(planner_identity(spec->planner, planner->files, error));
    TRY(runner_open(source, spec, rig, &planner->open, error));
    memcpy(planner->hash, planner->files, sizeof planner->hash);
    planner_identity_extend(planner->hash, runner_planner_loaded(planner->open.runner));
    return STATUS_OK;
}

bool replay_planner_is(const struct replay_planner *planner, const struct outcome *outcome)
{
    return strcmp(outcome->planner_hash, planner->hash) == 0 ||
           strcmp(outcome->planner_hash, planner->files) == 0;
}

/* The same from the folder of kept files, in the sandbox: they come out of a store. */
static enum status open_there(struct replay_planner *planner, const struct runner_source *here,
                              const struct job_spec *spec, const struct rig *rig,
                              struct error *error)
{
    struct runner_source source = *here;
    planner->confinement = *here->planner_config.confinement;
    planner->confinement.sandbox = true;
    planner->confinement.environment_listed = true;
    CHECK(planner->confinement.path_count < REPLAY_PATHS_MAX);
    for (uint32_t i = 0; i < planner->confinement.path_count; i++) {
        planner->paths[i] = here->planner_config.confinement->paths[i];
    }
    planner->paths[planner->confinement.path_count++] = planner->kept; /* with its folders */
    planner->confinement.paths = planner->paths;
    source.planner_config.confinement = &planner->confinement;
    int back = -1;
    if (planner_confinement_check(&planner->confinement, error) != STATUS_OK) {
        return error_prefix(error, "files that a store kept run in the sandbox alone");
    }
    enum status status = kept_enter(planner->kept, &back, error);
    THEN(status, open_here(planner, &source, spec, rig, error));
    return kept_leave(back, status, error);
}

enum status replay_planner_open(const struct runner_source *source, const struct job_spec *spec,
                                const struct rig *rig, struct store *store, const char *store_url,
                                const struct outcome *outcome, struct replay_planner *out,
                                struct error *error)
{
    enum status opened = open_here(out, source, spec, rig, error);
    bool builtin = strncmp(planner_spec_bare(spec->planner), "builtin:", strlen("builtin:")) == 0;
    struct error why;
    bool found = false;
    if (store == NULL || builtin || (opened == STATUS_OK && replay_planner_is(out, outcome))) {
        return opened;
    }
    enum status unpacked = source->planner_config.confinement != NULL
                               ? kept_unpack(store, outcome->planner_hash, out->kept, &found, &why)
                               : STATUS_OK;
    /* A server shows these files to nobody, and an earlier one knows of none. */
    if (unpacked != STATUS_OK && (unpacked == STATUS_BAD_INPUT || opened != STATUS_OK)) {
        *error = why;
        return why.status;
    }
    if (!found && opened == STATUS_OK) {
        text_print(stderr,
                   "NOTE: the planner's files have changed since outcome %lld (%.12s, now %.12s): "
                   "this drives them as they are now; swerve show %lld --video FILE.png --store %s "
                   "shows what was recorded\n",
                   (long long)outcome->id, outcome->planner_hash, out->hash, (long long)outcome->id,
                   store_url);
    }
    if (!found) {
        return opened;
    }
    runner_close(&out->open);
    TRY(open_there(out, source, spec, rig, error));
    if (!replay_planner_is(out, outcome)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "the planner's files that the store kept are another planner here (%.12s, "
                         "expected %.12s): what it imports beside them has changed",
                         out->hash, outcome->planner_hash);
    }
    text_print(stderr,
               "NOTE: the planner's files have changed since outcome %lld: it is driven by those "
               "that the store kept, in the sandbox\n",
               (long long)outcome->id);
    return STATUS_OK;
}

void replay_planner_close(struct replay_planner *planner)
{
    runner_close(&planner->open);
    kept_remove(planner->kept);
    planner->kept[0] = '\0';
}
