/*
 * Loading a planner plugin. See planner_plugin.h.
 */
#include "worker/planner/planner_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ABI_OLDEST = 1, ABI_OPEN_ON = 2, ABI_PLAN = 3, ABI_RIG = 4 };

static const uint32_t pictures = SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS;
static const uint32_t lists = SWERVE_WANTS_OBJECTS | SWERVE_WANTS_SEEN | SWERVE_WANTS_MAP |
                              SWERVE_WANTS_SIGNALS | SWERVE_WANTS_CONTROLS;

const struct swerve_place planner_place_host = {-1, "cpu"};

/* Members that the table's version knows of. */
static bool opens_on(const struct swerve_planner_ops *ops)
{
    return ops->abi_version >= ABI_OPEN_ON && ops->open_on != NULL;
}

bool planner_ops_drives(const struct swerve_planner_ops *ops)
{
    return ops->abi_version >= ABI_RIG && ops->drive != NULL;
}

bool planner_ops_plans(const struct swerve_planner_ops *ops)
{
    return planner_ops_drives(ops) || (ops->abi_version >= ABI_PLAN && ops->plan != NULL);
}

enum status planner_ops_settle(const struct swerve_planner_ops *ops,
                               const struct swerve_place *place, const char *reason,
                               uint32_t *wants, struct error *error)
{
    uint32_t shown = ops->wants & pictures;
    uint32_t listed = planner_ops_plans(ops) ? ops->wants & lists : 0;
    if (shown != 0 && opens_on(ops) && (ops->wants & SWERVE_WANTS_DEVICE) != 0) {
        if (place->device >= 0) {
            shown |= SWERVE_WANTS_DEVICE;
        } else if ((ops->wants & SWERVE_WANTS_HOST_ELSE) == 0) {
            return error_set(error, STATUS_PLANNER,
                             "it takes observations on a device alone (SWERVE_WANTS_DEVICE without "
                             "SWERVE_WANTS_HOST_ELSE): %s",
                             reason);
        }
    }
    *wants = shown | listed;
    return STATUS_OK;
}

int planner_ops_open(const struct swerve_planner_ops *ops, uint32_t wants,
                     const struct swerve_place *place, void **instance,
                     const struct swerve_offer *offer, char *text, uint32_t text_bytes)
{
    const char *config = offer->config;
    const uint32_t session_count = offer->session_count;
    if (planner_ops_drives(ops)) {
        return ops->open_rig(instance, offer, text, text_bytes);
    }
    if (!opens_on(ops)) {
        return ops->open(instance, config, session_count, text, text_bytes);
    }
    const struct swerve_place *shown =
        (wants & SWERVE_WANTS_DEVICE) != 0 ? place : &planner_place_host;
    return ops->open_on(instance, shown, config, session_count, text, text_bytes);
}

int planner_ops_plan(const struct swerve_planner_ops *ops, void *instance, uint32_t count,
                     const struct swerve_observation *observations,
                     const struct swerve_surroundings *around, const struct swerve_sensors *sensors,
                     struct swerve_answer *answers, uint8_t *failed, char *text,
                     uint32_t text_bytes)
{
    return planner_ops_drives(ops) ? ops->drive(instance, count, observations, around, sensors,
                                                answers, failed, text, text_bytes)
                                   : ops->plan(instance, count, observations, around, answers,
                                               failed, text, text_bytes);
}

static enum status check_plan(const char *file, const struct swerve_planner_ops *ops,
                              struct error *error)
{
    if ((ops->wants & lists) != 0 && !planner_ops_plans(ops)) {
        return error_set(
            error, STATUS_PLANNER,
            "planner plugin %s: wants 0x%x needs plan, which has room for what it asks "
            "for",
            file, ops->wants & lists);
    }
    if ((ops->wants & SWERVE_WANTS_SEEN) != 0 && (ops->wants & SWERVE_WANTS_OBJECTS) == 0) {
        return error_set(error, STATUS_PLANNER,
                         "planner plugin %s: SWERVE_WANTS_SEEN says which objects, and needs "
                         "SWERVE_WANTS_OBJECTS",
                         file);
    }
    if (ops->history_ticks > SWERVE_HISTORY_TICKS || ops->tracker >= SWERVE_TRACKER_COUNT) {
        return error_set(error, STATUS_PLANNER,
                         "planner plugin %s: expected history_ticks up to %d and a tracker below "
                         "%d, found %u and %u",
                         file, SWERVE_HISTORY_TICKS, SWERVE_TRACKER_COUNT, ops->history_ticks,
                         ops->tracker);
    }
    return STATUS_OK;
}

