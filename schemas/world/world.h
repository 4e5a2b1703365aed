/*
 * World: the C ABI between Swerve and a world model of yours. Shared objects (`plugin:FILE.so`) and
 * the process adapter (`exec:COMMAND`) both fill this one table; docs/worlds.md begins with an
 * example of each.
 *
 * A world holds *states*, named by small integers that Swerve chooses: each is the memory of one
 * rollout. It is reset to a scenario's first frame, stepped once a tick for all states that are
 * due, forked where branches leave their main line, dropped at the end. States are independent: a
 * frame may depend on its own state's past, on what is given for it and on the seed, and on nothing
 * else. A world that declares SWERVE_WORLD_DETERMINISTIC promises the same bytes for the same past,
 * whatever stands beside it in the batch, and after a fork. Swerve checks what can be checked; a
 * rollout in which a world breaks its word is kept as evidence and never as a result.
 *
 * Swerve moves ego (and, with the conditioning `agents`, everybody else): a world shows what the
 * sensors see. It may also move agents itself and report where they are.
 *
 * Version 2 adds the form RIG: pictures of the cameras of any rig, made in chunks of several frames
 * from ego's poses ahead. A world of version 1 is driven as before.
 *
 * A plugin lives in the worker's process: when it crashes or hangs, the worker is lost. Its entry
 * is `const struct swerve_world_ops *swerve_world_entry(void)`. This header is self-contained: C11
 * or C++11, libc types only. Units: metres, seconds, radians; x ahead, y left; records are padded
 * explicitly and little-endian, as the process protocol (world.md) sends them.
 */
#ifndef SWERVE_SCHEMAS_WORLD_WORLD_H
#define SWERVE_SCHEMAS_WORLD_WORLD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SWERVE_WORLD_ABI_VERSION 2u

enum {
    SWERVE_WORLD_NAME_BYTES = 32, /* terminator included */
    SWERVE_WORLD_CONDITIONS = 64,
    SWERVE_WORLD_AGENTS = 256, /* of one state, at most */
    SWERVE_WORLD_FRAMES = 32,  /* of one chunk, at most */
    SWERVE_WORLD_RIG_CAMERAS = 16,
};

/* In which form frames and conditioning rasters are.
 * EGO: what planners are shown. Grid u8 [4][192][96] around ego: occupancy, unseen, drivable,
 * marking (255: all of a 0.5 m cell; row 0 is 16 m behind ego, column 0 is 24 m to its right).
 * Cameras u8 RGB [3][64][96][3]: left, front, right; row 0 at the top.
 * WINDOW: what the shipped models compute (engine/model.md). Grid u8 [96][96][22] in a window that
 * stands still in the world and moves by whole patches of 8 m; cameras u8 [3][32][48][12].
 * RIG (version 2): u8 RGB [height][width][3] of each camera of setup's rig, at one rate, and no
 * grid; flags CAMERAS, and DETERMINISTIC where it is. */
enum swerve_world_form {
    SWERVE_WORLD_FORM_EGO = 0,
    SWERVE_WORLD_FORM_WINDOW,
    SWERVE_WORLD_FORM_RIG,
    SWERVE_WORLD_FORM_COUNT
};

enum swerve_world_flags {
    SWERVE_WORLD_DETERMINISTIC = 1, /* see above; without it replays compare verdicts, not bytes */
    SWERVE_WORLD_BEV = 2,           /* fills the grid */
    SWERVE_WORLD_CAMERAS = 4,       /* fills the cameras; what is not filled stays zero */
    SWERVE_WORLD_MOVES_AGENTS = 8,  /* reports agents where it is not given them (`map`, `none`) */
    SWERVE_WORLD_READS_RASTER = 16, /* wants the conditioning raster; else none is drawn */
};

