/*
 * Replay, compared. See replay_compare.h.
 *
 * A replay drives a branch from tick 0; the recorded one may have shared the ticks before its fork
 * with its main line. What it drove itself is told apart by the ticks of the replay's own trace.
 */
#include "worker/run/replay_compare.h"

#include "worker/models/models.h"
#include "worker/planner/planner.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/outcome_json.h"
#include "schemas/scenario_json.h"
#include "worker/run/outcome_build.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct replay_difference *add(struct replay_differences *out, const char *field)
{
    CHECK(out->count < REPLAY_DIFFERENCES_MAX);
    struct replay_difference *row = &out->rows[out->count++];
    snprintf(row->field, sizeof row->field, "%s", field);
    row->stored[0] = '\0';
    row->replayed[0] = '\0';
    return row;
}

/* ---- figures ---- */

/* Fields that a replay does not make; prefix and metres have rules of their own. */
static const char *const not_replayed[] = {
    "id",
    "job_id",
    "epoch",
    "suite_id",
    "planner",
    "planner_hash",
    "rig",
    "tier",
    "pool",
    "model_hash",
    "sampler",
    "backend",
    "revision",
    "seed",
    "prefix_ticks",
    "metres_mm",
    "device_ns",
    "mflop",
    "artifact_hash",
    "error",
    "evidence_hash",
    "parent_job_id",
    "audit_of",
    "scenario_hash",
    "at_ms",
    "pages_used_percent",
    "peak_mflops",
    "route_reason",
    "route_own",
    "route_other",
};

static bool is_replayed(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(not_replayed); i++) {
        if (strcmp(name, not_replayed[i]) == 0) {
            return false;
        }
    }
    return true;
}

/* Sights that the planner was given, of an outcome from before that was kept. */
static bool is_unsaid(const struct json_field *field, const void *record)
{
    return strcmp(field->name, "given") == 0 && ((const char *)record)[field->offset] == '\0';
}

static void print_value(const struct json_field *field, const void *record, char *out)
{
    json_t *value = json_record_value(field, record);
    char *text =
        value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)) : NULL;
    snprintf(out, REPLAY_VALUE_BYTES, "%s", text != NULL ? text : "?");
    free(text);
    json_decref(value);
}

static void compare_fields(const struct json_field_list *list, const char *prefix,
                           const void *stored, const void *replayed, struct replay_differences *out)
{
    char name[REPLAY_FIELD_BYTES];

    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        if (!is_replayed(field->name) || json_record_same(field, stored, replayed) ||
            is_unsaid(field, stored)) {
            continue;
        }
        snprintf(name, sizeof name, "%s%s", prefix, field->name);
        struct replay_difference *row = add(out, name);
        print_value(field, stored, row->stored);
        print_value(field, replayed, row->replayed);
    }
}

static void print_reasons(uint32_t reasons, char *out)
{
    size_t used = 0;

    snprintf(out, REPLAY_VALUE_BYTES, "none");
    for (uint32_t bit = 0; bit < 32 && used < REPLAY_VALUE_BYTES; bit++) {
        if ((reasons >> bit & 1) != 0) {
            const char *name = bit < REASON_BIT_COUNT ? reason_names[bit] : "unknown";
            used += (size_t)snprintf(out + used, REPLAY_VALUE_BYTES - used, "%s%s",
                                     used > 0 ? " " : "", name);
        }
    }
}

/* Text of Swerve itself about an outcome that is made anew: not what the planner wrote, nor what
 * this worker allows it (in parentheses), nor how long it waited, nor a death among neighbours, nor
 * a fork that was refused. */
static void own_words(const struct outcome *outcome, char out[OUTCOME_ERROR_BYTES])
{
    static const char *const ends[] = {PLANNER_STDERR_JOINT, " (", " within ",
                                       "its processes used"};
    snprintf(out, OUTCOME_ERROR_BYTES, "%s", outcome->error);
    out[strcspn(out, "\n")] = '\0';
    if (strstr(out, ROLLOUT_DEATH) != NULL || strstr(out, OUTCOME_VARIES) != NULL) {
        out[0] = '\0';
    }
    for (size_t i = 0; i < COUNT_OF(ends) && outcome->verdict == VERDICT_PLANNER_ERROR; i++) {
        char *end = strstr(out, ends[i]);
        if (end != NULL) {
            *end = '\0';
        }
    }
}

