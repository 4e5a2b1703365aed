/*
 * Memory that runs out. See memory.h.
 *
 * The real functions are a sanitizer's where there is one, so that it goes on watching, else
 * glibc's. free() is nobody's business here. A sanitizer asks for the stack of each thread that
 * starts and cannot do without an answer, so what that allocates is excused.
 */
#include "tests/store/faults/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *data, size_t bytes);
extern void *__interceptor_malloc(size_t bytes) __attribute__((weak));
extern void *__interceptor_calloc(size_t count, size_t bytes) __attribute__((weak));
extern void *__interceptor_realloc(void *data, size_t bytes) __attribute__((weak));

extern const char __executable_start;
extern const char etext;

enum {
    FRAMES_MAX = 96,
    PLACES = 1 << 16,
    LIBRARY_FRAMES =
        3, /* between the allocation and the program's own code, that tell places apart */
};

/* A set of stacks by hash; 0: a free entry. */
struct places {
    uint64_t hashes[PLACES];
    size_t count;
};

static int64_t fail_at; /* 0: never */
static bool listing;
static pthread_mutex_t places_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct places failed;
static struct places met;
static int64_t listed[PLACES];
static size_t listed_count;
static bool fail_forever;
static int64_t count;
static int64_t failures;
static _Thread_local int excused;
static int (*real_getattr)(pthread_t, pthread_attr_t *);

/* Whether the frame is the program's own code, which the store is linked into, not a library's. */
static bool own_frame(const void *frame)
{
    return (const char *)frame >= &__executable_start && (const char *)frame < &etext;
}

static uint64_t place_hash(const void *caller)
{
    void *frames[FRAMES_MAX];
    uint64_t hash = 1469598103934665603U;
    int depth = backtrace(frames, FRAMES_MAX);
    int first = 0;

    while (first < depth && frames[first] != caller) {
        first++; /* of this file */
    }
    int own = first;
    while (own < depth && !own_frame(frames[own])) {
        own++;
    }
    if (own < depth && own - first > LIBRARY_FRAMES) {
        first = own - LIBRARY_FRAMES;
    }
    for (int i = first; i < depth; i++) {
        hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211U;
        hash ^= hash >> 29;
    }
    return hash != 0 ? hash : 1;
}

/* False: it was in it. */
static bool places_add(struct places *places, uint64_t hash)
{
    size_t i = hash % PLACES;

    while (places->hashes[i] != 0 && places->hashes[i] != hash) {
        i = (i + 1) % PLACES;
    }
    if (places->hashes[i] == hash || places->count > PLACES / 2) {
        return false;
    }
    places->hashes[i] = hash;
    places->count++;
    return true;
}

static bool places_have(const struct places *places, uint64_t hash)
{
    size_t i = hash % PLACES;

    while (places->hashes[i] != 0 && places->hashes[i] != hash) {
        i = (i + 1) % PLACES;
    }
    return places->hashes[i] == hash;
}

static void note_place(int64_t number, bool fails, const void *caller)
{
    excused++;
    uint64_t hash = place_hash(caller);
    pthread_mutex_lock(&places_mutex);
    if (fails) {
        places_add(&failed, hash);
    } else if (!places_have(&failed, hash) && places_add(&met, hash)) {
        listed[listed_count++] = number;
    }
    pthread_mutex_unlock(&places_mutex);
    excused--;
}

static bool refused(const void *caller)
{
    int64_t at = __atomic_load_n(&fail_at, __ATOMIC_SEQ_CST);

    if (at == 0 || excused > 0) {
        return false;
    }
    int64_t number = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (number == at || __atomic_load_n(&listing, __ATOMIC_SEQ_CST)) {
        note_place(number, number == at, caller);
    }
    if (number < at || (number > at && !__atomic_load_n(&fail_forever, __ATOMIC_SEQ_CST))) {
        return false;
    }
    __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    if (refused(__builtin_return_address(0))) {
        return NULL;
    }
    return __interceptor_malloc != NULL ? __interceptor_malloc(bytes) : __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes)
{
    if (refused(__builtin_return_address(0))) {
        return NULL;
    }
    return __interceptor_calloc != NULL ? __interceptor_calloc(items, bytes)
                                        : __libc_calloc(items, bytes);
}

void *realloc(void *data, size_t bytes)
{
    if (refused(__builtin_return_address(0))) {
        return NULL;
    }
    return __interceptor_realloc != NULL ? __interceptor_realloc(data, bytes)
                                         : __libc_realloc(data, bytes);
}

/* A dlopen() within which an allocation failed leaks what it had (glibc 2.36, _dl_map_object_deps);
 * whether the leak sanitizer sees that depends on what is left in registers. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:ld-linux\n";
}

__attribute__((constructor)) static void prepare(void)
{
    void *frame;

    *(void **)&real_getattr = dlsym(RTLD_NEXT, "pthread_getattr_np");
    backtrace(&frame, 1); /* loads what it needs now, not within malloc */
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    if (real_getattr == NULL) {
        return ENOSYS;
    }
    excused++;
    int result = real_getattr(thread, attributes);
    excused--;
    return result;
}

void memory_fail(int64_t at, bool forever)
{
    __atomic_store_n(&count, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&failures, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fail_forever, forever, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fail_at, at, __ATOMIC_SEQ_CST);
}

int64_t memory_is_well(void)
{
    __atomic_store_n(&fail_at, 0, __ATOMIC_SEQ_CST);
    return memory_failures();
}

int64_t memory_failures(void)
{
    return __atomic_load_n(&failures, __ATOMIC_SEQ_CST);
}

int64_t memory_count(void)
{
    return __atomic_load_n(&count, __ATOMIC_SEQ_CST);
}

void memory_list(void)
{
    memset(&met, 0, sizeof met);
    listed_count = 0;
    __atomic_store_n(&listing, true, __ATOMIC_SEQ_CST);
    memory_fail(INT64_MAX, false);
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

size_t memory_listed(int64_t *numbers, size_t capacity)
{
    memory_is_well();
    __atomic_store_n(&listing, false, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&places_mutex); /* another thread may be at its last one */
    size_t found = listed_count;
    memcpy(numbers, listed, (found < capacity ? found : capacity) * sizeof *numbers);
    pthread_mutex_unlock(&places_mutex);
    qsort(numbers, found < capacity ? found : capacity, sizeof *numbers, compare_numbers);
    return found;
}

void memory_forget(void)
{
    memset(&failed, 0, sizeof failed);
}
