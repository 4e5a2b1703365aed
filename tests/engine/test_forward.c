/*
 * Goal: the forward pass computes what engine/model.md says, in every precision, and its bits
 * depend on nothing but model and input.
 * Method: the tiny random model of tests/engine/data against the results that
 * scripts/train/fixture.py got from PyTorch in double precision, probe by probe; then thread
 * counts, a used workspace and a second workspace must give the same bytes.
 */
#include "base/check.h"
#include "engine/learned/forward_internal.h"
#include "kernels/cpu.h"
#include "tests/engine/forward_inputs.h"
#include "tests/harness.h"

#include <stdatomic.h>

static const char *data_directory;

static struct model *open_tiny(enum nn_precision precision, uint32_t cpu_flags)
{
    char path[4096];
    struct model *model = NULL;
    struct error error = {0};
    snprintf(path, sizeof path, "%s/tiny.safetensors", data_directory);
    const struct model_open_options options = {.precision = precision, .cpu_flags = cpu_flags};
    EXPECT_OK(model_open(path, &options, &model, &error), error);
    return model;
}

static struct workspace *make_workspace(const struct model *model, uint32_t threads)
{
    struct workspace *workspace = NULL;
    struct error error = {0};
    EXPECT_OK(workspace_create(model, threads, &workspace, &error), error);
    return workspace;
}

/* ---- against PyTorch ---- */

enum { STRIDE = 61 };

struct comparison {
    const struct safetensors *expected;
    const char *tick; /* "map", "none", "agents" */
    double error_max; /* relative, by norms */
    double cosine_min;
    char worst[64];
    uint32_t compared;
};

static void compare(void *context, uint32_t step, const char *name, const float *values,
                    size_t count)
{
    struct comparison *c = context;
    char key[96];
    snprintf(key, sizeof key, "%s.%u.%s", c->tick, step, name);
    const struct safetensors_tensor *tensor = safetensors_find(c->expected, key);
    if (tensor == NULL) {
        return; /* "cam.h" is not in the file */
    }
    size_t stride = strcmp(name, "final") == 0 ? 1 : STRIDE;
    const float *truth = tensor->data;
    double difference2 = 0.0;
    double truth2 = 0.0;
    double found2 = 0.0;
    double matmul = 0.0;
    size_t at = 0;
    for (size_t i = 0; i < count; i += stride, at++) {
        double a = values[i];
        double b = truth[at < tensor->count ? at : 0];
        difference2 += (a - b) * (a - b);
        truth2 += b * b;
        found2 += a * a;
        matmul += a * b;
    }
    EXPECT_INT(at, tensor->count);
    double error = sqrt(difference2 / truth2);
    double cosine = matmul / sqrt(truth2 * found2);
    printf("# %s: relative error %.2e, 1 - cosine %.2e\n", key, error, 1.0 - cosine);
    c->compared++;
    if (!(error <= c->error_max)) {
        c->error_max = error;
        memcpy(c->worst, key, sizeof c->worst - 1);
    }
    c->cosine_min = cosine < c->cosine_min ? cosine : c->cosine_min;
}

/* Of bytes[count], those that differ from PyTorch's `<tick>.<name>` by more than `tolerance`. */
static uint32_t count_wrong(const struct comparison *c, const char *name, const uint8_t *bytes,
                            uint32_t count, int tolerance)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", c->tick, name);
    const struct safetensors_tensor *tensor = safetensors_find(c->expected, key);
    EXPECT(tensor != NULL && tensor->count == (count + STRIDE - 1) / STRIDE);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; i += STRIDE) {
        int difference = bytes[i] - ((const uint8_t *)tensor->data)[i / STRIDE];
        wrong += difference > tolerance || difference < -tolerance;
    }
    return wrong;
}

