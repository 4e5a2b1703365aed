/*
 * The record of what was acknowledged. See power_told.h.
 */
#include "tests/store/faults/power_told.h"

#include "base/check.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARTIFACTS_LATEST = 8 };

void told_finish(struct told *told)
{
    for (int i = 0; i < TOLD_CLIENTS; i++) {
        free(told->clients[i].ops);
        free(told->clients[i].facts);
    }
    memset(told, 0, sizeof *told);
}

void told_op(struct told_client *client, size_t begin, size_t end, bool failed)
{
    if (client->op_count == client->op_capacity) {
        client->op_capacity = client->op_capacity == 0 ? 256 : client->op_capacity * 2;
        client->ops = realloc(client->ops, client->op_capacity * sizeof *client->ops);
        CHECK(client->ops != NULL);
    }
    client->ops[client->op_count++] = (struct told_op){
        .begin = begin, .end = end, .failed = failed, .fact_first = client->fact_count};
}

void told_fact(struct told_client *client, const struct fact *fact)
{
    if (client->fact_count == client->fact_capacity) {
        client->fact_capacity = client->fact_capacity == 0 ? 256 : client->fact_capacity * 2;
        client->facts = realloc(client->facts, client->fact_capacity * sizeof *client->facts);
        CHECK(client->facts != NULL);
    }
    client->facts[client->fact_count++] = *fact;
    client->ops[client->op_count - 1].fact_count++;
}

void told_cut(struct told_client *client, size_t position)
{
    size_t kept = 0;

    while (kept < client->op_count && client->ops[kept].end <= position) {
        client->ops[kept].begin = 0;
        client->ops[kept++].end = 0;
    }
    client->op_count = kept;
    client->fact_count =
        kept > 0 ? client->ops[kept - 1].fact_first + client->ops[kept - 1].fact_count : 0;
}

void told_suite(int client, char name[LIMIT_ID_BYTES])
{
    snprintf(name, LIMIT_ID_BYTES, "suite-%d", client);
}

/* ---- holding a store against it ---- */

struct held {
    int64_t job_id;
    const struct fact *known; /* acknowledged; NULL: the job need not be there */
    const struct fact *doubt; /* NULL: none */
    bool anything;            /* see told_op.failed */
};

struct check {
    struct store *store;
    char *why;
    size_t why_bytes;
};

static struct held *held_of(struct held *jobs, size_t *count, int64_t job_id)
{
    for (size_t i = *count; i-- > 0;) {
        if (jobs[i].job_id == job_id) {
            return &jobs[i];
        }
    }
    CHECK(*count < TOLD_JOBS_MAX);
    jobs[*count] = (struct held){.job_id = job_id};
    return &jobs[(*count)++];
}

/* *failed: an operation is in doubt that may have left jobs which nobody knows of. */
static size_t collect(const struct told_client *client, size_t position, struct held *jobs,
                      bool *failed)
{
    size_t count = 0;

    *failed = false;

    for (size_t i = 0; i < client->op_count; i++) {
        const struct told_op *op = &client->ops[i];
        *failed |= op->failed && op->begin <= position && op->end > position;
        for (size_t j = 0; op->begin <= position && j < op->fact_count; j++) {
            const struct fact *fact = &client->facts[op->fact_first + j];
            if (fact->job_id == 0) {
                continue;
            }
            struct held *held = held_of(jobs, &count, fact->job_id);
            if (op->end <= position) {
                held->known = fact;
            } else {
                held->doubt = fact;
                held->anything = op->failed;
            }
        }
    }
    return count;
}

static bool matches(const struct fact *fact, bool there, const struct store_job *job)
{
    return fact == NULL ? !there : there && job->state == fact->state && job->epoch == fact->epoch;
}

static bool artifact_there(const struct check *check, const char *hash)
{
    struct error error;
    void *data = NULL;
    size_t bytes = 0;

    if (hash[0] == '\0') {
        return true;
    }
    if (check->store->ops->artifact_get(check->store, hash, &data, &bytes, &error) != STATUS_OK) {
        snprintf(check->why, check->why_bytes, "artifact: %s", error.text);
        return false;
    }
    free(data);
    return true;
}

/* A finished job has its outcomes, and they name an artifact that can be read. */
static bool outcomes_there(const struct check *check, const struct fact *fact)
{
    static struct outcome found[8];
    struct store_outcome_filter filter = {.limit = 8, .job_id = fact->job_id};
    uint32_t count = 0;
    struct error error;

    if (check->store->ops->outcomes(check->store, &filter, found, &count, &error) != STATUS_OK) {
        snprintf(check->why, check->why_bytes, "outcomes: %s", error.text);
        return false;
    }
    if (count != fact->rollouts || strcmp(found[0].artifact_hash, fact->artifact) != 0) {
        snprintf(check->why, check->why_bytes,
                 "job %lld is done with %u outcomes and artifact \"%.8s\", not %u and \"%.8s\"",
                 (long long)fact->job_id, count, found[0].artifact_hash, fact->rollouts,
                 fact->artifact);
        return false;
    }
    return artifact_there(check, fact->artifact);
}

