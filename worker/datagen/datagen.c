/*
 * From a suite to shards: which scenarios are kept from training, which of them, with which planner
 * and key, each clip is of, the jobs that make them (clip.h), and their artifacts as shards.
 *
 * A clip whose drive ends too early is asked of another scenario, under another key. So what a clip
 * becomes depends on the options and its own number, never on other clips, on the size of a shard,
 * or on who makes it when.
 */
#include "worker/datagen/datagen.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/text.h"
#include "engine/worlds/world.h"
#include "schemas/json_record.h"
#include "schemas/limits.h"
#include "worker/datagen/clip.h"
#include "worker/models/health.h"
#include "worker/run/revision.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_FORMAT "swerve-shard/1"

enum { DRIVES_PER_CLIP_MAX = 64, ATTEMPTS = 3, WEIGHT = 10, CLIP_HEADER_BYTES = 16 << 10 };

static const char *const usual_planners[] = {
    "builtin:reference",
    "builtin:reference",
    "builtin:maintain",
    "builtin:reference",
    "builtin:brake?decel_mps2=1.5",
};

/* One clip of the set, as it is asked for now. */
struct clip {
    uint64_t key;
    uint32_t scenario; /* number in the suite */
    uint32_t planner;
    uint32_t attempt; /* drives before that were too short */
    bool held_out;
    bool made;
    char artifact[SHA256_HEX_BYTES];
};

/* A key that is asked for in this round, and whose it is. */
struct asked {
    uint64_t key;
    uint32_t clip;
};

struct generator {
    const struct suite *suite;
    const struct datagen_options *options;
    struct datagen_result *result;
    const char *const *planners;
    uint32_t planner_count;
    char planner_hashes[DATAGEN_PLANNERS_MAX][SHA256_HEX_BYTES];
    uint32_t *pool; /* scenarios of the present part, shuffled anew for each pass */
    uint32_t pool_count;
    struct clip *clips; /* [count]: those to train on, then those held out */
    uint32_t count;
    struct asked *asked; /* [asked_count], ascending by key */
    uint32_t asked_count;
    char rig_hash[SHA256_HEX_BYTES];
    char suite_id[LIMIT_ID_BYTES];              /* of the jobs */
    struct job_spec *specs;                     /* [SUBMISSION_PAGE] */
    const struct scenario_document **documents; /* likewise */
    struct datagen_rig *rig;                    /* NULL: none */
};

/* ---- choices ---- */

bool datagen_is_held_out(const char *scenario_id, double fraction)
{
    return (double)(rng_mix(text_hash(scenario_id)) >> 11) * 0x1p-53 < fraction;
}

static uint64_t part_key(const struct generator *self, bool held_out)
{
    return rng_mix(self->options->seed ^ text_hash(held_out ? "heldout" : "train"));
}

/* The n-th scenario of the part: a new permutation of all of them for each pass. */
static uint32_t pick_scenario(struct generator *self, uint64_t key, uint64_t n)
{
    uint32_t place = (uint32_t)(n % self->pool_count);
    if (place == 0) {
        uint64_t pass = rng_mix(key ^ rng_mix(n));
        for (uint32_t i = self->pool_count - 1; i > 0; i--) {
            uint32_t k = (uint32_t)(rng_uniform(pass, RNG_STREAM_PLANNER, 0, i) * (i + 1));
            uint32_t swap = self->pool[i];
            self->pool[i] = self->pool[k];
            self->pool[k] = swap;
        }
    }
    return self->pool[place];
}

static void choose(struct generator *self, struct clip *clip, uint64_t part, uint32_t number)
{
    clip->key = rng_mix(part + rng_mix(number + ((uint64_t)clip->attempt << 32)));
    clip->planner = clip_draw(clip->key, CLIP_DRAW_PLANNER, self->planner_count);
    clip->scenario = clip->attempt == 0
                         ? pick_scenario(self, part, number)
                         : self->pool[clip_draw(clip->key, CLIP_DRAW_SCENARIO, self->pool_count)];
}

/* The scenarios of a part that can be driven long enough. Returns their number. */
static uint32_t pool_fill(struct generator *self, bool held_out)
{
    const struct suite *suite = self->suite;
    const struct world_ops *ops =
        self->options->world != NULL ? self->options->world->ops : &world_object_ops;
    self->pool_count = 0;
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        struct error ignored;
        if (datagen_is_held_out(scenario->id, self->options->held_out) == held_out &&
            scenario->horizon_ticks + 1 >= self->options->frames &&
            ops->accepts(scenario, &ignored) == STATUS_OK) {
            self->pool[self->pool_count++] = i;
        }
    }
    return self->pool_count;
}

