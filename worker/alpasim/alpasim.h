/*
 * Scenarios as services of AlpaSim: its SensorsimService and its WorldModelService, drawn as the
 * object world draws, and its TrafficService, whose agents the object world drives, so that AlpaSim
 * runs without a GPU, or beside a model that is compared.
 *
 * A scene is a scenario, named by its id. Cameras and poses are the caller's; so are actors: of
 * SensorsimService by the scenario's ids of agents, of WorldModelService with their boxes. The
 * scene of a world model's session is the one whose id stands in the names of its map's files.
 *
 * The road is flat, traffic lights are dark; lidars and masks of ego are not drawn.
 *
 * Source: AlpaSim, alpasim_grpc/v0/sensorsim.proto, video_model.proto and traffic.proto.
 */
#ifndef SWERVE_WORKER_ALPASIM_H
#define SWERVE_WORKER_ALPASIM_H

#include "base/status.h"
#include "scenarios/scenarios.h"
#include "schemas/rig/rig.h"
#include "worker/grpc/grpc_server.h"

struct alpasim;

/* Suite and rig (what get_available_cameras tells) are borrowed. BAD_INPUT: two scenarios have one
 * name as files of scenes have it; NO_MEMORY. */
enum status alpasim_create(const struct suite *suite, const struct rig *rig, struct alpasim **out,
                           struct error *error);
void alpasim_destroy(struct alpasim *alpasim); /* accepts NULL */

/* Answers a call; `context` is a struct alpasim. One thread at a time. */
void alpasim_serve(void *context, const char *method, const uint8_t *message, size_t bytes,
                   struct grpc_answer *answer);

#endif
