/*
 * The file of choices. See gemm_tuner_store.h.
 */
#include "kernels/cuda/scale/gemm_tuner_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_BYTES = 320,
    HEAD_BYTES = 400,
    FILE_BYTES = HEAD_BYTES + LINE_BYTES * (STORE_ENTRIES_MAX + STORE_TYPES)
};

static const char peak_word[] = "peak ";

/* FNV-1a of 64 bits: finds damage, not malice. */
static uint64_t sum_of(const char *text, size_t bytes)
{
    uint64_t sum = 0xCBF29CE484222325u;
    for (size_t i = 0; i < bytes; i++) {
        sum = (sum ^ (uint8_t)text[i]) * 0x100000001B3u;
    }
    return sum;
}

extern "C" bool gemm_tuner_store_folder(char out[STORE_PATH_BYTES - 300])
{
    const char *own = getenv("SWERVE_CACHE");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    const size_t bytes = STORE_PATH_BYTES - 300;
    int length = -1;
    if (own != NULL && own[0] != '\0') {
        length = snprintf(out, bytes, "%s", own);
    } else if (cache != NULL && cache[0] != '\0') {
        length = snprintf(out, bytes, "%s/swerve", cache);
    } else if (home != NULL && home[0] != '\0') {
        length = snprintf(out, bytes, "%s/.cache/swerve", home);
    }
    return length > 0 && (size_t)length < bytes;
}

static int write_head(const struct gemm_tuner_store *store, char *out, size_t bytes)
{
    return snprintf(out, bytes, "swerve products 3\n%s\n", store->device);
}

/* Reads a number and the one character behind it; false when it is not there or too large. */
static bool take_number(const char **at, uint64_t most, char behind, uint64_t *out)
{
    char *end = NULL;
    if (**at < '0' || **at > '9') {
        return false;
    }
    errno = 0;
    *out = strtoull(*at, &end, 10);
    bool good = errno == 0 && *out <= most && *end == behind;
    *at = end + (good ? 1 : 0);
    return good;
}

static bool take_bytes(const char **at, uint8_t *out, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 2 * bytes; i++) {
        const char *digit = **at != '\0' ? strchr(digits, **at) : NULL;
        if (digit == NULL) {
            return false;
        }
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | (digit - digits));
        ++*at;
    }
    return *(*at)++ == '\n';
}

static bool take_entry(struct gemm_tuner_store *store, const char **at)
{
    static const uint64_t most[] = {UINT32_MAX,      UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                    UINT32_MAX,      UINT64_MAX, UINT64_MAX, GEMM_TUNER_WAYS - 1,
                                    STORE_TILES - 1, UINT32_MAX};
    uint64_t number[sizeof most / sizeof most[0]];
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        if (!take_number(at, most[i], ' ', &number[i])) {
            return false;
        }
    }
    if (store->count == STORE_ENTRIES_MAX) {
        return false;
    }
    auto *entry = &store->entry[store->count];
    *entry = {};
    entry->shape = {(uint32_t)number[0],
                    (uint32_t)number[1],
                    (uint32_t)number[2],
                    (uint32_t)number[3],
                    (uint32_t)number[4],
                    number[5],
                    number[6]};
    entry->choice.way = (enum gemm_tuner_way)number[7];
    entry->choice.tile = (uint32_t)number[8];
    entry->choice.items = (uint32_t)number[9];
    store->count++;
    return take_bytes(at, entry->choice.algorithm, sizeof entry->choice.algorithm);
}

static bool take_peak(struct gemm_tuner_store *store, const char **at)
{
    uint64_t type = 0;
    uint64_t flops = 0;
    *at += strlen(peak_word);
    if (!take_number(at, STORE_TYPES - 1, ' ', &type) ||
        !take_number(at, UINT64_MAX, '\n', &flops) || flops == 0) {
        return false;
    }
    store->peak_flops[type] = flops;
    return true;
}