static void run_tick(const char *tick, enum conditioning conditioning, uint32_t pages,
                     enum nn_precision precision, struct comparison *c, uint8_t *frame)
{
    static struct forward_inputs inputs;
    char path[4096];
    struct error error = {0};
    struct safetensors *expected = NULL;
    snprintf(path, sizeof path, "%s/tiny_expected.safetensors", data_directory);
    EXPECT_OK(safetensors_open(path, SAFETENSORS_MAP, &expected, &error), error);
    struct model *model = open_tiny(precision, cpu_flags_detect());
    struct workspace *workspace = make_workspace(model, 2);
    forward_inputs_make(&inputs, model, workspace, conditioning, pages);
    *c = (struct comparison){.expected = expected, .tick = tick, .cosine_min = 1.0};
    struct forward_output output = {.frame = frame, .probe = compare, .probe_context = c};
    forward_tick(model, workspace, &inputs.input, &output);
    EXPECT_INT(output.counts.not_finite, 0);
    EXPECT_INT(c->compared, 14); /* seven probes, two steps */
    /* bf16 moves x0 by some thousandths, so by a byte or two. */
    uint32_t wrong = count_wrong(c, "frame", frame, FRAME_BYTES, precision == NN_FP32 ? 1 : 12);
    printf("# %s: %u of %u bytes differ\n", tick, wrong, FRAME_BYTES / STRIDE);
    EXPECT_INT(wrong, 0);
    EXPECT_INT(count_wrong(c, "given", workspace->given, FRAME_BEV_BYTES, 0), 0);
    forward_inputs_finish(&inputs);
    workspace_destroy(workspace);
    model_close(model);
    safetensors_close(expected);
}

static uint8_t frames[4][FRAME_BYTES];

static void fp32_agrees_with_pytorch(void)
{
    struct comparison c;
    run_tick("map", CONDITIONING_MAP, 2, NN_FP32, &c, frames[0]);
    EXPECT_NEAR(c.error_max, 0.0, 1e-4);
    run_tick("none", CONDITIONING_NONE, 2, NN_FP32, &c, frames[0]);
    EXPECT_NEAR(c.error_max, 0.0, 1e-4);
    run_tick("agents", CONDITIONING_AGENTS, 0, NN_FP32, &c, frames[0]);
    EXPECT_NEAR(c.error_max, 0.0, 1e-4);
}

static void bf16_agrees_with_pytorch(void)
{
    struct comparison c;
    run_tick("map", CONDITIONING_MAP, 2, NN_BF16, &c, frames[0]);
    EXPECT_NEAR(c.cosine_min, 1.0, 1e-3);
    run_tick("none", CONDITIONING_NONE, 2, NN_BF16, &c, frames[0]);
    EXPECT_NEAR(c.cosine_min, 1.0, 1e-3);
    run_tick("agents", CONDITIONING_AGENTS, 0, NN_BF16, &c, frames[0]);
    EXPECT_NEAR(c.cosine_min, 1.0, 1e-3);
}

/* The gate of scripts/truth.py, on the tiny weights. */
static void int8_agrees_with_pytorch(void)
{
    struct comparison c;
    run_tick("map", CONDITIONING_MAP, 2, NN_INT8, &c, frames[0]);
    EXPECT_NEAR(c.cosine_min, 1.0, 1e-3);
    run_tick("none", CONDITIONING_NONE, 2, NN_INT8, &c, frames[0]);
    EXPECT_NEAR(c.cosine_min, 1.0, 1e-3);
    run_tick("agents", CONDITIONING_AGENTS, 0, NN_INT8, &c, frames[0]);
    EXPECT_NEAR(c.cosine_min, 1.0, 1e-3);
}

/* ---- bits ---- */

static struct model_config random_config(uint32_t steps)
{
    struct model_config config = {
        .name = "random",
        .tier = TIER_STUDENT,
        .width = 64,
        .layers = 2,
        .bev_channels = 32,
        .camera_channels = 32,
        .window = 2,
        .steps = steps,
        .joint = {true, false},
    };
    for (uint32_t i = 0; i <= steps; i++) {
        config.schedule[i] = (double)i / steps;
    }
    return config;
}

static struct model *open_random(const struct model_config *config, enum nn_precision precision)
{
    struct model *model = NULL;
    struct error error = {0};
    const struct model_open_options options = {.precision = precision,
                                               .cpu_flags = cpu_flags_detect()};
    EXPECT_OK(model_random(config, &options, 5, &model, &error), error);
    return model;
}

static struct model *make_random(enum nn_precision precision, uint32_t steps)
{
    const struct model_config config = random_config(steps);
    return open_random(&config, precision);
}

