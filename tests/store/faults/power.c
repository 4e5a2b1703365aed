/*
 * Power loss. See power.h.
 *
 * Per file: its synced contents and the list of what was issued since. An image applies a random
 * part of that list to a copy.
 */
#include "tests/store/faults/power.h"

#include "base/check.h"
#include "base/rng.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

struct contents {
    uint8_t *data;
    size_t bytes;
    size_t capacity;
};

/* Indexes into the log. */
struct pending {
    size_t *entries;
    size_t count;
    size_t capacity;
};

struct name {
    int directory;
    int node;
    char name[DISK_NAME_BYTES];
};

struct names {
    struct name *items;
    size_t count;
    size_t capacity;
};

struct power {
    const struct disk_log *log;
    size_t position;
    struct contents *synced; /* per node; files only */
    struct pending *pending; /* per node */
    struct names synced_names;
};

/* Rules by which this image loses things. */
enum loss_order { LOSS_ANY, LOSS_SUFFIX }; /* of a file's writes: any, or all after one of them */

struct loss {
    uint64_t key;
    uint64_t draws;
    uint32_t keep_percent;
    enum loss_order order;
    size_t sector_bytes;
    bool junk; /* what was lost within the written range reads as anything */
};

static uint64_t draw(struct loss *loss)
{
    return rng_mix(loss->key + 0x9e3779b97f4a7c15u * ++loss->draws);
}

static bool kept(struct loss *loss)
{
    return draw(loss) % 100 < loss->keep_percent;
}

/* ---- contents ---- */

static void resize(struct contents *contents, size_t bytes)
{
    if (bytes > contents->capacity) {
        contents->capacity = bytes * 2;
        contents->data = realloc(contents->data, contents->capacity);
        CHECK(contents->data != NULL);
    }
    if (bytes > contents->bytes) {
        memset(contents->data + contents->bytes, 0, bytes - contents->bytes);
    }
    contents->bytes = bytes;
}

static void put(struct contents *contents, const uint8_t *data, size_t bytes, size_t offset)
{
    if (offset + bytes > contents->bytes) {
        resize(contents, offset + bytes);
    }
    memcpy(contents->data + offset, data, bytes);
}

static void apply(struct contents *contents, const struct disk_entry *entry)
{
    if (entry->kind == DISK_WRITE) {
        put(contents, entry->data, entry->bytes, (size_t)entry->offset);
    } else if (entry->kind == DISK_TRUNCATE) {
        resize(contents, (size_t)entry->offset);
    }
}

/* ---- names ---- */

static struct name *find_name(const struct names *names, int directory, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].directory == directory && strcmp(names->items[i].name, name) == 0) {
            return &names->items[i];
        }
    }
    return NULL;
}

static void apply_name(struct names *names, const struct disk_entry *entry)
{
    struct name *known = find_name(names, entry->node, entry->name);
    if (entry->kind == DISK_UNLINK) {
        if (known != NULL) {
            *known = names->items[--names->count];
        }
        return;
    }
    if (known == NULL) {
        if (names->count == names->capacity) {
            names->capacity = names->capacity == 0 ? 64 : names->capacity * 2;
            names->items = realloc(names->items, names->capacity * sizeof *names->items);
            CHECK(names->items != NULL);
        }
        known = &names->items[names->count++];
        known->directory = entry->node;
        memcpy(known->name, entry->name, sizeof known->name);
    }
    known->node = entry->target;
}

/* ---- going on ---- */

struct power *power_create(const struct disk_log *log)
{
    struct power *power = calloc(1, sizeof *power);
    CHECK(power != NULL);
    power->log = log;
    power->synced = calloc(log->node_count + 1, sizeof *power->synced);
    power->pending = calloc(log->node_count + 1, sizeof *power->pending);
    CHECK(power->synced != NULL && power->pending != NULL);
    return power;
}

void power_destroy(struct power *power)
{
    if (power == NULL) {
        return;
    }
    for (size_t i = 0; i < power->log->node_count; i++) {
        free(power->synced[i].data);
        free(power->pending[i].entries);
    }
    free(power->synced);
    free(power->pending);
    free(power->synced_names.items);
    free(power);
}

static void remember(struct pending *pending, size_t entry)
{
    if (pending->count == pending->capacity) {
        pending->capacity = pending->capacity == 0 ? 16 : pending->capacity * 2;
        pending->entries = realloc(pending->entries, pending->capacity * sizeof *pending->entries);
        CHECK(pending->entries != NULL);
    }
    pending->entries[pending->count++] = entry;
}

/* Sectors that the disk took of a write: sector by sector. */
static void apply_part(struct contents *contents, const struct disk_entry *entry, struct loss *loss)
{
    size_t at = (size_t)entry->offset;
    size_t end = at + entry->bytes;

    while (at < end) {
        size_t next = (at / loss->sector_bytes + 1) * loss->sector_bytes;
        next = next < end ? next : end;
        const uint8_t *data = entry->data + (at - (size_t)entry->offset);
        if (kept(loss)) {
            put(contents, data, next - at, at);
        } else if (loss->junk && at < contents->bytes && kept(loss)) {
            size_t bytes = next < contents->bytes ? next - at : contents->bytes - at;
            for (size_t i = 0; i < bytes; i++) {
                contents->data[at + i] = (uint8_t)draw(loss);
            }
        }
        at = next;
    }
}

