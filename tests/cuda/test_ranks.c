/*
 * Goal: a world step shared by processes has the bits of one process' step, from the command line
 * down to the exchange, and what cannot be shared is refused with a sentence.
 * Method: the module under the emulator, in a process per rank, which exchange through the host's
 * memory; `swerve bench engine` where argv[2] names the program. argv[1]: the module.
 */
#include "engine/bench/ranks.h"
#include "engine/bench/scale_ranks.h"
#include "tests/harness.h"

#include <jansson.h>
#include <stdlib.h>

enum { LIMIT_MS = 100000 };

static const char *program;
static struct device_scale alone; /* a step by one process, which exchanges with itself */

static enum status run(const char *device, const char *config, uint32_t ranks,
                       struct device_scale *out, struct error *error)
{
    const struct scale_ranks_options options = {
        .device = device, .config = config, .ranks = ranks, .limit_ms = LIMIT_MS};
    return scale_ranks_run(&options, out, error);
}

static uint32_t launches_of(const struct device_scale *scale, const char *kind)
{
    uint32_t count = 0;
    for (int i = 0; i < DEVICE_SCALE_KINDS_MAX; i++) {
        count += strcmp(scale->kind[i].name, kind) == 0 ? scale->kind[i].launches : 0;
    }
    return count;
}

static void ranks_have_the_bits_of_one(void)
{
    for (uint32_t ranks = 1; ranks <= 2; ranks++) {
        struct device_scale shared;
        struct error error = {0};
        EXPECT_OK(run("cuda:0", "toy", ranks, &shared, &error), error);
        alone = ranks == 1 ? shared : alone;
        EXPECT(shared.latents_sum == alone.latents_sum && shared.latents_sum != 0);
        EXPECT(shared.finite && shared.same_bits);
        /* An exchange through the host waits for the stream, so it is not captured. */
        EXPECT_INT(shared.captured, ranks == 1);
        EXPECT_CONTAINS(shared.all_to_all, ranks == 1 ? "copies on the device" : "host's memory");
        EXPECT_CONTAINS(shared.all_to_all, "NCCL: ");
        EXPECT_INT(launches_of(&shared, "exchange"), 2 * 3 * 2); /* two by layer and step */
        /* 32 tokens: q, k, v of 4 + 2 * 2 heads and back 4, 32 bf16 each; half stays. */
        EXPECT_NEAR(shared.all_to_all_bytes, ranks == 1 ? 0.0 : 6 * 32 * (8 + 4) * 32 * 2 / 2.0,
                    0.0);
        EXPECT_NEAR(shared.attention_flop, alone.attention_flop, 1e-6);
        EXPECT(shared.step_ms == 0.0 && shared.peak_bf16_flops == 0.0); /* no clock */
    }
}

static void what_cannot_be_shared_is_refused(void)
{
    struct device_scale shared;
    struct error error = {0};
    EXPECT_INT(run("cuda:0", "toy", 3, &shared, &error), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "a divisor of 32 tokens, 4 heads and 2 key/value heads, found 3");
    EXPECT_INT(run("cuda:0", "toy", 9, &shared, &error), STATUS_USAGE);
    EXPECT_INT(run("cpu", "toy", 2, &shared, &error), STATUS_USAGE);
    EXPECT_CONTAINS(error.text, "expected --device cuda:N");
    EXPECT_INT(run("cuda:0", "toys", 2, &shared, &error), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "no configuration \"toys\"");
    /* The second rank's device is the machine's fourth of three. */
    EXPECT_INT(run("cuda:2", "toy", 2, &shared, &error), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "rank 1 of 2: device cuda:3: the machine has 3");
}

static void what_takes_too_long_is_ended(void)
{
    struct device_scale shared;
    struct error error = {0};
    const struct scale_ranks_options options = {
        .device = "cuda:0", .config = "toy", .ranks = 2, .limit_ms = 1};
    EXPECT_INT(scale_ranks_run(&options, &shared, &error), STATUS_DEVICE);
    EXPECT_INT(error.status, STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "2 ranks: expected an end within 0.0 s; rank ");
}

