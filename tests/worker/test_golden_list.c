/*
 * Goal: no set of goldens is made that cannot be read, and none is read whose world cannot be.
 * Method: lists as text and back, one member changed at a time.
 */
#include "tests/harness.h"
#include "worker/golden/golden_list.h"
#include "worker/golden/golden_make.h"

#include <stdlib.h>

static struct error error;

/* A list of one recording, of a world that makes chunks, as text and back. */
static enum status read_back(uint32_t rate_hz, uint32_t chunk_frames, uint32_t first_frames)
{
    struct golden_rollout rollout = {.verdict = VERDICT_PASS};
    struct golden_entry entry = {.scenario_id = "one", .rollout_count = 1, .rollouts = &rollout};
    const struct golden_list list = {.name = "list",
                                     .rate_hz = rate_hz,
                                     .chunk_frames = chunk_frames,
                                     .first_frames = first_frames,
                                     .entry_count = 1,
                                     .entries = &entry};
    struct golden_list found;
    char *text = golden_list_encode(&list);
    EXPECT(text != NULL);
    enum status status = golden_list_decode(text, strlen(text), &found, &error);
    if (status == STATUS_OK) {
        EXPECT_INT(found.first_frames, first_frames);
        golden_list_finish(&found);
    }
    free(text);
    return status;
}

static void a_list_has_chunks_that_a_world_can_make(void)
{
    EXPECT_OK(read_back(0, 0, 0), error);
    EXPECT_OK(read_back(30, 8, 8), error);
    EXPECT_OK(read_back(30, 8, 3), error);
    EXPECT_INT(read_back(30, 8, 9), STATUS_BAD_INPUT); /* the first is longer than the others */
    EXPECT_INT(read_back(30, 8, 2), STATUS_BAD_INPUT); /* .. or shorter than a tick */
    EXPECT_CONTAINS(error.text, "found 2 and 8 at 30 Hz");
    EXPECT_INT(read_back(25, 8, 8), STATUS_BAD_INPUT);
}

static void a_set_that_could_not_be_read_is_not_begun(void)
{
    struct submission submission = {.job_count = GOLDEN_ENTRIES_MAX + 1};
    EXPECT_INT(golden_check(NULL, "many", &submission, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "at most 100000 scenarios and seeds in a set, found 100001");
}

int main(void)
{
    return TEST_RUN(TEST(a_list_has_chunks_that_a_world_can_make),
                    TEST(a_set_that_could_not_be_read_is_not_begun));
}
