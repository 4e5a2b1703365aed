/*
 * Luggage of relayed sessions.
 *
 * Goal: whatever is sent and taken, the messages that are handed on are those that were not taken,
 * oldest first, and the state is the newest; what is too long is refused and changes nothing; a
 * session of which workers die moves as often as is written and no more.
 * Method: random operations beside a list that forgets nothing; bounds from either side.
 */
#include "base/check.h"
#include "base/rng.h"
#include "store/relay/carried.h"
#include "tests/harness.h"

#include <stdlib.h>

static struct carried carried;
static struct error error;

static void begin(void)
{
    carried_finish(&carried);
    memset(&carried, 0, sizeof carried);
}

static enum status take(const char *text)
{
    return carried_take(&carried, text, strlen(text), &error);
}

static void messages_are_those_that_were_not_taken(void)
{
    enum { OPERATIONS = 100000 };
    uint32_t sent = 0;
    uint32_t taken = 0;
    begin();
    for (int i = 0; i < OPERATIONS; i++) {
        char text[32];
        if (rng_mix((uint64_t)i) % 2 == 0 && carried_has_room(&carried)) {
            int bytes = snprintf(text, sizeof text, "message %u", sent++);
            EXPECT_INT(carried_send(&carried, text, (size_t)bytes, &error), STATUS_OK);
        } else {
            snprintf(text, sizeof text, "name\nstate %d", i);
            taken += taken < sent; /* who takes what was not sent takes nothing */
            EXPECT_INT(take(text), STATUS_OK);
            EXPECT_TEXT(carried.state, text + strlen("name\n"));
        }
        EXPECT_INT(carried.count, sent - taken);
        EXPECT_INT(carried_has_room(&carried), sent - taken < ENVELOPE_AHEAD);
        for (uint32_t k = 0; k < carried.count; k++) {
            snprintf(text, sizeof text, "message %u", taken + k);
            EXPECT_TEXT(carried_message(&carried, k), text);
        }
    }
}

static void a_state_is_behind_a_name(void)
{
    begin();
    EXPECT_INT(take(""), STATUS_OK);
    EXPECT(carried.state == NULL && carried.kept[0] == '\0');
    EXPECT_INT(take("name\nstate\nof lines"), STATUS_OK);
    EXPECT_TEXT(carried.kept, "name");
    EXPECT_TEXT(carried.state, "state\nof lines");
    EXPECT_INT(take("other"), STATUS_OK); /* of a worker that tells none */
    EXPECT_TEXT(carried.kept, "other");
    EXPECT(carried.state == NULL);
    EXPECT_INT(take("other\n"), STATUS_OK);
    EXPECT_TEXT(carried.state, "");
    EXPECT_INT(take("\nstate"), STATUS_OK); /* of nothing that is kept */
    EXPECT(carried.state == NULL && carried.kept[0] == '\0');
}

static void too_much_is_refused_and_changes_nothing(void)
{
    char text[LIMIT_ID_BYTES + CARRIED_STATE_BYTES + 8];
    memset(text, 'x', sizeof text);
    begin();
    EXPECT_INT(carried_send(&carried, "message", 7, &error), STATUS_OK);
    text[LIMIT_ID_BYTES - 1] = '\n';
    EXPECT_INT(carried_take(&carried, text, LIMIT_ID_BYTES + CARRIED_STATE_BYTES, &error),
               STATUS_OK);
    EXPECT_INT(strlen(carried.kept), LIMIT_ID_BYTES - 1);
    EXPECT_INT(strlen(carried.state), CARRIED_STATE_BYTES);
    EXPECT_INT(carried_send(&carried, "message", 7, &error), STATUS_OK);
    EXPECT_INT(carried_take(&carried, text, LIMIT_ID_BYTES + CARRIED_STATE_BYTES + 1, &error),
               STATUS_LIMIT);
    EXPECT(strstr(error.text, "with a state of 1025, expected at most 63 and 1024") != NULL);
    text[LIMIT_ID_BYTES - 1] = 'x';
    EXPECT_INT(carried_take(&carried, text, LIMIT_ID_BYTES, &error), STATUS_LIMIT);
    EXPECT_INT(carried.count, 1);
    EXPECT_INT(strlen(carried.state), CARRIED_STATE_BYTES);
}

static void show(int frames)
{
    while (frames-- > 0) {
        carried_show(&carried);
    }
}

static void a_session_moves_as_often_as_it_may(void)
{
    begin();
    EXPECT(!carried_may_move(&carried, true)); /* nobody keeps it */
    EXPECT_INT(take("name"), STATUS_OK);
    EXPECT(!carried_may_move(&carried, true)); /* nobody could go on */
    EXPECT_INT(take("name\n{}"), STATUS_OK);
    for (int round = 0; round < 3; round++) {
        EXPECT(carried_may_move(&carried, true)); /* whatever it has shown */
        carried_move(&carried);
        show(CARRIED_FRAMES_BETWEEN - 1);
        EXPECT(!carried_may_move(&carried, true)); /* it may be why they die */
        EXPECT(carried_may_move(&carried, false));
        show(1);
        EXPECT(carried_may_move(&carried, true));
        carried_move(&carried);
        show(CARRIED_MOVE_FRAMES - 1);
        EXPECT(!carried_may_move(&carried, true) && !carried_may_move(&carried, false));
        show(1);
    }
    EXPECT_INT(CARRIED_MOVES_MAX, 2);
}

int main(void)
{
    int failed = TEST_RUN(
        TEST(messages_are_those_that_were_not_taken), TEST(a_state_is_behind_a_name),
        TEST(too_much_is_refused_and_changes_nothing), TEST(a_session_moves_as_often_as_it_may));
    begin();
    return failed;
}