/* Self-description of the world, filled in by open(). All of it is checked. */
struct swerve_world_declared {
    char name[SWERVE_WORLD_NAME_BYTES];    /* printable ASCII without blanks and slashes */
    char version[SWERVE_WORLD_NAME_BYTES]; /* another version is another model to every store */
    uint32_t form;                         /* enum swerve_world_form */
    uint32_t flags;                        /* enum swerve_world_flags */
    uint32_t bev_bytes, cameras_bytes;     /* of its form, as it computes them; 0 of RIG */
    uint32_t horizon_ticks;                /* for how long it is to be trusted, 1 or more */
    uint32_t reserved;
    double tick_s; /* 0.1 */
    /* Version 2, of RIG; else 0. Frames a second, a multiple of 10, which every camera of the rig
     * must have. Frames of a chunk, from those of a tick to SWERVE_WORLD_FRAMES, and of a rollout's
     * first chunk, which may have fewer. */
    uint32_t rate_hz, chunk_frames, first_frames;
    /* States that it keeps at once; 0: as many as it is asked for. With a limit it is driven depth
     * first, a state that had to go is made anew from its past, and it must be DETERMINISTIC. */
    uint32_t states_max;
};

/* Arguments of open(). Borrowed during the call, `memory` until close. */
struct swerve_world_setup {
    uint32_t abi_version;  /* that the worker speaks with this world */
    uint32_t state_count;  /* states are 0 .. state_count - 1 */
    uint32_t batch_max;    /* states in one step, at most */
    uint32_t thread_count; /* that the world may use */
    const char *config;    /* the text behind "?" in the spec, "" if none */
    /* All frames, rasters and lists of agents lie in here; a file descriptor of it (a memfd), which
     * another process may map. */
    uint8_t *memory;
    uint64_t memory_bytes;
    int32_t memory_fd;
    uint32_t conditioning; /* 0 agents, 1 map, 2 none */
    const void *host;      /* Swerve's own adapters'; NULL to plugins */
    /* Version 2: the rig's canonical JSON (schemas/rig/rig.schema.json). NULL: it is only asked
     * what it declares, or its form is not RIG. A world that cannot make the rig fails to open with
     * a sentence that says why. */
    const char *rig;
};

/* An agent as a world reports it; world frame. */
struct swerve_world_agent {
    uint32_t index;   /* in the scenario */
    uint32_t present; /* 0: it has gone */
    double x_m, y_m, heading_rad, speed_mps;
};

/* Inputs of a state for one frame: where ego is now, what it did, and the rest of the scene. */
struct swerve_world_given {
    uint32_t state;
    uint32_t tick; /* of the frame; 0 at reset */
    uint64_t seed; /* of the rollout; noise is to be made of (seed, tick) alone */
    /* Ego now (world frame), after the action. */
    double x_m, y_m, heading_rad;
    double speed_mps, accel_mps2, yaw_rate_rps, steer_rad;
    double action_accel_mps2, action_steer_rad; /* that led here */
    /* Its motion in this tick, in its own frame of the last one. */
    double moved_x_m, moved_y_m, turned_rad;
    /* WINDOW: ego in the anchor's axes, and the window's first patch (engine/model.md). */
    double local_x_m, local_y_m, local_heading_rad;
    int32_t window_i, window_j;
    /* Conditions: weather 0 clear, 1 rain, 2 heavy rain, 3 fog, 4 snow; light 0 day, 1 dusk, 2
     * night. */
    uint32_t weather, light;
    double friction, visibility_m;
    float conditions[SWERVE_WORLD_CONDITIONS]; /* the vector `cond` of engine/model.md */
    /* Of the memory of setup, in bytes: the conditioning raster (0 without READS_RASTER; at reset
     * the first frame, as the sensors saw it), the frame to be written, the agents' list. */
    uint64_t raster_bev, raster_cameras;
    uint64_t frame_bev, frame_cameras;
    uint64_t agents;
};

/* Version 2, RIG. Ego at the time of a frame; world frame, the centre of its box. */
struct swerve_world_pose {
    double time_s; /* since the rollout began: frame / rate_hz */
    double x_m, y_m, heading_rad, speed_mps;
};

