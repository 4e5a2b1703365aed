/*
 * Traffic: how the agents of the object and replay worlds move. Internal to the engine.
 *
 * A *plan* is what a prepared scenario prepares once per scenario: tracks (lane chains, given
 * routes, logged and scripted paths) and each agent's driver. A *motion* is one agent's state in
 * one slot, a plain value, so that forking is copying.
 *
 * Every agent but a static or exactly logged one moves on a track: s along it, an offset to its
 * left, a direction (-1: against it, the wrong-way driver). Decisions of a tick read a snapshot of
 * all actors taken before it, so the order of agents does not matter.
 */
#ifndef SWERVE_ENGINE_TRAFFIC_TRAFFIC_H
#define SWERVE_ENGINE_TRAFFIC_TRAFFIC_H

#include "base/status.h"
#include "engine/traffic/roadmap.h"
#include "engine/traffic/signals.h"
#include "engine/traffic/track.h"
#include "kernels/screen.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- plan: per prepared scenario, immutable ---- */

/* IDM (Treiber, Hennecke, Helbing, Phys. Rev. E 62, 2000) with what one tick needs precomputed. */
struct driver {
    double desired_speed_mps;
    double time_headway_s;
    double min_gap_m;
    double accel_max_mps2;
    double decel_comfort_mps2;
    double half_inverse_sqrt_ab; /* 1 / (2 sqrt(a b)) */
    double politeness;
    bool changes_lanes; /* MOBIL */
    bool sees_ego;
};

#define LOG_STANDING_MPS 0.5 /* slower than this is a stop */

/* The speed a log had along its path, by track sample: cell k lies between samples k and k + 1. */
struct log_cell {
    float speed_mps;   /* on arrival at sample k */
    float slowest_mps; /* within the cell */
    float depart_s;    /* when it last stood in the cell; INFINITY: for ever */
};

struct agent_plan {
    struct driver driver;
    double half_length_m;
    double half_width_m;
    double radius_m;   /* of the circumscribed circle */
    bool moves;        /* not static */
    bool reactive;     /* drives by IDM in the object world */
    bool yielded_to;   /* pedestrians, animals, cyclists: crossing traffic waits for them */
    bool keeps_offset; /* stays beside the centre line instead of drifting to it */
    bool exact_log;    /* follows its log exactly even in the object world */
    bool leaves;       /* is there while its log lasts, even in the object world */
    int8_t direction;
    int32_t track; /* where it starts; -1: static */
    double s_m;
    double offset_m;
    double heading_error_rad; /* of the initial pose against the track */
    int32_t log_track;        /* its trajectory as a track, -1: none */
    uint32_t log_cell_count;
    struct log_cell *log_cells;
    int32_t path_track[LIMIT_MANOEUVRES]; /* of MANOEUVRE_PATH, -1: another kind */
};

struct traffic_plan {
    const struct scenario *scenario;
    const struct roadmap *roadmap;
    uint32_t track_count;
    struct track **tracks; /* tracks[0] is ego's route, borrowed; the others are owned */
    double tracks_m;
    int32_t *lane_track; /* [lane_count] chain that carries a lane, -1: no agent needs it */
    double *lane_s_m;    /* where the lane begins on it */
    uint32_t agent_count;
    struct agent_plan *agents;
    struct track_stops stops; /* of the tracks */
    bool has_signs;           /* some of these stops are of stop or yield signs */
    bool has_turns;           /* some are of turns across oncoming traffic */
    struct screen_kernels screen;
};

enum { TRAFFIC_TRACK_ROUTE = 0 };

/* `route_track` is borrowed for the plan's life and gets its traffic tables here. */
enum status traffic_plan_create(const struct scenario *scenario, const struct roadmap *roadmap,
                                struct track *route_track, struct traffic_plan **out,
                                struct error *error);
void traffic_plan_destroy(struct traffic_plan *plan); /* accepts NULL */

/* A recorded agent that was seen too briefly to drive on by itself: it follows its log exactly, and
 * is there while that lasts. */
bool traffic_leaves_with_log(const struct agent *record);

/* ---- motion: per slot and agent ---- */

enum motion_mode { MOTION_STATIC = 0, MOTION_TRACK, MOTION_LOG };