static void compare_words(const struct outcome *stored, const struct outcome *replayed,
                          struct replay_differences *out)
{
    char said[OUTCOME_ERROR_BYTES];
    char again[OUTCOME_ERROR_BYTES];
    own_words(stored, said);
    own_words(replayed, again);
    if (strcmp(said, again) != 0) {
        struct replay_difference *row = add(out, "error");
        snprintf(row->stored, sizeof row->stored, "\"%.180s\"", said);
        snprintf(row->replayed, sizeof row->replayed, "\"%.180s\"", again);
    }
}

static void compare_sets(const struct outcome *stored, const struct outcome *replayed,
                         struct replay_differences *out)
{
    char name[REPLAY_FIELD_BYTES];

    if (stored->reasons != replayed->reasons) {
        struct replay_difference *row = add(out, "reasons");
        print_reasons(stored->reasons, row->stored);
        print_reasons(replayed->reasons, row->replayed);
    }
    for (size_t i = 0; i < SLICE_KIND_COUNT; i++) {
        if (strcmp(stored->slice[i], replayed->slice[i]) != 0) {
            snprintf(name, sizeof name, "slices.%s", slice_names[i]);
            struct replay_difference *row = add(out, name);
            snprintf(row->stored, sizeof row->stored, "\"%s\"", stored->slice[i]);
            snprintf(row->replayed, sizeof row->replayed, "\"%s\"", replayed->slice[i]);
        }
    }
}

/* ---- what it drove itself ---- */

static size_t tick_bytes(const struct trace *trace)
{
    return sizeof(struct trace_tick) + trace->agent_count * sizeof(struct trace_agent);
}

static struct trace_tick tick_at(const struct trace *trace, uint32_t index)
{
    struct trace_tick tick;
    memcpy(&tick, trace->data + index * tick_bytes(trace), sizeof tick);
    return tick;
}

/* Way over the first `ticks` ticks of a replay, as far as they are recorded. */
static double way_m(const struct trace *trace, uint32_t ticks)
{
    double sum_m = 0.0;

    for (uint32_t i = 0; i < ticks && i + 1 < trace->tick_count; i++) {
        struct trace_tick from = tick_at(trace, i);
        struct trace_tick to = tick_at(trace, i + 1);
        double dx = to.x_m - from.x_m;
        double dy = to.y_m - from.y_m;
        sum_m += sqrt(dx * dx + dy * dy);
    }
    return sum_m;
}

/* A rollout shares nothing, or, as a branch, what lies before its fork or its main line's end. */
static void compare_shared(const struct outcome *stored, const struct job_run *job,
                           uint32_t rollout, struct replay_differences *out)
{
    const struct rollout_result *result = &job->results[rollout];
    uint32_t fork = rollout > 0 ? job->scenario->branches[rollout - 1].at_tick : 0;
    uint32_t shared = fork < result->ticks ? fork : result->ticks;

    if (stored->prefix_ticks != 0 && stored->prefix_ticks != shared) {
        struct replay_difference *row = add(out, "prefix_ticks");
        snprintf(row->stored, sizeof row->stored, "%" PRIu32, stored->prefix_ticks);
        snprintf(row->replayed, sizeof row->replayed, "%" PRIu32, shared);
        return; /* its metres cannot be told */
    }
    double prefix_m = way_m(&result->trace, stored->prefix_ticks);
    int64_t metres_mm = result->metres_mm - (int64_t)floor(prefix_m * (double)MM_PER_M + 0.5);
    /* The two parts and the whole are rounded each for itself. */
    int64_t slack_mm = stored->prefix_ticks > 0 ? 1 : 0;
    if (llabs(stored->metres_mm - metres_mm) > slack_mm) {
        struct replay_difference *row = add(out, "metres_mm");
        snprintf(row->stored, sizeof row->stored, "%" PRId64, stored->metres_mm);
        snprintf(row->replayed, sizeof row->replayed, "%" PRId64, metres_mm);
    }
}

/* ---- artifacts ---- */

void replay_artifact_finish(struct replay_artifact *artifact)
{
    trace_reader_finish(&artifact->reader);
    free(artifact->data);
    *artifact = (struct replay_artifact){.data = NULL};
}

/* A damaged or lost artifact is a finding, which goes on; a store that is out of order is not. */
static bool is_finding(enum status status)
{
    return status == STATUS_IO || status == STATUS_NOT_FOUND || status == STATUS_BAD_INPUT ||
           status == STATUS_LIMIT;
}