/* Clips of a part, from `first` on. */
static enum status choose_part(struct generator *self, bool held_out, uint32_t first,
                               uint32_t count, struct error *error)
{
    if (count > 0 && pool_fill(self, held_out) == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "suite %s: expected %s scenarios of at least %u ticks, found none",
                         self->suite->id, held_out ? "held-out" : "training",
                         self->options->frames);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct clip *clip = &self->clips[first + i];
        *clip = (struct clip){.held_out = held_out};
        choose(self, clip, part_key(self, held_out), i);
    }
    return STATUS_OK;
}

/* Other choices for clips whose drive was too short: its outcome says why, if a planner failed. */
static enum status choose_again(struct generator *self, const struct clip *short_of,
                                const struct outcome *outcome, struct error *error)
{
    struct clip *clip = &self->clips[short_of - self->clips];
    uint32_t number =
        (uint32_t)(clip - self->clips) - (clip->held_out ? self->result->train_clips : 0);
    if (++clip->attempt == DRIVES_PER_CLIP_MAX) {
        return error_set(error, STATUS_BAD_INPUT,
                         "suite %s: %d drives in a row ended before %u frames%s%.600s; ask for "
                         "shorter clips",
                         self->suite->id, DRIVES_PER_CLIP_MAX, self->options->frames,
                         outcome->error[0] != '\0' ? ", the last since its planner failed: " : "",
                         outcome->error);
    }
    pool_fill(self, clip->held_out);
    choose(self, clip, part_key(self, clip->held_out), number);
    return STATUS_OK;
}

/* ---- jobs ---- */

static void fill_job(const struct generator *self, const struct clip *clip, struct job_spec *spec)
{
    const struct datagen_world *world = self->options->world;
    const struct scenario_document *document = self->suite->entries[clip->scenario].document;
    *spec = (struct job_spec){.tier = world != NULL ? world->tier : TIER_OBJECT,
                              .seed = clip->key,
                              .rollout_count = 1,
                              .attempts_max = ATTEMPTS};
    snprintf(spec->makes, sizeof spec->makes, JOB_MAKES_CLIP "%u", self->options->frames);
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "%s", document->scenario.id);
    memcpy(spec->scenario_hash, document->hash, sizeof spec->scenario_hash);
    snprintf(spec->planner, sizeof spec->planner, "%s", self->planners[clip->planner]);
    memcpy(spec->planner_hash, self->planner_hashes[clip->planner], sizeof spec->planner_hash);
    snprintf(spec->pool, sizeof spec->pool, "%s", spec->tier == TIER_TEACHER ? "teacher" : "bulk");
    snprintf(spec->model_hash, sizeof spec->model_hash, "%s", world != NULL ? world->hash : "");
    snprintf(spec->sampler, sizeof spec->sampler, "%s", world != NULL ? world->sampler : "");
    snprintf(spec->backend, sizeof spec->backend, "cpu");
    snprintf(spec->revision, sizeof spec->revision, "%s", revision_hash);
    memcpy(spec->rig, self->rig_hash, sizeof spec->rig);
    job_key_make(spec, 0);
}

/* One clip is one artifact: its tensors, and a header of a few KiB. */
static enum status check_size(const struct generator *self, struct error *error)
{
    struct shard_tensor tensors[SHARD_TENSORS_MAX];
    uint32_t count = 0;
    uint64_t bytes = CLIP_HEADER_BYTES;
    TRY(clip_tensors(1, self->options->frames, self->options->world != NULL, self->rig, tensors,
                     &count, error));
    for (uint32_t i = 0; i < count; i++) {
        bytes += shard_tensor_bytes(&tensors[i]);
    }
    return bytes <= LIMIT_ARTIFACT_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT,
                           "datagen: a clip of %u frames takes %" PRIu64
                           " MiB, expected at most %d; ask for shorter clips%s",
                           self->options->frames, (bytes >> 20) + 1, LIMIT_ARTIFACT_BYTES >> 20,
                           self->rig != NULL ? ", or a rig of fewer sensors" : "");
}

/* The same set has the same name, so that it is found again. */
static void name_jobs(struct generator *self)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    sha256_init(&hash);
    for (uint32_t i = 0; i < self->count; i++) {
        fill_job(self, &self->clips[i], &self->specs[0]);
        sha256_update(&hash, self->specs[0].key, strlen(self->specs[0].key));
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, hex);
    snprintf(self->suite_id, sizeof self->suite_id, "%.*s-clips-%.8s", LIMIT_ID_BYTES - 24,
             self->suite->id, hex);
}

