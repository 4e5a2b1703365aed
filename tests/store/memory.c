/*
 * Memory that runs out. See memory.h.
 *
 * The real functions are a sanitizer's where there is one, so that it goes on watching, else
 * glibc's. free() is nobody's business here. A sanitizer asks for the stack of each thread that
 * starts and cannot do without an answer, so what that allocates is excused.
 */
#include "tests/store/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *data, size_t bytes);
extern void *__interceptor_malloc(size_t bytes) __attribute__((weak));
extern void *__interceptor_calloc(size_t count, size_t bytes) __attribute__((weak));
extern void *__interceptor_realloc(void *data, size_t bytes) __attribute__((weak));

static int64_t fail_at; /* 0: never */
static bool fail_forever;
static int64_t count;
static int64_t failures;
static _Thread_local int excused;
static int (*real_getattr)(pthread_t, pthread_attr_t *);

static bool refused(void)
{
    int64_t at = __atomic_load_n(&fail_at, __ATOMIC_SEQ_CST);

    if (at == 0 || excused > 0) {
        return false;
    }
    int64_t number = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (number < at || (number > at && !__atomic_load_n(&fail_forever, __ATOMIC_SEQ_CST))) {
        return false;
    }
    __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    if (refused()) {
        return NULL;
    }
    return __interceptor_malloc != NULL ? __interceptor_malloc(bytes) : __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes)
{
    if (refused()) {
        return NULL;
    }
    return __interceptor_calloc != NULL ? __interceptor_calloc(items, bytes)
                                        : __libc_calloc(items, bytes);
}

void *realloc(void *data, size_t bytes)
{
    if (refused()) {
        return NULL;
    }
    return __interceptor_realloc != NULL ? __interceptor_realloc(data, bytes)
                                         : __libc_realloc(data, bytes);
}

__attribute__((constructor)) static void find_getattr(void)
{
    *(void **)&real_getattr = dlsym(RTLD_NEXT, "pthread_getattr_np");
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
    return __atomic_load_n(&failures, __ATOMIC_SEQ_CST);
}

int64_t memory_count(void)
{
    return __atomic_load_n(&count, __ATOMIC_SEQ_CST);
}