/* A layer of 864 tokens, eight heads of 16 that share four of keys and values. */
static struct model *make_wide_of(enum model_type type, enum model_type pages, uint32_t steps)
{
    struct model_config config = random_config(steps);
    config.layers = 1;
    config.joint[0] = false;
    config.patch = 4;
    config.heads = 8;
    config.kv_heads = 4;
    config.head_dim = 16;
    config.type = type;
    config.pages = pages;
    return open_random(&config, NN_BF16);
}

static struct model *make_wide(enum model_type type, uint32_t steps)
{
    return make_wide_of(type, type, steps);
}

/* One tick with `threads`; `before` others first, of other seeds, in the same workspace. */
static void tick_bytes(const struct model *model, uint32_t threads, uint32_t before, uint8_t *frame)
{
    static struct forward_inputs inputs;
    struct workspace *workspace = make_workspace(model, threads);
    struct forward_output output = {.frame = frame};
    forward_inputs_make(&inputs, model, workspace, CONDITIONING_MAP, 2);
    for (uint32_t i = 0; i < before; i++) {
        struct forward_input other = inputs.input;
        other.seed = i;
        other.conditioning = (enum conditioning)(i % CONDITIONING_COUNT);
        other.page_count = i % 2;
        other.window.i += (int32_t)i;
        forward_tick(model, workspace, &other, &output);
    }
    forward_tick(model, workspace, &inputs.input, &output);
    forward_inputs_finish(&inputs);
    workspace_destroy(workspace);
}

static void bits_depend_on_model_and_input_alone(void)
{
    for (int precision = 0; precision <= NN_PRECISION_COUNT; precision++) {
        struct model *model = precision == NN_PRECISION_COUNT
                                  ? make_wide(MODEL_E4M3, 1)
                                  : make_random((enum nn_precision)precision, 1);
        tick_bytes(model, 1, 0, frames[0]);
        tick_bytes(model, 3, 0, frames[1]);
        tick_bytes(model, 2, 3, frames[2]);
        EXPECT(memcmp(frames[0], frames[1], FRAME_BYTES) == 0);
        EXPECT(memcmp(frames[0], frames[2], FRAME_BYTES) == 0);
        model_close(model);
    }
}

static void skip(struct model *model, uint32_t skipped, enum conditioning conditioning,
                 uint8_t *frame)
{
    static struct forward_inputs inputs;
    struct workspace *workspace = make_workspace(model, 2);
    struct forward_output output = {.frame = frame};
    forward_inputs_make(&inputs, model, workspace, conditioning, 2);
    inputs.input.skipped = skipped;
    forward_tick(model, workspace, &inputs.input, &output);
    if (skipped == model_config(model)->steps) { /* what was drawn, not generated */
        EXPECT(memcmp(frame, inputs.input.layout_bev, FRAME_BEV_BYTES) == 0);
        EXPECT(memcmp(frame + FRAME_BEV_BYTES, inputs.input.layout_cameras, FRAME_CAMERA_BYTES) ==
               0);
        EXPECT_INT(output.counts.not_finite + output.counts.saturated, 0);
    }
    forward_inputs_finish(&inputs);
    workspace_destroy(workspace);
    model_close(model);
}

/* With steps left out a model is the one whose schedule has the other times alone. */
static void fewer_steps_are_the_sampler_of_their_times(void)
{
    for (int p = 0; p < NN_PRECISION_COUNT; p++) {
        enum nn_precision precision = (enum nn_precision)p;
        skip(make_random(precision, 4), 0, CONDITIONING_MAP, frames[0]);
        for (uint32_t steps = 1; steps <= 2; steps++) {
            skip(make_random(precision, 4), 4 - steps, CONDITIONING_MAP, frames[1]);
            skip(make_random(precision, steps), 0, CONDITIONING_MAP, frames[2]);
            EXPECT(memcmp(frames[1], frames[2], FRAME_BYTES) == 0);
            EXPECT(memcmp(frames[1], frames[0], FRAME_BYTES) != 0);
        }
    }
    skip(make_random(NN_BF16, 4), 4, CONDITIONING_AGENTS, frames[0]);
}

/* Everything that forward_input holds must reach the frame; of the inputs, every `stride`-th is
 * tried. */
