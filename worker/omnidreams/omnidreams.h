/*
 * World models behind AlpaSim's WorldModelService (OmniDreams on FlashDreams), as worlds of the
 * form RIG: `omnidreams:NAME[?options]`.
 *
 * NAME is one that the worker's owner gave an address to (--omnidreams NAME=HOST:PORT). A rollout
 * is a session of the service: the map, a prompt, the rig's cameras with their first pictures and a
 * seed that is never 0; then a chunk of frames at a time, for ego's poses and everybody's boxes.
 *
 * Such a server keeps one session, and a second start deletes the first: so a world keeps one
 * state, rollouts are driven depth first, and a state that had to go is made again from its log of
 * requests, to the same frames (engine/worlds/foreign_rig_past.c). The contract has no fork.
 *
 * A server that is gone, or does not answer in time, is an outage: the attempts that it held fail
 * and are run again. What it answers wrongly is the world's fault, and evidence.
 *
 * Options, joined by "&": fps=N (30), chunk=8|12|16 (8; the first has three frames less),
 * horizon=SECONDS (60) for which it is to be trusted, prompt=TEXT (else made of road, weather and
 * light), rig=FILE (the only rig that it makes).
 *
 * Source: AlpaSim, alpasim_grpc/v0/video_model.proto.
 */
#ifndef SWERVE_WORKER_OMNIDREAMS_H
#define SWERVE_WORKER_OMNIDREAMS_H

#include "base/status.h"
#include "engine/sensors/prepared.h"
#include "schemas/limits.h"
#include "schemas/world/world.h"
#include "worker/contract/contract_places.h"

#include <stdbool.h>
#include <stdint.h>

#define OMNIDREAMS_PREFIX "omnidreams:"

/* --omnidreams NAME=HOST:PORT. */
extern const struct contract_kind omnidreams_kind;

struct omnidreams_spec {
    char name[SWERVE_WORLD_NAME_BYTES];
    uint32_t rate_hz, chunk_frames, horizon_ticks;
    char prompt[LIMIT_PROMPT_BYTES]; /* "": made of the conditions */
    char *rig;                       /* its canonical JSON; NULL: any */
};

/* Takes a spec apart, and reads its rig's file. STATUS_USAGE, STATUS_BAD_INPUT, STATUS_NOT_FOUND.
 */
enum status omnidreams_parse(const char *spec, struct omnidreams_spec *out, struct error *error);
void omnidreams_spec_finish(struct omnidreams_spec *spec);

struct omnidreams_seeds;

/* First pictures, DIR/ROAD/WEATHER/LIGHT/CAMERA.jpg (or .png), where ROAD, WEATHER and LIGHT are as
 * scenarios have them, or "any". Reads all of them once: *hash, in hex, is of their names and
 * bytes, and a file that changes later is refused. STATUS_NOT_FOUND, STATUS_BAD_INPUT: there is
 * none, or one has another place. */
enum status omnidreams_seeds_open(const char *directory, struct omnidreams_seeds **out,
                                  const char **hash, struct error *error);
void omnidreams_seeds_close(struct omnidreams_seeds *seeds); /* accepts NULL */

/* setup.host of omnidreams_ops. Borrowed, all of it. */
struct omnidreams_host {
    const struct omnidreams_spec *spec;
    const struct contract_places *places;
    const struct omnidreams_seeds *seeds; /* NULL: frame 0 is what our sensors draw */
    int64_t start_ms, step_ms;            /* longest start_session, longest chunk */
    bool patient; /* a server that does not listen has start_ms to begin to */
};

extern const struct swerve_world_ops omnidreams_ops;

/* Whether the connection of an instance is gone; every call fails then. */
bool omnidreams_ended(const void *world);

/* Which scenario the next reset is of. */
void omnidreams_meet(void *world, const struct prepared *prepared);

#endif
