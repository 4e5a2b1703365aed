/*
 * Ranks over NCCL, with a made-up library (nccl/nccl.c) whose threads outlive a communicator: ranks
 * are opened, used and closed, one that cannot be opened says why, and the library is there for its
 * threads afterwards. Were it unloaded, they would run in memory that is gone, and the process die.
 */
#include "kernels/cuda/scale/all_to_all.h"
#include "tests/harness.h"

#include <dlfcn.h>
#include <sched.h>

static void open_and_close(const uint8_t *id)
{
    struct device_text why = {""};
    struct all_to_all all_to_all;
    uint8_t byte = 0;
    EXPECT_INT(all_to_all_nccl_open(0, 2, id, &all_to_all, &why), DEVICE_OK);
    EXPECT_INT(all_to_all.all_to_all(&all_to_all, &byte, &byte, 1, NULL, &why), DEVICE_OK);
    all_to_all.close(&all_to_all);
}

/* The count of a library that is loaded now; the handle is given back. */
static unsigned long turns(void)
{
    unsigned long (*count)(void) = NULL;
    void *handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    EXPECT(handle != NULL);
    *(void **)&count = dlsym(handle, "nccl_turns");
    EXPECT(count != NULL);
    unsigned long found = count();
    dlclose(handle);
    return found;
}

static void threads_outlive_their_communicator(void)
{
    uint8_t
        id[ALL_TO_ALL_ID_BYTES]; /* of rank 0: this one does not ask for it, which loads as well */
    memset(id, 7, sizeof id);
    for (int i = 0; i < 3; i++) {
        open_and_close(id);
    }
    unsigned long before = turns();
    while (turns() < before + 20) {
        sched_yield();
    }
}

static void a_rank_that_cannot_be_opened_says_why(void)
{
    const uint8_t wrong[ALL_TO_ALL_ID_BYTES] = {0};
    struct device_text why = {""};
    struct all_to_all all_to_all;
    EXPECT_INT(all_to_all_nccl_open(0, 2, wrong, &all_to_all, &why), DEVICE_FAULT_LOST);
    EXPECT_CONTAINS(why.text, "communicator: invalid argument");
    turns();
}

static void rank_0_makes_the_id(void)
{
    struct device_text why = {""};
    uint8_t id[ALL_TO_ALL_ID_BYTES] = {0};
    EXPECT_INT(all_to_all_nccl_id(id, &why), DEVICE_OK);
    open_and_close(id);
}

int main(void)
{
    return TEST_RUN(TEST(threads_outlive_their_communicator),
                    TEST(a_rank_that_cannot_be_opened_says_why), TEST(rank_0_makes_the_id));
}
