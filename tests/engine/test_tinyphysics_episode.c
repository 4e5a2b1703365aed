/*
 * Tinyphysics: the controls challenge's simulator, to the digit.
 *
 * Goal: every token and every cost is the unmodified reference's; bits do not depend on the batch
 * or the processor; damaged model files and logs are refused with a sentence. Method: weights and
 * logs made up from a hash, here and by tests/vectors/tinyphysics_vectors.py, which ran the
 * reference on them (argument: its lines); model files cut and changed everywhere. With --write
 * FILE it writes the model that it makes up, for tests of the command line.
 */
#include "base/check.h"
#include "engine/tinyphysics/onnx_file.h"
#include "engine/tinyphysics/tinyphysics_episode.h"
#include "engine/worlds/foreign.h"
#include "kernels/cpu.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <unistd.h>

enum { LOGS = 4, ROWS = 600, EPISODES = 2 * LOGS, FIRST = 100, END = 500 };

static const char *vectors_path;
static char directory[] = "/tmp/swerve-tinyphysics-XXXXXX";
static char model_path[512];
static struct error error;

/* ---- what is made up ---- */

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7FEB352D;
    x ^= x >> 15;
    x *= 0x846CA68B;
    return x ^ x >> 16;
}

enum kind { KIND_NORM = 0, KIND_SHIFT, KIND_WIDE, KIND_HALF, KIND_FOURTH, KIND_EIGHTH };

static float made_up(uint32_t tensor, uint32_t index, enum kind kind)
{
    static const double bases[] = {1.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    static const double shares[] = {0.25, 0.125, 1.0, 0.5, 0.25, 0.125};
    const double value = ((double)(mix(index + (tensor << 20)) >> 16) - 32768.0) / 32768.0;
    return (float)(bases[kind] + shares[kind] * value);
}

/* A protocol-buffer message under construction. */
struct message {
    uint8_t *data;
    size_t bytes, room;
};

static void put(struct message *m, const void *data, size_t bytes)
{
    while (m->bytes + bytes > m->room) {
        m->room = 2 * m->room + 4096;
        m->data = realloc(m->data, m->room);
        EXPECT(m->data != NULL);
    }
    memcpy(m->data + m->bytes, data, bytes);
    m->bytes += bytes;
}

static void put_varint(struct message *m, uint64_t value)
{
    for (;; value >>= 7) {
        const uint8_t byte = (uint8_t)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        put(m, &byte, 1);
        if (value <= 0x7F) {
            return;
        }
    }
}

static void put_field(struct message *m, uint32_t number, const void *data, size_t bytes)
{
    put_varint(m, number << 3 | 2);
    put_varint(m, bytes);
    put(m, data, bytes);
}

static void put_text(struct message *m, uint32_t number, const char *text)
{
    put_field(m, number, text, strlen(text));
}

/* Moves `part` into `m` as field `number`. */
static void put_message(struct message *m, uint32_t number, struct message *part)
{
    put_field(m, number, part->data, part->bytes);
    free(part->data);
    *part = (struct message){0};
}

/* An initialiser; of the weights of a node, which has a slash at its beginning, the node too. */
static void put_tensor(struct message *graph, uint32_t number, const char *name, uint32_t rows,
                       uint32_t columns, enum kind kind)
{
    struct message tensor = {0};
    struct message node = {0};
    const uint32_t count = rows * (columns > 0 ? columns : 1);
    float *values = malloc(count * sizeof *values);
    EXPECT(values != NULL);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = made_up(number, i, kind);
    }
    put_varint(&tensor, 1 << 3);
    put_varint(&tensor, rows);
    if (columns > 0) {
        put_varint(&tensor, 1 << 3);
        put_varint(&tensor, columns);
    }
    put_varint(&tensor, 2 << 3);
    put_varint(&tensor, 1);
    put_text(&tensor, 8, name);
    put_field(&tensor, 9, values, count * sizeof *values);
    put_message(graph, 5, &tensor);
    free(values);
    if (name[0] == '/') {
        put_text(&node, 1, "input");
        put_text(&node, 1, name);
        put_text(&node, 3, name);
        put_text(&node, 4, "MatMul");
        put_message(graph, 1, &node);
    }
}

