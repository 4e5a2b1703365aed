/*
 * World specs: from `plugin:FILE.so[?config]`, `exec:COMMAND LINE`,
 * `onnx:MODEL.onnx[?manifest=FILE.json]` or `omnidreams:NAME[?options]` to a world that answers for
 * a tier. A job names a world by hash alone, as it names a model: whoever submits cannot make a
 * worker run a command. Which worlds a worker has, its own command line says (--world,
 * --audit-world).
 *
 * The hash covers what the world is made of (the plugin's file and config; the command line, its
 * program and every regular file that it names; model, manifest and the runtime's version; name,
 * options and first frames) and all that the world declares, its version first.
 */
#ifndef SWERVE_WORKER_WORLD_WORLD_SOURCE_H
#define SWERVE_WORKER_WORLD_WORLD_SOURCE_H

#include "engine/worlds/foreign.h"
#include "worker/models/models.h"
#include "worker/planner/planner.h"

/* Of a directory of models: what --world tinyphysics runs. */
#define WORLD_CONTROLS_FILE "tinyphysics.onnx"

/* In the place of a world that audits: the promoted teacher does, of the models or of the store. */
#define WORLD_SHIPPED_TEACHER "teacher"

struct world_source;

struct world_source_options {
    const struct planner_confinement *confinement; /* of processes; NULL: none; outlives it */
    int64_t start_ms, step_ms;                     /* 0: WORLD_START_MS, WORLD_STEP_MS */
    bool patient; /* a server that does not listen has start_ms to begin to */
};

/* Whether --world names a foreign world and not a tier. "tinyphysics" is one, whose model is
 * tinyphysics.onnx of the directory of models, and "tinyphysics:MODEL.onnx": the simulator of the
 * controls challenge; "tinyphysics-bf16" in the same way. */
bool world_spec_is(const char *spec);

/* Loads or starts it once, to hear what it declares. STATUS_DEVICE, STATUS_NOT_FOUND,
 * STATUS_BAD_INPUT. */
enum status world_source_open(const char *spec, const struct world_source_options *options,
                              struct world_source **out, struct error *error);
void world_source_close(struct world_source *source); /* accepts NULL */

const struct foreign *world_source_foreign(const struct world_source *source);
const char *world_source_hash(const struct world_source *source);

/* Whether a world of the user's is another one whenever it is asked, or than it was when it had
 * `hash`; *error says what differs. It is started twice for that: for who found its jobs stranded.
 * False: it is that one, or does not start. */
bool world_source_varies(const char *spec, const struct world_source_options *options,
                         const char *hash, struct error *error);

/* Opens what is given (NULL: nothing) and has it answer as the student, or as the teacher where it
 * audits, in `models`, which closes it. */
enum status world_source_lend(const char *world, const char *audit_world,
                              const struct world_source_options *options, struct models *models,
                              struct error *error);

#endif
