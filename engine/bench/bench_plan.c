/*
 * Plans of world models on GPUs that are not here. See bench_plan.h.
 */
#include "engine/bench/bench_plan.h"

#include "base/check.h"
#include "base/file.h"
#include "engine/learned/model_internal.h"
#include "kernels/trunk/trunk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 16, SCHEDULERS = 4 };

#define SHARE 0.8              /* of what a GPU has at most */
#define TICK_S 0.1             /* of a world step */
#define SPEED_MPH 30.0         /* of a rollout */
#define LAUNCH_S 2e-6          /* of a captured graph, at least */
#define EXCHANGE_START_S 20e-6 /* before the first byte of an exchange arrives */
#define WGMMA_FLOP 262144.0    /* of m64n128k16, by a warpgroup's four warps */
#define MMA_FLOP 4096.0        /* of m16n8k16, by a warp */

/* Of NVIDIA's data sheets, dense: multiprocessors, clock under load, operations per cycle and
 * multiprocessor in bf16 and e4m3, and in bf16 by mma.sync; memory; a link to other GPUs, one way.
 * On Hopper mma.sync reaches 62% of wgmma (Luo et al., 2024); of Blackwell, for which there is no
 * code of its own here, the same is assumed of each multiprocessor. Prices are assumptions
 * (docs/plan.md). */
static const struct gpu {
    const char *name;
    const char *code; /* rows of the table */
    bool wgmma;
    double count, hz, bf16, e4m3, mma;
    double bytes_per_s, memory_bytes, link_bytes_per_s, usd_per_hour;
} gpus[BENCH_PLAN_DEVICES] = {
    {"H100", "sm_90a", true, 132, 1.70e9, 4096, 8192, 2540, 3.35e12, 80e9, 450e9, 2.0},
    {"H200", "sm_90a", true, 132, 1.70e9, 4096, 8192, 2540, 4.8e12, 141e9, 450e9, 2.5},
    {"B200", "sm_90a", false, 148, 1.85e9, 8192, 16384, 2540, 8.0e12, 180e9, 900e9, 4.0},
    {"L40S", "sm_80", false, 142, 2.20e9, 1024, 2048, 1024, 0.864e12, 48e9, 32e9, 0.9},
    {"A100", "sm_80", false, 108, 1.41e9, 2048, 0, 2048, 2.04e12, 80e9, 300e9, 1.2},
};

/* ---- the table of machine code ---- */

struct code {
    unsigned instructions, loop, products;
};

