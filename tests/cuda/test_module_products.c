/*
 * Goal: products of a served model run on what was fastest when they were timed, choices that have
 * other bits are part of the backend, and a session goes by none that its backend does not name.
 * Method: the module under the emulator with a made-up cuBLASLt, which judges what it is asked and
 * multiplies with our kernel, so that a tick on it has the bits of a tick on ours: each bias, gate,
 * activation and slot that sits out included. argv: the module, the program, a model's file.
 */
#include "base/check.h"
#include "engine/learned/device.h"
#include "engine/learned/forward.h"
#include "engine/learned/model_internal.h"
#include "kernels/cpu.h"
#include "tests/cuda/cublaslt/double.h"
#include "tests/cuda/folder.h"
#include "tests/harness.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAGES = 4, TICKS = 1 };

static char cache[64] = "/tmp/swerve-products-XXXXXX";
static const char *program, *model_path;
static struct cublaslt_double *library;
static void (*compute)(const struct cublaslt_product *product);
static struct model *model; /* of bf16 and e4m3, heads that share keys and values */
static struct model_device description;

static void create_model(void)
{
    struct error error = {0};
    struct model_config config = {
        .name = "random",
        .tier = TIER_STUDENT,
        .width = 32,
        .layers = 1,
        .bev_channels = 32,
        .camera_channels = 32,
        .window = 2,
        .steps = 1,
        .schedule = {0.0, 1.0},
        .joint = {true},
        .type = MODEL_E4M3,
    };
    const struct model_open_options options = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    CHECK(model_random(&config, &options, 11, &model, &error) == STATUS_OK);
    CHECK(model_describe(model, &description, &error) == STATUS_OK);
}

static void reset(uint32_t algorithms)
{
    *library = (struct cublaslt_double){.compute = compute, .algorithms = algorithms};
}

static struct device choose(void)
{
    struct device device;
    struct error error = {0};
    EXPECT_OK(device_choose("cuda:0", &device, &error), error);
    EXPECT_INT(library->living, 0); /* a look at the device keeps nothing of the library */
    return device;
}

static int open_session(const struct device *device, uint32_t slots, bool eager,
                        struct device_session **out, struct device_text *why)
{
    struct device_options options = {
        .slot_count = slots, .page_count = PAGES, .eager = eager, .wgmma = device->wgmma};
    memcpy(options.products, device->products, sizeof options.products);
    return device->ops->open(&description.description, &options, out, why);
}

/* Frames of a rollout in the last of so many slots, the others at rest. */
static void drive(const struct device *device, uint32_t slots, bool eager, uint8_t *frames)
{
    static uint8_t first[FRAME_BYTES];
    struct device_session *session = NULL;
    struct device_text why = {""};
    if (open_session(device, slots, eager, &session, &why) != DEVICE_OK) {
        TEST_FAIL("open: %s", why.text);
    }
    library->prepared = true; /* from here on it is asked for products alone */
    for (uint32_t i = 0; i < FRAME_BYTES; i++) {
        first[i] = (uint8_t)(i * 2654435761u >> 24);
    }
    EXPECT_INT(device->ops->page_make(session, 0, first, &why), DEVICE_OK);
    for (uint32_t tick = 1; tick <= TICKS; tick++) {
        device->ops->slots(session)[slots - 1] = (struct device_slot){
            .seed = 5,
            .ego = {16.0, 48.0, 0.1},
            .active = 1,
            .tick = tick,
            .page_count = tick < 2 ? 1 : 2,
            .page = {tick - 1, tick < 2 ? 0 : tick - 2},
            .write_page = tick,
            .deliver = 1,
            .given = DEVICE_GIVEN_ALL,
        };
        memcpy(device->ops->layout(session, slots - 1), first, FRAME_BYTES);
        if (device->ops->tick_start(session, &why) != DEVICE_OK ||
            device->ops->tick_finish(session, &why) != DEVICE_OK) {
            TEST_FAIL("tick: %s", why.text);
        }
        memcpy(frames + (tick - 1) * FRAME_BYTES, device->ops->frame(session, slots - 1),
               FRAME_BYTES);
    }
    device->ops->close(session);
    EXPECT_TEXT(library->fault, "");
    EXPECT_INT(library->living, 0);
    library->prepared = false;
}

