/*
 * Loading a planner plugin. See planner_plugin.h.
 */
#include "worker/planner_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum status planner_plugin_load(const char *file, struct planner_plugin *plugin,
                                struct error *error)
{
    /* Without a slash dlopen would search the library path instead of taking the file named. */
    char path[PATH_MAX];
    if (realpath(file, path) == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "planner plugin %s: %s", file, strerror(errno));
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror();
        return error_set(error, STATUS_PLANNER, "planner plugin %s: %s", file,
                         reason != NULL ? reason : "cannot be loaded");
    }
    swerve_planner_entry_fn entry = NULL;
    void *symbol = dlsym(library, "swerve_planner_entry");
    memcpy(&entry, &symbol, sizeof entry);
    const struct swerve_planner_ops *ops = entry != NULL ? entry() : NULL;
    if (ops == NULL) {
        error_set(error, STATUS_PLANNER,
                  "planner plugin %s: %s swerve_planner_entry (schemas/planner.h)", file,
                  entry == NULL ? "does not export" : "got nothing from");
        goto fail;
    }
    if (ops->abi_version != SWERVE_PLANNER_ABI_VERSION) {
        error_set(error, STATUS_PLANNER, "planner plugin %s: expected ABI version %u, found %u",
                  file, SWERVE_PLANNER_ABI_VERSION, ops->abi_version);
        goto fail;
    }
    if (ops->open == NULL || ops->close == NULL || ops->reset == NULL || ops->act == NULL) {
        error_set(error, STATUS_PLANNER,
                  "planner plugin %s: open, close, reset and act must all be given", file);
        goto fail;
    }
    *plugin = (struct planner_plugin){library, ops};
    return STATUS_OK;
fail:
    dlclose(library);
    return STATUS_PLANNER;
}

void planner_plugin_unload(struct planner_plugin *plugin)
{
    if (plugin->library != NULL) {
        dlclose(plugin->library);
    }
    *plugin = (struct planner_plugin){NULL, NULL};
}
