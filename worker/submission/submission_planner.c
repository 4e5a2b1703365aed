/*
 * Planners of a submission. See submission_planner.h.
 */
#include "worker/submission/submission_planner.h"

#include "engine/worlds/foreign.h"
#include "worker/given/sensors.h"
#include "worker/planner/planner_spec.h"

#include <stdio.h>
#include <string.h>

/* Adds facts that a trial alone tells. */
static enum status try_planner(const struct submission_options *options, const struct rig *rig,
                               bool on_device, struct submission_planner *planner,
                               struct error *error)
{
    if (options->trial == NULL || planner->asked) {
        return STATUS_OK;
    }
    TRY(options->trial(options->trial_context, planner->spec, rig, on_device, &planner->told,
                       error));
    planner->asked = true;
    planner_identity_extend(planner->hash, planner->told.loaded);
    if (planner->told.rig_id[0] != '\0') {
        memcpy(planner->rig, planner->told.rig, sizeof planner->rig);
    }
    return STATUS_OK;
}

enum status submission_planner_find(struct submission_planners *planners,
                                    const struct submission_options *options, const char *spec,
                                    const struct rig *rig, struct submission_planner **out,
                                    struct error *error)
{
    char offered[SHA256_HEX_BYTES] = "";
    if (rig != NULL) {
        TRY(rig_hash(rig, offered, error));
    }
    for (uint32_t i = 0; i < planners->count; i++) {
        if (strcmp(planners->list[i].spec, spec) == 0 &&
            strcmp(planners->list[i].offered, offered) == 0) {
            *out = &planners->list[i];
            return STATUS_OK;
        }
    }
    if (planners->count == SUBMISSION_PLANNERS_MAX || strlen(spec) >= LIMIT_SPEC_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "planners: expected at most %d pairs of a spec and a rig, and specs of at "
                         "most %d bytes",
                         SUBMISSION_PLANNERS_MAX, LIMIT_SPEC_BYTES - 1);
    }
    struct submission_planner *planner = &planners->list[planners->count];
    TRY(planner_spec_check(spec, error));
    TRY(planner_identity(spec, planner->hash, error));
    snprintf(planner->spec, sizeof planner->spec, "%s", spec);
    memcpy(planner->offered, offered, sizeof planner->offered);
    memcpy(planner->rig, offered, sizeof planner->rig);
    if (planner_spec_tells_loaded(spec)) {
        TRY(try_planner(options, rig, false, planner, error));
    }
    planners->count++;
    *out = planner;
    return STATUS_OK;
}

/* Opens a world that makes a rig's frames, and closes it. */
static enum status open_once(const struct world_ops *ops, const struct foreign *foreign,
                             enum conditioning conditioning, const struct rig *rig,
                             struct error *error)
{
    struct world *world = NULL;
    const struct world_config config = {
        .slot_count = 1, .conditioning = conditioning, .foreign = foreign, .rig = rig};
    TRY(ops->open(&config, &world, error));
    ops->close(world);
    return STATUS_OK;
}

enum status submission_planner_suits(struct submission_planner *planner,
                                     const struct submission_options *options,
                                     const struct rig *offered, const struct job_spec *spec,
                                     bool opened, struct error *error)
{
    const struct world_ops *ops = world_ops_for_tier(spec->tier);
    const struct models_model *model = NULL;
    enum conditioning conditioning = CONDITIONING_AGENTS;
    enum nn_precision precision = NN_BF16;
    struct rig usual;
    if (ops != NULL && ops->slot_sight != NULL) { /* it draws any */
        return STATUS_OK;
    }
    if (offered != NULL) {
        TRY(try_planner(options, offered, strcmp(spec->backend, "cpu") != 0, planner, error));
    }
    rig_swerve(&usual);
    const struct rig *rig = planner->told.rig_id[0] != '\0' ? &planner->told.seen
                            : offered != NULL               ? offered
                                                            : &usual;
    TRY(models_parse_sampler(spec->sampler, &conditioning, &precision, error));
    TRY(models_find(options->models, spec->model_hash, precision, &model, error));
    if (model->foreign != NULL) {
        ops = foreign_world_ops(model->foreign, spec->tier);
    }
    TRY(sensors_check(rig, &planner->told.choice, ops, error));
    if (strcmp(spec->makes, JOB_MAKES_GOLDEN) == 0 && spec->rig[0] != '\0') {
        TRY(sensors_check_kept(rig, &planner->told.choice, error));
    }
    return ops->rig_take != NULL && !opened
               ? open_once(ops, model->foreign, conditioning, rig, error)
               : STATUS_OK;
}