static enum status put_scenarios(const struct generator *self, struct error *error)
{
    struct store *store = self->options->store;
    for (uint32_t i = 0; i < self->suite->entry_count; i++) {
        const struct scenario_document *document = self->suite->entries[i].document;
        char *text;
        size_t bytes;
        TRY(scenario_canonical_text(document, &text, &bytes, error));
        enum status status = store->ops->scenario_put(store, document->hash, text, bytes, error);
        free(text);
        TRY(status);
    }
    return STATUS_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct asked *left = a;
    const struct asked *right = b;
    return (left->key > right->key) - (left->key < right->key);
}

static enum status send_page(struct generator *self, uint32_t count, struct error *error)
{
    struct submission page = {.job_count = count,
                              .page_count = count,
                              .specs = self->specs,
                              .documents = self->documents};
    submission_name(&page, self->suite_id);
    TRY(submission_send(&page, self->options->store, WEIGHT, error));
    memcpy(self->suite_id, page.suite_id, sizeof self->suite_id);
    return STATUS_OK;
}

/* Submits what is not made yet, all to one suite: where that is another than before, since what an
 * earlier one made is gone or broke, from the beginning. */
static enum status send_jobs(struct generator *self, struct error *error)
{
    char before[LIMIT_ID_BYTES];
    do {
        uint32_t filled = 0;
        memcpy(before, self->suite_id, sizeof before);
        self->asked_count = 0;
        for (uint32_t i = 0; i < self->count; i++) {
            const struct clip *clip = &self->clips[i];
            if (clip->made) {
                continue;
            }
            self->asked[self->asked_count++] = (struct asked){clip->key, i};
            fill_job(self, clip, &self->specs[filled]);
            self->documents[filled++] = self->suite->entries[clip->scenario].document;
            if (filled == SUBMISSION_PAGE) {
                TRY(send_page(self, filled, error));
                filled = 0;
            }
        }
        TRY(filled > 0 ? send_page(self, filled, error) : STATUS_OK);
    } while (strcmp(before, self->suite_id) != 0);
    qsort(self->asked, self->asked_count, sizeof *self->asked, by_key);
    return STATUS_OK;
}

/* An outcome of the suite: a clip, or a drive that was too short. */
static enum status take_outcome(void *context, const struct outcome *outcome, struct error *error)
{
    struct generator *self = context;
    const struct asked key = {.key = outcome->seed};
    const struct asked *found = bsearch(&key, self->asked, self->asked_count, sizeof key, by_key);
    if (found == NULL || self->clips[found->clip].key != outcome->seed) {
        return STATUS_OK; /* an earlier attempt's, or of a suite of the same name */
    }
    struct clip *clip = &self->clips[found->clip];
    if (outcome->artifact_hash[0] == '\0') {
        return choose_again(self, clip, outcome, error);
    }
    memcpy(clip->artifact, outcome->artifact_hash, sizeof clip->artifact);
    clip->made = true;
    return STATUS_OK;
}

/* A suite that somebody cancelled is not asked for again. */
static enum status check_cancelled(struct generator *self, struct error *error)
{
    struct store *store = self->options->store;
    struct store_suite_status status;
    TRY(store->ops->suite_status(store, self->suite_id, &status, error));
    return status.jobs[JOB_CANCELLED] == 0
               ? STATUS_OK
               : error_set(error, STATUS_PLANNER,
                           "datagen: suite %s was cancelled, %lld of its clips are not made",
                           self->suite_id, (long long)status.jobs[JOB_CANCELLED]);
}

/* A job without an outcome broke as often as it may: what it said last. */
static enum status check_dead(struct generator *self, struct error *error)
{
    struct store *store = self->options->store;
    struct store_job *dead = calloc(1, sizeof *dead);
    uint32_t count = 0;
    TRY(memory_check(dead, error, "datagen: out of memory"));
    enum status status = store->ops->dead_jobs(store, self->suite_id, 0, dead, 1, &count, error);
    if (status == STATUS_OK && count > 0) {
        status = error_set(error, STATUS_PLANNER,
                           "datagen: a clip of scenario %s could not be made: %.600s; the same "
                           "command tries it again",
                           dead->spec.scenario_id, dead->error);
    }
    free(dead);
    return status;
}

static uint32_t unmade(const struct generator *self)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->count; i++) {
        count += !self->clips[i].made;
    }
    return count;
}

static enum status make_clips(struct generator *self, struct error *error)
{
    const struct datagen_options *options = self->options;
    TRY(put_scenarios(self, error));
    name_jobs(self);
    while (unmade(self) > 0) {
        TRY(send_jobs(self, error));
        TRY(options->drive(options->context, self->suite_id, error));
        TRY(check_dead(self, error));
        TRY(check_cancelled(self, error));
        TRY(store_outcomes_each(options->store, self->suite_id, take_outcome, self, error));
    }
    return STATUS_OK;
}

