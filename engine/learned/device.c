/*
 * The search for the device module. See device.h.
 */
#include "engine/learned/device.h"

#include "base/file.h"
#include "engine/learned/model_internal.h"
#include "kernels/capability.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULE_FILE "swerve_cuda.so"
#define MODULE_INSTALLED "/usr/lib/swerve/" MODULE_FILE

enum {
    PATH_BYTES = 4096,
};

enum status device_error(struct error *error, int fault, const char *what,
                         const struct device_text *why)
{
    return error_set(error, fault == DEVICE_FAULT_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE,
                     "%s: %s", what, why->text);
}

/* ---- the module ---- */

static enum status load(const char *path, const struct device_ops **out, struct error *error)
{
    device_ops_get get = NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return error_set(error, STATUS_DEVICE, "device module: %s", dlerror());
    }
    void *symbol = dlsym(handle, DEVICE_SYMBOL);
    if (symbol == NULL) {
        return error_set(error, STATUS_DEVICE, "device module %s: expected the symbol %s", path,
                         DEVICE_SYMBOL);
    }
    memcpy(&get, &symbol, sizeof get); /* ISO C has no cast from an object to a function */
    const struct device_ops *ops = get();
    if (ops->abi != DEVICE_ABI || ops->bytes != device_abi_bytes()) {
        return error_set(error, STATUS_DEVICE,
                         "device module %s: expected interface %d (%u bytes), found %u (%u bytes); "
                         "it was built from other sources than this program",
                         path, DEVICE_ABI, device_abi_bytes(), ops->abi, ops->bytes);
    }
    *out = ops;
    return STATUS_OK;
}

enum status device_module_open(const struct device_ops **out, struct error *error)
{
    const char *given = getenv("SWERVE_CUDA_MODULE");
    char folder[PATH_BYTES];
    char path[PATH_BYTES + 64];
    if (given != NULL && given[0] != '\0') {
        return load(given, out, error);
    }
    static const char *const places[] = {"", "/../lib/swerve", "/../kernels/cuda"};
    char *slash = file_program(folder, sizeof folder) ? strrchr(folder, '/') : NULL;
    if (slash != NULL) {
        *slash = '\0';
    } else {
        memcpy(folder, ".", 2);
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, places[i], MODULE_FILE);
        if (access(path, F_OK) == 0) {
            return load(path, out, error);
        }
    }
    if (access(MODULE_INSTALLED, F_OK) == 0) {
        return load(MODULE_INSTALLED, out, error);
    }
    return error_set(error, STATUS_NOT_FOUND,
                     "no " MODULE_FILE
                     " beside the program, in ../lib/swerve or at " MODULE_INSTALLED
                     " (SWERVE_CUDA_MODULE names another file)");
}

/* ---- devices ---- */

static enum status use(const struct device_ops *ops, uint32_t index, struct device *out,
                       struct error *error)
{
    struct device_text why = {""};
    struct device_info info;
    uint32_t count = ops->count(&why);
    if (index >= count) {
        return error_set(error, STATUS_DEVICE, "device cuda:%u: the machine has %u%s%s", index,
                         count, count == 0 ? ": " : "", count == 0 ? why.text : "");
    }
    int fault = ops->describe(index, &info, &why);
    if (fault != DEVICE_OK) {
        char what[32];
        snprintf(what, sizeof what, "device cuda:%u", index);
        return device_error(error, fault, what, &why);
    }
    *out = (struct device){.ops = ops, .index = index, .wgmma = info.wgmma != 0};
    memcpy(out->products, info.products, sizeof out->products);
    const char *slash = info.products[0] != '\0' ? "/" : "";
    if (strcmp(ops->name, "cuda") == 0) {
        if (10 * info.major + info.minor < GPU_CAPABILITY_FIRST) {
            return error_set(error, STATUS_DEVICE,
                             "device cuda:%u, %s: expected compute capability %d.%d or newer, "
                             "found %u.%u",
                             index, info.name, GPU_CAPABILITY_FIRST / 10, GPU_CAPABILITY_FIRST % 10,
                             info.major, info.minor);
        }
        const bool lacks = info.major == 9 && info.minor == 0 && !out->wgmma;
        snprintf(out->backend, sizeof out->backend, "cuda:sm_%u%u%s%s%s", info.major, info.minor,
                 lacks ? "/mma.sync" : "", slash, info.products);
    } else {
        snprintf(out->backend, sizeof out->backend, "cuda:%.32s%s%s", ops->name, slash,
                 info.products);
    }
    return STATUS_OK;
}

enum status device_choose(const char *name, struct device *out, struct error *error)
{
    const struct device_ops *ops = NULL;
    unsigned index = 0;
    char rest = 0;
    bool automatic = strcmp(name, "auto") == 0;
    if (strcmp(name, "cpu") == 0) {
        *out = (struct device){.backend = "cpu"};
        return STATUS_OK;
    }
    if (!automatic && sscanf(name, "cuda:%4u%c", &index, &rest) != 1) {
        return error_set(error, STATUS_USAGE,
                         "--device: expected auto, cpu or cuda:N, found \"%.60s\"", name);
    }
    enum status status = device_module_open(&ops, error);
    THEN(status, use(ops, index, out, error));
    if (status != STATUS_OK && automatic) {
        *out = (struct device){.backend = "cpu"};
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        error->status = STATUS_DEVICE;
        return STATUS_DEVICE;
    }
    return STATUS_OK;
}

int device_describe(char *text, size_t text_bytes)
{
    struct error error = {0};
    struct device device;
    struct device_text why = {""};
    struct device_info info;
    const struct device_ops *ops = NULL;
    if (device_module_open(&ops, &error) != STATUS_OK ||
        use(ops, 0, &device, &error) != STATUS_OK) {
        snprintf(text, text_bytes, "worlds run on the CPU: %s", error.text);
        return 0;
    }
    if (ops->describe(0, &info, &why) != DEVICE_OK) {
        snprintf(text, text_bytes, "worlds run on the CPU: %s", why.text);
        return 0;
    }
    snprintf(text, text_bytes, "%s (%s), %.0f of %.0f GB free, %u of them%s%s", info.name,
             device.backend, (double)info.free_bytes / 1e9, (double)info.memory_bytes / 1e9,
             ops->count(&why),
             info.products_why[0] != '\0' ? "; products on our own kernels: " : "",
             info.products_why);
    return 1;
}

enum status device_scale_run(const struct device *device, const char *config,
                             const struct device_ranks *ranks, struct device_scale *out,
                             struct error *error)
{
    struct device_text why = {""};
    int fault = device->ops->scale_run(device->index, config, ranks, out, &why);
    return fault == DEVICE_OK ? STATUS_OK : device_error(error, fault, device->backend, &why);
}

enum status device_tune(const struct device *device, const struct model *model, uint32_t slots,
                        struct device_tuning *out, struct error *error)
{
    struct device_text why = {""};
    struct model_device description;
    const struct device_options options = {.device = device->index,
                                           .slot_count = slots,
                                           .page_count = 1,
                                           .reference = device->reference,
                                           .wgmma = device->wgmma};
    TRY(model_describe(model, &description, error));
    int fault = device->ops->tune(&description.description, &options, out, &why);
    return fault == DEVICE_OK ? STATUS_OK : device_error(error, fault, device->backend, &why);
}

enum status device_rollouts_run(const struct device *device, struct device_rollouts *rollouts,
                                struct error *error)
{
    struct device_text why = {""};
    int fault = device->ops->rollouts_run(device->index, rollouts, &why);
    return fault == DEVICE_OK ? STATUS_OK : device_error(error, fault, device->backend, &why);
}
