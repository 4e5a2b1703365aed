/*
 * The caller. See power_play.h.
 */
#include "tests/store/faults/power_play.h"
#include "tests/claim_ids.h"

#include "base/check.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARTIFACT_BYTES_MAX = 24000 };

static uint64_t draw(struct player *player, uint64_t below)
{
    return rng_mix(player->key + 0x9e3779b97f4a7c15u * ++player->draws) % below;
}

static struct store_worker worker_of(const struct player *player, bool teacher)
{
    struct store_worker worker = {.device = "cpu"};
    const char *pool = teacher ? "teacher" : "bulk";
    snprintf(worker.worker_id, sizeof worker.worker_id, "%s-worker-%d", pool, player->client);
    snprintf(worker.pool, sizeof worker.pool, "%s-%d", pool, player->client);
    return worker;
}

void play_begin(struct player *player, struct told *told, int client, uint64_t seed)
{
    memset(player, 0, sizeof *player);
    player->told = &told->clients[client];
    player->client = client;
    player->key = rng_mix(seed + (uint64_t)client);
}

static struct play_job *job_of(struct player *player, int64_t id)
{
    for (size_t i = 0; i < player->job_count; i++) {
        if (player->jobs[i].id == id) {
            return &player->jobs[i];
        }
    }
    CHECK(player->job_count < TOLD_JOBS_MAX);
    struct play_job *job = &player->jobs[player->job_count++];
    memset(job, 0, sizeof *job);
    job->id = id;
    return job;
}

static bool finished(enum job_state state)
{
    return state != JOB_QUEUED && state != JOB_LEASED;
}

/* ---- noting ---- */

static void note(struct player *player, const struct play_job *job)
{
    struct fact fact = {
        .job_id = job->id, .state = job->state, .epoch = job->epoch, .rollouts = job->rollouts};
    memcpy(fact.artifact, job->artifact, sizeof fact.artifact);
    told_fact(player->told, &fact);
}

static void acknowledged(struct player *player)
{
    told_op(player->told, player->begin, disk_position(), false);
}

/* ---- the operations ---- */

static bool submit_again(struct player *player)
{
    struct store_submit_result results[PLAY_BATCH];
    char suite[LIMIT_ID_BYTES];

    told_suite(player->client, suite);
    if (player->store->ops->submit(player->store, suite, 1, player->specs, player->spec_count,
                                   results, &player->error) != STATUS_OK) {
        return false;
    }
    acknowledged(player);
    for (uint32_t i = 0; i < player->spec_count; i++) {
        struct play_job *job = job_of(player, results[i].job_id);
        job->rollouts = player->specs[i].rollout_count;
        note(player, job);
    }
    return true;
}

static bool submit(struct player *player)
{
    char text[96];
    struct store_worker worker = worker_of(player, false);

    player->kind = PLAY_SUBMIT;
    player->spec_count = 1 + (uint32_t)draw(player, PLAY_BATCH);
    for (uint32_t i = 0; i < player->spec_count; i++) {
        struct job_spec *spec = &player->specs[i];
        memset(spec, 0, sizeof *spec);
        int bytes = snprintf(text, sizeof text, "job %d %llu %llu", player->client,
                             (unsigned long long)player->key, (unsigned long long)player->serial++);
        sha256_hex(text, (size_t)bytes, spec->key);
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%u", i);
        memcpy(spec->pool, worker.pool, sizeof spec->pool);
        spec->rollout_count = 1 + (uint32_t)draw(player, PLAY_BRANCHES);
        spec->attempts_max = 1000;
        spec->seed = draw(player, 100);
        memcpy(spec->escalate_pool, worker_of(player, true).pool, sizeof spec->escalate_pool);
        spec->escalate_tier = TIER_TEACHER;
    }
    return submit_again(player);
}

static bool claim(struct player *player, bool teacher)
{
    struct store_worker worker = worker_of(player, teacher);
    static _Thread_local struct job_lease leases[PLAY_BATCH];
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    player->kind = PLAY_CLAIM;
    if (player->store->ops->claim(player->store, &worker, fresh_claim_id(),
                                  1 + (uint32_t)draw(player, PLAY_BATCH), 0, leases, &count,
                                  &ttl_ms, &player->error) != STATUS_OK) {
        return false;
    }
    acknowledged(player);
    for (uint32_t i = 0; i < count; i++) {
        struct play_job *job = job_of(player, leases[i].job_id);
        job->state = JOB_LEASED;
        job->epoch = leases[i].epoch;
        memcpy(job->scenario_id, leases[i].spec.scenario_id, sizeof job->scenario_id);
        job->seed = leases[i].spec.seed;
        note(player, job);
    }
    return true;
}