static void put_block(struct message *graph, uint32_t *number, int index)
{
    static const struct {
        const char *format;
        uint32_t rows, columns;
        enum kind kind;
    } parts[] = {
        {"transformer.h.%d.attn.layer_norm.weight", 128, 0, KIND_NORM},
        {"transformer.h.%d.attn.layer_norm.bias", 128, 0, KIND_SHIFT},
        {"transformer.h.%d.mlp.layer_norm.weight", 128, 0, KIND_NORM},
        {"transformer.h.%d.mlp.layer_norm.bias", 128, 0, KIND_SHIFT},
        {"/h.%d/attn/c_attn/MatMul", 128, 384, KIND_FOURTH},
        {"/h.%d/attn/c_proj/MatMul", 128, 128, KIND_FOURTH},
        {"/h.%d/mlp/c_fc/MatMul", 128, 512, KIND_FOURTH},
        {"/h.%d/mlp/c_proj/MatMul", 512, 128, KIND_FOURTH},
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        char name[64];
        snprintf(name, sizeof name, parts[i].format, index);
        put_tensor(graph, (*number)++, name, parts[i].rows, parts[i].columns, parts[i].kind);
    }
}

static struct message make_model(void)
{
    struct message graph = {0};
    struct message model = {0};
    uint32_t number = 0;
    put_tensor(&graph, number++, "transformer.wt_embedding.bias", 64, 0, KIND_WIDE);
    put_tensor(&graph, number++, "/wt_embedding/MatMul", 4, 64, KIND_FOURTH);
    put_tensor(&graph, number++, "transformer.wt2_embedding.weight", 1024, 64, KIND_HALF);
    put_tensor(&graph, number++, "transformer.wp_embedding.weight", 20, 128, KIND_FOURTH);
    for (int i = 0; i < 4; i++) {
        put_block(&graph, &number, i);
    }
    put_tensor(&graph, number++, "transformer.layer_norm_f.weight", 128, 0, KIND_NORM);
    put_tensor(&graph, number++, "transformer.layer_norm_f.bias", 128, 0, KIND_SHIFT);
    put_tensor(&graph, number++, "/lm_head/MatMul", 128, 1024, KIND_EIGHTH);
    put_varint(&model, 1 << 3); /* ir_version */
    put_varint(&model, 7);
    put_message(&model, 7, &graph);
    return model;
}

static void write_model(const void *data, size_t bytes)
{
    FILE *file = fopen(model_path, "wb");
    EXPECT(file != NULL);
    EXPECT(fwrite(data, 1, bytes, file) == bytes);
    EXPECT_INT(fclose(file), 0);
}

/* "-1.234", with a comma or a line's end behind it. */
static char *add_cell(char *at, int thousandths, char behind)
{
    const int size = abs(thousandths);
    return at +
           sprintf(at, "%s%d.%03d%c", thousandths < 0 ? "-" : "", size / 1000, size % 1000, behind);
}

static void make_log(uint32_t number, struct controls_log *log)
{
    static char text[ROWS * 64];
    char *at = text + sprintf(text, "t,vEgo,aEgo,roll,targetLateralAcceleration,steerCommand\n");
    int target = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t words[5];
        for (uint32_t i = 0; i < 5; i++) {
            words[i] = mix(row * 5 + i + 0x40000000 + (number << 16));
        }
        target += (int)(words[3] % 401) - 200;
        target = target < -4000 ? -4000 : target > 4000 ? 4000 : target;
        at = add_cell(at, (int)(100 * row), ',');
        at = add_cell(at, (int)(20000 + words[0] % 2000), ',');
        at = add_cell(at, (int)(words[1] % 2001) - 1000, ',');
        at = add_cell(at, (int)(words[2] % 101) - 50, ',');
        at = add_cell(at, target, ',');
        if (row < FIRST) {
            at = add_cell(at, (int)(words[4] % 2001) - 1000, '\n');
        } else {
            *at++ = '\n';
        }
    }
    EXPECT_OK(controls_log_parse("made up", text, (size_t)(at - text), log, &error), error);
}