struct agent_motion {
    uint8_t mode;      /* enum motion_mode */
    uint8_t reactive;  /* IDM decides the acceleration, else the script's target speed */
    uint8_t on_log;    /* desired speed comes from the log's profile */
    uint8_t hidden;    /* not present until it appears */
    uint8_t log_ends;  /* an exactly logged agent is gone after its log, else it goes straight on */
    uint8_t waiting;   /* enters when its log begins and its place is free */
    uint8_t manoeuvre; /* index of the next one to start */
    int8_t direction;
    int32_t track;
    uint32_t log_index;        /* cursor into the trajectory */
    uint32_t lane_change_tick; /* MOBIL stays quiet until then */
    double s_m;
    double offset_m;
    double shift_from_m; /* lateral programme: quintic from .. to */
    double shift_to_m;
    double shift_elapsed_s;
    double shift_duration_s;  /* 0: none running */
    double heading_error_rad; /* heading minus the track's, dying out */
    double gap_x_m; /* pose minus what (s, offset) give, after a change of track; dying out */
    double gap_y_m;
    double target_speed_mps; /* script: reached at rate_mps2 */
    double rate_mps2;
    double brake_mps2;  /* > 0: brakes at this rate and stays stopped */
    double completed_s; /* when the latest manoeuvre completed; NAN: still running */
    uint32_t halt_sign; /* stop sign that it last came to a standstill at, + 1; 0: none */
    uint32_t halt_tick;
    double speed_factor; /* seed variation of the desired speed */
    double headway_factor;
    double
        habit_mps2;   /* what a driver adds to IDM's acceleration, dying out; see traffic_observe */
    uint8_t observed; /* habit_mps2 is still the whole acceleration that was seen */
    double ux;        /* unit vector of the heading */
    double uy;
};

/* Fills scene->agents and motion for tick 0. `follow_logs`: replay world, every trajectory is
 * followed exactly. scene->ego is set. */
void traffic_reset(const struct traffic_plan *plan, uint64_t seed, bool follow_logs,
                   struct scene *scene, struct agent_motion *motion);

/* Gives motion[count] the drivers of another seed: the speeds and headways that they keep. */
void traffic_vary(uint64_t seed, uint32_t count, struct agent_motion *motion);

/* Moves every agent from scene->tick to the next; does not change tick or ego, and reads ego as it
 * was before its own step. */
void traffic_step(const struct traffic_plan *plan, uint64_t seed, struct scene *scene,
                  struct agent_motion *motion);

/* Agent interventions (brake, cut in, appear). STATUS_BAD_INPUT when the agent cannot. */
enum status traffic_intervene(const struct traffic_plan *plan,
                              const struct intervention *intervention, struct scene *scene,
                              struct agent_motion *motion, struct error *error);

/* ---- between the files of traffic ---- */

enum {
    ACTORS_MAX = LIMIT_AGENTS + SCREEN_LANES, /* ego among them, and whole vectors */
    SCREEN_SLICES = 64,
    SCREEN_SLICED_MIN = 48, /* fewer bodies are looked at all */
};

/* Everything that has a body, as it was before the tick; the last one is ego. */
struct actors {
    uint32_t count;
    uint32_t padded_count; /* whole vectors: bodies beyond count are far away, to fill them */
    uint32_t ego;          /* its index, count - 1 */
    double x_m[ACTORS_MAX];
    double y_m[ACTORS_MAX];
    double vx_mps[ACTORS_MAX];
    double vy_mps[ACTORS_MAX];
    double ux[ACTORS_MAX];
    double uy[ACTORS_MAX];
    double radius_m[ACTORS_MAX];
    double half_length_m[ACTORS_MAX];
    double half_width_m[ACTORS_MAX];
    /* The same for the first look at pairs: single precision, relative to ego. Many bodies lie in
     * slices of x or y, whichever they spread wider in, and in index order in a slice. */
    double origin_x_m;
    double origin_y_m;
    bool sliced;
    bool slices_y;
    double slices_low_m;
    double slices_per_m;
    uint16_t slice_first[SCREEN_SLICES + 1];
    double radius_max_m; /* these two only if sliced */
    double speed_max_mps;
    uint16_t screen_actor[ACTORS_MAX]; /* index of the body */
    float screen_x_m[ACTORS_MAX];
    float screen_y_m[ACTORS_MAX];
    float screen_vx_mps[ACTORS_MAX];
    float screen_vy_mps[ACTORS_MAX];
    float screen_radius_m[ACTORS_MAX];
    float screen_long_x_m[ACTORS_MAX]; /* half its length, along it */
    float screen_long_y_m[ACTORS_MAX];
    float screen_half_width_m[ACTORS_MAX];
    uint16_t agent[ACTORS_MAX]; /* index of the agent; agent_count for ego */
    uint8_t yielded_to[ACTORS_MAX];
    uint32_t turn[ACTORS_MAX];    /* at stop signs: when its turn came, + 1; 0: it has none */
    uint8_t waits[ACTORS_MAX];    /* slow before a line at which it gives way to the right */
    uint8_t harmless[ACTORS_MAX]; /* to who turns across: it stops at red, or turns as well */
};