static void lost(struct replay_differences *out, const char *field, const char *hash,
                 const struct error *why)
{
    struct replay_difference *row = add(out, field);
    snprintf(row->stored, sizeof row->stored, "%.64s", hash);
    snprintf(row->replayed, sizeof row->replayed, "%.180s", why->text);
}

static enum status fetch(struct store *store, const char *hash, struct replay_artifact *artifact,
                         struct error *error)
{
    size_t bytes = 0;

    if (artifact->hash[0] != '\0' && strcmp(artifact->hash, hash) == 0) {
        return STATUS_OK;
    }
    replay_artifact_finish(artifact);
    enum status status = store->ops->artifact_get(store, hash, &artifact->data, &bytes, error);
    if (status == STATUS_OK) {
        status = trace_reader_init(&artifact->reader, artifact->data, bytes, error);
        if (status != STATUS_OK) {
            free(artifact->data);
            artifact->data = NULL;
            return status;
        }
        snprintf(artifact->hash, sizeof artifact->hash, "%s", hash);
    }
    return status;
}

static void print_tick(const struct trace_tick *tick, char *out)
{
    snprintf(out, REPLAY_VALUE_BYTES,
             "tick %" PRIu32 ": x %.9g y %.9g heading %.9g speed %.9g, action %.9g %.9g, shown "
             "%016" PRIx64,
             tick->tick, tick->x_m, tick->y_m, tick->heading_rad, tick->speed_mps,
             tick->action_accel_mps2, tick->action_steer_rad, tick->observation_digest);
}

/* The first tick that differs; where one drive is the other's beginning, or with other agents, how
 * long both are. The last recorded state has no action yet: a drive that goes on differs there. */
static void compare_ticks(const struct trace_reader *reader, int32_t index,
                          const struct trace *trace, struct replay_differences *out)
{
    uint32_t recorded = trace_reader_end_tick(reader, index);
    bool alike = reader->header.agent_count == trace->agent_count;
    uint32_t shared = recorded < trace->tick_count ? recorded : trace->tick_count;

    for (uint32_t i = 0; alike && i < shared; i++) {
        struct trace_tick tick;
        struct trace_agent agents[LIMIT_AGENTS];
        const uint8_t *replayed = trace->data + i * tick_bytes(trace);
        bool found = trace_reader_tick(reader, index, i, &tick, agents);
        if (found && memcmp(&tick, replayed, sizeof tick) == 0 &&
            memcmp(agents, replayed + sizeof tick, tick_bytes(trace) - sizeof tick) == 0) {
            continue;
        }
        struct trace_tick ours = tick_at(trace, i);
        struct replay_difference *row = add(out, "artifact");
        if (found) {
            print_tick(&tick, row->stored);
        }
        print_tick(&ours, row->replayed);
        return;
    }
    if (!alike || recorded != trace->tick_count) {
        struct replay_difference *row = add(out, "artifact");
        snprintf(row->stored, sizeof row->stored, "%" PRIu32 " ticks, %" PRIu32 " agents", recorded,
                 reader->header.agent_count);
        snprintf(row->replayed, sizeof row->replayed, "%" PRIu32 " ticks, %" PRIu32 " agents",
                 trace->tick_count, trace->agent_count);
    }
}

/* A recorded set of keyframes has the same frames from its fork on. */
static void compare_keyframes(const struct trace_reader *reader, int32_t index,
                              const struct keyframes *keyframes, struct replay_differences *out)
{
    uint32_t next = 0;
    uint32_t first_tick = reader->rollouts[index].header.first_tick;

    if (reader->rollouts[index].header.tick_count == 0) {
        return;
    }
    while (next < keyframes->count && keyframes->frames[next].tick < first_tick) {
        next++;
    }
    for (uint32_t i = 0; i < reader->keyframes_count; i++) {
        struct trace_keyframe frame;
        memcpy(&frame, reader->keyframes + i * sizeof frame, sizeof frame);
        if (frame.rollout != (uint32_t)index) {
            continue;
        }
        const struct trace_keyframe *ours =
            next < keyframes->count ? &keyframes->frames[next++] : NULL;
        if (ours == NULL || ours->tick != frame.tick ||
            memcmp(ours->bev, frame.bev, sizeof frame.bev) != 0 ||
            memcmp(ours->camera, frame.camera, sizeof frame.camera) != 0) {
            struct replay_difference *row = add(out, "keyframes");
            snprintf(row->stored, sizeof row->stored, "frame of tick %" PRIu32, frame.tick);
            snprintf(row->replayed, sizeof row->replayed, "%s",
                     ours == NULL ? "none" : "another picture");
            return;
        }
    }
    if (next < keyframes->count) {
        struct replay_difference *row = add(out, "keyframes");
        snprintf(row->stored, sizeof row->stored, "none");
        snprintf(row->replayed, sizeof row->replayed, "frame of tick %" PRIu32,
                 keyframes->frames[next].tick);
    }
}

