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

enum status replay_planner_open_here(const struct runner_source *source,
                                     const struct job_spec *spec, const struct rig *rig,
                                     struct replay_planner *out, struct error *error)
{
    TRY(planner_identity(spec->planner, out->files, error));
    TRY(runner_open(source, spec, rig, &out->open, error));
    memcpy(out->hash, out->files, sizeof out->hash);
    planner_identity_extend(out->hash, runner_planner_loaded(out->open.runner));
    return STATUS_OK;
}

bool replay_planner_is(const struct replay_planner *planner, const struct outcome *outcome)
{
    return strcmp(outcome->planner_hash, planner->hash) == 0 ||
           strcmp(outcome->planner_hash, planner->files) == 0;
}

enum status replay_planner_open_kept(const struct runner_source *here, const struct job_spec *spec,
                                     const struct rig *rig,
                                     const struct planner_confinement *confinement,
                                     struct replay_planner *out, struct error *error)
{
    struct runner_source source = *here;
    int back = -1;
    out->confinement = *confinement;
    out->confinement.sandbox = true;
    out->confinement.environment_listed = true;
    CHECK(out->confinement.path_count < REPLAY_PATHS_MAX);
    for (uint32_t i = 0; i < out->confinement.path_count; i++) {
        out->paths[i] = confinement->paths[i];
    }
    out->paths[out->confinement.path_count++] = out->kept; /* with its folders */
    out->confinement.paths = out->paths;
    source.planner_config.confinement = &out->confinement;
    source.planner_config.debug = false; /* the terminal is nobody's in the sandbox */
    if (planner_confinement_check(&out->confinement, error) != STATUS_OK) {
        return error_prefix(error, "files that a store kept run in the sandbox alone");
    }
    enum status status = kept_enter(out->kept, &back, error);
    THEN(status, replay_planner_open_here(&source, spec, rig, out, error));
    return kept_leave(back, status, error);
}

/* Place of the program of an exec planner on this machine. */
static bool program_of(const char *text, char path[LIMIT_PATH_BYTES])
{
    struct planner_spec spec;
    struct planner_argv words;
    struct error unneeded;
    return planner_spec_parse(text, &spec, &unneeded) == STATUS_OK &&
           spec.kind == PLANNER_SPEC_EXEC &&
           planner_argv_parse(spec.target, &words, &unneeded) == STATUS_OK &&
           planner_program_find(words.argv[0], path, &unneeded) == STATUS_OK;
}

/* The planner is another one now, and the store has no files of it. Its hash does not say which
 * part of it changed, so all parts are named, the program by its place. */
static void tell_changed(const struct replay_planner *planner, const struct job_spec *spec,
                         const struct outcome *outcome, const char *store_url)
{
    char program[LIMIT_PATH_BYTES];
    bool found = program_of(spec->planner, program);
    text_print(
        stderr,
        "NOTE: the planner is not the one of outcome %lld (%.12s, now %.12s): its files, "
        "what they import%s%s%s changed since; this drives it as it is now, swerve show %lld "
        "--video FILE.png --store %s shows what was recorded\n",
        (long long)outcome->id, outcome->planner_hash, planner->hash,
        found ? " or its program (here " : "", found ? program : "", found ? ")" : "",
        (long long)outcome->id, store_url);
}

enum status replay_planner_open(const struct runner_source *source, const struct job_spec *spec,
                                const struct rig *rig, const struct replay_files *files,
                                const struct outcome *outcome, struct replay_planner *out,
                                struct error *error)
{
    enum status opened = replay_planner_open_here(source, spec, rig, out, error);
    bool builtin = strncmp(planner_spec_bare(spec->planner), "builtin:", strlen("builtin:")) == 0;
    struct error why;
    bool found = false;
    if (files->store == NULL || builtin ||
        (opened == STATUS_OK && replay_planner_is(out, outcome))) {
        return opened;
    }
    enum status unpacked = kept_unpack(files->store, outcome, out->kept, &found, &why);
    /* A server may show these files to nobody, and an earlier one knows of none. */
    if (unpacked != STATUS_OK && (unpacked == STATUS_BAD_INPUT || opened != STATUS_OK)) {
        *error = why;
        return why.status;
    }
    if (!found) {
        if (opened == STATUS_OK) {
            tell_changed(out, spec, outcome, files->url);
        }
        return opened;
    }
    runner_close(&out->open);
    TRY(replay_planner_open_kept(source, spec, rig, files->confinement, out, error));
    if (!replay_planner_is(out, outcome)) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "the planner's files that the store kept are another planner here (%.12s, "
            "expected %.12s): its program, or what it imports beside them, has changed",
            out->hash, outcome->planner_hash);
    }
    text_print(stderr,
               "NOTE: the planner's files have changed since outcome %lld: it is driven by those "
               "that the store kept, in the sandbox%s\n",
               (long long)outcome->id,
               source->planner_config.debug ? ", where breakpoint() finds no terminal" : "");
    return STATUS_OK;
}

void replay_planner_close(struct replay_planner *planner)
{
    runner_close(&planner->open);
    kept_remove(planner->kept);
    planner->kept[0] = '\0';
}