static void change_inputs(struct model *model, size_t stride)
{
    static struct forward_inputs inputs;
    struct workspace *workspace = make_workspace(model, 2);
    struct forward_output output = {.frame = frames[0]};
    forward_inputs_make(&inputs, model, workspace, CONDITIONING_MAP, 2);
    forward_tick(model, workspace, &inputs.input, &output);
    struct forward_input changed[8];
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
        changed[i] = inputs.input;
    }
    float cond[COND_COUNT];
    memcpy(cond, inputs.cond, sizeof cond);
    cond[39] += 1.0f;
    changed[0].seed++;
    changed[1].tick++;
    changed[2].cond = cond;
    changed[3].ego.heading_rad += 0.5; /* the camera tokens' rays */
    changed[4].ego.x_m += 1.0;
    changed[5].pages[0].memory = inputs.memory[1];
    changed[6].pages[1].frame = inputs.pages[0];
    changed[7].layout_cameras = inputs.pages[0];
    output.frame = frames[1];
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i += stride) {
        forward_tick(model, workspace, &changed[i], &output);
        if (memcmp(frames[0], frames[1], FRAME_BYTES) == 0) {
            TEST_FAIL("change %zu changed nothing", i);
        }
    }
    forward_inputs_finish(&inputs);
    workspace_destroy(workspace);
    model_close(model);
}

static void every_input_matters(void)
{
    change_inputs(make_random(NN_BF16, 2), 1); /* the last step alone forgets the noise */
    change_inputs(make_wide(MODEL_E4M3, 1), 5);
}

/* The anchor's place does not matter: windows and ego moved together by whole patches. */
static void move_the_world(struct model *model)
{
    static struct forward_inputs inputs;
    struct workspace *workspace = make_workspace(model, 2);
    struct forward_output output = {.frame = frames[0]};
    forward_inputs_make(&inputs, model, workspace, CONDITIONING_MAP, 2);
    forward_tick(model, workspace, &inputs.input, &output);
    inputs.input.window.i += 32;
    inputs.input.window.j -= 64;
    inputs.input.ego.x_m += 256.0;
    inputs.input.ego.y_m -= 512.0;
    for (int page = 0; page < 2; page++) {
        inputs.input.pages[page].window.i += 32;
        inputs.input.pages[page].window.j -= 64;
    }
    output.frame = frames[1];
    forward_tick(model, workspace, &inputs.input, &output);
    EXPECT(memcmp(frames[0], frames[1], FRAME_BYTES) == 0);
    forward_inputs_finish(&inputs);
    workspace_destroy(workspace);
    model_close(model);
}

/* Windows of space and time in the first of two layers: some see a whole row of patches, and none
 * the whole frame. */
static struct model *make_windows(uint32_t past)
{
    struct model_config config = random_config(1);
    config.joint[0] = true;
    config.joint[1] = false;
    config.reach = 3;
    config.past = past;
    return open_random(&config, NN_BF16);
}

static void moving_the_world_changes_nothing(void)
{
    move_the_world(make_windows(2));
    move_the_world(make_random(NN_BF16, 1));
    move_the_world(make_wide(MODEL_E4M3, 1));
}

/* ---- tokens and heads of other sizes ---- */

/* Members that a configuration leaves out have these values. */
static void members_left_out_are_the_shipped_ones(void)
{
    struct model_config config = random_config(1);
    struct model *left_out = open_random(&config, NN_BF16);
    config.patch = 8;
    config.heads = 2;
    config.kv_heads = 2;
    config.head_dim = 32;
    struct model *given = open_random(&config, NN_BF16);
    EXPECT(!model_wide(model_config(given)));
    EXPECT(memcmp(model_config(left_out), model_config(given), sizeof config) == 0);
    tick_bytes(left_out, 2, 0, frames[0]);
    tick_bytes(given, 2, 0, frames[1]);
    EXPECT(memcmp(frames[0], frames[1], FRAME_BYTES) == 0);
    model_close(left_out);
    model_close(given);
}

/* A frame beside another of the same model, in steps of a byte. */
static double mean_difference(const uint8_t *a, const uint8_t *b, int *most)
{
    uint64_t sum = 0;
    *most = 0;
    for (uint32_t i = 0; i < FRAME_BYTES; i++) {
        int difference = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
        *most = difference > *most ? difference : *most;
        sum += (uint64_t)difference;
    }
    return (double)sum / FRAME_BYTES;
}

