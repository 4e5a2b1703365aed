/*
 * A recorded drive reopened for the report: scenario and trace of one job, and what can be drawn of
 * them.
 */
#ifndef SWERVE_REPORT_REPORT_DRIVE_H
#define SWERVE_REPORT_REPORT_DRIVE_H

#include "engine/sensors/raster.h"
#include "engine/trace/trace.h"
#include "report/page/html.h"
#include "scenarios/scenarios.h"
#include "schemas/rig/rig.h"
#include "store/api/store.h"

enum { REPORT_DRIVE_SCENARIOS = 256, REPORT_CAMERAS_MAX = 8 };

struct report_drive {
    char scenario_hash[SHA256_HEX_BYTES];
    char artifact_hash[SHA256_HEX_BYTES]; /* of what is loaded, so that neighbours reuse it */
    struct scenario_document *document;   /* of the drive, among the scenarios; NULL: none */
    /* Scenarios that were read, the oldest of which makes room for the next. */
    struct {
        char hash[SHA256_HEX_BYTES];
        struct scenario_document *document; /* owned; NULL: none */
    } scenarios[REPORT_DRIVE_SCENARIOS];
    uint32_t scenario_next;
    const struct rig *rig; /* of the document, whose cameras are drawn; NULL: the built-in ones */
    bool rig_unknown;      /* the planner saw by another rig, which the store does not have */
    struct raster_layers *layers; /* see report_drive_layers(); NULL: nothing was drawn yet */
    void *artifact;
    struct trace_reader reader;
};

/* Loads scenario and trace (artifact_hash, "": none); what the drive already holds is kept. */
enum status report_drive_open(struct report_drive *drive, struct store *store,
                              const char *scenario_hash, const char *artifact_hash,
                              struct error *error);
void report_drive_close(struct report_drive *drive);

/* The cameras that are drawn from here on are those of a rig by its hash ("": the built-in one), if
 * it is the scenario's; of others, which planners bring, the store has no more than the hash. */
void report_drive_look(struct report_drive *drive, const char *rig);

/* "rig NAME (HASH)", the name where the scenario (NULL: not known) has that rig. */
enum { REPORT_RIG_BYTES = RIG_ID_MAX + 32 };
const char *report_rig_text(const struct scenario *scenario, const char *rig,
                            char out[REPORT_RIG_BYTES]);

/* The scenario of that hash, read once for as long as it is kept; the drive is not of it. *out is
 * the drive's, until another one is read. */
enum status report_drive_scenario(struct report_drive *drive, struct store *store, const char *hash,
                                  struct scenario_document **out, struct error *error);

/* Index of the rollout of a branch ("": the main line) in the trace, -1: not recorded. */
int32_t report_drive_rollout(const struct report_drive *drive, const char *branch_id);

/* The same of an outcome that has ticks. NOT_FOUND: no trace of it was kept, or it ended before its
 * first tick. */
enum status report_drive_recorded(const struct report_drive *drive, const struct outcome *outcome,
                                  int32_t *rollout, struct error *error);

/* A recorded tick as a scene, with what the signals showed. False: it is not recorded. */
bool report_drive_scene(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                        struct scene *scene, struct trace_tick *at);

/* The branch of that id, NULL: none. */
const struct branch *report_branch(const struct scenario *scenario, const char *id);

/* When it was decided and against whom. */
struct report_moment {
    uint32_t tick;          /* first contact, closest approach, or the end */
    int32_t agent;          /* touched or closest, -1: none */
    uint32_t guardian_tick; /* first override up to then, UINT32_MAX: none */
};
struct report_moment report_drive_moment(const struct report_drive *drive, int32_t rollout,
                                         uint32_t reasons, const struct metrics *metrics);

/* The tick from which on the agent stays in sight of ego's sensors up to `end_tick`
 * (engine/sensors/visible.h), UINT32_MAX: it is not then, or the drive was not recorded. */
uint32_t report_drive_sight(const struct report_drive *drive, int32_t rollout, int32_t agent,
                            uint32_t end_tick);

/* The tick that is shown for a tick: itself, or in a learned world, whose frames cannot be redrawn,
 * the nearest keyframe. */
uint32_t report_drive_shown_tick(const struct report_drive *drive, int32_t rollout, uint32_t tick);

/* Whether the frames are those that a model generated. */
bool report_drive_has_keyframes(const struct report_drive *drive);

/* The layers of the scenario's map, made when something is first drawn; those that were drawn with
 * before serve where the map is the same. Of the drive's, until another one is opened and drawn.
 * NULL: memory ran out. */
const struct raster_layers *report_drive_layers(struct report_drive *drive);

/* Pictures of a tick, RGB: the BEV grid, ego looking up, rgb[BEV_CELLS * 3], and a camera,
 * rgb[CAMERA_BYTES]. In a learned world those of report_drive_shown_tick(), of whose grid only the
 * kept rows are drawn and of whose cameras the front one is kept. False: the tick or the camera was
 * not recorded, or memory ran out. */
bool report_drive_bev(struct report_drive *drive, int32_t rollout, uint32_t tick, uint64_t seed,
                      uint8_t *rgb);
bool report_drive_camera(struct report_drive *drive, int32_t rollout, uint32_t tick, uint64_t seed,
                         enum camera_index camera, uint8_t *rgb);

/* <figure> with the BEV grid at a tick, the time below it, optionally the front camera, of a rig
 * the one that looks ahead, above; class "guardian" where the guardian would have overridden. */
void report_drive_frame(struct report_drive *drive, int32_t rollout, uint32_t tick, uint64_t seed,
                        bool camera, struct html *html);

/* The three camera images at a tick, of a rig the first REPORT_CAMERAS_MAX, side by side; the front
 * one alone where keyframes were kept. Says so where the planner's own were others. */
void report_drive_cameras(struct report_drive *drive, int32_t rollout, uint32_t tick, uint64_t seed,
                          struct html *html);

#endif
