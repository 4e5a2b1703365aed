/*
 * Trace recording and reading. Encoded ticks are memcpy images of the packed structs of
 * schemas/trace.h (little-endian hosts only, checked below), so hashing and storing share one
 * buffer.
 */
#include "engine/trace/trace.h"

#include "base/check.h"
#include "engine/trace/trace_output.h"
#include "engine/trace/trace_pictures.h"
#include "engine/trace/trace_plan.h"
#include "kernels/digest.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { KEYFRAMES_FRAMES_MAX = 48 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "traces are written as host structs");

enum { TRACE_CAPACITY_MIN_BYTES = 64 * 1024 };

static size_t tick_bytes(uint32_t agent_count)
{
    return sizeof(struct trace_tick) + (size_t)agent_count * sizeof(struct trace_agent);
}

void trace_init(struct trace *trace, uint32_t agent_count)
{
    *trace = (struct trace){.agent_count = agent_count};
    sha256_init(&trace->hash);
}

void trace_finish(struct trace *trace)
{
    keyframes_finish(&trace->keyframes);
    reel_finish(&trace->reel);
    free(trace->plans.data);
    free(trace->pictures.data);
    free(trace->output);
    free(trace->data);
    trace->plans = (struct trace_plans){0};
    trace->pictures = (struct trace_pictures){0};
    trace->output = NULL;
    trace->output_bytes = 0;
    trace->data = NULL;
    trace->bytes = 0;
    trace->capacity_bytes = 0;
}

void trace_fork(struct trace *branch, const struct trace *parent, uint32_t tick)
{
    *branch = (struct trace){
        .agent_count = parent->agent_count,
        .first_tick = tick,
        .hash = parent->hash,
        .keyframes.period_ticks = parent->keyframes.period_ticks,
        .reel.room = parent->reel.room,
        .pictures.period_ticks = parent->keyframes.period_ticks,
        .pictures.room_bytes = parent->pictures.room_bytes,
    };
}

static enum status trace_reserve(struct trace *trace, size_t bytes, struct error *error)
{
    if (trace->capacity_bytes - trace->bytes >= bytes) {
        return STATUS_OK;
    }
    size_t capacity = trace->capacity_bytes * 2;
    if (capacity < TRACE_CAPACITY_MIN_BYTES) {
        capacity = TRACE_CAPACITY_MIN_BYTES;
    }
    if (capacity < trace->bytes + bytes) {
        capacity = trace->bytes + bytes;
    }
    uint8_t *data = realloc(trace->data, capacity);
    TRY(memory_check(data, error, "trace: out of memory for %zu bytes", capacity));
    trace->data = data;
    trace->capacity_bytes = capacity;
    return STATUS_OK;
}

enum status trace_append(struct trace *trace, const struct scene *scene,
                         const struct trace_extra *extra, struct error *error)
{
    size_t bytes = tick_bytes(trace->agent_count);
    CHECK(scene->agent_count == trace->agent_count);
    TRY(trace_reserve(trace, bytes, error));
    const struct ego_state *ego = &scene->ego;
    const struct trace_tick tick = {
        .tick = scene->tick,
        .weather = (uint8_t)scene->conditions.weather,
        .light = (uint8_t)scene->conditions.light,
        .sensors_dark = (uint8_t)extra->sensors_dark,
        .guardian = extra->guardian,
        .skipped = extra->skipped & 0x7f,
        .friction = (float)scene->conditions.friction,
        .visibility_m = (float)scene->conditions.visibility_m,
        .x_m = ego->pose.x_m,
        .y_m = ego->pose.y_m,
        .heading_rad = ego->pose.heading_rad,
        .speed_mps = ego->speed_mps,
        .accel_mps2 = ego->accel_mps2,
        .lat_accel_mps2 = ego->lat_accel_mps2,
        .yaw_rate_rps = ego->yaw_rate_rps,
        .steer_rad = ego->steer_rad,
        .action_accel_mps2 = extra->action.accel_mps2,
        .action_steer_rad = extra->action.steer_rad,
        .observation_digest = extra->observation_digest,
    };
    uint8_t *out = trace->data + trace->bytes;
    memcpy(out, &tick, sizeof tick);
    out += sizeof tick;
    for (uint32_t i = 0; i < trace->agent_count; i++) {
        const struct agent_state *state = &scene->agents[i];
        const struct trace_agent agent = {
            .x_m = state->pose.x_m,
            .y_m = state->pose.y_m,
            .heading_rad = state->pose.heading_rad,
            .speed_mps = state->speed_mps,
            .present = state->present,
        };
        memcpy(out, &agent, sizeof agent);
        out += sizeof agent;
    }
    sha256_update(&trace->hash, trace->data + trace->bytes, bytes);
    trace->bytes += bytes;
    trace->tick_count++;
    return STATUS_OK;
}