/* The formula is one: kernels for heads of every size give what those for 32 give. */
static void kernels_of_every_head_agree_with_those_of_one(void)
{
    static struct forward_inputs inputs;
    int most = 0;
    struct model *model = make_random(NN_FP32, 1);
    struct workspace *workspace = make_workspace(model, 2);
    struct forward_output output = {.frame = frames[0]};
    forward_inputs_make(&inputs, model, workspace, CONDITIONING_MAP, 2);
    EXPECT(!workspace->wide_heads);
    forward_tick(model, workspace, &inputs.input, &output);
    workspace->wide_heads = true;
    output.frame = frames[1];
    forward_tick(model, workspace, &inputs.input, &output);
    EXPECT_NEAR(mean_difference(frames[0], frames[1], &most), 0.0, 1e-3);
    EXPECT(most <= 1);
    forward_inputs_finish(&inputs);
    workspace_destroy(workspace);
    model_close(model);
}

/* e4m3 has steps of a sixteenth: products move, and no more than that. */
static void e4m3_stays_near_bf16(void)
{
    int most = 0;
    struct model *model = make_wide(MODEL_BF16, 1);
    tick_bytes(model, 2, 0, frames[0]);
    model_close(model);
    model = make_wide(MODEL_E4M3, 1);
    EXPECT(model->blocks[0].qkv.e4m3 && !model->part[PART_BEV].embed.e4m3);
    tick_bytes(model, 2, 0, frames[1]);
    double mean = mean_difference(frames[0], frames[1], &most);
    printf("# e4m3 beside bf16: mean difference of a byte %.3f, most %d\n", mean, most);
    EXPECT(mean > 0.0 && mean < 2.0);
    model_close(model);
}

/* Pages of e4m3 move a frame by far less than a step, with tokens and heads of any kind; one is
 * what heads of 16 numbers and their scales need, 20 bytes for 32. */
static void pages_of_e4m3_stay_near_those_of_bf16(void)
{
    for (int i = 0; i < 3; i++) { /* wide, the shipped tokens, windows */
        struct model_config config = random_config(1);
        config.joint[0] = i == 2;
        config.reach = i == 2 ? 3 : 0;
        config.past = i == 2 ? 2 : 0;
        size_t bytes[2];
        int most = 0;
        for (int pages = 0; pages < 2; pages++) {
            config.pages = pages == 0 ? MODEL_BF16 : MODEL_E4M3;
            struct model *model =
                i == 0 ? make_wide_of(MODEL_BF16, config.pages, 1) : open_random(&config, NN_BF16);
            EXPECT(pages == 0 || model_plain(model_config(model)));
            bytes[pages] = forward_memory_bytes(model);
            tick_bytes(model, 1 + (uint32_t)pages, 0, frames[pages]);
            tick_bytes(model, 3, 1, frames[2]);
            EXPECT(memcmp(frames[pages], frames[2], FRAME_BYTES) == 0);
            model_close(model);
        }
        const double mean = mean_difference(frames[0], frames[1], &most);
        printf("# pages of e4m3: %zu bytes for %zu, mean difference of a byte %.4f, most %d\n",
               bytes[1], bytes[0], mean, most);
        EXPECT(mean > 0.0 && mean < 1.0); /* products of e4m3 move it by 1.3 */
        EXPECT_INT(bytes[1] * 32, bytes[0] * (i == 0 ? 20 : 18));
    }
}

static void every_patch_has_its_tokens(void)
{
    static const uint32_t tokens[] = {13824, 3456, 864, 216};
    for (uint32_t i = 0; i < COUNT_OF(tokens); i++) {
        struct model_config config = random_config(1);
        config.patch = 1u << i;
        struct model *model = open_random(&config, NN_BF16);
        EXPECT_INT(model_tokens(model_config(model)), tokens[i]);
        EXPECT_INT(forward_memory_bytes(model), 2u * 2 * tokens[i] * 64 * 2);
        EXPECT(model_wide(model_config(model)) == (config.patch != 8));
        model_close(model);
    }
}

