/*
 * The runner shelf. See runner_shelf.h.
 */
#include "worker/run/runner_shelf.h"
#include "engine/worlds/world.h"

#include <stdio.h>
#include <string.h>

static void close_entry(struct runner_shelf *shelf, struct shelf_entry *entry)
{
    shelf->ticks += runner_stats(entry->open.runner)->ticks;
    shelf->forks += runner_stats(entry->open.runner)->forks;
    struct world_cost cost = runner_cost(entry->open.runner);
    shelf->captures += cost.captures;
    shelf->batches += cost.batches;
    shelf->up_bytes += cost.up_bytes;
    shelf->down_bytes += cost.down_bytes;
    runner_close(&entry->open);
}

static bool serves(const struct shelf_entry *entry, const struct job_spec *spec)
{
    return entry->open.runner != NULL && entry->tier == spec->tier &&
           strcmp(entry->planner, spec->planner) == 0 &&
           strcmp(entry->planner_hash, spec->planner_hash) == 0 &&
           strcmp(entry->model_hash, spec->model_hash) == 0 &&
           strcmp(entry->sampler, spec->sampler) == 0 && strcmp(entry->backend, spec->backend) == 0;
}

/* A planner whose files changed gets a new runner. An idle one of the old files goes first, because
 * a plugin that is still loaded would be handed out again in place of the new one. */
static enum status drop_outdated(struct runner_shelf *shelf, const struct job_spec *spec,
                                 struct error *error)
{
    bool plugin = strncmp(spec->planner, "plugin:", 7) == 0;
    for (uint32_t i = 0; i < SHELF_RUNNERS_MAX; i++) {
        struct shelf_entry *entry = &shelf->entries[i];
        if (entry->open.runner == NULL || strcmp(entry->planner, spec->planner) != 0 ||
            strcmp(entry->planner_hash, spec->planner_hash) == 0) {
            continue;
        }
        if (!runner_busy(entry->open.runner)) {
            close_entry(shelf, entry);
        } else if (plugin) {
            return error_set(error, STATUS_BUSY, "an earlier version of the planner is running");
        }
    }
    return STATUS_OK;
}

/* A free place, else the least recently used one whose runner is idle, else NULL. */
static struct shelf_entry *find_place(struct runner_shelf *shelf)
{
    struct shelf_entry *place = NULL;
    for (uint32_t i = 0; i < SHELF_RUNNERS_MAX; i++) {
        struct shelf_entry *entry = &shelf->entries[i];
        if (entry->open.runner == NULL) {
            return entry;
        }
        if (!runner_busy(entry->open.runner) &&
            (place == NULL || entry->last_use < place->last_use)) {
            place = entry;
        }
    }
    return place;
}

enum status runner_shelf_get(struct runner_shelf *shelf, const struct job_spec *spec,
                             struct runner **out, struct error *error)
{
    for (uint32_t i = 0; i < SHELF_RUNNERS_MAX; i++) {
        if (serves(&shelf->entries[i], spec)) {
            shelf->entries[i].last_use = ++shelf->uses;
            *out = shelf->entries[i].open.runner;
            return STATUS_OK;
        }
    }
    enum status status = drop_outdated(shelf, spec, error);
    if (status != STATUS_OK) {
        return status;
    }
    struct shelf_entry *place = find_place(shelf);
    if (place == NULL) {
        return error_set(error, STATUS_BUSY, "more than %d planners or models at once",
                         SHELF_RUNNERS_MAX);
    }
    if (place->open.runner != NULL) {
        close_entry(shelf, place);
    }
    status = runner_open(&shelf->source, spec, &place->open, error);
    if (status != STATUS_OK) {
        return status;
    }
    place->tier = spec->tier;
    snprintf(place->planner, sizeof place->planner, "%s", spec->planner);
    memcpy(place->planner_hash, spec->planner_hash, sizeof place->planner_hash);
    memcpy(place->model_hash, spec->model_hash, sizeof place->model_hash);
    memcpy(place->sampler, spec->sampler, sizeof place->sampler);
    memcpy(place->backend, spec->backend, sizeof place->backend);
    place->last_use = ++shelf->uses;
    *out = place->open.runner;
    return STATUS_OK;
}

void runner_shelf_finish(struct runner_shelf *shelf)
{
    for (uint32_t i = 0; i < SHELF_RUNNERS_MAX; i++) {
        if (shelf->entries[i].open.runner != NULL) {
            close_entry(shelf, &shelf->entries[i]);
        }
    }
}
