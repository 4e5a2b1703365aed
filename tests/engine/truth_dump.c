/*
 * Dumps what the engine computes on recorded scenes, for scripts/truth.py to compare with PyTorch.
 *
 *   truth_dump MODEL fp32|bf16|int8 agents|map|none TICKS CLIPS HISTORY OUT SHARD..
 *
 * The first CLIPS clips of every shard of `swerve datagen` are driven TICKS ticks from their first
 * frame: layouts, conditions and ego as recorded, earlier frames as the engine itself generates
 * them (HISTORY is "own") or as another dump of the same scenes holds them. OUT is a safetensors
 * file: `frame` U8 [scenes][TICKS][bytes], and of each probe every 61st value, F32
 * [scenes][TICKS][steps][values]. The noise key of a scene is its clip's seed, the tick its place.
 */
#include "base/check.h"
#include "engine/learned/forward.h"
#include "engine/learned/safetensors.h"
#include "kernels/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRIDE = 61, PROBES_MAX = 64, THREADS = 2 };

struct probe {
    char name[16];
    size_t count; /* kept values of a step */
    float *values;
};

struct dump {
    const struct model *model;
    struct workspace *workspace;
    enum conditioning conditioning;
    uint32_t ticks;
    uint32_t scenes;
    uint32_t scene; /* the present one */
    uint32_t tick;
    uint8_t *frames;        /* [scenes][ticks][FRAME_BYTES] */
    const uint8_t *history; /* the same shape: frames, or those of another dump */
    uint8_t *memory;        /* ring of config.window + 1 */
    uint32_t probe_count;
    struct probe probes[PROBES_MAX];
};

static _Noreturn void quit(const char *text)
{
    fprintf(stderr, "truth_dump: %s\n", text);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *at = calloc(count, size);
    if (at == NULL) {
        quit("no memory");
    }
    return at;
}

static void keep_probe(void *context, uint32_t step, const char *name, const float *values,
                       size_t count)
{
    struct dump *dump = context;
    uint32_t steps = model_config(dump->model)->steps;
    size_t kept = (count + STRIDE - 1) / STRIDE;
    uint32_t i = 0;
    while (i < dump->probe_count && strcmp(dump->probes[i].name, name) != 0) {
        i++;
    }
    struct probe *probe = &dump->probes[i];
    if (i == dump->probe_count) {
        CHECK(i < PROBES_MAX);
        dump->probe_count++;
        snprintf(probe->name, sizeof probe->name, "%s", name);
        probe->count = kept;
        probe->values = allocate((size_t)dump->scenes * dump->ticks * steps, kept * sizeof(float));
    }
    size_t row = ((size_t)dump->scene * dump->ticks + dump->tick) * steps + step;
    for (size_t k = 0; k < kept; k++) {
        probe->values[row * kept + k] = values[k * STRIDE];
    }
}

static const void *clip_of(const struct safetensors *shard, const char *name, uint32_t clip,
                           uint32_t tick)
{
    const struct safetensors_tensor *tensor = safetensors_find(shard, name);
    if (tensor == NULL || tensor->rank < 3 || clip >= tensor->shape[0] ||
        tick >= tensor->shape[1]) {
        quit("a shard has too few clips or frames, or is none");
    }
    size_t frame = tensor->bytes / tensor->shape[0] / tensor->shape[1];
    return (const uint8_t *)tensor->data + (clip * tensor->shape[1] + tick) * frame;
}

/* The layout of a conditioning from what a shard holds (engine/model.md, "Training shards"). */
static void make_layout(const struct dump *dump, const struct safetensors *shard, uint32_t clip,
                        uint8_t *bev, uint8_t *cameras)
{
    enum { CLEAN = FRAME_DRIVABLE };
    const uint8_t *sensed = clip_of(shard, "bev", clip, dump->tick);
    const uint8_t *clean = clip_of(shard, "clean", clip, dump->tick);
    bool agents = dump->conditioning == CONDITIONING_AGENTS;
    bool mapped = dump->conditioning != CONDITIONING_NONE;
    for (size_t p = 0; p < WINDOW_POSITIONS; p++) {
        for (size_t k = 0; k < FRAME_BEV_CHANNELS; k++) {
            size_t at = p * FRAME_BEV_CHANNELS + k;
            bool map = k >= FRAME_DRIVABLE && k < FRAME_VELOCITY;
            uint8_t empty = k >= FRAME_VELOCITY ? 128 : 0;
            uint8_t known = k < CLEAN ? clean[p * CLEAN + k] : sensed[at];
            bev[at] = agents || (map && mapped) ? known : empty;
        }
    }
    if (!mapped) {
        memset(cameras, 128, FRAME_CAMERA_BYTES);
        return;
    }
    memcpy(cameras, clip_of(shard, agents ? "camera_agents" : "camera_map", clip, dump->tick),
           FRAME_CAMERA_BYTES);
}