/* One process is there, the other never comes into the exchange. */
static enum status half(void *context, const struct device_ranks *place, void *result,
                        struct error *error)
{
    struct device device;
    (void)context;
    if (place->rank == 1) {
        place->wait(place->context); /* once: then it is missing in the next */
        return error_set(error, STATUS_DEVICE, "the device fell off the bus");
    }
    enum status status = device_choose("cuda:0", &device, error);
    return status == STATUS_OK ? device_scale_run(&device, "toy", place, result, error) : status;
}

static void a_rank_that_is_lost_ends_the_step(void)
{
    struct device_scale results[2];
    struct error error = {0};
    const struct ranks_job job = {.ranks = 2,
                                  .limit_ms = LIMIT_MS,
                                  .shared_bytes = 1 << 20,
                                  .result_bytes = sizeof results[0],
                                  .work = half};
    EXPECT_INT(ranks_run(&job, results, &error), STATUS_DEVICE);
    EXPECT_TEXT(error.text, "rank 1 of 2: the device fell off the bus");
}

/* Less memory than an exchange has bytes: everything goes through in pieces, the last one smaller.
 */
static enum status by_pieces(void *context, const struct device_ranks *place, void *result,
                             struct error *error)
{
    struct device device;
    struct device_ranks narrow = *place;
    narrow.shared_bytes = *(const size_t *)context;
    enum status status = device_choose("cuda:0", &device, error);
    return status == STATUS_OK ? device_scale_run(&device, "toy", &narrow, result, error) : status;
}

static void pieces_of_any_size_give_the_same(void)
{
    struct device_scale results[2];
    struct error error = {0};
    const size_t note_bytes = 256;
    const size_t windows[] = {0, 4 * 992};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        size_t bytes = note_bytes + 64 + windows[i];
        const struct ranks_job job = {.ranks = 2,
                                      .limit_ms = LIMIT_MS,
                                      .shared_bytes = bytes,
                                      .result_bytes = sizeof results[0],
                                      .work = by_pieces,
                                      .context = &bytes};
        enum status status = ranks_run(&job, results, &error);
        EXPECT_INT(status, i == 0 ? STATUS_DEVICE : STATUS_OK);
        if (i == 0) {
            EXPECT_CONTAINS(error.text, "are too few for 2 ranks");
        } else {
            EXPECT(results[0].latents_sum + results[1].latents_sum == alone.latents_sum);
        }
    }
}

static double value_of(json_t *root, const char *name)
{
    size_t index;
    json_t *row;
    json_array_foreach (json_object_get(root, "results"), index, row) {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0) {
            return json_number_value(json_object_get(row, "value"));
        }
    }
    TEST_FAIL("no row \"%s\"", name);
}

/* The rows of the command as one JSON object; owned by the caller. */
static json_t *bench(const char *arguments)
{
    static char text[32768];
    char command[4096];
    snprintf(command, sizeof command, "'%s' bench engine --config toy --random-weights --json %s",
             program, arguments);
    FILE *pipe = popen(command, "r");
    EXPECT(pipe != NULL);
    size_t bytes = fread(text, 1, sizeof text - 1, pipe);
    text[bytes] = '\0';
    EXPECT_INT(pclose(pipe), 0);
    json_t *root = json_loads(text, 0, NULL);
    EXPECT(root != NULL);
    return root;
}

static void the_command_prints_rows_of_all_ranks(void)
{
    json_t *one = bench("");
    json_t *two = bench("--ranks 2 --limit 100");
    EXPECT(value_of(one, "engine.toy.latents") ==
           (double)(alone.latents_sum & UINT64_C(0xFFFFFFFFFFFF)));
    EXPECT(value_of(two, "engine.toy.latents") == value_of(one, "engine.toy.latents"));
    EXPECT(value_of(two, "engine.toy.exchanged") > 0.0);
    json_decref(one);
    json_decref(two);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 2;
    }
    program = argv[2];
    setenv("SWERVE_CUDA_MODULE", argv[1], 1);
    setenv("SIMT_DEVICES", "3", 1);
    return TEST_RUN(TEST(ranks_have_the_bits_of_one), TEST(what_cannot_be_shared_is_refused),
                    TEST(what_takes_too_long_is_ended), TEST(a_rank_that_is_lost_ends_the_step),
                    TEST(pieces_of_any_size_give_the_same),
                    TEST(the_command_prints_rows_of_all_ranks));
}
