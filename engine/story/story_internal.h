/*
 * Story, private to its room: what the parts share. One `story_run` lives for one call of
 * story_step.
 */
#ifndef SWERVE_ENGINE_STORY_STORY_INTERNAL_H
#define SWERVE_ENGINE_STORY_STORY_INTERNAL_H

#include "base/geom.h"
#include "engine/story/story.h"

#define STORY_STEP_S (0.1 / STORY_SUBSTEPS)
#define STORY_STILL_MPS 1e-3

struct story_run {
    const struct scenario *scenario;
    const struct storyboard *board;
    struct story_state *state;
    double time_s; /* of the sub-step's end */
};

/* ---- story_path.c ---- */

/* Pose at s_m (straight on beyond both ends); *hint remembers the segment. */
struct pose story_path_pose(const struct story_path *path, double s_m, uint32_t *hint,
                            double *curvature);
/* The same on the path that an actor is on, which may be laid from a frame of its own. */
struct pose story_own_pose(const struct story_run *run, const struct story_actor_state *self,
                           double s_m, uint32_t *hint, double *curvature);
/* Foot of the perpendicular from a point. */
void story_path_project(const struct story_path *path, struct vec2 point, double *s_m,
                        double *offset_m);
/* The same on the path that an actor is on. */
void story_own_project(const struct story_run *run, const struct story_actor_state *self,
                       struct vec2 point, double *s_m, double *offset_m);
/* s of a timed path at a time; clamped. */
double story_path_at_time(const struct story_path *path, double time_s);

/* Sets an actor's pose from its path, s, offset and turn. */
void story_place(const struct story_run *run, uint32_t actor);
/* Onto a path of the world, s and offset apart. */
void story_enter_path(struct story_actor_state *self, uint32_t path);
/* Puts it onto another path where it is. */
void story_change_path(const struct story_run *run, uint32_t actor, uint32_t path);

struct box story_box(const struct story_run *run, uint32_t actor);

/* ---- story_condition.c ---- */

bool story_trigger_holds(const struct story_run *run, const struct story_trigger *trigger);

/* Distance from an actor to another: signed (ahead, left positive) unless Euclidean. */
double story_distance(const struct story_run *run, uint32_t actor, uint32_t other,
                      enum story_measure measure, bool along, bool freespace);

/* ---- story_action.c ---- */

void story_action_start(const struct story_run *run, uint32_t action);
/* Lets go of what the action controls. */
void story_action_end(const struct story_run *run, uint32_t action, bool stopped);
/* Moves every actor by one sub-step, under its actions; ends those that are complete. */
void story_actors_move(const struct story_run *run);

/* ---- story_synchronise.c ---- */

/* The speed for this sub-step; *done when the action is complete. */
double story_synchronise(const struct story_run *run, const struct story_action *action,
                         struct story_actor_state *self, bool *done);

#endif
