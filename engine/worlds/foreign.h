/*
 * Foreign worlds: a world model of the user's as a tier. One world that fills the engine's table of
 * functions from the one of schemas/world/world.h, whatever is behind that: a plugin, a process.
 *
 * The host keeps what no model makes (ego, traffic, the scene), draws what a world is given, and
 * looks at what it gives back: frames are copied out of the shared memory before anybody sees them,
 * then measured as those of the shipped models are. A world that breaks its word (a frame that is
 * not finite, bytes beyond its frame, agents that are nowhere, no answer in time) loses the
 * rollout: frame statistics name it, and the worker's health check keeps the rollout as evidence.
 *
 * Forks are late. A fork, a parked rollout and its main line hold one state of the world together;
 * whoever steps while others hold it gets a fork of its own first. So a branch that is never
 * stepped costs nothing, and a world needs no notion of parking.
 */
#ifndef SWERVE_ENGINE_WORLDS_FOREIGN_H
#define SWERVE_ENGINE_WORLDS_FOREIGN_H

#include "engine/worlds/world.h"
#include "schemas/world/world.h"

#include <stdbool.h>

/* A world that was found and asked what it is. Immutable; outlives the worlds opened from it. */
struct foreign {
    const struct swerve_world_ops *ops; /* NULL: `native` */
    const struct world_ops *native; /* a world of ours that the user's file is for; NULL: none */
    const char *config;             /* of swerve_world_setup */
    const void *host;               /* of a native world its model */
    /* Whether an instance has ended and answers nothing any more; NULL: it never does by itself. */
    bool (*ended)(const void *instance);
    /* Tells an instance which step comes next, before all rasters are drawn; NULL: there is nothing
     * to gain by it. The step follows, with the same arrays. Any thread. */
    void (*announce)(void *instance, uint32_t count, const struct swerve_world_given *given);
    /* Canonical JSON of a rig, malloc'ed: rig_text() of schemas/rig/rig.h. Of the form RIG alone.
     */
    enum status (*rig_text)(const struct rig *rig, char **out, struct error *error);
    /* Tells an instance which scenario the next reset is of; NULL: what the records of a reset say
     * is enough. Of the form RIG alone. */
    void (*meet)(void *instance, const struct prepared *prepared);
    /* It writes frame 0 at a reset, in the place of what the sensors saw. Of the form RIG alone. */
    bool writes_first;
    /* It runs where nobody here has a hand in it. When an instance has ended, that is an outage:
     * the attempts that it held fail, and are no evidence of anything. */
    bool outside;
    struct swerve_world_declared declared;
};

/* Whether it is the simulator of the controls challenge, and drives its logs alone. */
static inline bool foreign_drives_controls(const struct foreign *foreign)
{
    return foreign->native == &world_tinyphysics_ops ||
           foreign->native == &world_tinyphysics_outside_ops;
}

/* Whether somebody says where agents are in a conditioning; else no world of it opens. */
static inline bool foreign_drives_in(const struct foreign *foreign, enum conditioning conditioning)
{
    return conditioning_of_network(conditioning) == CONDITIONING_AGENTS ||
           foreign->declared.form == SWERVE_WORLD_FORM_WINDOW ||
           (foreign->declared.flags & SWERVE_WORLD_MOVES_AGENTS) != 0;
}

/* Opened by config.foreign; one table for each tier that such a world can answer for. */
extern const struct world_ops world_foreign_student_ops;
extern const struct world_ops world_foreign_teacher_ops;
/* The same of the form RIG (foreign_rig.c). */
extern const struct world_ops world_foreign_rig_student_ops;
extern const struct world_ops world_foreign_rig_teacher_ops;

/* The table that drives it as a tier, TIER_STUDENT or TIER_TEACHER. */
static inline const struct world_ops *foreign_world_ops(const struct foreign *foreign,
                                                        enum tier tier)
{
    const bool rig = foreign->declared.form == SWERVE_WORLD_FORM_RIG;
    if (foreign->native != NULL) {
        return foreign->native;
    }
    return tier == TIER_TEACHER ? rig ? &world_foreign_rig_teacher_ops : &world_foreign_teacher_ops
           : rig                ? &world_foreign_rig_student_ops
                                : &world_foreign_student_ops;
}

/* Of a form: bytes of grid and cameras. */
uint32_t foreign_bev_bytes(enum swerve_world_form form);
uint32_t foreign_cameras_bytes(enum swerve_world_form form);

/* Opens an instance for `state_count` states on memory of its own making, closes it, and fills
 * *declared. STATUS_DEVICE: it does not open (STATUS_IO: one that is outside), or declares what
 * cannot be (a sentence says which). */
enum status foreign_ask(const struct foreign *foreign, struct swerve_world_declared *declared,
                        struct error *error);

/* First difference between two declarations, as "version \"1\" and \"2\""; "nothing": they are
 * the same. */
void foreign_difference(const struct swerve_world_declared *was,
                        const struct swerve_world_declared *now, char *text, size_t bytes);

/* Whether a name or version is 1 to 31 printable characters without blanks and slashes. */
bool foreign_is_name(const char *name);

/* Whether a world can make chunks of so many frames, the first of so many: whole ticks' rates, a
 * tick's frames at least. */
bool foreign_chunks_can_be(uint32_t rate_hz, uint32_t chunk_frames, uint32_t first_frames);

/* Whether what a world declares can be: names, form, bytes, tick, horizon. */
enum status foreign_check_declared(const struct swerve_world_declared *declared,
                                   struct error *error);

#endif
