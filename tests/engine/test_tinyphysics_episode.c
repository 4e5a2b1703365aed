/*
 * Tinyphysics: the controls challenge's simulator, to the digit.
 *
 * Goal: every token and every cost is the unmodified reference's; bits do not depend on the batch
 * or the processor; damaged model files and logs are refused with a sentence. Method: weights and
 * logs made up from a hash, here and by tests/vectors/tinyphysics_vectors.py, which ran the
 * reference on them (argument: its lines); model files cut and changed everywhere.
 */
#include "base/check.h"
#include "engine/tinyphysics/onnx_file.h"
#include "engine/tinyphysics/tinyphysics_episode.h"
#include "kernels/cpu.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <unistd.h>

enum { LOGS = 4, ROWS = 600, EPISODES = 2 * LOGS, FIRST = 100, END = 500 };

static const char *vectors_path;
static char directory[] = "/tmp/swerve-tinyphysics-XXXXXX";
static char model_path[64];
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

static struct tinyphysics_model *load(uint32_t flags)
{
    struct tinyphysics_model *model = NULL;
    EXPECT_OK(tinyphysics_model_load(model_path, flags, &model, &error), error);
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
    struct tinyphysics_model *model = load(cpu_flags_detect());
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
        tinyphysics_episode_step(model, workspace, batch, actions, EPISODES);
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

static void made_up_window(uint32_t number, struct tinyphysics_window *window)
{
    for (uint32_t t = 0; t < TINYPHYSICS_CONTEXT; t++) {
        for (uint32_t i = 0; i < TINYPHYSICS_INPUTS; i++) {
            window->inputs[t][i] = 4.0f * made_up(100 + number, 4 * t + i, KIND_WIDE);
        }
        window->tokens[t] = (uint16_t)(mix(number + 31 * t) % TINYPHYSICS_BINS);
    }
}

static void bits_depend_on_the_window_alone(void)
{
    static struct tinyphysics_window windows[TINYPHYSICS_BATCH];
    static float alone[TINYPHYSICS_BATCH][TINYPHYSICS_BINS];
    static const uint32_t flags[] = {0, CPU_FLAG_AVX2, CPU_FLAG_AVX2 | CPU_FLAG_AVX512};
    struct tinyphysics_workspace *workspace;
    EXPECT_OK(tinyphysics_workspace_make(&workspace, &error), error);
    for (uint32_t i = 0; i < TINYPHYSICS_BATCH; i++) {
        made_up_window(i, &windows[i]);
    }
    for (size_t f = 0; f < COUNT_OF(flags); f++) {
        if ((cpu_flags_detect() & flags[f]) != flags[f]) {
            continue;
        }
        /* Plain C once, each window alone; all others in batches of all sizes against it. */
        struct tinyphysics_model *model = load(flags[f]);
        for (uint32_t count = 1; count <= (f == 0 ? 1 : TINYPHYSICS_BATCH); count++) {
            for (uint32_t i = 0; i + count <= TINYPHYSICS_BATCH; i += count) {
                const float *logits =
                    tinyphysics_model_logits(model, workspace, windows + i, count);
                if (f == 0) {
                    memcpy(alone[i], logits, sizeof alone[i]);
                }
                EXPECT_INT(memcmp(alone[i], logits, count * sizeof alone[0]), 0);
            }
        }
        tinyphysics_model_free(model);
    }
    tinyphysics_workspace_free(workspace);
}

/* ---- refusals ---- */

static enum status load_changed(const void *data, size_t bytes)
{
    struct tinyphysics_model *model = NULL;
    write_model(data, bytes);
    enum status status = tinyphysics_model_load(model_path, 0, &model, &error);
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
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[256];
        struct controls_log log;
        const int bytes = snprintf(text, sizeof text, "%s%s", cases[i].header, cases[i].row);
        EXPECT_INT(controls_log_parse("log", text, (size_t)bytes, &log, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, cases[i].expected);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && mkdtemp(directory) != NULL);
    vectors_path = argv[1];
    snprintf(model_path, sizeof model_path, "%s/made_up.onnx", directory);
    struct message model = make_model();
    write_model(model.data, model.bytes);
    free(model.data);
    int failed = TEST_RUN(TEST(every_token_and_cost_is_the_reference_s),
                          TEST(bits_depend_on_the_window_alone), TEST(damaged_models_are_refused),
                          TEST(damaged_logs_are_refused));
    unlink(model_path);
    rmdir(directory);
    return failed;
}