static size_t frame_at(const struct dump *dump, uint32_t tick)
{
    return ((size_t)dump->scene * dump->ticks + tick) * FRAME_BYTES;
}

static uint8_t *memory_at(const struct dump *dump, uint32_t tick)
{
    uint32_t slots = model_config(dump->model)->window + 1;
    return dump->memory +
           (size_t)(tick % slots) * ((forward_memory_bytes(dump->model) + 63) & ~63ul);
}

static struct window window_at(const struct safetensors *shard, uint32_t clip, uint32_t tick)
{
    const int32_t *window = clip_of(shard, "window", clip, tick);
    return (struct window){window[0], window[1]};
}

static void run_tick(struct dump *dump, const struct safetensors *shard, uint32_t clip,
                     uint64_t seed)
{
    static uint8_t layout_bev[FRAME_BEV_BYTES];
    static uint8_t layout_cameras[FRAME_CAMERA_BYTES];
    uint32_t tick = dump->tick;
    uint32_t window = model_config(dump->model)->window;
    const float *ego = clip_of(shard, "ego", clip, tick);
    float cond[COND_COUNT];
    memcpy(cond, clip_of(shard, "cond", clip, tick), sizeof cond);
    for (uint32_t k = 0; k < CONDITIONING_COUNT; k++) {
        cond[k] = k == (uint32_t)dump->conditioning;
    }
    make_layout(dump, shard, clip, layout_bev, layout_cameras);
    struct forward_input input = {
        .seed = seed,
        .tick = tick,
        .conditioning = dump->conditioning,
        .window = window_at(shard, clip, tick),
        .ego = {ego[0], ego[1], ego[2]},
        .cond = cond,
        .layout_bev = layout_bev,
        .layout_cameras = layout_cameras,
        .page_count = tick < window ? tick : window,
    };
    for (uint32_t i = 0; i < input.page_count; i++) {
        uint32_t then = tick - 1 - i;
        input.pages[i] = (struct forward_page){dump->history + frame_at(dump, then),
                                               memory_at(dump, then), window_at(shard, clip, then)};
    }
    struct forward_output output = {
        .frame = dump->frames + frame_at(dump, tick), .probe = keep_probe, .probe_context = dump};
    forward_tick(dump->model, dump->workspace, &input, &output);
    forward_memory(dump->model, dump->workspace, dump->history + frame_at(dump, tick),
                   memory_at(dump, tick));
}

static void write_dump(const struct dump *dump, const char *path)
{
    uint32_t steps = model_config(dump->model)->steps;
    size_t frames = (size_t)dump->scenes * dump->ticks * FRAME_BYTES;
    size_t at = 0;
    char header[16384];
    size_t used = (size_t)snprintf(header, sizeof header, "{\"__metadata__\":{\"model\":\"%s\"}",
                                   model_hash(dump->model));
    for (uint32_t i = 0; i < dump->probe_count; i++) {
        const struct probe *probe = &dump->probes[i];
        size_t bytes = (size_t)dump->scenes * dump->ticks * steps * probe->count * sizeof(float);
        used += (size_t)snprintf(header + used, sizeof header - used,
                                 ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%u,%u,%u,%zu],"
                                 "\"data_offsets\":[%zu,%zu]}",
                                 probe->name, dump->scenes, dump->ticks, steps, probe->count, at,
                                 at + bytes);
        at += bytes;
    }
    used += (size_t)snprintf(header + used, sizeof header - used,
                             ",\"frame\":{\"dtype\":\"U8\",\"shape\":[%u,%u,%d],"
                             "\"data_offsets\":[%zu,%zu]}}",
                             dump->scenes, dump->ticks, FRAME_BYTES, at, at + frames);
    while (used % 8 != 0) {
        header[used++] = ' ';
    }
    uint64_t length = used;
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(&length, sizeof length, 1, file) == 1 &&
                   fwrite(header, used, 1, file) == 1;
    for (uint32_t i = 0; written && i < dump->probe_count; i++) {
        const struct probe *probe = &dump->probes[i];
        size_t count = (size_t)dump->scenes * dump->ticks * steps * probe->count;
        written = fwrite(probe->values, sizeof(float), count, file) == count;
    }
    written = written && fwrite(dump->frames, 1, frames, file) == frames;
    if (file == NULL || fclose(file) != 0 || !written) {
        quit("cannot write the output");
    }
}

