/*
 * Driving policies behind AlpaSim's EgodriverService, as planners: `egodriver:NAME[?options]`.
 *
 * NAME is one that the worker's owner gave addresses to (--egodriver NAME=HOST:PORT[,..]), so that
 * whoever submits a job aims no worker at a host. A rollout is a session of the service: start,
 * then each tick ego's motion, the route, every image, and drive; the answer's poses of the rear
 * axle become a trajectory that the tracker follows. Sessions go round the servers.
 *
 * The contract has no fork. A server is asked once for one of its own (fork_session); where it has
 * none, a branch is a new session that is sent again all that its parent was sent, and every answer
 * must have the same bytes as the recorded one; where one differs the fork is refused, and the
 * branch pays for its own past.
 *
 * What the server does wrong to one session fails that session, with a sentence. A connection that
 * ends, an answer that is late or no gRPC fails the instance (worker/planner/planner.h).
 *
 * Options, joined by "&": cameras=ID,ID (of the rig; without this option all; none: no image is
 * drawn or sent), renderer_data=carla (lights and speed limit, as a CARLA runtime sends them),
 * tell_scene=yes (the scenario's id in start_session).
 *
 * Source: AlpaSim, alpasim_grpc/v0/egodriver.proto; carla-driver-interface 2.3.
 */
#ifndef SWERVE_WORKER_EGODRIVER_H
#define SWERVE_WORKER_EGODRIVER_H

#include "base/status.h"
#include "schemas/planner.h"
#include "schemas/rig/rig_choice.h"
#include "worker/contract/contract_places.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct egodriver;

/* --egodriver NAME=HOST:PORT[,..]. */
extern const struct contract_kind egodriver_kind;

/* Whether NAME and options are well-formed; nobody is asked. */
enum status egodriver_check(const char *name, const char *options, struct error *error);

/* Connects, and asks each server for its version. `patient`: servers have the open deadline to
 * begin to listen; else one that does not listen now is refused. STATUS_NOT_FOUND: the name has no
 * address here. STATUS_PLANNER: a server cannot be reached, is none, or speaks another revision of
 * the contract. CANCELLED: `abandoned` was set meanwhile (NULL: nobody does). *choice: cameras of
 * the rig that it is shown, as JPEG. `spec` is for messages; borrowed. */
enum status egodriver_open(const char *spec, const char *name, const char *options,
                           const struct contract_places *places, const struct rig *rig,
                           struct rig_choice *choice, uint32_t session_count,
                           int64_t tick_deadline_ms, int64_t open_deadline_ms, bool patient,
                           const atomic_bool *abandoned, struct egodriver **out,
                           struct error *error);

bool egodriver_alive(const struct egodriver *ego); /* no connection failed */

/* Whether a connection, or a call on it, ended without an answer: not late, and no word of the
 * policy's. */
bool egodriver_cut_off(const struct egodriver *ego);

uint32_t egodriver_wants(const struct egodriver *ego); /* enum swerve_planner_wants bits */

/* SHA-256 in hex of what the servers say that they are: version, git hash, revision of the API. */
const char *egodriver_loaded(const struct egodriver *ego);

/* Why a session's last answer was marked as failed; "" if it was not. */
const char *egodriver_reason(const struct egodriver *ego, uint32_t session);

/* A session is not forked any more until it is reset: what it is sent is not kept. */
void egodriver_end_forks(struct egodriver *ego, uint32_t session);

/* Whether the last fork to a session was refused because the driver answered otherwise than when it
 * was sent the same first. */
bool egodriver_varies(const struct egodriver *ego, uint32_t session);

/* Debug bytes that a session's driver sent with its newest answers since its reset or fork, as
 * text; *bytes: its length. Borrowed until the next call about that session. */
const char *egodriver_told(const struct egodriver *ego, uint32_t session, size_t *bytes);

/* reset, drive, fork, end and close; the instance is a struct egodriver. open is NULL. */
extern const struct swerve_planner_ops egodriver_ops;

#endif
