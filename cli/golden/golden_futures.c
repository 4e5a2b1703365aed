/*
 * Futures of recordings. See golden_futures.h.
 */
#include "cli/golden/golden_futures.h"

#include "base/array.h"
#include "worker/careful/futures.h"
#include "worker/careful/futures_job.h"
#include "worker/golden/golden_recording.h"

#include <stdlib.h>
#include <string.h>

/* Main line that passed or failed. */
struct drive {
    int64_t job_id;
    uint32_t contact; /* tick of the first one; UINT32_MAX: none */
    char artifact_hash[SHA256_HEX_BYTES];
};

struct asking {
    uint32_t count;
    struct drive *drives; /* owned */
};

static enum status add_drive(void *context, const struct outcome *outcome, struct error *error)
{
    struct asking *asking = context;
    if (outcome->branch_id[0] != '\0' || outcome->verdict > VERDICT_FAIL ||
        outcome->futures.state != FUTURES_NONE) {
        return STATUS_OK;
    }
    TRY(array_room(&asking->drives, asking->count, sizeof *asking->drives, error));
    struct drive *drive = &asking->drives[asking->count++];
    *drive = (struct drive){outcome->job_id, outcome->metrics.collision_tick, ""};
    memcpy(drive->artifact_hash, outcome->artifact_hash, sizeof drive->artifact_hash);
    return STATUS_OK;
}

static enum status find_tick(struct store *store, const struct drive *drive, uint32_t *tick,
                             struct error *error)
{
    struct recording recording = {.data = NULL};
    void *data = NULL;
    size_t bytes = 0;
    TRY(store->ops->artifact_get(store, drive->artifact_hash, &data, &bytes, error));
    TRY(recording_open(data, bytes, &recording, error));
    *tick = futures_tick_crux(&recording.reader, drive->contact);
    recording_close(&recording);
    return STATUS_OK;
}

static enum status ask(struct store *store, const char *suite_id, const struct drive *drive,
                       struct store_job *job, struct error *error)
{
    struct job_spec spec;
    uint32_t tick = 0;
    TRY(find_tick(store, drive, &tick, error));
    TRY(store->ops->job(store, drive->job_id, job, error));
    TRY(futures_job(&job->spec, tick, FUTURES_DRAWS, &spec, error));
    return futures_jobs_send(store, suite_id, &spec, 1, error);
}

enum status golden_futures_ask(struct store *store, const char *suite_id, struct error *error)
{
    struct asking asking = {.count = 0};
    struct store_job *job = malloc(sizeof *job);
    TRY(memory_check(job, error, "golden: out of memory"));
    enum status status = store_outcomes_each(store, suite_id, add_drive, &asking, error);
    for (uint32_t i = 0; status == STATUS_OK && i < asking.count; i++) {
        status = ask(store, suite_id, &asking.drives[i], job, error);
    }
    free(asking.drives);
    free(job);
    return status;
}