static const uint8_t *history_of(const char *path, const struct dump *dump,
                                 struct safetensors **file)
{
    struct error error = {0};
    if (strcmp(path, "own") == 0) {
        return dump->frames;
    }
    if (safetensors_open(path, SAFETENSORS_MAP, file, &error) != STATUS_OK) {
        quit(error.text);
    }
    const struct safetensors_tensor *frames = safetensors_find(*file, "frame");
    if (frames == NULL || frames->bytes != (size_t)dump->scenes * dump->ticks * FRAME_BYTES) {
        quit("the history is of other scenes");
    }
    return frames->data;
}

static enum nn_precision precision_named(const char *name)
{
    for (int i = 0; i < NN_PRECISION_COUNT; i++) {
        if (strcmp(name, nn_precision_names[i]) == 0) {
            return (enum nn_precision)i;
        }
    }
    quit("the precision is none of fp32, bf16 and int8");
}

int main(int argc, char **argv)
{
    if (argc < 9) {
        quit("MODEL fp32|bf16|int8 agents|map|none TICKS CLIPS HISTORY OUT SHARD..");
    }
    struct error error = {0};
    struct model *model = NULL;
    struct dump dump = {.ticks = (uint32_t)atoi(argv[4])};
    uint32_t clips = (uint32_t)atoi(argv[5]);
    const struct model_open_options options = {.precision = precision_named(argv[2]),
                                               .cpu_flags = cpu_flags_detect()};
    dump.conditioning = strcmp(argv[3], "agents") == 0 ? CONDITIONING_AGENTS
                        : strcmp(argv[3], "map") == 0  ? CONDITIONING_MAP
                                                       : CONDITIONING_NONE;
    dump.scenes = clips * (uint32_t)(argc - 8);
    if (model_open(argv[1], &options, &model, &error) != STATUS_OK ||
        workspace_create(model, THREADS, &dump.workspace, &error) != STATUS_OK) {
        quit(error.text);
    }
    dump.model = model;
    dump.frames = allocate((size_t)dump.scenes * dump.ticks, FRAME_BYTES);
    size_t memory =
        ((forward_memory_bytes(model) + 63) & ~63ul) * (model_config(model)->window + 1);
    dump.memory = aligned_alloc(64, memory);
    if (dump.memory == NULL) {
        quit("no memory");
    }
    struct safetensors *history = NULL;
    dump.history = history_of(argv[6], &dump, &history);
    for (int i = 8; i < argc; i++) {
        struct safetensors *shard = NULL;
        if (safetensors_open(argv[i], SAFETENSORS_MAP, &shard, &error) != STATUS_OK) {
            quit(error.text);
        }
        const struct safetensors_tensor *seeds = safetensors_find(shard, "clip");
        for (uint32_t clip = 0; clip < clips; clip++, dump.scene++) {
            if (seeds == NULL || seeds->rank != 2 || clip >= seeds->shape[0]) {
                quit("a shard has too few clips");
            }
            uint64_t seed = (uint64_t)((const int64_t *)seeds->data)[clip * seeds->shape[1]];
            for (dump.tick = 0; dump.tick < dump.ticks; dump.tick++) {
                run_tick(&dump, shard, clip, seed);
            }
        }
        safetensors_close(shard);
    }
    write_dump(&dump, argv[7]);
    for (uint32_t i = 0; i < dump.probe_count; i++) {
        free(dump.probes[i].values);
    }
    free(dump.frames);
    free(dump.memory);
    safetensors_close(history);
    workspace_destroy(dump.workspace);
    model_close(model);
    return 0;
}