/* ---- parity ---- */

struct expected {
    uint32_t log, seed;
    bool pid;
    struct tinyphysics_costs costs;
    uint16_t tokens[END - FIRST];
};

static void read_expected(struct expected out[EPISODES])
{
    FILE *file = fopen(vectors_path, "r");
    EXPECT(file != NULL);
    for (int i = 0; i < EPISODES; i++) {
        struct expected *e = &out[i];
        char controller[8];
        EXPECT_INT(fscanf(file, "%u.csv %7s %u %lf %lf %lf", &e->log, controller, &e->seed,
                          &e->costs.lataccel, &e->costs.jerk, &e->costs.total),
                   6);
        e->pid = strcmp(controller, "pid") == 0;
        for (int j = 0; j < END - FIRST; j++) {
            EXPECT_INT(fscanf(file, "%hu", &e->tokens[j]), 1);
        }
    }
    fclose(file);
}

static struct tinyphysics_model *load(enum nn_precision precision, uint32_t flags)
{
    struct tinyphysics_model *model = NULL;
    EXPECT_OK(tinyphysics_model_load(model_path, precision, flags, &model, &error), error);
    return model;
}

/* All episodes to their ends in one batch, each step checked. */
static void every_token_and_cost_is_the_reference_s(void)
{
    static struct expected expected[EPISODES];
    static struct tinyphysics_episode episodes[EPISODES];
    struct tinyphysics_episode *batch[EPISODES];
    struct tinyphysics_pid pids[EPISODES] = {{0}};
    struct tinyphysics_workspace *workspace;
    struct controls_log logs[LOGS];
    struct tinyphysics_model *model = load(NN_FP32, cpu_flags_detect());
    read_expected(expected);
    for (uint32_t i = 0; i < LOGS; i++) {
        make_log(i, &logs[i]);
    }
    EXPECT_OK(tinyphysics_workspace_make(&workspace, &error), error);
    for (int i = 0; i < EPISODES; i++) {
        batch[i] = &episodes[i];
        EXPECT_OK(
            tinyphysics_episode_start(batch[i], &logs[expected[i].log], expected[i].seed, &error),
            error);
    }
    while (!tinyphysics_episode_done(batch[0])) {
        double actions[EPISODES] = {0};
        const uint32_t step = batch[0]->step;
        for (int i = 0; i < EPISODES; i++) {
            if (expected[i].pid) {
                actions[i] = tinyphysics_pid_update(&pids[i], batch[i]->log->rows[step].target_mps2,
                                                    tinyphysics_episode_lataccel(batch[i]));
            }
        }
        EXPECT_OK(tinyphysics_episode_step(model, workspace, batch, actions, EPISODES, &error),
                  error);
        for (int i = 0; i < EPISODES && step >= FIRST; i++) {
            if (batch[i]->token != expected[i].tokens[step - FIRST]) {
                TEST_FAIL("episode %d row %u: expected token %u, found %u; drawn %g from a bound",
                          i, step, expected[i].tokens[step - FIRST], batch[i]->token,
                          batch[i]->cdf_margin);
            }
        }
    }
    for (int i = 0; i < EPISODES; i++) {
        const struct tinyphysics_costs costs = tinyphysics_episode_costs(batch[i]);
        EXPECT_NEAR(costs.lataccel, expected[i].costs.lataccel, 1e-12 * costs.lataccel);
        EXPECT_NEAR(costs.jerk, expected[i].costs.jerk, 1e-12 * costs.jerk);
        EXPECT_NEAR(costs.total, expected[i].costs.total, 1e-12 * costs.total);
        tinyphysics_episode_end(batch[i]);
    }
    for (uint32_t i = 0; i < LOGS; i++) {
        controls_log_free(&logs[i]);
    }
    tinyphysics_workspace_free(workspace);
    tinyphysics_model_free(model);
}

/* ---- the world ---- */

enum { WORLD_SLOTS = EPISODES + 2, FORK_TICK = 95, WORLD_TICKS = 130 };