static struct device_tuning tune(uint32_t slots)
{
    const struct device device = choose();
    struct device_tuning out;
    struct error error = {0};
    EXPECT_OK(device_tune(&device, model, slots, &out, &error), error);
    EXPECT_TEXT(library->fault, "");
    EXPECT_INT(library->living, 0);
    return out;
}

static uint8_t expected[TICKS * FRAME_BYTES], found[TICKS * FRAME_BYTES];

/* No file: the backend and the bits of a module that never heard of choices; no library is opened.
 * Other tiles of ours are chosen without a word in the backend. */
static void tiles_are_no_other_backend(void)
{
    reset(3);
    struct device device = choose();
    EXPECT_TEXT(device.backend, "cuda:emulated");
    drive(&device, 1, false, expected);
    EXPECT_INT(library->matmuls, 0);
    setenv("PRODUCTS_OWN", "1", 1);
    const struct device_tuning tuned = tune(2);
    unsetenv("PRODUCTS_OWN");
    EXPECT(tuned.shapes > 8 && tuned.on_library == 0 && tuned.on_tiles > 8);
    EXPECT(tuned.own_ms > tuned.chosen_ms && tuned.chosen_ms > 0.0);
    EXPECT_TEXT(tuned.library, "cuBLASLt 990000");
    device = choose();
    EXPECT_TEXT(device.backend, "cuda:emulated");
    library->matmuls = 0;
    drive(&device, 2, false, found);
    EXPECT(memcmp(found, expected, sizeof found) == 0);
    EXPECT_INT(library->matmuls, 0);
    EXPECT_INT(unlink(tuned.path), 0);
}

static void choices_of_the_library_are_another_backend(void)
{
    static const struct {
        uint32_t slots;
        bool eager;
    } sessions[] = {{1, true}, {3, false}};
    reset(2);
    const struct device_tuning tuned = tune(2);
    EXPECT(tuned.on_library == tuned.shapes && tuned.shapes > 8);
    const struct device device = choose();
    EXPECT_CONTAINS(device.backend, "cuda:emulated/");
    EXPECT_INT(strlen(device.backend), strlen("cuda:emulated/") + 16);
    EXPECT_TEXT(device.backend + strlen("cuda:emulated/"), device.products);
    for (size_t i = 0; i < COUNT_OF(sessions); i++) {
        library->matmuls = 0;
        memset(found, 0, sizeof found);
        drive(&device, sessions[i].slots, sessions[i].eager, found);
        EXPECT(library->matmuls > 8 * sessions[i].slots);
        EXPECT(memcmp(found, expected, sizeof found) == 0);
    }
    const struct device_tuning again = tune(2); /* what is known is not timed */
    EXPECT(again.own_ms == 0.0 && again.shapes == tuned.shapes);
    EXPECT_TEXT(choose().backend, device.backend);
}

