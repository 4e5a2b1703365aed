/*
 * Insides of AlpaSim's services, shared by their files. See alpasim.h.
 */
#ifndef SWERVE_WORKER_ALPASIM_INTERNAL_H
#define SWERVE_WORKER_ALPASIM_INTERNAL_H

#include "engine/sensors/prepared.h"
#include "engine/sensors/raster.h"
#include "schemas/scene.h"
#include "worker/alpasim/alpasim.h"
#include "worker/contract/contract_call.h"
#include "worker/contract/contract_camera.h"

#include <protobuf-c/protobuf-c.h>

enum {
    ALPASIM_SESSIONS = 8, /* of a service that keeps some */
    ALPASIM_SESSION_BYTES = 40,
    ALPASIM_VIEWS = 16,              /* lenses that are kept ready .. */
    ALPASIM_VIEWS_PIXELS = 32 << 20, /* .. of so many pixels together, or one */
    ALPASIM_PREPARED = 16,           /* scenes that are kept ready, besides those of sessions */
    ALPASIM_QUALITY = 90,
};

/* Formats of a picture, as both contracts number them. */
enum alpasim_format { ALPASIM_PNG = 1, ALPASIM_JPEG = 2 };

struct alpasim_scene {
    const struct scenario *scenario;
    struct prepared *prepared; /* NULL: it was not asked for lately */
    uint64_t used;
};

/* A camera that was drawn with. */
struct alpasim_view {
    struct rig_camera camera; /* without id */
    struct raster_rays *rays;
    uint64_t used;
};

/* A session of a world model. */
struct alpasim_session {
    char id[ALPASIM_SESSION_BYTES]; /* "": free */
    struct alpasim_scene *scene;
    uint64_t seed;
    struct rig *rig;
    uint64_t used;
};

struct alpasim_traffic; /* a session of traffic; alpasim_traffic.c */

struct alpasim {
    const struct rig *rig;
    uint32_t scene_count;
    struct alpasim_scene *scenes;
    struct alpasim_view views[ALPASIM_VIEWS];
    struct alpasim_session sessions[ALPASIM_SESSIONS];
    struct alpasim_traffic *traffic[ALPASIM_SESSIONS]; /* NULL: free */
    uint64_t uses, started;
};

struct alpasim_version {
    Ego__Version version;
    Ego__ApiVersion api;
    char id[64];
};

/* A call of a service, and the message that it is asked with. */
struct alpasim_method {
    const char *name;
    const ProtobufCMessageDescriptor *kind;
    void (*serve)(struct alpasim *alpasim, const void *question, struct grpc_answer *answer);
};

/* View of a scene: where the camera's rig stands, and who is there. */
struct alpasim_moment {
    struct scenario scenario; /* the scene's, with `agents` in it */
    struct scene scene;
    struct agent agents[LIMIT_AGENTS];
    bool grain; /* as of a camera: no picture of a video is the one before, to the byte */
};

/* ---- alpasim_draw.c ---- */

/* The scene of an id; NULL: *answer says that there is none. */
struct alpasim_scene *alpasim_find(struct alpasim *alpasim, const char *id,
                                   struct grpc_answer *answer);
/* Makes a scene ready to be drawn and driven in, as prepared_create does. One that was asked for
 * long ago is ready no longer then; who drives in it has a reference of its own. */
enum status alpasim_prepare(struct alpasim *alpasim, struct alpasim_scene *scene,
                            struct error *error);
/* The code by which a call that failed is answered. */
int alpasim_code(enum status status);
/* Whether nobody waits for an answer any more; it says so then. */
bool alpasim_late(struct grpc_answer *answer);
void alpasim_refuse(struct grpc_answer *answer, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Packs an answer. */
void alpasim_answer(struct grpc_answer *answer, const ProtobufCMessage *message);

/* A moment of a scene without anybody; its agents are filled in by the caller, who counts them in
 * scenario.agent_count and scene.agent_count. */
void alpasim_moment_init(struct alpasim_moment *moment, const struct alpasim_scene *scene);

/* Draws a camera that stands at camera->pose on ego of the moment, as a file of a format. *file is
 * the caller's. BAD_INPUT: no rig may have such a camera (schemas/rig), or its lens is not
 * one to one; NO_MEMORY. */
enum status alpasim_draw(struct alpasim *alpasim, struct alpasim_scene *scene,
                         const struct alpasim_moment *moment, const struct rig_camera *camera,
                         uint64_t seed, uint32_t format, uint32_t quality, uint8_t **file,
                         size_t *bytes, struct error *error);

/* Who this is: what it draws and drives is of a revision. The address of *out must not change while
 * it is used. */
void alpasim_version_fill(struct alpasim_version *out);

/* Answers by the row of a method, the last of which has no name. False: there is none. */
bool alpasim_dispatch(struct alpasim *alpasim, const struct alpasim_method *rows,
                      const char *method, const uint8_t *message, size_t bytes,
                      struct grpc_answer *answer);

/* ---- services; false: it has no such method ---- */

bool alpasim_sensorsim(struct alpasim *alpasim, const char *method, const uint8_t *message,
                       size_t bytes, struct grpc_answer *answer);
bool alpasim_worldmodel(struct alpasim *alpasim, const char *method, const uint8_t *message,
                        size_t bytes, struct grpc_answer *answer);
bool alpasim_traffic(struct alpasim *alpasim, const char *method, const uint8_t *message,
                     size_t bytes, struct grpc_answer *answer);

void alpasim_tell_scenes(struct alpasim *alpasim, const void *question, struct grpc_answer *answer);
void alpasim_traffic_end(struct alpasim_traffic *session); /* accepts NULL */

#endif