struct rig {
    struct arena arena;
    struct scenario scenarios[LOGS];
    struct prepared *prepared[LOGS];
    struct world *world;
};

static void make_rig(struct rig *rig, const struct foreign *foreign,
                     const struct expected *expected, struct controls_log *logs)
{
    arena_init(&rig->arena, 1 << 20);
    for (int i = 0; i < EPISODES; i++) { /* two episodes of each log, with one seed */
        struct scenario *scenario = &rig->scenarios[expected[i].log];
        *scenario = (struct scenario){.horizon_ticks = END - CONTROLS_CONTEXT};
        struct lane *lane = maps_lanes(&rig->arena, &scenario->map, 1);
        maps_straight(&rig->arena, lane, (struct pose){0}, 3000.0, 3.5);
        scenario->ego.route_count = 1;
        scenario->ego.route = arena_alloc(&rig->arena, 1, sizeof *scenario->ego.route);
        scenario->ego.wheelbase_m = 2.8;
        scenario->controls = (struct controls){expected[i].seed, logs[expected[i].log]};
    }
    for (int i = 0; i < LOGS; i++) {
        EXPECT_OK(prepared_create(&rig->scenarios[i], &rig->prepared[i], &error), error);
    }
    const struct world_config config = {
        .slot_count = WORLD_SLOTS, .thread_count = 2, .foreign = foreign};
    EXPECT_OK(foreign->native->open(&config, &rig->world, &error), error);
}

/* The lateral acceleration that a token leads to. */
static double drawn(double before_mps2, uint16_t token)
{
    const double value = (double)token * (10.0 / 1023) + -5.0;
    return fmin(fmax(value, before_mps2 - 0.5), before_mps2 + 0.5);
}

/* One tick of every slot that is in `active`; each is episode of[slot]. */
static void world_tick(struct world *world, const struct expected *expected, const int *of,
                       const uint8_t *active, struct tinyphysics_pid *pids)
{
    struct action actions[WORLD_SLOTS] = {{0}};
    double before_mps2[WORLD_SLOTS];
    uint32_t row = 0;
    for (uint32_t i = 0; i < WORLD_SLOTS; i++) {
        if (active[i]) {
            const struct scene *scene = world->ops->slot_scene(world, i);
            const struct expected *e = &expected[of[i]];
            struct controls_log log;
            row = scene->tick + CONTROLS_CONTEXT;
            before_mps2[i] = scene->ego.lat_accel_mps2;
            make_log(e->log, &log);
            if (e->pid) {
                actions[i].steer_rad =
                    tinyphysics_pid_update(&pids[i], log.rows[row].target_mps2, before_mps2[i]);
            }
            controls_log_free(&log);
        }
    }
    world->ops->step(world, actions, active);
    for (uint32_t i = 0; i < WORLD_SLOTS && row >= FIRST; i++) {
        if (active[i]) {
            const double want = drawn(before_mps2[i], expected[of[i]].tokens[row - FIRST]);
            if (world->ops->slot_scene(world, i)->ego.lat_accel_mps2 != want) {
                TEST_FAIL("slot %u row %u: expected %.17g m/s2, found %.17g", i, row, want,
                          world->ops->slot_scene(world, i)->ego.lat_accel_mps2);
            }
        }
    }
}

/* Goal: a slot of the world is an episode, whatever is beside it, forked and parked. Method: all
 * episodes at once; from a tick on a fork of one, and another that was saved and came back
 * elsewhere. */
