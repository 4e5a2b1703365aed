/*
 * Golden library: a set of goldens of a store as a world that answers jobs of tier `golden`, and
 * the recordings that rollouts need now. Of a spec `golden:NAME`, or `golden:NAME?diverged=live`.
 *
 * A golden world is the object world, whose ego and traffic it drives, with pictures that another
 * world generated before: those of the recorded rollout that was in the same place. While ego is
 * within GOLDEN_APART_M and GOLDEN_TURNED_RAD of it, and so is everybody near, a drive goes on;
 * then it has diverged: the health check of that name ends it as evidence, never as a result. With
 * `diverged=live` the world that generated the set is asked in its place, where the worker has it.
 *
 * Of several recorded rollouts (a main line and its branches) that fit, the one counts that is in
 * exactly the same state; so the planner that was recorded sees the same bits again. One thread.
 */
#ifndef SWERVE_WORKER_GOLDEN_GOLDEN_LIBRARY_H
#define SWERVE_WORKER_GOLDEN_GOLDEN_LIBRARY_H

#include "engine/worlds/foreign.h"
#include "store/api/store.h"
#include "worker/golden/golden_list.h"
#include "worker/golden/golden_recording.h"
#include "worker/models/models.h"

#define GOLDEN_APART_M 0.5
#define GOLDEN_TURNED_RAD (2.0 * PI_RAD / 180.0)
#define GOLDEN_NEAR_M 100.0 /* agents beyond that are in no picture */

struct golden_library;

/* Whether --world (NULL: not given) names goldens. */
bool golden_spec_is(const char *spec);

/* A store's set of a name. NOT_FOUND: there is none. */
enum status golden_set_find(struct store *store, const char *name, struct golden_set *out,
                            struct error *error);

/* Opens the set that a spec or a name means: only its list is read. The store is borrowed until it
 * is closed, or with `owns` closed with it. NOT_FOUND, BAD_INPUT, USAGE. */
enum status golden_library_open(const char *spec, struct store *store, bool owns,
                                struct golden_library **out, struct error *error);
void golden_library_close(struct golden_library *library); /* accepts NULL */

const struct golden_list *golden_library_list(const struct golden_library *library);
const char *golden_library_hash(const struct golden_library *library);

/* Opens it and has it answer for tier `golden` in `models`, which closes it. Takes the store over
 * where it `owns` it, on failure too. */
enum status golden_library_lend(const char *spec, struct store *store, bool owns,
                                struct models *models, struct error *error);

/* The set that `models` was lent; NULL: none. */
const struct golden_library *golden_library_lent(struct models *models);

/* ---- for its world ---- */

/* The recording of a scenario and seed, brought from the store where it is not here yet; to be
 * given back. NOT_FOUND: the set has none. */
enum status golden_library_take(struct golden_library *library, const char *scenario_id,
                                uint64_t seed, const struct recording **out, struct error *error);
/* One more holder of a recording that is taken. */
void golden_library_share(struct golden_library *library, const struct recording *recording);
void golden_library_give_back(struct golden_library *library, const struct recording *recording);

extern const struct world_ops world_golden_ops; /* config.foreign->host: golden_library */

#endif