void trace_hash_hex(const struct trace *trace, char out[SHA256_HEX_BYTES])
{
    struct sha256 hash = trace->hash;
    uint8_t digest[SHA256_BYTES];
    sha256_final(&hash, digest);
    sha256_to_hex(digest, out);
}

static size_t keyframes_bytes(const struct trace *const *traces, uint32_t count)
{
    size_t frames = 0;
    for (uint32_t i = 0; i < count; i++) {
        frames += traces[i]->keyframes.count;
    }
    return frames == 0
               ? 0
               : sizeof(struct trace_keyframe_header) + frames * sizeof(struct trace_keyframe);
}

/* The keyframes section of keyframes_bytes() bytes, if there are any. */
static void pack_keyframes(const struct trace *const *traces, uint32_t count, size_t bytes,
                           uint8_t *out)
{
    if (bytes == 0) {
        return;
    }
    struct trace_keyframe_header header = {
        .frame_count = (uint32_t)((bytes - sizeof header) / sizeof(struct trace_keyframe)),
    };
    memcpy(header.magic, TRACE_KEYFRAME_MAGIC, sizeof header.magic);
    memcpy(out, &header, sizeof header);
    out += sizeof header;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < traces[i]->keyframes.count; f++) {
            memcpy(out, &traces[i]->keyframes.frames[f], sizeof(struct trace_keyframe));
            memcpy(out + offsetof(struct trace_keyframe, rollout), &i, sizeof i);
            out += sizeof(struct trace_keyframe);
        }
    }
}

enum status trace_pack(const struct trace *const *traces, const char *const *branch_ids,
                       const int32_t *parents, uint32_t count, uint8_t **data, size_t *bytes,
                       struct error *error)
{
    CHECK(count > 0);
    size_t total = sizeof(struct trace_file_header);
    for (uint32_t i = 0; i < count; i++) {
        total += sizeof(struct trace_rollout_header) + traces[i]->bytes;
    }
    size_t keyframe_sets = keyframes_bytes(traces, count);
    total += keyframe_sets;
    size_t plans = trace_plan_bytes(
        traces, count, total < LIMIT_ARTIFACT_BYTES ? LIMIT_ARTIFACT_BYTES - total : 0);
    total += plans;
    size_t pictures = trace_pictures_bytes(
        traces, count, total < LIMIT_ARTIFACT_BYTES ? LIMIT_ARTIFACT_BYTES - total : 0);
    total += pictures;
    size_t output = trace_output_bytes(
        traces, count, total < LIMIT_ARTIFACT_BYTES ? LIMIT_ARTIFACT_BYTES - total : 0);
    total += output;
    uint8_t *packed = malloc(total);
    TRY(memory_check(packed, error, "trace: out of memory for %zu bytes", total));
    struct trace_file_header header = {
        .rollout_count = count,
        .agent_count = traces[0]->agent_count,
    };
    memcpy(header.magic, TRACE_MAGIC, sizeof header.magic);
    uint8_t *out = packed;
    memcpy(out, &header, sizeof header);
    out += sizeof header;
    for (uint32_t i = 0; i < count; i++) {
        struct trace_rollout_header rollout = {
            .first_tick = traces[i]->first_tick,
            .tick_count = traces[i]->tick_count,
            .parent = parents[i],
        };
        size_t id_bytes = strlen(branch_ids[i]);
        CHECK(id_bytes < sizeof rollout.branch_id);
        memcpy(rollout.branch_id, branch_ids[i], id_bytes);
        memcpy(out, &rollout, sizeof rollout);
        out += sizeof rollout;
        if (traces[i]->bytes > 0) {
            memcpy(out, traces[i]->data, traces[i]->bytes);
            out += traces[i]->bytes;
        }
    }
    pack_keyframes(traces, count, keyframe_sets, out);
    trace_plan_pack(traces, count, plans, out + keyframe_sets);
    trace_pictures_pack(traces, count, pictures, out + keyframe_sets + plans);
    trace_output_pack(traces, count, output, out + keyframe_sets + plans + pictures);
    *data = packed;
    *bytes = total;
    return STATUS_OK;
}

uint64_t trace_artifact_bytes_max(const struct scenario *scenario)
{
    /* Each from tick 0: a branch whose session cannot be forked records its prefix too. */
    uint64_t rollouts = 1 + (uint64_t)scenario->branch_count;
    uint64_t ticks = (uint64_t)scenario->horizon_ticks + 1;
    return sizeof(struct trace_file_header) +
           rollouts *
               (sizeof(struct trace_rollout_header) + ticks * tick_bytes(scenario->agent_count));
}