/* A session whose backend does not name the choices that are kept now. */
static void a_session_goes_by_no_other_choices(void)
{
    struct device_session *session = NULL;
    struct device_text why = {""};
    reset(1);
    const struct device before = choose();
    EXPECT(before.products[0] != '\0');
    EXPECT_INT(unlink(tune(1).path), 0);
    EXPECT_TEXT(choose().backend, "cuda:emulated");
    EXPECT_INT(open_session(&before, 1, false, &session, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "products-SIMT-emulator: expected the choices ");
    EXPECT_CONTAINS(why.text, before.products);
    EXPECT_CONTAINS(why.text, "found none");
    EXPECT_INT(library->living, 0);
    const struct device none = choose(); /* the device was chosen before somebody timed */
    EXPECT(tune(1).on_library > 0);
    library->matmuls = 0;
    drive(&none, 1, true, found);
    EXPECT(memcmp(found, expected, sizeof found) == 0);
    EXPECT_INT(library->matmuls, 0);
}

static void a_library_that_is_gone_is_said(void)
{
    char text[1024];
    struct device_session *session = NULL;
    struct device_text why = {""};
    reset(1);
    const struct device device = choose();
    EXPECT(device.products[0] != '\0');
    library->create_status = 1;
    EXPECT_TEXT(choose().backend, "cuda:emulated");
    EXPECT(device_describe(text, sizeof text) != 0);
    EXPECT_CONTAINS(text, "products on our own kernels: ");
    EXPECT_CONTAINS(text, "has choices of products for cuBLASLt 990000, found: ");
    EXPECT_INT(open_session(&device, 1, false, &session, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "has choices of products for cuBLASLt 990000, found: ");
    library->create_status = 0;
    library->algorithms = 0; /* it forgot what was chosen */
    EXPECT_INT(open_session(&device, 1, false, &session, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "names an algorithm that cuBLASLt 990000 does not take");
    EXPECT_INT(library->living, 0);
}

static void a_product_that_fails_loses_the_session(void)
{
    static const uint8_t frame[FRAME_BYTES];
    struct device_session *session = NULL;
    struct device_text why = {""};
    reset(1);
    const struct device device = choose();
    EXPECT_INT(open_session(&device, 1, true, &session, &why), DEVICE_OK);
    library->matmul_status = 13;
    EXPECT_INT(device.ops->page_make(session, 0, frame, &why), DEVICE_FAULT_LOST);
    EXPECT_CONTAINS(why.text, "cuBLASLt, product ");
    EXPECT_CONTAINS(why.text, "CUBLAS_STATUS_EXECUTION_FAILED");
    EXPECT_INT(device.ops->tick_start(session, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "lost");
    device.ops->close(session);
    EXPECT_INT(library->living, 0);
}

static void what_cannot_be_kept_is_said(void)
{
    const struct device device = choose();
    struct device_tuning out;
    struct error error = {0};
    reset(1);
    setenv("SWERVE_CACHE", "/dev/null/nowhere", 1);
    EXPECT_INT(device_tune(&device, model, 1, &out, &error), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "choices of products cannot be written to /dev/null/nowhere/");
    setenv("SWERVE_CACHE", cache, 1);
}

/* In a process of its own, whose made-up library has no algorithms. */
static void the_command_says_what_was_chosen(void)
{
    static char text[4096];
    char command[1024];
    snprintf(command, sizeof command, "'%s' bench engine --tune --model '%s' --slots 1", program,
             model_path);
    FILE *pipe = popen(command, "r");
    EXPECT(pipe != NULL);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    EXPECT_INT(pclose(pipe), 0);
    const char *tiles = strstr(text, "engine.tune.tiles");
    EXPECT_CONTAINS(text, "engine.tune.products");
    EXPECT_CONTAINS(text, "0.400  our kernels, not tuned"); /* large tiles: 2 ms of 5 */
    EXPECT_CONTAINS(text, "cuBLASLt 990000");
    EXPECT(tiles != NULL);
    EXPECT_CONTAINS(tiles, "1.000  "); /* all */
    EXPECT_CONTAINS(tiles, "products-SIMT-emulator");
    snprintf(command, sizeof command, "%s/products-SIMT-emulator", cache);
    EXPECT_INT(unlink(command), 0);
}

int main(int argc, char **argv)
{
    void *module = argc > 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *made_up = dlopen("libcublasLt.so.99", RTLD_NOW);
    library = made_up != NULL ? dlsym(made_up, "cublaslt_double") : NULL;
    void *symbol = module != NULL ? dlsym(module, "products_compute") : NULL;
    if (library == NULL || symbol == NULL || mkdtemp(cache) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    memcpy(&compute, &symbol, sizeof compute);
    program = argv[2];
    model_path = argv[3];
    setenv("SWERVE_CUDA_MODULE", argv[1], 1);
    setenv("SWERVE_CACHE", cache, 1);
    create_model();
    int failed =
        TEST_RUN(TEST(the_command_says_what_was_chosen), TEST(tiles_are_no_other_backend),
                 TEST(choices_of_the_library_are_another_backend),
                 TEST(a_session_goes_by_no_other_choices), TEST(a_library_that_is_gone_is_said),
                 TEST(a_product_that_fails_loses_the_session), TEST(what_cannot_be_kept_is_said));
    model_close(model);
    return folder_remove(cache, failed);
}