static bool put_artifact(struct player *player, char hash[SHA256_HEX_BYTES])
{
    static _Thread_local uint8_t data[ARTIFACT_BYTES_MAX];
    size_t bytes = 1 + (size_t)draw(player, ARTIFACT_BYTES_MAX);
    uint64_t content = draw(player, 40) == 0 ? 1 : draw(player, UINT64_MAX);

    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)rng_mix(content + i / 3);
    }
    size_t begin = disk_position();
    enum status status =
        player->store->ops->artifact_put(player->store, data, bytes, hash, &player->error);
    for (int again = 0; status != STATUS_OK && again < 3; again++) {
        status = player->store->ops->artifact_put(player->store, data, bytes, hash, &player->error);
    }
    if (status != STATUS_OK) {
        return false;
    }
    struct fact fact = {.job_id = 0};
    memcpy(fact.artifact, hash, sizeof fact.artifact);
    told_op(player->told, begin, disk_position(), false);
    told_fact(player->told, &fact);
    return true;
}

static void make_completion(struct player *player, const struct play_job *job,
                            const struct store_worker *worker, uint32_t index, const char *artifact)
{
    static const enum completion_kind kinds[] = {
        COMPLETION_DONE, COMPLETION_DONE,   COMPLETION_DONE,    COMPLETION_DONE,
        COMPLETION_DONE, COMPLETION_FAILED, COMPLETION_FLAGGED, COMPLETION_RELEASED};
    struct job_completion *completion = &player->completions[index];

    memset(completion, 0, sizeof *completion);
    memset(player->outcomes[index], 0, sizeof player->outcomes[index]);
    completion->job_id = job->id;
    completion->epoch = job->epoch;
    memcpy(completion->worker_id, worker->worker_id, sizeof completion->worker_id);
    completion->kind = kinds[draw(player, sizeof kinds / sizeof kinds[0])];
    completion->device_ns = (int64_t)draw(player, 1000000000);
    completion->metres_mm = (int64_t)draw(player, 100000);
    if (completion->kind == COMPLETION_DONE || completion->kind == COMPLETION_FLAGGED) {
        completion->outcomes = player->outcomes[index];
        completion->outcome_count = job->rollouts;
        for (uint32_t i = 0; i < job->rollouts; i++) {
            struct outcome *outcome = &player->outcomes[index][i];
            if (i > 0) {
                snprintf(outcome->branch_id, sizeof outcome->branch_id, "%u", i);
            }
            memcpy(outcome->scenario_id, job->scenario_id, sizeof outcome->scenario_id);
            outcome->seed = job->seed;
            memcpy(outcome->pool, worker->pool, sizeof outcome->pool);
            outcome->tier = job->teacher ? TIER_TEACHER : TIER_REPLAY;
            memcpy(outcome->artifact_hash, artifact, sizeof outcome->artifact_hash);
            outcome->verdict =
                completion->kind == COMPLETION_FLAGGED ? VERDICT_FLAGGED : VERDICT_PASS;
            snprintf(outcome->health_check, sizeof outcome->health_check, "%s",
                     completion->kind == COMPLETION_FLAGGED ? "frozen" : "");
        }
        memcpy(completion->artifact_hash, artifact, sizeof completion->artifact_hash);
    }
}

