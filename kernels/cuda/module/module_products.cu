/*
 * Kernels that a session's products run on: ours, or what was fastest when somebody had them timed
 * (kernels/cuda/scale/gemm_tuner.h). Choices that have other bits are part of the device's backend,
 * so a session goes by them only where its caller names them, and by no others. And whether a
 * device has products of e4m3 at all.
 */
#include "kernels/capability.h"
#include "kernels/cuda/module/module.cuh"

#include <stdio.h>
#include <string.h>

enum { FOLDER_BYTES = STORE_PATH_BYTES - 300 };
static_assert((int)DEVICE_PRODUCTS_BYTES == (int)STORE_DIGEST_BYTES, "one is told by the other");

/* fp8 needs tensor cores that know it, and machine code that asks them: a module may have been
 * built by a toolkit that knows neither. */
int module_e4m3_check(uint32_t device, const char *what, struct device_text *why)
{
    cudaDeviceProp properties;
    uint32_t there = 0;
    cudaError_t error = cudaGetDeviceProperties(&properties, (int)device);
    if (error != cudaSuccess) {
        return module_fault(why, DEVICE_FAULT_INPUT, "asking about the device", error);
    }
    int found = 10 * properties.major + properties.minor;
    if (found < GPU_CAPABILITY_E4M3) {
        snprintf(why->text, sizeof why->text,
                 "%.32s is fp8: expected compute capability %d.%d or newer, found %d.%d", what,
                 GPU_CAPABILITY_E4M3 / 10, GPU_CAPABILITY_E4M3 % 10, properties.major,
                 properties.minor);
        return DEVICE_FAULT_INPUT;
    }
    error = gpu_device_enter((int)device);
    if (error == cudaSuccess) {
        error = (cudaError_t)gpu_e4m3_there(&there);
    }
    if (error != cudaSuccess) {
        return module_fault(why, DEVICE_FAULT_INPUT, "asking for fp8 products", error);
    }
    if (there == 0) {
        snprintf(why->text, sizeof why->text,
                 "%.32s is fp8: the module was compiled without such products for compute "
                 "capability %d.%d; build it with a toolkit that knows sm_%d",
                 what, properties.major, properties.minor, found);
        return DEVICE_FAULT_INPUT;
    }
    return DEVICE_OK;
}

/* As this machine keeps them; parts->folder lies in `folder`. */
static struct gemm_tuner_parts parts_of(char folder[FOLDER_BYTES])
{
    struct gemm_tuner_parts parts = {};
    parts.folder = gemm_tuner_store_folder(folder) ? folder : NULL;
    parts.measured = module_measured;
    return parts;
}

void module_products_digest(struct device_info *out)
{
    char folder[FOLDER_BYTES];
    const struct gemm_tuner_parts parts = parts_of(folder);
    struct device_text why;
    gemm_tuner_digest(&parts, out->products, &why);
    snprintf(out->products_why, sizeof out->products_why, "%s", why.text);
}

int module_products_open(struct device_session *session, struct device_text *why)
{
    const char *named = session->options.products;
    char found[STORE_DIGEST_BYTES];
    char folder[FOLDER_BYTES];
    struct gemm_tuner_parts parts = parts_of(folder);
    if (session->options.reference) {
        return DEVICE_OK;
    }
    parts.timing = session->timing;
    parts.own = named[0] == '\0' && !session->timing;
    int fault = gemm_tuner_create(&parts, &session->products, why);
    if (fault != DEVICE_OK || session->timing || parts.own) {
        return fault;
    }
    const struct gemm_tuner_store *choices = gemm_tuner_choices(session->products);
    gemm_tuner_store_digest(choices, found);
    if (strcmp(found, named) != 0) {
        snprintf(why->text, sizeof why->text,
                 "%.250s: expected the choices %.16s that the device was opened with, found %s",
                 choices->path, named, found[0] != '\0' ? found : "none");
        return DEVICE_FAULT_INPUT;
    }
    return DEVICE_OK;
}

uint32_t module_product_run(struct device_session *session, const struct gpu_gemm *g)
{
    uint32_t launches = 0;
    if (session->products == NULL) {
        session->kernels.gemm(g, session->stream);
        return 1;
    }
    if (session->product_fault == DEVICE_OK) {
        session->product_fault = gemm_tuner_matmul(session->products, g, &launches, session->stream,
                                                   &session->product_why);
    }
    return launches;
}

static void report(const struct device_session *session, struct device_tuning *out)
{
    const struct gemm_tuner_store *choices = gemm_tuner_choices(session->products);
    struct gemm_tuner_counts counts;
    gemm_tuner_count(session->products, &counts);
    *out = {};
    out->shapes = choices->count;
    for (uint32_t i = 0; i < choices->count; i++) {
        const struct gemm_tuner_choice *choice = &choices->entry[i].choice;
        out->on_library += choice->way == GEMM_TUNER_LIBRARY ? 1 : 0;
        out->on_tiles += choice->way == GEMM_TUNER_OWN && choice->tile != GPU_TILE_AUTO ? 1 : 0;
    }
    out->own_ms = counts.own_ms;
    out->chosen_ms = counts.chosen_ms;
    snprintf(out->library, sizeof out->library, "%s", gemm_tuner_describe(session->products));
    snprintf(out->path, sizeof out->path, "%.500s", choices->path);
}

/* A session's first tick has each product of a tick once, on its own buffers. */
int module_products_tune(const struct device_model *model, const struct device_options *options,
                         struct device_tuning *out, struct device_text *why)
{
    struct device_session *session = NULL;
    struct device_options once = *options;
    once.eager = 1; /* timing cannot be captured */
    if (options->reference) {
        return module_refuse(why, "reference kernels have nothing to choose from");
    }
    int fault = module_session_open(model, &once, true, &session, why);
    if (fault != DEVICE_OK) {
        return fault;
    }
    report(session, out);
    if (!gemm_tuner_keep(session->products)) {
        snprintf(why->text, sizeof why->text, "choices of products cannot be written to %.250s",
                 out->path[0] != '\0' ? out->path : "a folder: set SWERVE_CACHE");
        fault = DEVICE_FAULT_INPUT;
    }
    module_session_close(session);
    return fault;
}