/* Past frames count as far as `past` says; threads share the work as everywhere. */
static void windows_see_past_frames(void)
{
    for (uint32_t past = 0; past < 3; past++) {
        struct model *model = make_windows(past);
        EXPECT(model_wide(model_config(model)) && model->blocks[0].tq.packed == NULL);
        EXPECT(model->blocks[1].tq.packed != NULL);
        tick_bytes(model, 1, 0, frames[past]);
        tick_bytes(model, 3, 1, frames[3]);
        EXPECT(memcmp(frames[past], frames[3], FRAME_BYTES) == 0);
        model_close(model);
    }
    EXPECT(memcmp(frames[0], frames[1], FRAME_BYTES) != 0);
    EXPECT(memcmp(frames[1], frames[2], FRAME_BYTES) != 0);
}

static void reference_layers_are_at_both_ends(void)
{
    struct model_config config = random_config(1);
    config.layers = 5;
    config.type = MODEL_E4M3;
    config.reference_layers = 1;
    struct model *model = open_random(&config, NN_BF16);
    for (uint32_t layer = 0; layer < 5; layer++) {
        EXPECT(model->blocks[layer].fc1.e4m3 == (layer % 4 != 0));
        EXPECT(model->blocks[layer].tk.e4m3 == (layer % 4 != 0));
    }
    tick_bytes(model, 1, 0, frames[0]);
    tick_bytes(model, 3, 1, frames[1]);
    EXPECT(memcmp(frames[0], frames[1], FRAME_BYTES) == 0);
    model_close(model);
}

/* ---- the residual base ---- */

/* Without the last convolutions' weights the frame is the base, byte for byte. */
static void silence(struct model *model)
{
    for (int i = 0; i < PART_COUNT; i++) {
        const struct model_matmul *out = &model->part[i].out;
        memset((void *)out->packed, 0, model->kernels.packed_bytes(out->n, out->k));
        memset((void *)out->bias, 0, out->n * sizeof *out->bias);
    }
}

/* The base of model.md; tests/engine/test_motion.c is about the motion-compensated frame. */
static void base_frame(const struct forward_input *in, uint8_t *out)
{
    static struct motion_sums sums;
    if (in->conditioning == CONDITIONING_AGENTS) {
        memcpy(out, in->layout_bev, FRAME_BEV_BYTES);
    } else {
        motion_frame(in, &sums, out);
    }
    for (uint32_t k = 0; k < FRAME_CAMERA_BYTES; k++) {
        out[FRAME_BEV_BYTES + k] = in->conditioning == CONDITIONING_AGENTS ? in->layout_cameras[k]
                                   : in->page_count > 0 ? in->pages[0].frame[FRAME_BEV_BYTES + k]
                                                        : 128;
    }
}

static void base_is_what_is_known(void)
{
    static const struct window places[] = {{-3, -6}, {-4, -6}, {-2, -3},
                                           {8, -6},  {-3, 9},  {-14, -17}};
    static struct forward_inputs inputs;
    struct model *model = make_random(NN_BF16, 1);
    struct workspace *workspace = make_workspace(model, 2);
    struct forward_output output = {.frame = frames[0]};
    silence(model);
    forward_inputs_make(&inputs, model, workspace, CONDITIONING_MAP, 2);
    for (uint32_t i = 0; i < 3 * sizeof places / sizeof places[0]; i++) {
        inputs.input.conditioning = (enum conditioning)(i % CONDITIONING_COUNT);
        inputs.input.pages[0].window = places[i / 3];
        inputs.input.page_count = i / 3 == 1 ? 0 : 1;
        forward_tick(model, workspace, &inputs.input, &output);
        base_frame(&inputs.input, frames[1]);
        for (uint32_t k = 0; k < FRAME_BYTES; k++) {
            if (frames[0][k] != frames[1][k]) {
                TEST_FAIL("case %u: byte %u: expected %u, found %u", i, k, frames[1][k],
                          frames[0][k]);
            }
        }
    }
    forward_inputs_finish(&inputs);
    workspace_destroy(workspace);
    model_close(model);
}