static bool complete_again(struct player *player)
{
    struct store_completion_result results[PLAY_BATCH];

    if (player->store->ops->complete(player->store, player->completions, player->completion_count,
                                     results, &player->error) != STATUS_OK) {
        return false;
    }
    acknowledged(player);
    for (uint32_t i = 0; i < player->completion_count; i++) {
        const struct job_completion *completion = &player->completions[i];
        struct play_job *job = job_of(player, completion->job_id);
        if (results[i].status != STATUS_OK) {
            error_set(&player->error, STATUS_MISMATCH, "the completion of job %lld is stale",
                      (long long)job->id);
            return false;
        }
        switch (completion->kind) {
        case COMPLETION_DONE:
            job->state = JOB_DONE;
            memcpy(job->artifact, completion->artifact_hash, sizeof job->artifact);
            break;
        case COMPLETION_FLAGGED:
            job->state = results[i].escalated_job_id != 0 ? JOB_FLAGGED : JOB_DEAD;
            break;
        default:
            job->state = JOB_QUEUED;
            break;
        }
        note(player, job);
        if (results[i].escalated_job_id != 0) {
            struct play_job *child = job_of(player, results[i].escalated_job_id);
            child->rollouts = job_of(player, completion->job_id)->rollouts;
            child->teacher = true;
            note(player, child);
        }
    }
    return true;
}

static bool complete(struct player *player, bool teacher)
{
    struct store_worker worker = worker_of(player, teacher);
    char artifact[SHA256_HEX_BYTES] = "";

    if (draw(player, 4) != 0 && !put_artifact(player, artifact)) {
        return false;
    }
    player->completion_count = 0;
    uint32_t most = 1 + (uint32_t)draw(player, PLAY_BATCH);
    for (size_t i = 0; i < player->job_count && player->completion_count < most; i++) {
        if (player->jobs[i].state == JOB_LEASED && player->jobs[i].teacher == teacher) {
            make_completion(player, &player->jobs[i], &worker, player->completion_count++,
                            artifact);
        }
    }
    if (player->completion_count == 0) {
        return true;
    }
    player->kind = PLAY_COMPLETE;
    player->begin = disk_position();
    return complete_again(player);
}

/* ---- what became of a job ---- */

static bool look(struct player *player, int64_t id, bool *there)
{
    static _Thread_local struct store_job found;
    static _Thread_local struct outcome outcomes[PLAY_BRANCHES + 1];
    struct store_outcome_filter filter = {.limit = PLAY_BRANCHES + 1, .job_id = id};
    uint32_t count = 0;
    enum status status = player->store->ops->job(player->store, id, &found, &player->error);

    *there = status == STATUS_OK;
    if (status == STATUS_NOT_FOUND) {
        return true;
    }
    if (status != STATUS_OK) {
        return false;
    }
    struct play_job *job = job_of(player, id);
    job->state = found.state;
    job->epoch = found.epoch;
    job->rollouts = found.spec.rollout_count;
    memcpy(job->scenario_id, found.spec.scenario_id, sizeof job->scenario_id);
    job->seed = found.spec.seed;
    job->teacher = strncmp(found.spec.pool, "teacher", 7) == 0;
    if (job->state != JOB_DONE) {
        return true;
    }
    status = player->store->ops->outcomes(player->store, &filter, outcomes, &count, &player->error);
    if (status == STATUS_OK && count > 0) {
        memcpy(job->artifact, outcomes[0].artifact_hash, sizeof job->artifact);
    }
    return status == STATUS_OK;
}

/* ---- calls that end what is leased ---- */

/* Its jobs are queued again, or dead where workers were lost with them often. */
static bool worker_gone(struct player *player, bool teacher)
{
    struct store_worker worker = worker_of(player, teacher);

    player->kind = PLAY_GONE;
    if (player->store->ops->worker_gone(player->store, worker.worker_id, &player->error) !=
        STATUS_OK) {
        return false;
    }
    acknowledged(player);
    for (size_t i = 0; i < player->job_count; i++) {
        struct play_job *job = &player->jobs[i];
        if (job->state == JOB_LEASED && job->teacher == teacher) {
            bool there;
            if (!look(player, job->id, &there)) {
                return false;
            }
            if (!there || (job->state != JOB_QUEUED && job->state != JOB_DEAD)) {
                error_set(&player->error, STATUS_MISMATCH, "job %lld, whose worker is gone, is %s",
                          (long long)job->id, there ? job_state_names[job->state] : "not there");
                return false;
            }
            note(player, job);
        }
    }
    return true;
}

static bool cancel(struct player *player)
{
    char suite[LIMIT_ID_BYTES];
    int64_t count = 0;

    player->kind = PLAY_CANCEL;
    told_suite(player->client, suite);
    enum status status = player->store->ops->cancel(player->store, suite, &count, &player->error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return false;
    }
    acknowledged(player);
    for (size_t i = 0; i < player->job_count; i++) {
        struct play_job *job = &player->jobs[i];
        if (!finished(job->state)) {
            job->state = JOB_CANCELLED;
            note(player, job);
        }
    }
    return true;
}