uint32_t trace_keyframes_period_ticks(const struct scenario *scenario)
{
    uint64_t ticks_bytes = trace_artifact_bytes_max(scenario);
    if (ticks_bytes >= LIMIT_ARTIFACT_BYTES) {
        return 0;
    }
    uint64_t room = LIMIT_ARTIFACT_BYTES - ticks_bytes;
    room = room < KEYFRAMES_JOB_BYTES_MAX ? room : KEYFRAMES_JOB_BYTES_MAX;
    uint64_t rollouts = 1 + (uint64_t)scenario->branch_count;
    uint64_t frames =
        (room - sizeof(struct trace_keyframe_header)) / sizeof(struct trace_keyframe) / rollouts;
    frames = frames < KEYFRAMES_FRAMES_MAX ? frames : KEYFRAMES_FRAMES_MAX;
    if (room < sizeof(struct trace_keyframe_header) || frames < 3) {
        return 0;
    }
    /* Tick 0 and the last one come on top of a frame per period. */
    uint32_t period = (uint32_t)(scenario->horizon_ticks / (frames - 2) + 1);
    return period > KEYFRAMES_PERIOD_MIN_TICKS ? period : KEYFRAMES_PERIOD_MIN_TICKS;
}

/* Four independent multiply-xor lanes keep the multiplier busy. A sanitizer of addresses took a
 * quarter of a drive here, so it sees the last byte alone, which trace_digest reads. */
__attribute__((no_sanitize("address", "undefined"))) static void digest_blocks(uint64_t lane[4],
                                                                               uint64_t prime,
                                                                               const uint8_t *data,
                                                                               size_t bytes)
{
    for (size_t i = 0; i + 32 <= bytes; i += 32) {
        for (int k = 0; k < 4; k++) {
            uint64_t word;
            memcpy(&word, data + i + 8 * (size_t)k, sizeof word);
            lane[k] = (lane[k] ^ word) * prime;
            lane[k] ^= lane[k] >> 29;
        }
    }
}

uint64_t trace_digest(uint64_t seed, const uint8_t *data, size_t bytes)
{
    const uint64_t prime = UINT64_C(0x9E3779B185EBCA87);
    uint64_t lane[4] = {seed, seed ^ prime, ~seed, seed + prime};
    if (bytes > 0) {
        (void)((const volatile uint8_t *)data)[bytes - 1];
    }
    digest_blocks(lane, prime, data, bytes);
    uint64_t digest = bytes;
    for (int k = 0; k < 4; k++) {
        digest = (digest ^ lane[k]) * prime;
        digest ^= digest >> 32;
    }
    for (size_t i = bytes / 32 * 32; i < bytes; i++) { /* the tail, bytewise */
        digest = (digest ^ data[i]) * prime;
        digest ^= digest >> 32;
    }
    return digest;
}

_Static_assert(BEV_OCCUPANCY == 0 && BEV_UNSEEN == 1, "what a lidar finds begins the grid");

uint64_t trace_digest_returns(const uint8_t *bev)
{
    return digest_wide(1, bev, (size_t)2 * BEV_CELLS);
}

/* ---- reading ---- */

uint32_t trace_reader_end_tick(const struct trace_reader *reader, int32_t rollout)
{
    /* Parents are before their branches, so this walk ends. */
    while (rollout >= 0 && reader->rollouts[rollout].header.tick_count == 0) {
        rollout = reader->rollouts[rollout].header.parent;
    }
    if (rollout < 0) {
        return 0;
    }
    const struct trace_rollout_header *header = &reader->rollouts[rollout].header;
    return header->first_tick + header->tick_count;
}

/* Ticks follow one another, and the first one follows what the parent has. */
static enum status check_ticks(const struct trace_reader *reader, uint32_t index,
                               struct error *error)
{
    const struct trace_rollout_view *view = &reader->rollouts[index];
    uint32_t first = view->header.first_tick;
    /* Of an empty rollout too: its last tick is taken to be its first. */
    if ((uint64_t)first + view->header.tick_count > LIMIT_HORIZON_TICKS + 1) {
        return error_set(error, STATUS_BAD_INPUT,
                         "trace: rollout %u: expected ticks up to %d, found %u from tick %u", index,
                         LIMIT_HORIZON_TICKS, view->header.tick_count, first);
    }
    if (view->header.tick_count == 0) {
        return STATUS_OK;
    }
    if (first > trace_reader_end_tick(reader, view->header.parent)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "trace: rollout %u: begins at tick %u, its parent ends before", index,
                         first);
    }
    for (uint32_t i = 0; i < view->header.tick_count; i++) {
        uint32_t tick;
        memcpy(&tick, view->ticks + i * tick_bytes(reader->header.agent_count), sizeof tick);
        if (tick != first + i) {
            return error_set(error, STATUS_BAD_INPUT,
                             "trace: rollout %u: expected tick %u, found %u", index, first + i,
                             tick);
        }
    }
    return STATUS_OK;
}