/* Part that the disk took of everything that was not synced. */
static void apply_pending(const struct power *power, int node, struct contents *contents,
                          struct loss *loss)
{
    const struct pending *pending = &power->pending[node];
    size_t whole = loss->order == LOSS_SUFFIX ? draw(loss) % (pending->count + 1) : 0;

    for (size_t i = 0; i < pending->count; i++) {
        const struct disk_entry *entry = &power->log->entries[pending->entries[i]];
        if (i < whole) {
            apply(contents, entry);
        } else if (loss->order == LOSS_SUFFIX && i > whole) {
            return;
        } else if (entry->kind == DISK_WRITE) {
            apply_part(contents, entry, loss);
        } else if (kept(loss)) {
            apply(contents, entry);
        }
    }
}

static void sync_node(struct power *power, int node)
{
    struct pending *pending = &power->pending[node];

    for (size_t i = 0; i < pending->count; i++) {
        const struct disk_entry *entry = &power->log->entries[pending->entries[i]];
        if (power->log->nodes[node].directory) {
            apply_name(&power->synced_names, entry);
        } else {
            apply(&power->synced[node], entry);
        }
    }
    pending->count = 0;
}

void power_advance(struct power *power, size_t position)
{
    CHECK(position >= power->position && position <= power->log->count);
    for (; power->position < position; power->position++) {
        const struct disk_entry *entry = &power->log->entries[power->position];
        if (entry->kind == DISK_SYNC) {
            sync_node(power, entry->node);
        } else if (entry->kind != DISK_SYNC_FAILED) {
            remember(&power->pending[entry->node], power->position);
        } else if (!power->log->nodes[entry->node].directory) {
            /* A part may have reached the disk; the rest is forgotten. */
            struct loss loss = {.key = power->position, .keep_percent = 30, .sector_bytes = 4096};
            apply_pending(power, entry->node, &power->synced[entry->node], &loss);
            power->pending[entry->node].count = 0;
        }
    }
}

/* ---- the image ---- */

static struct loss choose_loss(uint64_t seed)
{
    static const uint32_t percents[] = {0, 10, 50, 50, 90, 100};
    struct loss loss = {.key = rng_mix(seed)};

    loss.keep_percent = percents[draw(&loss) % (sizeof percents / sizeof percents[0])];
    loss.order = draw(&loss) % 3 == 0 ? LOSS_SUFFIX : LOSS_ANY;
    loss.sector_bytes = draw(&loss) % 2 == 0 ? 512 : 4096;
    loss.junk = draw(&loss) % 2 == 0;
    return loss;
}

static void choose_names(const struct power *power, struct names *names, struct loss *loss)
{
    names->count = names->capacity = power->synced_names.count;
    names->items = malloc((names->count + 1) * sizeof *names->items);
    CHECK(names->items != NULL);
    if (names->count > 0) {
        memcpy(names->items, power->synced_names.items, names->count * sizeof *names->items);
    }
    for (size_t node = 0; node < power->log->node_count; node++) {
        const struct pending *pending = &power->pending[node];
        for (size_t i = 0; power->log->nodes[node].directory && i < pending->count; i++) {
            if (kept(loss)) {
                apply_name(names, &power->log->entries[pending->entries[i]]);
            }
        }
    }
}

static void write_file(const struct power *power, int node, const char *path, struct loss *loss)
{
    const struct contents *synced = &power->synced[node];
    struct contents contents = {.data = NULL};

    resize(&contents, synced->bytes);
    if (synced->bytes > 0) {
        memcpy(contents.data, synced->data, synced->bytes);
    }
    apply_pending(power, node, &contents, loss);
    if (contents.bytes > synced->bytes && draw(loss) % 4 == 0) { /* the new size was lost */
        size_t grown = contents.bytes - synced->bytes;
        contents.bytes = synced->bytes + draw(loss) % (grown + 1);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    for (size_t done = 0; done < contents.bytes;) {
        ssize_t put_bytes = write(fd, contents.data + done, contents.bytes - done);
        CHECK(put_bytes > 0);
        done += (size_t)put_bytes;
    }
    close(fd);
    free(contents.data);
}

void power_image(const struct power *power, uint64_t seed, const char *directory)
{
    char(*paths)[PATH_BYTES] = calloc(power->log->node_count, sizeof *paths); /* of directories */
    struct loss loss = choose_loss(seed);
    struct names names;
    char path[PATH_BYTES + DISK_NAME_BYTES];

    CHECK(paths != NULL);
    choose_names(power, &names, &loss);
    snprintf(paths[0], sizeof paths[0], "%s", directory);
    /* A directory has a smaller number than what is in it. */
    for (int node = 0; node < (int)power->log->node_count; node++) {
        if (!power->log->nodes[node].directory || paths[node][0] == '\0') {
            continue; /* its own name was lost */
        }
        for (size_t i = 0; i < names.count; i++) {
            const struct name *name = &names.items[i];
            if (name->directory != node) {
                continue;
            }
            snprintf(path, sizeof path, "%s/%s", paths[node], name->name);
            if (power->log->nodes[name->node].directory) {
                CHECK(mkdir(path, 0700) == 0);
                CHECK(strlen(path) < sizeof paths[0]);
                memcpy(paths[name->node], path, strlen(path) + 1);
            } else {
                write_file(power, name->node, path, &loss);
            }
        }
    }
    free(names.items);
    free(paths);
}