static bool parse(struct gemm_tuner_store *store, const char *text)
{
    char head[HEAD_BYTES];
    char tail[32];
    int head_bytes = write_head(store, head, sizeof head);
    const char *at = text + head_bytes;
    if (strncmp(text, head, (size_t)head_bytes) != 0 ||
        !take_number(&at, UINT64_MAX, '\n', &store->version)) {
        return false;
    }
    while (*at >= '0' && *at <= '9') {
        if (!take_entry(store, &at)) {
            return false;
        }
    }
    while (strncmp(at, peak_word, strlen(peak_word)) == 0) {
        if (!take_peak(store, &at)) {
            return false;
        }
    }
    snprintf(tail, sizeof tail, "sum %016llx\n",
             (unsigned long long)sum_of(text, (size_t)(at - text)));
    return strcmp(at, tail) == 0;
}

/* The whole file as a string; "" where it is too long to be one of ours. False: there is none. */
static bool read_file(const char *path, char text[FILE_BYTES])
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    size_t bytes = fread(text, 1, FILE_BYTES - 1, file);
    bool whole = feof(file) != 0 && ferror(file) == 0;
    fclose(file);
    text[whole ? bytes : 0] = '\0';
    return true;
}

extern "C" const char *gemm_tuner_store_open(struct gemm_tuner_store *store, const char *folder,
                                             const char *device, char *warning,
                                             size_t warning_bytes)
{
    static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    char name[sizeof store->device];
    memset(store, 0, sizeof *store);
    snprintf(store->device, sizeof store->device, "%.200s", device);
    snprintf(name, sizeof name, "%s", store->device);
    for (char *c = name; *c != '\0'; c++) {
        *c = strchr(kept, *c) != NULL ? *c : '-';
    }
    snprintf(store->path, sizeof store->path, "%.700s/products-%.200s", folder, name);
    char *text = (char *)malloc(FILE_BYTES);
    bool damaged = text != NULL && read_file(store->path, text) && !parse(store, text);
    free(text);
    if (!damaged) {
        return NULL;
    }
    store->count = 0;
    store->version = 0;
    memset(store->peak_flops, 0, sizeof store->peak_flops);
    store->changed = true;
    snprintf(warning, warning_bytes, "%.300s is damaged or of another version and was ignored",
             store->path);
    return warning;
}

extern "C" void gemm_tuner_store_renew(struct gemm_tuner_store *store, uint64_t version)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < store->count; i++) {
        if (store->version == version || store->entry[i].choice.way == GEMM_TUNER_OWN) {
            store->entry[kept++] = store->entry[i];
        }
    }
    store->changed = store->changed || store->version != version;
    store->count = kept;
    store->version = version;
}

static int write_entry(const struct gemm_tuner_store *store, uint32_t i, char *out, size_t bytes)
{
    const struct gemm_tuner_shape *s = &store->entry[i].shape;
    const struct gemm_tuner_choice *choice = &store->entry[i].choice;
    int used = snprintf(out, bytes, "%u %u %u %u %u %llu %llu %u %u %u ", s->type, s->epilogue,
                        s->m, s->n, s->k, (unsigned long long)s->lda, (unsigned long long)s->ldc,
                        (unsigned)choice->way, choice->tile, choice->items);
    for (uint8_t byte : choice->algorithm) {
        used += snprintf(out + used, bytes - (size_t)used, "%02x", byte);
    }
    return used + snprintf(out + used, bytes - (size_t)used, "\n");
}

extern "C" void gemm_tuner_store_digest(const struct gemm_tuner_store *store,
                                        char out[STORE_DIGEST_BYTES])
{
    char text[HEAD_BYTES];
    uint64_t sum = 0;
    bool any = false;
    for (uint32_t i = 0; i < store->count; i++) {
        if (store->entry[i].choice.way == GEMM_TUNER_LIBRARY) {
            sum += sum_of(text, (size_t)write_entry(store, i, text, sizeof text));
            any = true;
        }
    }
    int used = write_head(store, text, sizeof text);
    used += snprintf(text + used, sizeof text - (size_t)used, "%llu %llu\n",
                     (unsigned long long)store->version, (unsigned long long)sum);
    snprintf(out, STORE_DIGEST_BYTES, "%016llx", (unsigned long long)sum_of(text, (size_t)used));
    out[0] = any ? out[0] : '\0';
}