static bool job_holds(const struct check *check, const struct held *held, bool read_outcomes,
                      int *seen_new, int *seen_old, uint32_t *there_count)
{
    static struct store_job job;
    struct error error;
    enum status status = check->store->ops->job(check->store, held->job_id, &job, &error);

    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        snprintf(check->why, check->why_bytes, "job: %s", error.text);
        return false;
    }
    bool there = status == STATUS_OK;
    bool is_new = held->doubt != NULL && matches(held->doubt, there, &job);
    bool is_old = matches(held->known, there, &job);
    if (held->anything) {
        *there_count += there;
        return held->known == NULL || there;
    }
    if (!is_new && !is_old) {
        const struct fact *fact = held->known != NULL ? held->known : held->doubt;
        snprintf(check->why, check->why_bytes,
                 "job %lld is %s epoch %lld; acknowledged: %s epoch %lld%s",
                 (long long)held->job_id, there ? job_state_names[job.state] : "not there",
                 (long long)(there ? job.epoch : 0),
                 held->known != NULL ? job_state_names[fact->state] : "nothing",
                 (long long)(held->known != NULL ? fact->epoch : 0),
                 held->doubt != NULL ? ", another state is in doubt" : "");
        return false;
    }
    if (held->doubt != NULL && is_new != is_old) {
        *(is_new ? seen_new : seen_old) += 1;
    }
    *there_count += there;
    const struct fact *fact = is_new ? held->doubt : held->known;
    return !read_outcomes || fact == NULL || fact->state != JOB_DONE || outcomes_there(check, fact);
}

/* Artifacts whose putting was acknowledged: the latest ones, and some of the others. */
static bool artifacts_hold(const struct check *check, const struct told_client *client,
                           size_t position, uint64_t seed)
{
    uint32_t latest = 0;

    for (size_t i = client->op_count; i-- > 0;) {
        const struct told_op *op = &client->ops[i];
        const struct fact *fact = &client->facts[op->fact_first];
        if (op->end > position || op->fact_count == 0 || fact->job_id != 0 ||
            (latest++ >= ARTIFACTS_LATEST && rng_mix(seed + i) % 16 != 0)) {
            continue;
        }
        if (!artifact_there(check, fact->artifact)) {
            return false;
        }
    }
    return true;
}

static bool client_holds(const struct check *check, const struct told_client *client, int index,
                         size_t position, uint64_t seed)
{
    static struct held jobs[TOLD_JOBS_MAX];
    struct store_suite_status suite;
    char name[LIMIT_ID_BYTES];
    struct error error;
    int seen_new = 0;
    int seen_old = 0;
    uint32_t there = 0;
    int64_t counted = 0;
    bool failed;
    size_t count = collect(client, position, jobs, &failed);

    told_suite(index, name);
    for (size_t i = 0; i < count; i++) {
        bool read_outcomes = i + 16 > count || rng_mix(seed + i) % 8 == 0;
        if (!job_holds(check, &jobs[i], read_outcomes, &seen_new, &seen_old, &there)) {
            return false;
        }
    }
    if (seen_new > 0 && seen_old > 0) {
        snprintf(check->why, check->why_bytes, "an operation of %s is half there (%d of %d jobs)",
                 name, seen_new, seen_new + seen_old);
        return false;
    }
    enum status status = check->store->ops->suite_status(check->store, name, &suite, &error);
    for (int i = 0; status == STATUS_OK && i < JOB_STATE_COUNT; i++) {
        counted += suite.jobs[i];
    }
    if ((status != STATUS_OK && status != STATUS_NOT_FOUND) ||
        (counted != (int64_t)there && !failed)) {
        snprintf(check->why, check->why_bytes, "%s has %lld jobs, %u are known", name,
                 (long long)counted, there);
        return false;
    }
    return artifacts_hold(check, client, position, seed);
}

bool told_holds(const struct told *told, struct store *store, size_t position, uint64_t seed,
                char *why, size_t why_bytes)
{
    struct check check = {.store = store, .why = why, .why_bytes = why_bytes};

    for (int i = 0; i < TOLD_CLIENTS; i++) {
        if (!client_holds(&check, &told->clients[i], i, position, seed + (uint64_t)i)) {
            return false;
        }
    }
    return true;
}