/* ---- shards ---- */

/* Which world generated, and the names of what stands in "health". */
static void name_world(const struct datagen_world *world, json_t *metadata)
{
    json_t *names = json_array();
    for (int i = 0; i < HEALTH_CHECK_COUNT; i++) {
        json_array_append_new(names, json_string(health_check_names[i]));
    }
    char *checks = json_dumps(names, JSON_COMPACT);
    json_put(metadata, "world", json_string(world->name));
    json_put(metadata, "model_hash", json_string(world->hash));
    json_put(metadata, "sampler", json_string(world->sampler));
    json_put(metadata, "health_checks", json_string(checks != NULL ? checks : ""));
    free(checks);
    json_decref(names);
}

static json_t *metadata_make(const struct suite *suite, const struct datagen_world *world,
                             const char *rig)
{
    json_t *ids = json_array();
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        json_array_append_new(ids, json_string(suite->entries[i].document->scenario.id));
    }
    char *text = json_dumps(ids, JSON_COMPACT);
    json_t *metadata = json_pack("{s:s, s:s, s:s, s:s}", "format", SHARD_FORMAT, "suite", suite->id,
                                 "revision", revision_hash, "scenarios", text != NULL ? text : "");
    free(text);
    json_decref(ids);
    if (world != NULL && metadata != NULL) {
        name_world(world, metadata);
    }
    if (rig != NULL && metadata != NULL) {
        json_put(metadata, "rig", json_string(rig));
    }
    return metadata;
}

static enum status create_shard(const struct generator *self, const char *path,
                                const struct shard_tensor *tensors, uint32_t count,
                                struct shard_file **out, struct error *error)
{
    char *rig = NULL;
    TRY(self->rig != NULL ? rig_text(self->options->rig, &rig, error) : STATUS_OK);
    json_t *metadata = metadata_make(self->suite, self->options->world, rig);
    enum status status = shard_create(path, tensors, count, metadata, out, error);
    json_decref(metadata);
    free(rig);
    return status;
}

/* Copies a clip's tensors to their places among others'. */
static enum status copy_clip(const struct generator *self, struct shard_file *file, uint32_t at,
                             const struct clip *clip, const struct shard_tensor *tensors,
                             uint32_t count, struct error *error)
{
    struct store *store = self->options->store;
    void *data = NULL;
    size_t bytes = 0;
    uint64_t header_bytes = 0;
    TRY(store->ops->artifact_get(store, clip->artifact, &data, &bytes, error));
    if (bytes >= sizeof header_bytes) {
        memcpy(&header_bytes, data, sizeof header_bytes);
    }
    uint64_t from = sizeof header_bytes + header_bytes;
    uint64_t whole = from;
    for (uint32_t i = 0; i < count; i++) {
        whole += shard_tensor_bytes(&tensors[i]) / tensors[i].shape[0];
    }
    enum status status = header_bytes < bytes && whole == bytes
                             ? STATUS_OK
                             : error_set(error, STATUS_BAD_INPUT,
                                         "datagen: artifact %s: expected a clip of %u ticks, found "
                                         "something else",
                                         clip->artifact, self->options->frames);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        uint64_t one = shard_tensor_bytes(&tensors[i]) / tensors[i].shape[0];
        status = shard_write(file, i, at * one, (const uint8_t *)data + from, one, error);
        from += one;
    }
    const int64_t said[2] = {clip->scenario, clip->held_out};
    THEN(status, shard_write(file, 0, at * 4 * sizeof(int64_t) + sizeof(int64_t), &said[0],
                             sizeof said[0], error));
    THEN(status, shard_write(file, 0, at * 4 * sizeof(int64_t) + 3 * sizeof(int64_t), &said[1],
                             sizeof said[1], error));
    free(data);
    return status;
}

static enum status write_shard(struct generator *self, const char *path, const struct clip *clips,
                               uint32_t count, struct error *error)
{
    struct shard_tensor tensors[SHARD_TENSORS_MAX];
    uint32_t tensor_count = 0;
    struct shard_file *file = NULL;
    TRY(clip_tensors(count, self->options->frames, self->options->world != NULL, self->rig, tensors,
                     &tensor_count, error));
    enum status status = create_shard(self, path, tensors, tensor_count, &file, error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        status = copy_clip(self, file, i, &clips[i], tensors, tensor_count, error);
    }
    if (status != STATUS_OK) {
        shard_abandon(file);
        return status;
    }
    uint64_t bytes = shard_bytes(file);
    TRY(shard_commit(file, error));
    self->result->shards++;
    self->result->bytes += bytes;
    self->result->frames += (uint64_t)count * self->options->frames;
    if (self->options->shard_done != NULL) {
        self->options->shard_done(path, count);
    }
    return STATUS_OK;
}