extern "C" bool gemm_tuner_shape_same(const struct gemm_tuner_shape *a,
                                      const struct gemm_tuner_shape *b)
{
    return a->type == b->type && a->epilogue == b->epilogue && a->m == b->m && a->n == b->n &&
           a->k == b->k && a->lda == b->lda && a->ldc == b->ldc;
}

extern "C" bool gemm_tuner_store_find(const struct gemm_tuner_store *store,
                                      const struct gemm_tuner_shape *shape,
                                      struct gemm_tuner_choice *out)
{
    for (uint32_t i = 0; i < store->count; i++) {
        if (gemm_tuner_shape_same(&store->entry[i].shape, shape)) {
            *out = store->entry[i].choice;
            return true;
        }
    }
    return false;
}

extern "C" void gemm_tuner_store_put(struct gemm_tuner_store *store,
                                     const struct gemm_tuner_shape *shape,
                                     const struct gemm_tuner_choice *choice)
{
    uint32_t i = 0;
    while (i < store->count && !gemm_tuner_shape_same(&store->entry[i].shape, shape)) {
        i++;
    }
    if (i == STORE_ENTRIES_MAX) {
        return;
    }
    store->entry[i].shape = *shape;
    store->entry[i].choice = *choice;
    store->count = i < store->count ? store->count : i + 1;
    store->changed = true;
}

extern "C" void gemm_tuner_store_put_peak(struct gemm_tuner_store *store, uint32_t type,
                                          uint64_t flops)
{
    store->peak_flops[type] = flops;
    store->changed = true;
}

static size_t write_peaks(const struct gemm_tuner_store *store, char *text, size_t used)
{
    for (uint32_t type = 0; type < STORE_TYPES; type++) {
        if (store->peak_flops[type] != 0) {
            used += (size_t)snprintf(text + used, FILE_BYTES - used, "%s%u %llu\n", peak_word, type,
                                     (unsigned long long)store->peak_flops[type]);
        }
    }
    return used;
}

static size_t write_entries(const struct gemm_tuner_store *store, char *text, size_t used)
{
    for (uint32_t i = 0; i < store->count; i++) {
        used += (size_t)write_entry(store, i, text + used, FILE_BYTES - used);
    }
    return used;
}

/* The folder, and the one that it lies in: ~/.cache may not be there yet. */
static void make_folder(const char *path)
{
    char folder[STORE_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    char *last = strrchr(folder, '/');
    if (last == NULL || last == folder) {
        return;
    }
    *last = '\0';
    char *before = strrchr(folder, '/');
    if (before != NULL && before != folder) {
        *before = '\0';
        mkdir(folder, 0755); /* that it exists, or cannot be made, shows when the file is opened */
        *before = '/';
    }
    mkdir(folder, 0755);
}

extern "C" bool gemm_tuner_store_save(struct gemm_tuner_store *store)
{
    if (!store->changed || store->path[0] == '\0') {
        return true;
    }
    char temporary[STORE_PATH_BYTES + 32];
    char *text = (char *)malloc(FILE_BYTES + 32);
    if (text == NULL) {
        return false;
    }
    size_t used = (size_t)write_head(store, text, FILE_BYTES);
    used += (size_t)snprintf(text + used, FILE_BYTES - used, "%llu\n",
                             (unsigned long long)store->version);
    used = write_entries(store, text, used);
    used = write_peaks(store, text, used);
    used +=
        (size_t)snprintf(text + used, 32, "sum %016llx\n", (unsigned long long)sum_of(text, used));
    make_folder(store->path);
    /* Another process may write its own at the same time: whoever is last has written a whole one.
     */
    snprintf(temporary, sizeof temporary, "%s.%ld", store->path, (long)getpid());
    FILE *file = fopen(temporary, "wb");
    bool written = file != NULL && fwrite(text, 1, used, file) == used;
    written = file != NULL && fclose(file) == 0 && written;
    free(text);
    if (!written || rename(temporary, store->path) != 0) {
        unlink(temporary);
        return false;
    }
    store->changed = false;
    return true;
}
