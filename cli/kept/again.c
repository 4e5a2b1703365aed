/*
 * Drives that are done again. See again.h.
 */
#include "cli/kept/again.h"

#include "base/check.h"
#include "schemas/job_context.h"
#include "schemas/scenario_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_SLOTS = 16 };

static enum status use_runner(struct again *again, const struct outcome *outcome,
                              const struct rig *rig, struct error *error)
{
    struct job_spec asked = {.planner = ""};
    job_context_take(outcome, JOB_CONTEXT_RUNNER | JOB_CONTEXT_PLANNER_HASH, &asked);
    if (again->truth && asked.tier >= TIER_STUDENT) {
        asked.tier = TIER_OBJECT;
        asked.model_hash[0] = asked.sampler[0] = '\0';
    }
    const struct job_context opened = job_context_of_spec(&again->spec);
    const struct job_context wanted = job_context_of_spec(&asked);
    if (again->planner.open.runner != NULL &&
        job_context_differs(&opened, &wanted, JOB_CONTEXT_RUNNER | JOB_CONTEXT_PLANNER_HASH) == 0) {
        return STATUS_OK;
    }
    replay_planner_close(&again->planner);
    int64_t deadline_ms = again->planner_deadline_ms;
    const struct runner_source source = {
        .models = again->models,
        .planner_config = {.tick_deadline_ms = deadline_ms > 0 ? deadline_ms : 1000,
                           .confinement = again->confinement},
        .slot_count = AGAIN_SLOTS,
        .spill_bytes_max = UINT64_C(8) << 30,
        .clock = clock_system(),
    };
    const struct replay_files files = {again->store, again->url, again->confinement};
    again->spec = asked;
    again->spec.planner_hash[0] = '\0'; /* the runner's own, whichever planner is here now */
    enum status status =
        replay_planner_open(&source, &again->spec, rig, &files, outcome, &again->planner, error);
    memcpy(again->spec.planner_hash, outcome->planner_hash, sizeof again->spec.planner_hash);
    return status;
}

enum status again_begin(struct again *again, const struct outcome *outcome,
                        struct scenario_document **out, struct error *error)
{
    struct scenario_document *document = NULL;
    const char *hash = outcome->scenario_hash;
    char *body = NULL;
    size_t bytes = 0;
    TRY(again->store->ops->scenario_get(again->store, hash, &body, &bytes, error));
    enum status status = scenario_load_text(hash, body, bytes, &document, error);
    free(body);
    THEN(status, use_runner(again, outcome, document->scenario.rig, error));
    if (status != STATUS_OK) {
        scenario_destroy(document);
        return status;
    }
    *out = document;
    return STATUS_OK;
}

void again_close(struct again *again)
{
    replay_planner_close(&again->planner);
}

int again_compare(const struct outcome *a, const struct outcome *b)
{
    int order = scenario_id_compare_logical(a->scenario_id, b->scenario_id);
    order = order != 0 ? order : strcmp(a->scenario_id, b->scenario_id);
    order = order != 0 ? order : strcmp(a->planner, b->planner);
    return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

void again_keys(const struct outcome *before, const struct outcome *outcome, int64_t *logical_key,
                int64_t *case_key)
{
    *logical_key += before == NULL ||
                    scenario_id_compare_logical(before->scenario_id, outcome->scenario_id) != 0;
    *case_key += before == NULL || strcmp(before->scenario_id, outcome->scenario_id) != 0 ||
                 strcmp(before->planner, outcome->planner) != 0;
}

void again_left_out(const struct store_suite_status *status, const int64_t without[VERDICT_COUNT],
                    struct again_left_out out[AGAIN_LEFT_OUT_KINDS])
{
    uint32_t kind = 0;
    out[kind++] = (struct again_left_out){"dead", status->jobs[JOB_DEAD] - status->audits_dead};
    out[kind++] = (struct again_left_out){"cancelled", status->jobs[JOB_CANCELLED]};
    out[kind++] = (struct again_left_out){"waiting", store_jobs_open(status)};
    for (int v = VERDICT_FAIL + 1; v < VERDICT_COUNT; v++) {
        CHECK(kind < AGAIN_LEFT_OUT_KINDS);
        out[kind++] = (struct again_left_out){verdict_names[v], without[v]};
    }
}

const char *again_left_out_text(const struct store_suite_status *status,
                                const int64_t without[VERDICT_COUNT],
                                char out[AGAIN_LEFT_OUT_BYTES])
{
    struct again_left_out kinds[AGAIN_LEFT_OUT_KINDS];
    size_t length = 0;
    again_left_out(status, without, kinds);
    out[0] = '\0';
    for (int k = 0; k < AGAIN_LEFT_OUT_KINDS; k++) {
        if (kinds[k].count > 0) {
            length +=
                (size_t)snprintf(out + length, AGAIN_LEFT_OUT_BYTES - length, "%s %lld %s",
                                 length == 0 ? ":" : ",", (long long)kinds[k].count, kinds[k].name);
        }
    }
    return out;
}