/* Fills the screen from the bodies. */
void traffic_screen_fill(struct actors *actors);

/* Places of the screen that hold every body within a rectangle relative to the origin, and others:
 * whole vectors, within padded_count. */
void traffic_screen_range(const struct actors *actors, struct vec2 low, struct vec2 high,
                          uint32_t *first, uint32_t *end);

/* Seconds since the start. */
static inline double traffic_time_s(const struct scene *scene)
{
    return scene->tick * 0.1;
}

/* IDM acceleration of agent `self` on its track, and MOBIL's decision (which changes its track). */
double traffic_idm_accel(const struct traffic_plan *plan, const struct actors *actors,
                         uint32_t self, const struct scene *scene, double grip_mps2,
                         const struct agent_motion *motion);
void traffic_mobil_decide(const struct traffic_plan *plan, const struct actors *actors,
                          uint32_t self, const struct scene *scene, double grip_mps2,
                          struct agent_motion *motion, double accel_mps2);

/* Remembers who has come to a standstill at a stop sign. */
void traffic_signs_update(const struct traffic_plan *plan, const struct scene *scene,
                          struct agent_motion *motion);

/* When the agent's turn came at the stop sign that it stands at or has just passed, + 1; 0: at
 * none; TRAFFIC_SIGNS_AHEAD: one that it has not stood at lies on its way. */
#define TRAFFIC_SIGNS_AHEAD UINT32_MAX
uint32_t traffic_signs_turn(const struct traffic_plan *plan, uint32_t agent,
                            const struct agent_motion *motion);

/* Whether the agent is about to stand at a line at which it gives way to the right. */
bool traffic_signs_wait(const struct traffic_plan *plan, uint32_t agent,
                        const struct agent_motion *motion, double speed_mps);

/* Whether the agent, coming towards somebody who turns across its lane, is not in the way: a red
 * light stops it before, or it turns across as well. And of ego, whose route is known. */
bool traffic_signs_harmless(const struct traffic_plan *plan, const struct scene *scene,
                            uint32_t agent, const struct agent_motion *motion);
bool traffic_signs_ego_turns(const struct traffic_plan *plan, const struct scene *scene, double ux,
                             double uy);

/* Whether a sign has agent `self`, whose front edge is gap_m (> 0) before its stop line, stop or
 * wait there. */
bool traffic_signs_hold(const struct traffic_plan *plan, const struct actors *actors, uint32_t self,
                        const struct track_stop *stop, const struct agent_motion *motion,
                        double speed_mps, double gap_m);

/* Starts the manoeuvres whose triggers hold now. */
void traffic_script_update(const struct traffic_plan *plan, uint32_t self, uint64_t seed,
                           struct scene *scene, struct agent_motion *motion);

/* Friction that the surface under a body gives to its tyres or soles, in every direction. */
double traffic_grip_mps2(const struct traffic_plan *plan, const struct scene *scene,
                         struct pose pose);

/* Tells a reactive agent's acceleration as it was seen: what IDM does not explain of it dies out
 * over HABIT_S. */
#define HABIT_S 5.0
void traffic_observe(struct agent_motion *motion, double accel_mps2);

/* The acceleration of a driver to whom IDM says accel_mps2. */
double traffic_habit(struct agent_motion *motion, double accel_mps2);

/* Begins a lateral programme from the present offset; it takes longer than duration_s where the
 * grip does not suffice for that. */
void traffic_shift(struct agent_motion *motion, double to_m, double duration_s, double grip_mps2);

/* Puts the motion onto another track at its present place; keeps the pose continuous. */
void traffic_change_track(const struct traffic_plan *plan, struct agent_motion *motion,
                          const struct agent_state *state, int32_t track, double s_guess_m);

#endif