/* An agent of the scenario at the time of a frame. */
struct swerve_world_body {
    uint32_t present; /* 0: it is not there */
    uint32_t kind;    /* 0 car, 1 van, 2 truck, 3 bus, 4 motorcycle, 5 cyclist, 6 pedestrian, .. */
    double x_m, y_m, heading_rad, speed_mps;
    double length_m, width_m, height_m;
};

/* Inputs of a state for a chunk of frames that follow each other. At reset frame 0 alone, which
 * lies, as the sensors saw it, where frames are otherwise to be written. */
struct swerve_world_chunk {
    uint32_t state;
    uint32_t first_frame, frame_count;
    uint32_t camera_count, body_count;
    uint32_t weather, light; /* as in swerve_world_given, when the chunk is asked for */
    uint32_t reserved;
    uint64_t seed; /* of the rollout; noise is to be made of (seed, frame) alone */
    double friction, visibility_m;
    /* Of the memory of setup, in bytes: bodies [frame_count][body_count], and of each camera, in
     * the rig's order, frames [frame_count][height][width][3], zeros before they are written. */
    uint64_t bodies;
    uint64_t frames[SWERVE_WORLD_RIG_CAMERAS];
    struct swerve_world_pose poses[SWERVE_WORLD_FRAMES]; /* [frame_count] */
};

/* Report of a step on one state. */
enum swerve_world_result {
    SWERVE_WORLD_OK = 0,
    SWERVE_WORLD_FAILED,     /* no frame can be made */
    SWERVE_WORLD_NOT_FINITE, /* the network's output had a NaN or an infinity */
};
/* Parts of the frame that lie where the raster was given, to save a copy: the raster as it is, or
 * as the world changed it in place. Bits; the other parts lie in the frame. */
enum swerve_world_place {
    SWERVE_WORLD_BEV_IN_RASTER = 1,
    SWERVE_WORLD_CAMERAS_IN_RASTER = 2,
};
struct swerve_world_made {
    uint32_t state;       /* that of the question */
    uint32_t result;      /* enum swerve_world_result */
    uint32_t agent_count; /* written at `agents` */
    uint32_t places;      /* enum swerve_world_place, 0 without READS_RASTER */
};

/* All functions return 0 on success; on failure non-zero, and a terminated sentence in error_text.
 * Calls on one instance never overlap; step() and step_rig() may come in another thread than the
 * others. */
struct swerve_world_ops {
    uint32_t abi_version; /* SWERVE_WORLD_ABI_VERSION; 1: the table ends before reset_rig */
    uint32_t reserved;
    int (*open)(void **world, const struct swerve_world_setup *setup,
                struct swerve_world_declared *declared, char *error_text, uint32_t error_bytes);
    void (*close)(void *world);
    /* A rollout begins in a free state. Its first frame lies where the raster otherwise does. */
    int (*reset)(void *world, const struct swerve_world_given *given, char *error_text,
                 uint32_t error_bytes);
    /* One tick of `count` states. made[i] begins as {state, FAILED}. */
    int (*step)(void *world, uint32_t count, const struct swerve_world_given *given,
                struct swerve_world_made *made, char *error_text, uint32_t error_bytes);
    /* Makes free state `to` an independent copy of `from`; sharing what neither changes is up to
     * you. Swerve forks late: when both are going to be stepped. */
    int (*fork)(void *world, uint32_t from, uint32_t to, char *error_text, uint32_t error_bytes);
    void (*drop)(void *world, uint32_t state); /* the state is free again */
    /* Hints, may be NULL: the state will not be stepped for a while, or again soon. */
    void (*park)(void *world, uint32_t state);
    void (*restore)(void *world, uint32_t state);
    /* Version 2; of RIG in the place of reset and step, else NULL. */
    int (*reset_rig)(void *world, const struct swerve_world_chunk *first, char *error_text,
                     uint32_t error_bytes);
    int (*step_rig)(void *world, uint32_t count, const struct swerve_world_chunk *chunks,
                    struct swerve_world_made *made, char *error_text, uint32_t error_bytes);
};

typedef const struct swerve_world_ops *(*swerve_world_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