static void slots_of_the_world_are_episodes(void)
{
    static struct expected expected[EPISODES];
    static struct rig rig;
    struct controls_log logs[LOGS];
    struct tinyphysics_pid pids[WORLD_SLOTS] = {{0}};
    int of[WORLD_SLOTS] = {0};
    uint8_t active[WORLD_SLOTS] = {0};
    struct tinyphysics_model *model = load(NN_FP32, cpu_flags_detect());
    const struct foreign foreign = {.native = &world_tinyphysics_ops, .host = model};
    read_expected(expected);
    for (uint32_t i = 0; i < LOGS; i++) {
        make_log(i, &logs[i]);
    }
    make_rig(&rig, &foreign, expected, logs);
    const struct world_ops *ops = rig.world->ops;
    for (uint32_t i = 0; i < EPISODES; i++) {
        of[i] = (int)i;
        active[i] = 1;
        EXPECT_OK(ops->slot_reset(rig.world, i, rig.prepared[expected[i].log], i % 2, &error),
                  error);
    }
    for (uint32_t tick = 0; tick < WORLD_TICKS; tick++) {
        if (tick == FORK_TICK) {
            void *state = calloc(1, ops->slot_state_bytes(rig.world));
            EXPECT(state != NULL);
            ops->slot_fork(rig.world, 0, EPISODES);
            ops->slot_save(rig.world, 1, state);
            ops->slot_release(rig.world, 1);
            ops->slot_restore(rig.world, EPISODES + 1, state);
            free(state);
            for (int i = 0; i < 2; i++) {
                of[EPISODES + i] = i;
                pids[EPISODES + i] = pids[i];
                active[EPISODES + i] = 1;
            }
            active[1] = 0;
        }
        world_tick(rig.world, expected, of, active, pids);
    }
    rig.scenarios[0].controls.log.count = 0;
    EXPECT_INT(ops->accepts(&rig.scenarios[0], &error), STATUS_BAD_INPUT);
    EXPECT_INT(world_object_ops.accepts(&rig.scenarios[1], &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "tinyphysics");
    ops->close(rig.world);
    for (uint32_t i = 0; i < LOGS; i++) {
        prepared_unref(rig.prepared[i]);
        controls_log_free(&logs[i]);
    }
    arena_finish(&rig.arena);
    tinyphysics_model_free(model);
}

static void made_up_window(uint32_t number, struct tinyphysics_window *window)
{
    for (uint32_t t = 0; t < TINYPHYSICS_CONTEXT; t++) {
        for (uint32_t i = 0; i < TINYPHYSICS_INPUTS; i++) {
            window->inputs[t][i] = 4.0f * made_up(100 + number, 4 * t + i, KIND_WIDE);
        }
        window->tokens[t] = (uint16_t)(mix(number + 31 * t) % TINYPHYSICS_BINS);
    }
}

/* The largest distance of logits from those in single precision, and the largest of these. */
static void measure(const float *found, const float *exact, double *miss, double *largest)
{
    for (uint32_t i = 0; i < TINYPHYSICS_BINS; i++) {
        *miss = fmax(*miss, fabs((double)found[i] - (double)exact[i]));
        *largest = fmax(*largest, fabs((double)exact[i]));
    }
}

static void bits_depend_on_the_window_and_the_precision_alone(void)
{
    enum { DIFFERENT = 13 }; /* in turns, since plain C takes long; more than a chunk has */
    static struct tinyphysics_window windows[TINYPHYSICS_BATCH];
    static float alone[2][DIFFERENT][TINYPHYSICS_BINS];
    static const uint32_t flags[] = {0, CPU_FLAG_AVX2, CPU_FLAG_AVX2 | CPU_FLAG_AVX512, ~0u};
    /* About the sizes at which a batch becomes two chunks, and three. */
    static const uint32_t counts[] = {1, 2, 5, 11, 12, 13, 24, 25, 47, TINYPHYSICS_BATCH};
    struct tinyphysics_workspace *workspace;
    double miss = 0.0;
    double largest = 0.0;
    EXPECT_OK(tinyphysics_workspace_make(&workspace, &error), error);
    for (uint32_t i = 0; i < TINYPHYSICS_BATCH; i++) {
        made_up_window(i % DIFFERENT, &windows[i]);
    }
    for (size_t f = 0; f < 2 * COUNT_OF(flags); f++) {
        const enum nn_precision precision = f % 2 == 0 ? NN_FP32 : NN_BF16;
        const uint32_t wanted = flags[f / 2] != ~0u ? flags[f / 2] : cpu_flags_detect();
        if ((cpu_flags_detect() & wanted) != wanted) {
            continue;
        }
        /* Plain C once, each window alone; all others in batches of many sizes against it. */
        struct tinyphysics_model *model = load(precision, wanted);
        for (size_t c = 0; c < (f < 2 ? 1 : COUNT_OF(counts)); c++) {
            const uint32_t count = counts[c];
            const uint32_t end = f < 2 ? DIFFERENT : TINYPHYSICS_BATCH;
            for (uint32_t i = 0; i + count <= end; i += count) {
                const float *logits = NULL;
                EXPECT_OK(
                    tinyphysics_model_logits(model, workspace, windows + i, count, &logits, &error),
                    error);
                if (f < 2) {
                    memcpy(alone[f][i], logits, sizeof alone[f][i]);
                }
                for (uint32_t k = 0; k < count; k++) {
                    EXPECT_INT(memcmp(alone[f % 2][(i + k) % DIFFERENT],
                                      logits + (size_t)k * TINYPHYSICS_BINS, sizeof alone[0][0]),
                               0);
                }
            }
        }
        tinyphysics_model_free(model);
    }
    for (uint32_t i = 0; i < DIFFERENT; i++) {
        measure(alone[NN_BF16][i], alone[NN_FP32][i], &miss, &largest);
    }
    printf("# bf16: logits up to %.3g, at most %.3g off\n", largest, miss);
    EXPECT(miss > 0.0 && miss < 0.05 * largest); /* another precision, the same network */
    tinyphysics_workspace_free(workspace);
}

/* ---- refusals ---- */

static enum status load_changed(const void *data, size_t bytes)
{
    struct tinyphysics_model *model = NULL;
    write_model(data, bytes);
    enum status status = tinyphysics_model_load(model_path, NN_FP32, 0, &model, &error);
    tinyphysics_model_free(model);
    return status;
}

static void damaged_models_are_refused(void)
{
    struct message model = make_model();
    for (uint32_t i = 0; i < 20; i++) { /* cut anywhere, often near the end */
        const size_t bytes = i < 10 ? model.bytes - 1 - i * i : mix(i) % model.bytes;
        EXPECT_INT(load_changed(model.data, bytes), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, model_path);
    }
    /* Every byte of names, kinds and shapes changed: refused, or another float. */
    uint8_t *node = memmem(model.data, model.bytes, "/h.2/mlp/c_fc/MatMul", 20);
    EXPECT(node != NULL);
    for (int at = -8; at < 20; at++) {
        node[at] ^= 0x55;
        EXPECT_INT(load_changed(model.data, model.bytes), STATUS_BAD_INPUT);
        node[at] ^= 0x55;
    }
    uint8_t *values = memmem(model.data, model.bytes, "/lm_head/MatMul", 15);
    EXPECT(values != NULL);
    values += 15 + 4; /* behind the name; the field's number and length */
    static const uint8_t nan_bytes[] = {0, 0, 0xC0, 0x7F};
    uint8_t kept[4];
    memcpy(kept, values + 4, 4);
    memcpy(values + 4, nan_bytes, 4);
    EXPECT_INT(load_changed(model.data, model.bytes), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected a finite number, found nan");
    memcpy(values + 4, kept, 4);
    EXPECT_INT(load_changed("", 0), STATUS_BAD_INPUT);
    EXPECT_INT(load_changed(model.data, model.bytes), STATUS_OK);
    free(model.data);
}

static void damaged_logs_are_refused(void)
{
    static const char header[] = "t,vEgo,aEgo,roll,targetLateralAcceleration,steerCommand\n";
    static const struct {
        const char *header, *row, *expected;
    } cases[] = {
        {"t,vEgo,aEgo,roll,steerCommand\n", "", "log:1: expected a column \"targetLateral"},
        {header, "0,1,2,3,4\n", "log:2: expected 6 cells, found 5"},
        {header, "0,1,2,3,4,5,6\n", "log:2: expected 6 cells, found 7"},
        {header, "0,1,2,3,4,x\n", "log:2: steerCommand: expected a number within"},
        {header, "0,1,2,3,4,\n", "log:2: steerCommand: expected a number within"},
        {header, "0,1,2,3,nan,5\n", "log:2: targetLateralAcceleration: expected a number within"},
        {header, "0,1,2,1e9,4,5\n", "log:2: roll: expected a number within"},
        {header, "0,1,2,3,4,5\n0,1,2,3,4,5\r\n", "expected at least 102 rows"},
        {"", "", "log:1: expected a column"},
        {header, "\n  \r\n0,1,2,3,4,x\n", "log:4: steerCommand: expected a number within"},
        {"\nt,vEgo\n", "", "log:2: expected a column"},
        {header, "0,1,2,0x1,4,5\n", "log:2: roll: expected a number within"},
        {"\xef\xbb\xbf"
         "vEgo,aEgo,roll,targetLateralAcceleration,steerCommand\n",
         "", "expected at least 102 rows"}, /* a byte order mark is none of the name */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[256];
        struct controls_log log;
        const int bytes = snprintf(text, sizeof text, "%s%s", cases[i].header, cases[i].row);
        EXPECT_INT(controls_log_parse("log", text, (size_t)bytes, &log, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, cases[i].expected);
    }
    const size_t row_bytes = strlen("0,0,0,0,0,0\n");
    const size_t head_bytes = strlen(header);
    char *text = malloc(head_bytes + (CONTROLS_ROWS_MAX + 1) * row_bytes + 1);
    struct controls_log log;
    CHECK(text != NULL);
    char *at = text + sprintf(text, "%s", header);
    for (int row = 0; row <= CONTROLS_ROWS_MAX; row++) {
        at += sprintf(at, "0,0,0,0,0,0\n");
    }
    EXPECT_INT(controls_log_parse("log", text, (size_t)(at - text), &log, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "log:65538: expected at most 65536 rows, found more");
    free(text);
}

/* As pandas reads them: blank lines are none, of two columns of one name the first counts; what is
 * behind the rows that cost may be empty. */
static void logs_are_read_as_the_reference_reads_them(void)
{
    static const char *const headers[] = {
        "t,vEgo,aEgo,roll,targetLateralAcceleration,steerCommand,vEgo\n",
        "\n \t\nt,vEgo,aEgo,roll,targetLateralAcceleration,steerCommand,vEgo\r\n\r\n"};
    static char text[64 * 1024];
    struct controls_log logs[2];
    for (int i = 0; i < 2; i++) {
        char *at = text + sprintf(text, "%s", headers[i]);
        for (int row = 0; row < 510; row++) {
            at += sprintf(at, "%d,%d,0.5,0,1,%s,99\n%s", row, row % 30, row < 100 ? "0.25" : "",
                          i == 1 && row % 7 == 0 ? "\n  \n" : "");
        }
        at += sprintf(at, "%s", i == 1 ? "510,,,,,,\n\n" : "510,,0.5,0,1,,99\n511,1,0,0,0,,9\n");
        EXPECT_OK(controls_log_parse("log", text, (size_t)(at - text), &logs[i], &error), error);
        EXPECT_INT(logs[i].count, 510);
    }
    EXPECT_NEAR(logs[0].rows[31].v_ego_mps, 1, 1e-12);
    EXPECT(memcmp(logs[0].rows, logs[1].rows, 510 * sizeof *logs[0].rows) == 0);
    controls_log_free(&logs[0]);
    controls_log_free(&logs[1]);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        snprintf(model_path, sizeof model_path, "%s", argv[2]);
        struct message made = make_model();
        write_model(made.data, made.bytes);
        free(made.data);
        return 0;
    }
    CHECK(argc == 2 && mkdtemp(directory) != NULL);
    vectors_path = argv[1];
    snprintf(model_path, sizeof model_path, "%s/made_up.onnx", directory);
    struct message model = make_model();
    write_model(model.data, model.bytes);
    free(model.data);
    int failed = TEST_RUN(
        TEST(every_token_and_cost_is_the_reference_s), TEST(slots_of_the_world_are_episodes),
        TEST(bits_depend_on_the_window_and_the_precision_alone), TEST(damaged_models_are_refused),
        TEST(damaged_logs_are_refused), TEST(logs_are_read_as_the_reference_reads_them));
    unlink(model_path);
    rmdir(directory);
    return failed;
}