static enum status write_part(struct generator *self, bool held_out, const struct clip *clips,
                              uint32_t count, struct error *error)
{
    const struct datagen_options *options = self->options;
    const char *name = held_out ? "heldout" : "train";
    for (uint32_t shard = 0, at = 0; at < count; shard++) {
        char path[LIMIT_PATH_BYTES];
        uint32_t some = count - at < options->shard_clips ? count - at : options->shard_clips;
        int length =
            snprintf(path, sizeof path, "%s/%s-%05u.safetensors", options->directory, name, shard);
        if (length < 0 || (size_t)length >= sizeof path) {
            return error_set(error, STATUS_LIMIT, "%.64s..: a name longer than %d bytes",
                             options->directory, LIMIT_PATH_BYTES - 1);
        }
        TRY(write_shard(self, path, clips + at, some, error));
        at += some;
    }
    return STATUS_OK;
}

/* ---- the whole ---- */

static void generator_close(struct generator *self)
{
    free(self->pool);
    free(self->clips);
    free(self->asked);
    free(self->specs);
    free(self->documents);
    datagen_rig_destroy(self->rig);
}

static enum status generator_open(struct generator *self, struct error *error)
{
    const struct datagen_options *options = self->options;
    self->planners = options->planner_count > 0 ? options->planners : usual_planners;
    self->planner_count =
        options->planner_count > 0 ? options->planner_count : COUNT_OF(usual_planners);
    for (uint32_t i = 0; i < self->planner_count; i++) {
        TRY(planner_identity(self->planners[i], self->planner_hashes[i], error));
    }
    if (options->rig != NULL) {
        TRY(rig_hash(options->rig, self->rig_hash, error));
        TRY(datagen_rig_create(options->rig, &self->rig, error));
    }
    self->pool = calloc(self->suite->entry_count + 1, sizeof *self->pool);
    self->clips = calloc(options->clips, sizeof *self->clips);
    self->asked = calloc(options->clips, sizeof *self->asked);
    self->specs = calloc(SUBMISSION_PAGE, sizeof *self->specs);
    self->documents = calloc(SUBMISSION_PAGE, sizeof *self->documents);
    return self->pool != NULL && self->clips != NULL && self->asked != NULL &&
                   self->specs != NULL && self->documents != NULL
               ? STATUS_OK
               : error_set(error, STATUS_NO_MEMORY, "datagen: out of memory");
}

/* Number of clips that are held out: the share of the scenarios, unless one part is wanted. */
static uint32_t held_out_clips(const struct datagen_options *options,
                               const struct datagen_result *result)
{
    if (options->part != DATAGEN_ALL) {
        return options->part == DATAGEN_HELD_OUT ? options->clips : 0;
    }
    uint64_t all = (uint64_t)result->train_scenarios + result->held_out_scenarios;
    if (all == 0) {
        return 0;
    }
    return (uint32_t)(((uint64_t)options->clips * result->held_out_scenarios + all / 2) / all);
}

enum status datagen_run(const struct suite *suite, const struct datagen_options *options,
                        struct datagen_result *result, struct error *error)
{
    CHECK(options->frames >= 1 && options->shard_clips >= 1);
    CHECK(options->planner_count <= DATAGEN_PLANNERS_MAX);
    struct datagen_result counted = {0};
    struct generator self = {.suite = suite, .options = options, .result = &counted};
    enum status status = generator_open(&self, error);
    THEN(status, check_size(&self, error));
    if (status == STATUS_OK) {
        counted.train_scenarios = pool_fill(&self, false);
        counted.held_out_scenarios = pool_fill(&self, true);
        counted.held_out_clips = held_out_clips(options, &counted);
        counted.train_clips = options->clips - counted.held_out_clips;
        self.count = options->clips;
        status = choose_part(&self, false, 0, counted.train_clips, error);
        THEN(status, choose_part(&self, true, counted.train_clips, counted.held_out_clips, error));
    }
    THEN(status, make_clips(&self, error));
    THEN(status, write_part(&self, false, self.clips, counted.train_clips, error));
    THEN(status,
         write_part(&self, true, self.clips + counted.train_clips, counted.held_out_clips, error));
    generator_close(&self);
    if (status == STATUS_OK) {
        *result = counted;
    }
    return status;
}
