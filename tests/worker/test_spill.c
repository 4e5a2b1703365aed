/*
 * Spill. Method: random writes, reads and drops against a plain array; what comes back is what was
 * put in, bounds and full disks refuse cleanly, nothing is left in the folder. A second thread
 * peeks all the while at records that stay, and at others while they come and go.
 */
#include "base/rng.h"
#include "tests/harness.h"
#include "worker/run/spill.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 20000, HELD = 40, ROUNDS = 2000 };

static char directory[64];
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    return rng_mix(++state) % below;
}

/* Half of it compresses well, half does not. */
static void fill_page(uint8_t *page)
{
    for (size_t i = 0; i < PAGE; i++) {
        page[i] = i < PAGE / 2 ? (uint8_t)draw(256) : (uint8_t)(i / 1000);
    }
}

static int files_in(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    EXPECT(folder != NULL);
    for (const struct dirent *file = readdir(folder); file != NULL; file = readdir(folder)) {
        count += file->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

static void pages_come_back(void)
{
    static uint8_t pages[HELD][PAGE];
    static uint8_t back[PAGE];
    uint64_t handles[HELD] = {0};
    struct spill *spill = NULL;
    struct error error;
    EXPECT_OK(spill_create(directory, UINT64_C(1) << 30, &spill, &error), error);
    const struct spill_ops *ops = spill_ops_of(spill);
    uint64_t held = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t i = draw(HELD);
        if (handles[i] == 0) {
            fill_page(pages[i]);
            handles[i] = ops->write(ops->context, pages[i], PAGE);
            EXPECT(handles[i] != 0);
            for (size_t k = 0; k < HELD; k++) {
                EXPECT(k == i || handles[k] != handles[i]);
            }
            held++;
        } else if (draw(4) == 0) {
            ops->drop(ops->context, handles[i]);
            EXPECT(!ops->peek(ops->context, handles[i], back, PAGE));
            EXPECT(!ops->read(ops->context, handles[i], back, PAGE));
            handles[i] = 0;
            held--;
        } else {
            EXPECT(ops->peek(ops->context, handles[i], back, PAGE));
            EXPECT(memcmp(back, pages[i], PAGE) == 0);
            memset(back, 0, PAGE);
            EXPECT(!ops->peek(ops->context, handles[i], back, PAGE - 1));
            EXPECT(ops->read(ops->context, handles[i], back, PAGE)); /* still there */
            EXPECT(memcmp(back, pages[i], PAGE) == 0);
            EXPECT(!ops->read(ops->context, handles[i], back, PAGE)); /* forgotten */
            handles[i] = 0;
            held--;
        }
        EXPECT_INT(spill_stats(spill).records, held);
        EXPECT((spill_stats(spill).stored_bytes > 0) == (held > 0));
        EXPECT(spill_stats(spill).stored_bytes <= held * (PAGE / 2 + 1000));
    }
    EXPECT_INT(files_in(directory), 0); /* unlinked from the start */
    spill_destroy(spill);
    spill_destroy(NULL);
}

/* ---- another thread ---- */

enum { STAYING = 5, CHURNED = 300 };

struct peeking {
    const struct spill_ops *ops;
    uint64_t handles[STAYING];
    uint8_t pages[STAYING][PAGE];
    atomic_bool stop;
    uint32_t good, bad; /* read after the thread ended */
};

/* Handles of the others are small numbers too; what comes of these is nobody's business. */
static void *peek_on_and_on(void *argument)
{
    struct peeking *peeking = argument;
    static uint8_t back[PAGE];
    for (uint64_t i = 0; !atomic_load(&peeking->stop) || peeking->good < STAYING; i++) {
        size_t k = i % STAYING;
        bool same = peeking->ops->peek(peeking->ops->context, peeking->handles[k], back, PAGE) &&
                    memcmp(back, peeking->pages[k], PAGE) == 0;
        peeking->good += same;
        peeking->bad += !same;
        peeking->ops->peek(peeking->ops->context, 1 + i % CHURNED, back, PAGE);
    }
    return NULL;
}

static void another_thread_may_peek(void)
{
    static struct peeking peeking;
    static uint8_t page[PAGE];
    static uint8_t back[PAGE];
    static uint64_t handles[CHURNED];
    struct spill *spill = NULL;
    struct error error;
    pthread_t thread;
    EXPECT_OK(spill_create(directory, UINT64_C(1) << 30, &spill, &error), error);
    peeking.ops = spill_ops_of(spill);
    const struct spill_ops *ops = peeking.ops;
    for (size_t i = 0; i < STAYING; i++) {
        fill_page(peeking.pages[i]);
        peeking.handles[i] = ops->write(ops->context, peeking.pages[i], PAGE);
        EXPECT(peeking.handles[i] != 0);
    }
    EXPECT_INT(pthread_create(&thread, NULL, peek_on_and_on, &peeking), 0);
    fill_page(page);
    uint32_t wrong = 0;
    for (int round = 0; round < 3000; round++) {
        uint64_t *handle = &handles[draw(CHURNED)];
        if (*handle == 0) {
            *handle = ops->write(ops->context, page, PAGE); /* the table of records grows */
            wrong += *handle == 0;
        } else if (draw(2) == 0) {
            ops->drop(ops->context, *handle);
            *handle = 0;
        } else {
            wrong += !ops->read(ops->context, *handle, back, PAGE) || memcmp(back, page, PAGE) != 0;
            *handle = 0;
        }
    }
    atomic_store(&peeking.stop, true);
    EXPECT_INT(pthread_join(thread, NULL), 0);
    EXPECT_INT(wrong, 0);
    EXPECT(peeking.good >= STAYING);
    EXPECT_INT(peeking.bad, 0);
    spill_destroy(spill);
}

static void bounds_refuse(void)
{
    static uint8_t page[PAGE];
    static uint8_t larger[2 * PAGE];
    struct spill *spill = NULL;
    struct error error;
    uint64_t handles[8];
    int written = 0;
    EXPECT_OK(spill_create(directory, 3 * PAGE, &spill, &error), error);
    const struct spill_ops *ops = spill_ops_of(spill);
    for (int i = 0; i < 8; i++) {
        fill_page(page);
        handles[i] = ops->write(ops->context, page, PAGE);
        written += handles[i] != 0;
    }
    EXPECT(written >= 4 && written < 8);
    EXPECT_INT(spill_stats(spill).refused, 8 - written);
    ops->drop(ops->context, handles[0]);
    EXPECT(ops->write(ops->context, page, PAGE) != 0); /* there is room again */
    for (size_t i = 0; i < sizeof larger; i++) {
        larger[i] = (uint8_t)draw(256);
    }
    ops->drop(ops->context, handles[1]);
    ops->drop(ops->context, handles[2]);
    EXPECT(ops->write(ops->context, larger, sizeof larger) == 0); /* records have one size */
    EXPECT(!ops->read(ops->context, 0, page, PAGE));
    EXPECT(!ops->read(ops->context, 9999, page, PAGE));
    ops->drop(ops->context, 9999);
    spill_destroy(spill);
    EXPECT_OK(spill_create("/nowhere/at/all", 1 << 20, &spill, &error), error);
    EXPECT(spill_ops_of(spill)->write(spill_ops_of(spill)->context, page, PAGE) == 0);
    spill_destroy(spill);
}

/* A file size limit fails writes as a full disk does. */
static void a_full_disk_refuses(void)
{
    static uint8_t page[PAGE];
    static uint8_t back[PAGE];
    struct spill *spill = NULL;
    struct error error;
    struct rlimit before;
    EXPECT_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 100000, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    EXPECT_OK(spill_create(directory, UINT64_C(1) << 30, &spill, &error), error);
    const struct spill_ops *ops = spill_ops_of(spill);
    fill_page(page);
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    uint64_t first = ops->write(ops->context, page, PAGE);
    int refused = 0;
    for (int i = 0; i < 20; i++) {
        refused += ops->write(ops->context, page, PAGE) == 0;
    }
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT(first != 0 && refused > 5);
    EXPECT_INT(spill_stats(spill).records, 21 - refused);
    EXPECT(ops->read(ops->context, first, back, PAGE));
    EXPECT(memcmp(back, page, PAGE) == 0);
    EXPECT(ops->write(ops->context, page, PAGE) != 0);
    spill_destroy(spill);
}

int main(void)
{
    snprintf(directory, sizeof directory, "/tmp/swerve-spill-test-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        return 1;
    }
    int failed = TEST_RUN(TEST(pages_come_back), TEST(another_thread_may_peek), TEST(bounds_refuse),
                          TEST(a_full_disk_refuses));
    return rmdir(directory) == 0 ? failed : 1;
}