static enum status read_rollout(struct trace_reader *reader, uint32_t index, const uint8_t *data,
                                size_t bytes, size_t *used, struct error *error)
{
    struct trace_rollout_view *view = &reader->rollouts[index];
    if (bytes - *used < sizeof view->header) {
        return error_set(error, STATUS_BAD_INPUT, "trace: rollout %u: header is cut off", index);
    }
    memcpy(&view->header, data + *used, sizeof view->header);
    *used += sizeof view->header;
    size_t need = (size_t)view->header.tick_count * tick_bytes(reader->header.agent_count);
    if (view->header.tick_count > LIMIT_HORIZON_TICKS + 1 || bytes - *used < need) {
        return error_set(error, STATUS_BAD_INPUT, "trace: rollout %u: %u ticks do not fit", index,
                         view->header.tick_count);
    }
    if (memchr(view->header.branch_id, '\0', sizeof view->header.branch_id) == NULL) {
        return error_set(error, STATUS_BAD_INPUT, "trace: rollout %u: branch id too long", index);
    }
    if (view->header.parent < -1 || view->header.parent >= (int32_t)index) {
        return error_set(error, STATUS_BAD_INPUT, "trace: rollout %u: parent %d is not before it",
                         index, view->header.parent);
    }
    view->ticks = data + *used;
    *used += need;
    return check_ticks(reader, index, error);
}

/* Part that may follow the rollouts: a set of keyframes, in order. *used: its bytes. */
static enum status read_keyframes(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                                  size_t *used, struct error *error)
{
    struct trace_keyframe_header header;
    uint64_t last = 0;
    if (bytes < sizeof header || memcmp(data, TRACE_KEYFRAME_MAGIC, sizeof header.magic) != 0) {
        return STATUS_OK;
    }
    memcpy(&header, data, sizeof header);
    uint64_t frames_bytes = (uint64_t)header.frame_count * sizeof(struct trace_keyframe);
    if (bytes - sizeof header < frames_bytes) {
        return error_set(error, STATUS_BAD_INPUT, "trace: %u keyframes in %zu bytes",
                         header.frame_count, bytes);
    }
    for (uint32_t i = 0; i < header.frame_count; i++) {
        uint32_t place[2]; /* rollout, tick */
        memcpy(place, data + sizeof header + i * sizeof(struct trace_keyframe), sizeof place);
        uint64_t key = (uint64_t)place[0] << 32 | place[1];
        if (place[0] >= reader->header.rollout_count || (i > 0 && key <= last)) {
            return error_set(error, STATUS_BAD_INPUT,
                             "trace: keyframe %u: rollout %u, tick %u is out of order", i, place[0],
                             place[1]);
        }
        last = key;
    }
    *used += sizeof header + frames_bytes;
    reader->keyframes = data + sizeof header;
    reader->keyframes_count = header.frame_count;
    return STATUS_OK;
}

enum status trace_reader_init(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                              struct error *error)
{
    struct recording_header recording;
    *reader = (struct trace_reader){0};
    if (bytes >= sizeof recording) {
        memcpy(&recording, data, sizeof recording);
        if (memcmp(recording.magic, RECORDING_MAGIC, sizeof recording.magic) == 0 &&
            recording.trace_bytes <= bytes - sizeof recording) {
            data += sizeof recording;
            bytes = (size_t)recording.trace_bytes;
        }
    }
    if (bytes < sizeof reader->header) {
        return error_set(error, STATUS_BAD_INPUT, "trace: %zu bytes are too few for a header",
                         bytes);
    }
    memcpy(&reader->header, data, sizeof reader->header);
    if (memcmp(reader->header.magic, TRACE_MAGIC, sizeof reader->header.magic) != 0) {
        return error_set(error, STATUS_BAD_INPUT, "trace: expected magic " TRACE_MAGIC);
    }
    if (reader->header.rollout_count == 0 || reader->header.rollout_count > LIMIT_BRANCHES + 1 ||
        reader->header.agent_count > LIMIT_AGENTS) {
        return error_set(error, STATUS_LIMIT, "trace: %u rollouts of %u agents exceed the limits",
                         reader->header.rollout_count, reader->header.agent_count);
    }
    reader->rollouts = calloc(reader->header.rollout_count, sizeof *reader->rollouts);
    TRY(memory_check(reader->rollouts, error, "trace: out of memory"));
    size_t used = sizeof reader->header;
    for (uint32_t i = 0; i < reader->header.rollout_count; i++) {
        enum status status = read_rollout(reader, i, data, bytes, &used, error);
        if (status != STATUS_OK) {
            trace_reader_finish(reader);
            return status;
        }
    }
    enum status status = read_keyframes(reader, data + used, bytes - used, &used, error);
    THEN(status, trace_plan_read(reader, data + used, bytes - used, &used, error));
    THEN(status, trace_pictures_read(reader, data + used, bytes - used, &used, error));
    THEN(status, trace_output_read(reader, data + used, bytes - used, error));
    if (status != STATUS_OK) {
        trace_reader_finish(reader);
    }
    return status;
}