/* Sensors of a rig come from open_rig's choice alone, and only drive has room for them. */
static enum status check_drive(const char *file, const struct swerve_planner_ops *ops,
                               struct error *error)
{
    const uint32_t found = ops->wants & (pictures | SWERVE_WANTS_DEVICE);
    if ((ops->open_rig == NULL) != (ops->drive == NULL)) {
        return error_set(error, STATUS_PLANNER,
                         "planner plugin %s: expected open_rig and drive, or neither, found %s",
                         file, ops->drive == NULL ? "open_rig alone" : "drive alone");
    }
    if (ops->drive != NULL && found != 0) {
        return error_set(error, STATUS_PLANNER,
                         "planner plugin %s: with drive, sensors are those of open_rig's choice: "
                         "expected wants without BEV, CAMERAS and DEVICE, found 0x%x",
                         file, found);
    }
    return STATUS_OK;
}

/* Of a version that is known. */
static enum status check_table(const char *file, const struct swerve_planner_ops *ops,
                               struct error *error)
{
    uint32_t known = pictures | SWERVE_WANTS_DEVICE | SWERVE_WANTS_HOST_ELSE;
    known |= ops->abi_version >= ABI_PLAN ? lists : 0;
    if (ops->abi_version >= ABI_RIG) {
        TRY(check_drive(file, ops, error));
    }
    if ((ops->open == NULL && !opens_on(ops) && !planner_ops_drives(ops)) || ops->close == NULL ||
        ops->reset == NULL || (ops->act == NULL && !planner_ops_plans(ops))) {
        return error_set(error, STATUS_PLANNER,
                         "planner plugin %s: open, close, reset and act (or plan, in version 3; "
                         "open_rig and drive, in version 4) must all be given",
                         file);
    }
    if (ops->abi_version < ABI_OPEN_ON) {
        return STATUS_OK;
    }
    if ((ops->wants & ~known) != 0) {
        return error_set(error, STATUS_PLANNER, "planner plugin %s: wants has unknown bits: 0x%x",
                         file, ops->wants & ~known);
    }
    if ((ops->wants & SWERVE_WANTS_DEVICE) != 0 && !opens_on(ops)) {
        return error_set(error, STATUS_PLANNER,
                         "planner plugin %s: with SWERVE_WANTS_DEVICE open_on must be given: it "
                         "says on which device observations lie",
                         file);
    }
    return ops->abi_version >= ABI_PLAN ? check_plan(file, ops, error) : STATUS_OK;
}

void planner_plugin_end_copy(const struct planner_plugin *plugin)
{
    static const char sentence[] =
        "swerve: a child of a planner plugin's fork() came back from the "
        "plugin's function; it was ended\n";
    if (plugin->process == 0 || plugin->process == getpid()) {
        return;
    }
    /* Nothing else may run: locks and buffers are copies of those that the worker still uses. */
    ssize_t wrote = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    _exit(wrote > 0 ? 0 : 1);
}

enum status planner_plugin_load(const char *file, struct planner_plugin *plugin,
                                struct error *error)
{
    /* Without a slash dlopen would search the library path instead of taking the file named. */
    char path[PATH_MAX];
    if (realpath(file, path) == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "planner plugin %s: %s", file, strerror(errno));
    }
    struct planner_plugin loaded = {.process = getpid()};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    planner_plugin_end_copy(&loaded);
    if (library == NULL) {
        const char *reason = dlerror();
        return error_set(error, STATUS_PLANNER, "planner plugin %s: %s", file,
                         reason != NULL ? reason : "cannot be loaded");
    }
    swerve_planner_entry_fn entry = NULL;
    void *symbol = dlsym(library, "swerve_planner_entry");
    memcpy(&entry, &symbol, sizeof entry);
    const struct swerve_planner_ops *ops = entry != NULL ? entry() : NULL;
    planner_plugin_end_copy(&loaded);
    if (ops == NULL) {
        error_set(error, STATUS_PLANNER,
                  "planner plugin %s: %s swerve_planner_entry (schemas/planner.h)", file,
                  entry == NULL ? "does not export" : "got nothing from");
        goto fail;
    }
    if (ops->abi_version < ABI_OLDEST || ops->abi_version > SWERVE_PLANNER_ABI_VERSION) {
        error_set(error, STATUS_PLANNER,
                  "planner plugin %s: expected ABI version %d to %u, found %u", file, ABI_OLDEST,
                  SWERVE_PLANNER_ABI_VERSION, ops->abi_version);
        goto fail;
    }
    if (check_table(file, ops, error) != STATUS_OK) {
        goto fail;
    }
    loaded.library = library;
    loaded.ops = ops;
    *plugin = loaded;
    return STATUS_OK;
fail:
    dlclose(library);
    return STATUS_PLANNER;
}

void planner_plugin_unload(struct planner_plugin *plugin)
{
    if (plugin->library != NULL) {
        dlclose(plugin->library);
        planner_plugin_end_copy(plugin);
    }
    *plugin = (struct planner_plugin){0};
}