static bool heartbeat(struct player *player)
{
    struct store_worker worker = worker_of(player, false);
    struct store_progress progress[PLAY_BATCH];
    int64_t cancelled[PLAY_BATCH];
    uint32_t cancelled_count = 0;
    int64_t ttl_ms = 0;
    uint32_t count = 0;

    for (size_t i = 0; i < player->job_count && count < PLAY_BATCH; i++) {
        if (player->jobs[i].state == JOB_LEASED && !player->jobs[i].teacher) {
            progress[count++] = (struct store_progress){.job_id = player->jobs[i].id,
                                                        .epoch = player->jobs[i].epoch,
                                                        .device_ns = 1000,
                                                        .metres_mm = 10};
        }
    }
    return player->store->ops->heartbeat(player->store, &worker, progress, count, cancelled,
                                         &cancelled_count, &ttl_ms, &player->error) == STATUS_OK;
}

bool play_greet(struct player *player)
{
    bool heard = true;

    for (int teacher = 0; teacher < 2 && heard; teacher++) {
        struct store_worker worker = worker_of(player, teacher == 1);
        int64_t none;
        uint32_t none_count = 0;
        int64_t ttl_ms = 0;
        heard = player->store->ops->heartbeat(player->store, &worker, NULL, 0, &none, &none_count,
                                              &ttl_ms, &player->error) == STATUS_OK;
    }
    return heard;
}

bool play_one(struct player *player)
{
    uint64_t choice = draw(player, 100);
    bool teacher = draw(player, 4) == 0;

    player->kind = PLAY_NOTHING;
    player->begin = disk_position();
    return choice < 18   ? submit(player)
           : choice < 48 ? claim(player, teacher)
           : choice < 88 ? complete(player, teacher)
           : choice < 94 ? heartbeat(player)
           : choice < 98 ? worker_gone(player, teacher)
                         : cancel(player);
}

/* ---- after an error or a loss ---- */

bool play_recover(struct player *player)
{
    bool there;
    bool changed[TOLD_JOBS_MAX];
    size_t count = player->job_count;

    for (size_t i = 0; i < count; i++) {
        changed[i] = !finished(player->jobs[i].state);
        if (changed[i] && !look(player, player->jobs[i].id, &there)) {
            return false;
        }
    }
    told_op(player->told, player->begin, disk_position(), true);
    for (size_t i = 0; i < count; i++) {
        if (changed[i]) {
            note(player, &player->jobs[i]);
        }
    }
    player->begin = disk_position();
    if ((player->kind == PLAY_SUBMIT && !submit_again(player)) ||
        (player->kind == PLAY_COMPLETE && !complete_again(player))) {
        return false;
    }
    player->begin = disk_position();
    if (!worker_gone(player, false)) {
        return false;
    }
    player->begin = disk_position();
    return worker_gone(player, true);
}

bool play_resume(struct player *player, size_t position)
{
    const struct told_client *told = player->told;
    int64_t ids[TOLD_JOBS_MAX];
    bool doubt[TOLD_JOBS_MAX];
    size_t count = 0;
    bool there;

    for (size_t i = 0; i < told->op_count; i++) {
        const struct told_op *op = &told->ops[i];
        for (size_t j = 0; op->begin <= position && j < op->fact_count; j++) {
            const struct fact *fact = &told->facts[op->fact_first + j];
            size_t at = 0;
            while (at < count && ids[at] != fact->job_id) {
                at++;
            }
            if (fact->job_id == 0) {
                continue;
            }
            if (at == count) {
                CHECK(count < TOLD_JOBS_MAX);
                ids[count++] = fact->job_id;
            }
            doubt[at] = op->end > position;
        }
    }
    player->job_count = 0;
    told_cut(player->told, position);
    for (size_t i = 0; i < count; i++) {
        if (!look(player, ids[i], &there)) {
            return false;
        }
    }
    told_op(player->told, 0, disk_position(), true);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < player->job_count; j++) {
            if (player->jobs[j].id == ids[i] && (doubt[i] || !finished(player->jobs[j].state))) {
                note(player, &player->jobs[j]);
            }
        }
    }
    return true;
}