static enum status compare_artifact(struct store *store, struct replay_artifact *artifact,
                                    const struct outcome *stored,
                                    const struct rollout_result *result,
                                    struct replay_differences *out, struct error *error)
{
    struct error why;

    if (stored->artifact_hash[0] == '\0') {
        return STATUS_OK; /* none was kept; the trace's hash is the outcome's, and was compared */
    }
    enum status status = fetch(store, stored->artifact_hash, artifact, &why);
    if (status == STATUS_GONE) {
        return STATUS_OK; /* the trace's hash is the outcome's, and was compared */
    }
    if (status != STATUS_OK) {
        if (is_finding(status)) {
            lost(out, "artifact_hash", stored->artifact_hash, &why);
            return STATUS_OK;
        }
        *error = why;
        return status;
    }
    int32_t index = trace_reader_find(&artifact->reader, stored->branch_id);
    if (index < 0) {
        struct replay_difference *row = add(out, "artifact");
        snprintf(row->stored, sizeof row->stored, "has no rollout \"%s\"", stored->branch_id);
        snprintf(row->replayed, sizeof row->replayed, "%" PRIu32 " ticks", result->ticks);
        return STATUS_OK;
    }
    compare_ticks(&artifact->reader, index, &result->trace, out);
    compare_keyframes(&artifact->reader, index, &result->trace.keyframes, out);
    return STATUS_OK;
}

/* The picture's bytes depend on the library that packed them: it must be there and whole. */
static enum status check_evidence(struct store *store, const struct outcome *stored,
                                  struct replay_differences *out, struct error *error)
{
    struct error why;
    void *data = NULL;
    size_t bytes = 0;

    if (stored->evidence_hash[0] == '\0') {
        return STATUS_OK;
    }
    enum status status =
        store->ops->artifact_get(store, stored->evidence_hash, &data, &bytes, &why);
    free(data);
    if (status == STATUS_GONE) {
        return STATUS_OK;
    }
    if (status != STATUS_OK && is_finding(status)) {
        lost(out, "evidence_hash", stored->evidence_hash, &why);
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        *error = why;
    }
    return status;
}

/* A world that is not deterministic drives another drive each time: what must hold is its verdict.
 */
static void keep_verdict(struct replay_differences *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        if (strcmp(out->rows[i].field, "verdict") == 0) {
            out->rows[kept++] = out->rows[i];
        }
    }
    out->count = kept;
}

enum status replay_compare(struct store *store, struct replay_artifact *artifact,
                           const struct outcome *stored, const struct job_run *job,
                           uint32_t rollout, struct replay_differences *out, struct error *error)
{
    struct outcome replayed;

    out->count = 0;
    outcome_build(job, rollout, &replayed);
    snprintf(replayed.scenario_id, sizeof replayed.scenario_id, "%s", job->scenario->id);
    if (stored->verdict == VERDICT_FLAGGED &&
        (stored->health_check[0] == '\0' || replayed.verdict == VERDICT_INVALID)) {
        replayed.verdict = VERDICT_FLAGGED; /* its job was, for another rollout of it */
    }
    compare_fields(&outcome_field_list, "", stored, &replayed, out);
    compare_fields(&metric_field_list, "metrics.", &stored->metrics, &replayed.metrics, out);
    if (stored->health.measured_ticks > 0) { /* it was kept then */
        compare_fields(&drive_health_field_list, "health.", &stored->health, &replayed.health, out);
    }
    compare_sets(stored, &replayed, out);
    compare_words(stored, &replayed, out);
    compare_shared(stored, job, rollout, out);
    TRY(compare_artifact(store, artifact, stored, &job->results[rollout], out, error));
    if (!models_sampler_exact(stored->sampler)) {
        keep_verdict(out);
    }
    return check_evidence(store, stored, out, error);
}
