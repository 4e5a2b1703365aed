/*
 * Contacts of a recorded drive: every agent that ego touched, at the tick at which it did so first,
 * as the trace has it.
 */
#include "report/report_drive.h"
#include "report/risk/risk.h"

#include <math.h>
#include <stdlib.h>

struct risk_drive {
    struct store *store;
    struct report_drive recorded;
    struct trace_agent agents[LIMIT_AGENTS];
    bool touched[LIMIT_AGENTS];
};

enum status risk_drive_open(struct store *store, struct risk_drive **out, struct error *error)
{
    struct risk_drive *drive = calloc(1, sizeof *drive);
    TRY(memory_check(drive, error, "risk: out of memory"));
    drive->store = store;
    *out = drive;
    return STATUS_OK;
}

void risk_drive_close(struct risk_drive *drive)
{
    if (drive != NULL) {
        report_drive_close(&drive->recorded);
        free(drive);
    }
}

static void take_harm(const struct severity_harm *harm, struct risk_contact *out, bool *outside)
{
    if (out->count == 0 || harm->fatal > out->worst.fatal) {
        out->worst = *harm;
    }
    out->count++;
    out->vru = out->vru || severity_is_person(harm->partner);
    out->vru_severe = 1 - (1 - out->vru_severe) * (1 - harm->vru_severe);
    out->fatal = 1 - (1 - out->fatal) * (1 - harm->fatal);
    *outside = *outside || harm->outside;
}

/* Agents that ego touches at this tick and did not before. */
static void touch(struct risk_drive *drive, const struct trace_tick *at,
                  const struct severity_model *model, struct risk_contact *out, bool *outside)
{
    const struct scenario *scenario = &drive->recorded.document->scenario;
    struct severity_body ego = {{at->x_m, at->y_m, at->heading_rad}, at->speed_mps};
    struct box ego_box = box_make(ego.pose, scenario->ego.length_m, scenario->ego.width_m);
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct trace_agent *agent = &drive->agents[i];
        struct severity_body other = {{agent->x_m, agent->y_m, agent->heading_rad},
                                      agent->speed_mps};
        struct box box =
            box_make(other.pose, scenario->agents[i].length_m, scenario->agents[i].width_m);
        if (agent->present && !drive->touched[i] && box_overlap(&ego_box, &box)) {
            struct severity_harm harm =
                severity_contact(model, &scenario->ego, &ego, &scenario->agents[i], &other);
            drive->touched[i] = true;
            take_harm(&harm, out, outside);
        }
    }
}

/* Without a recording the outcome's impact speed is all: taken for a contact of two fronts. */
static void guess(const struct risk_drive *drive, const struct kept_outcome *outcome,
                  const struct severity_model *model, struct risk_contact *out, bool *outside)
{
    const struct scenario *scenario = &drive->recorded.document->scenario;
    int32_t index = outcome->metrics.collision_agent;
    struct severity_body ego = {.speed_mps = outcome->metrics.impact_speed_mps};
    struct severity_body other = {.pose = {.x_m = scenario->ego.length_m}};
    if (index >= 0 && (uint32_t)index < scenario->agent_count && isfinite(ego.speed_mps)) {
        struct severity_harm harm =
            severity_contact(model, &scenario->ego, &ego, &scenario->agents[index], &other);
        take_harm(&harm, out, outside);
    }
}

enum status risk_drive_harm(struct risk_drive *drive, const struct kept_outcome *outcome,
                            const struct severity_model *model, struct risk_contact *out,
                            bool *outside, bool *untraced, struct error *error)
{
    struct error lost;
    *out = (struct risk_contact){0};
    enum status status = report_drive_open(&drive->recorded, drive->store, outcome->scenario_hash,
                                           outcome->artifact_hash, &lost);
    bool gone = status == STATUS_NOT_FOUND || status == STATUS_GONE || status == STATUS_BAD_INPUT;
    if (drive->recorded.document == NULL || (status != STATUS_OK && !gone)) {
        return error_set(error, status, "%s", lost.text);
    }
    int32_t rollout = report_drive_rollout(&drive->recorded, outcome->branch_id);
    struct trace_tick at;
    for (uint32_t i = 0; i < LIMIT_AGENTS; i++) {
        drive->touched[i] = false;
    }
    if (status == STATUS_OK && rollout >= 0) {
        uint32_t last = trace_reader_last_tick(&drive->recorded.reader, rollout);
        for (uint32_t t = outcome->metrics.collision_tick; t <= last; t++) {
            if (trace_reader_tick(&drive->recorded.reader, rollout, t, &at, drive->agents)) {
                touch(drive, &at, model, out, outside);
            }
        }
    }
    *untraced = out->count == 0;
    if (*untraced) {
        guess(drive, outcome, model, out, outside);
    }
    return STATUS_OK;
}