static bool code_find(const char *table, const char *arch, const char *kernel, struct code *out)
{
    for (const char *line = table; line != NULL && *line != 0;) {
        char found_arch[8];
        char found[96];
        unsigned narrow;
        struct code code;
        if (sscanf(line, "%7s %u %u %u %u %*s %95[^\n]", found_arch, &code.instructions, &code.loop,
                   &code.products, &narrow, found) == 6 &&
            strcmp(found_arch, arch) == 0 && strcmp(found, kernel) == 0) {
            *out = code;
            return true;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return false;
}

/* ---- one operation on one GPU ---- */

/* Who issues the instructions of an operation: a kernel of the table, "" where it is on the library
 * or moves bytes alone; of one that does not multiply on tensor cores, the warps, and the turns of
 * its loop by all of them, 0: one each. */
struct issuer {
    char kernel[64];
    double warps, turns;
};

static struct issuer issuer_of(const struct trunk_op *op, const struct gpu *gpu)
{
    struct issuer out = {"", 0.0, 0.0};
    const struct gpu_attention *a = &op->attention;
    const struct gpu_temporal *t = &op->temporal;
    const struct gpu_rotate *r = &op->rotate;
    const size_t room = sizeof out.kernel;
    switch (op->kind) {
    case TRUNK_ATTENTION:
        if (a->grid.rows != 0) {
            snprintf(out.kernel, room, "window_kernel<%u>", a->head_dim);
        } else if (gpu->wgmma && a->head_dim == 128) {
            snprintf(out.kernel, room, "wide_kernel");
        } else {
            snprintf(out.kernel, room, "range_kernel<%u>", a->head_dim);
        }
        break;
    case TRUNK_TEMPORAL: /* a warp takes the query heads of one key/value head of one token */
        snprintf(out.kernel, room, "temporal_kernel<%u, %s>", t->head_dim,
                 t->kv_type == GPU_E4M3 ? "true" : "false");
        out.warps = (double)t->tokens * t->kv_heads;
        out.turns = (double)t->tokens * t->heads;
        break;
    case TRUNK_RESIDUAL:
        snprintf(out.kernel, room, "residual_kernel<%u, %s, %s>",
                 gpu_residual_vectors(op->residual.width),
                 op->residual.in_type == GPU_BF16 ? "true" : "false",
                 op->residual.x_type == GPU_BF16 ? "true" : "false");
        out.warps = (double)op->residual.rows * GPU_ROW_WARPS;
        break;
    case TRUNK_ACTIVATE:
        snprintf(out.kernel, room, "activate_kernel<%u>", gpu_activate_vectors(op->activate.width));
        out.warps = (double)op->activate.rows * GPU_ROW_WARPS;
        break;
    case TRUNK_ROTATE: /* a thread takes eight numbers */
        snprintf(out.kernel, room, "rotate_kernel");
        out.warps = (double)r->rows * r->width / (8 * 32);
        break;
    case TRUNK_GATHER:
        snprintf(out.kernel, room, "gather_kernel<%s>",
                 op->gather.type == GPU_E4M3 ? "true" : "false");
        out.warps = 2.0 * op->gather.tokens * op->gather.page_count * op->gather.heads *
                    op->gather.head_dim / (8 * 32);
        break;
    case TRUNK_PAGE_STORE: /* a warp takes the keys or the values of a head */
        snprintf(out.kernel, room, "page_store_kernel");
        out.warps = 2.0 * op->page_store.rows * op->page_store.heads;
        break;
    case TRUNK_CONV:
        snprintf(out.kernel, room, "conv_kernel<%d>", op->conv.out_channels % 64 == 0 ? 64 : 32);
        break;
    default:
        break;
    }
    return out;
}

static enum status time_op(const struct trunk_op *op, const struct gpu *gpu, const char *table,
                           struct bench_plan_time *out, struct error *error)
{
    const struct issuer issuer = issuer_of(op, gpu);
    const char *kernel = issuer.kernel;
    struct code code;
    double flop = trunk_op_flop(op);
    double rate = op->kind == TRUNK_MATMUL && op->matmul.type == GPU_E4M3 ? gpu->e4m3 : gpu->bf16;
    double instructions = 0.0;
    if (kernel[0] != 0) {
        const bool wgmma = strcmp(kernel, "wide_kernel") == 0;
        if (!code_find(table, gpu->code, kernel, &code)) {
            return error_set(error, STATUS_BAD_INPUT,
                             "the plan: expected a kernel that the table of machine code has, "
                             "found %s of %s",
                             kernel, gpu->code);
        }
        if (code.products > 0 && code.loop > 0) { /* a warpgroup's four warps issue each */
            instructions = flop / code.products * code.loop;
            instructions *= wgmma ? SCHEDULERS / WGMMA_FLOP : 1.0 / MMA_FLOP;
        } else {
            instructions = issuer.warps * code.instructions;
            instructions += issuer.turns > 0.0 ? (issuer.turns - issuer.warps) * code.loop : 0.0;
            flop = 0.0; /* no tensor cores */
        }
        rate = wgmma ? rate : gpu->mma;
    }
    out->tensor_cycles = flop > 0.0 ? flop / rate / gpu->count : 0.0;
    out->issue_cycles = instructions / SCHEDULERS / gpu->count;
    double compute_s = fmax(out->tensor_cycles, out->issue_cycles) / gpu->hz;
    out->s = fmax(compute_s, trunk_op_bytes(op) / gpu->bytes_per_s) / SHARE;
    out->s = fmax(out->s, LAUNCH_S);
    return STATUS_OK;
}

/* ---- the list ---- */

struct planner {
    struct bench_plan *out;
    const char *code;
    enum status status;
    struct error *error;
};

static const char *type_of(const struct trunk_op *op)
{
    return op->kind != TRUNK_MATMUL ? "" : op->matmul.type == GPU_E4M3 ? "e4m3" : "bf16";
}

/* The row of such operations, a new one where there is none. */
static struct bench_plan_row *row_of(struct bench_plan *plan, const struct trunk_op *op)
{
    const char *kernel = trunk_kind_name(op->kind);
    const char *name = op->name != NULL ? op->name : "";
    const char *type = type_of(op);
    for (uint32_t i = 0; i < plan->row_count; i++) {
        struct bench_plan_row *row = &plan->rows[i];
        if (row->kernel == kernel && strcmp(row->name, name) == 0 && row->type == type) {
            return row;
        }
    }
    CHECK(plan->row_count < BENCH_PLAN_ROWS_MAX);
    struct bench_plan_row *row = &plan->rows[plan->row_count++];
    *row = (struct bench_plan_row){.kernel = kernel, .name = name, .type = type};
    return row;
}

static void exchange_op(struct bench_plan *plan, const struct trunk_op *op)
{
    double bytes = (double)op->all_to_all.bytes_each * (plan->ranks - 1);
    plan->exchanges++;
    plan->exchanged_bytes += bytes;
    for (int i = 0; i < BENCH_PLAN_DEVICES; i++) {
        plan->devices[i].exchange_s +=
            EXCHANGE_START_S + bytes / (SHARE * gpus[i].link_bytes_per_s);
    }
}

static void take_op(void *context, const struct trunk_op *op)
{
    struct planner *planner = context;
    struct bench_plan *plan = planner->out;
    struct bench_plan_row *row = row_of(plan, op);
    row->launches++;
    row->flop += trunk_op_flop(op);
    row->bytes += trunk_op_bytes(op);
    plan->launches++;
    plan->flop += trunk_op_flop(op);
    plan->bytes += trunk_op_bytes(op);
    if (op->kind == TRUNK_ALL_TO_ALL) {
        exchange_op(plan, op);
        return;
    }
    for (int i = 0; i < BENCH_PLAN_DEVICES; i++) {
        struct bench_plan_time time = {0};
        if (plan->devices[i].runs != 0) {
            THEN(planner->status, time_op(op, &gpus[i], planner->code, &time, planner->error));
        }
        row->on[i].tensor_cycles += time.tensor_cycles;
        row->on[i].issue_cycles += time.issue_cycles;
        row->on[i].s += time.s;
        plan->devices[i].compute_s += time.s;
    }
}

/* ---- figures of a GPU ---- */

double bench_plan_chunked(double compute_s, double exchange_s, uint32_t chunks)
{
    return fmax(compute_s, exchange_s) + fmin(compute_s, exchange_s) / chunks;
}

uint32_t bench_plan_slots(double memory_bytes, double shared_bytes, double window_bytes)
{
    double slots = floor((memory_bytes - shared_bytes) / window_bytes);
    return slots > 0.0 ? (uint32_t)slots : 0;
}

static void finish_device(struct bench_plan *plan, int which)
{
    struct bench_plan_device *device = &plan->devices[which];
    if (device->runs == 0) {
        device->exchange_s = 0.0;
        return;
    }
    device->step_s = bench_plan_chunked(device->compute_s, device->exchange_s, 1);
    device->chunked_s = bench_plan_chunked(device->compute_s, device->exchange_s,
                                           device->exchange_s > 0.0 ? BENCH_PLAN_CHUNKS : 1);
    device->miles_per_hour = SPEED_MPH * TICK_S / device->chunked_s / plan->ranks;
    device->usd_per_mile = device->usd_per_hour / device->miles_per_hour;
    device->slots = bench_plan_slots(SHARE * gpus[which].memory_bytes,
                                     plan->weight_bytes + plan->workspace_bytes,
                                     plan->window_bytes + plan->page_bytes);
}

enum status bench_plan_of(const struct trunk_config *config, uint32_t ranks, const char *code,
                          struct bench_plan *out, struct error *error)
{
    struct trunk trunk;
    struct device_text why;
    if (trunk_prepare(config, 0, ranks, &trunk, &why) != DEVICE_OK) {
        return error_set(error, ranks > 0 ? STATUS_USAGE : STATUS_BAD_INPUT, "the plan: %s",
                         why.text);
    }
    struct bench_plan plan = {
        .tokens = trunk.all_tokens,
        .steps = config->steps,
        .ranks = trunk.ranks,
        .parameters = trunk.parameters,
        .weight_bytes = (double)trunk.weight_bytes,
        .workspace_bytes = (double)trunk.workspace_bytes,
        .page_bytes = (double)trunk.page.page_bytes,
        .window_bytes = (double)trunk.page.page_bytes * config->window,
    };
    snprintf(plan.name, sizeof plan.name, "%s", config->name);
    for (int i = 0; i < BENCH_PLAN_DEVICES; i++) {
        plan.devices[i] = (struct bench_plan_device){
            .name = gpus[i].name,
            .code = gpus[i].code,
            .usd_per_hour = gpus[i].usd_per_hour,
            .runs = config->type != GPU_E4M3 || gpus[i].e4m3 > 0.0,
        };
    }
    struct planner planner = {&plan, code, STATUS_OK, error};
    trunk_plan(&trunk, &(struct trunk_sink){take_op, &planner});
    TRY(planner.status);
    for (int i = 0; i < BENCH_PLAN_DEVICES; i++) {
        finish_device(&plan, i);
    }
    *out = plan;
    return STATUS_OK;
}

/* ---- configurations ---- */

static struct trunk_maps maps_of(uint32_t images, uint32_t rows, uint32_t cols, uint32_t channels,
                                 uint32_t context_channels, uint32_t latents)
{
    return (struct trunk_maps){images,           rows,    cols,           channels,
                               context_channels, latents, LATENT_CHANNELS};
}

struct trunk_config bench_plan_trunk(const struct model_config *model)
{
    const uint32_t patch = model->patch;
    struct trunk_config config = {
        .name = model->name,
        .width = model->width,
        .layers = model->layers,
        .heads = model->heads,
        .kv_heads = model->kv_heads,
        .head_dim = model->head_dim,
        .hidden = 4 * model->width,
        .features = COND_COUNT + MODEL_FEATURES,
        .view_count = CAMERA_COUNT,
        .view_rows = FRAME_CAMERA_ROWS / patch,
        .view_cols = FRAME_CAMERA_COLS / patch,
        .bev_rows = WINDOW_SIDE / patch,
        .bev_cols = WINDOW_SIDE / patch,
        .window = model->window,
        .reach = model->reach,
        .past = model->past,
        .steps = model->steps,
        .type = model->type == MODEL_E4M3 ? GPU_E4M3 : GPU_BF16,
        .pages = model->pages == MODEL_E4M3 ? GPU_E4M3 : GPU_BF16,
        .reference_layers = model->reference_layers,
        .patch = patch,
        .maps = {maps_of(1, WINDOW_SIDE, WINDOW_SIDE, model->bev_channels, CONTEXT_BEV_CHANNELS,
                         FRAME_BEV_CHANNELS),
                 maps_of(CAMERA_COUNT, FRAME_CAMERA_ROWS, FRAME_CAMERA_COLS, model->camera_channels,
                         CONTEXT_CAMERA_CHANNELS, FRAME_CAMERA_CHANNELS)},
    };
    for (uint32_t layer = 0; layer < model->layers; layer++) {
        config.joint |= (uint64_t)model->joint[layer] << layer;
    }
    return config;
}

/* The header of a model's file: its configuration, and how many numbers its tensors have. */
static enum status read_header(const char *path, struct model_config *config, double *numbers,
                               struct error *error)
{
    struct safetensors *file = NULL;
    TRY(safetensors_open(path, SAFETENSORS_MAP, &file, error));
    const char *text = safetensors_metadata(file, "config");
    enum status status = text != NULL
                             ? model_config_parse(path, text, strlen(text), config, error)
                             : error_set(error, STATUS_BAD_INPUT,
                                         "%s: __metadata__: expected \"config\", found none", path);
    *numbers = 0.0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        const char *end = strrchr(tensor->name, '.');
        const bool scale = end != NULL && strcmp(end, ".scale") == 0; /* of weights in e4m3 */
        *numbers += scale ? 0.0 : (double)tensor->count;
    }
    safetensors_close(file);
    return status;
}

static enum status plan_file(const char *path, uint32_t ranks, const char *code,
                             struct bench_plan *out, struct error *error)
{
    struct model_config config;
    struct bench_plan plan;
    double numbers;
    TRY(read_header(path, &config, &numbers, error));
    const struct trunk_config trunk = bench_plan_trunk(&config);
    TRY(bench_plan_of(&trunk, ranks, code, &plan, error));
    if (numbers != plan.parameters) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: tensors: expected %.0f numbers, by the configuration, found %.0f",
                         path, plan.parameters, numbers);
    }
    *out = plan;
    return STATUS_OK;
}

static enum status plan_text(const char *path, uint32_t ranks, const char *code,
                             struct bench_plan *out, struct error *error)
{
    struct model_config config;
    char *text = NULL;
    size_t bytes = 0;
    TRY(file_read(path, CONFIG_BYTES_MAX, &text, &bytes, error));
    enum status status = model_config_parse(path, text, bytes, &config, error);
    free(text);
    TRY(status);
    const struct trunk_config trunk = bench_plan_trunk(&config);
    return bench_plan_of(&trunk, ranks, code, out, error);
}

enum status bench_plan_make(const char *path, const char *config, uint32_t ranks, const char *code,
                            struct bench_plan *out, struct error *error)
{
    if (path != NULL) {
        return plan_file(path, ranks, code, out, error);
    }
    const struct trunk_config *named = trunk_config_find(config);
    return named != NULL ? bench_plan_of(named, ranks, code, out, error)
                         : plan_text(config, ranks, code, out, error);
}