/* Weights too large for single precision end as counted, harmless bytes. */
static void overflow_is_counted(void)
{
    static struct forward_inputs inputs;
    struct model *model = make_random(NN_FP32, 1);
    struct workspace *workspace = make_workspace(model, 1);
    struct forward_output output = {.frame = frames[0]};
    float *bias = (float *)model->part[PART_CAMERA].out.bias;
    silence(model);
    bias[3] = 3e38f * 10.0f; /* infinite */
    bias[4] = 7.0f;
    forward_inputs_make(&inputs, model, workspace, CONDITIONING_AGENTS, 0);
    forward_tick(model, workspace, &inputs.input, &output);
    EXPECT_INT(output.counts.not_finite, CAMERA_COUNT * FRAME_CAMERA_POSITIONS);
    EXPECT_INT(output.counts.saturated, CAMERA_COUNT * FRAME_CAMERA_POSITIONS);
    EXPECT_INT(frames[0][FRAME_BEV_BYTES + 3], 128);
    EXPECT_INT(frames[0][FRAME_BEV_BYTES + 4], 255);
    workspace_destroy(workspace);
    model_close(model);
}

/* In integers, too, a NaN in the last block reaches every byte and is counted. */
static void nan_is_counted_in_int8(void)
{
    static struct forward_inputs inputs;
    struct model *model = make_random(NN_INT8, 1);
    struct workspace *workspace = make_workspace(model, 2);
    struct forward_output output = {.frame = frames[0]};
    float *bias = (float *)model->blocks[1].fc2.bias;
    forward_inputs_make(&inputs, model, workspace, CONDITIONING_MAP, 2);
    forward_tick(model, workspace, &inputs.input, &output);
    EXPECT_INT(output.counts.not_finite, 0);
    bias[7] = NAN;
    forward_tick(model, workspace, &inputs.input, &output);
    EXPECT_INT(output.counts.not_finite, FRAME_BYTES);
    forward_inputs_finish(&inputs);
    workspace_destroy(workspace);
    model_close(model);
}

/* ---- the pool ---- */

struct tally {
    _Atomic uint32_t *visits;
    uint32_t items;
    uint32_t chunk;
    _Atomic bool outside;
};

static void visit(void *context, uint32_t first, uint32_t end)
{
    struct tally *t = context;
    if (first >= end || end > t->items) {
        atomic_store(&t->outside, true);
        return;
    }
    for (uint32_t i = first; i < end; i++) {
        atomic_fetch_add(&t->visits[i], 1);
    }
}

static void threads_visit_every_item_once(void)
{
    static _Atomic uint32_t visits[1000];
    struct error error = {0};
    struct threads *threads = NULL;
    EXPECT_INT(threads_create(THREADS_MAX + 1, &threads, &error), STATUS_LIMIT);
    for (uint32_t count = 0; count <= 5; count++) {
        EXPECT_OK(threads_create(count, &threads, &error), error);
        EXPECT_INT(threads_count(threads), count > 0 ? count : 1);
        for (uint32_t run = 0; run < 2000; run++) {
            struct tally tally = {visits, run * 37 % 200, 1 + run % 13, false};
            for (uint32_t i = 0; i < 200; i++) {
                atomic_store(&visits[i], 0);
            }
            threads_run(threads, tally.items, tally.chunk, visit, &tally);
            for (uint32_t i = 0; i < 200; i++) {
                EXPECT_INT(atomic_load(&visits[i]), i < tally.items);
            }
            EXPECT(!atomic_load(&tally.outside));
        }
        threads_destroy(threads);
    }
    threads_destroy(NULL);
    workspace_destroy(NULL);
}

int main(int argc, char **argv)
{
    data_directory = argc > 1 ? argv[1] : "tests/engine/data";
    return TEST_RUN(TEST(fp32_agrees_with_pytorch), TEST(bf16_agrees_with_pytorch),
                    TEST(int8_agrees_with_pytorch), TEST(bits_depend_on_model_and_input_alone),
                    TEST(fewer_steps_are_the_sampler_of_their_times), TEST(every_input_matters),
                    TEST(moving_the_world_changes_nothing),
                    TEST(members_left_out_are_the_shipped_ones),
                    TEST(kernels_of_every_head_agree_with_those_of_one), TEST(e4m3_stays_near_bf16),
                    TEST(pages_of_e4m3_stay_near_those_of_bf16), TEST(every_patch_has_its_tokens),
                    TEST(windows_see_past_frames), TEST(reference_layers_are_at_both_ends),
                    TEST(base_is_what_is_known), TEST(overflow_is_counted),
                    TEST(nan_is_counted_in_int8), TEST(threads_visit_every_item_once));
}