void trace_reader_finish(struct trace_reader *reader)
{
    free(reader->rollouts);
    reader->rollouts = NULL;
}

int32_t trace_reader_find(const struct trace_reader *reader, const char *branch_id)
{
    for (uint32_t i = 0; i < reader->header.rollout_count; i++) {
        if (strcmp(reader->rollouts[i].header.branch_id, branch_id) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

const char *trace_reader_branch(const struct trace_reader *reader, int32_t rollout)
{
    return reader->rollouts[rollout].header.branch_id;
}

uint32_t trace_reader_last_tick(const struct trace_reader *reader, int32_t rollout)
{
    uint32_t end = trace_reader_end_tick(reader, rollout);
    return end > 0 ? end - 1 : 0;
}

bool trace_reader_tick(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                       struct trace_tick *out, struct trace_agent *agents)
{
    rollout = trace_reader_owner(reader, rollout, tick);
    if (rollout < 0) {
        return false;
    }
    const struct trace_rollout_view *view = &reader->rollouts[rollout];
    if (tick - view->header.first_tick >= view->header.tick_count) {
        return false;
    }
    size_t stride = tick_bytes(reader->header.agent_count);
    const uint8_t *at = view->ticks + (size_t)(tick - view->header.first_tick) * stride;
    memcpy(out, at, sizeof *out);
    memcpy(agents, at + sizeof *out, stride - sizeof *out);
    return true;
}

bool trace_reader_keyframes(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                            struct trace_keyframe *out)
{
    uint32_t best = UINT32_MAX;
    uint32_t best_apart = UINT32_MAX;
    rollout = trace_reader_owner(reader, rollout, tick);
    for (uint32_t i = 0; i < reader->keyframes_count; i++) {
        uint32_t place[2];
        memcpy(place, reader->keyframes + i * sizeof *out, sizeof place);
        uint32_t apart = place[1] > tick ? place[1] - tick : tick - place[1];
        if (rollout >= 0 && place[0] == (uint32_t)rollout && apart < best_apart) {
            best = i;
            best_apart = apart;
        }
    }
    if (best == UINT32_MAX) {
        return false;
    }
    memcpy(out, reader->keyframes + best * sizeof *out, sizeof *out);
    return true;
}

bool trace_reader_scene(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                        struct scene *out, struct trace_tick *tick_out)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    if (!trace_reader_tick(reader, rollout, tick, &at, agents)) {
        return false;
    }
    *out = (struct scene){
        .tick = at.tick,
        .agent_count = reader->header.agent_count,
        .ego = {.pose = {at.x_m, at.y_m, at.heading_rad},
                .speed_mps = at.speed_mps,
                .accel_mps2 = at.accel_mps2,
                .lat_accel_mps2 = at.lat_accel_mps2,
                .yaw_rate_rps = at.yaw_rate_rps,
                .steer_rad = at.steer_rad},
        .conditions = {.weather = (enum weather)(at.weather % WEATHER_COUNT),
                       .light = (enum light)(at.light % LIGHT_COUNT),
                       .friction = at.friction,
                       .visibility_m = at.visibility_m},
    };
    memset(out->signal_light, TRAFFIC_LIGHT_COUNT, sizeof out->signal_light); /* not recorded */
    for (uint32_t i = 0; i < reader->header.agent_count; i++) {
        out->agents[i] = (struct agent_state){
            .pose = {agents[i].x_m, agents[i].y_m, agents[i].heading_rad},
            .speed_mps = agents[i].speed_mps,
            .present = agents[i].present != 0,
        };
    }
    if (tick_out != NULL) {
        *tick_out = at;
    }
    return true;
}
