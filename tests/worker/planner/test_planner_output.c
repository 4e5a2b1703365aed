/*
 * Goal: what sessions write is told apart whatever pieces it comes in, is bounded, and a label that
 * names nobody is text. Method: a random conversation is written down session by session as it is
 * made (the model), then put in pieces of random size; texts, tail and lines must equal the
 * model's.
 */
#include "base/rng.h"
#include "tests/harness.h"
#include "worker/planner/planner_output.h"

#include <stdlib.h>

enum { SESSIONS = 5, CONVERSATION_MAX = 60000 };

struct conversation {
    char all[CONVERSATION_MAX]; /* as it is put */
    size_t all_bytes;
    char tail[CONVERSATION_MAX]; /* without labels */
    size_t tail_bytes;
    char said[SESSIONS][CONVERSATION_MAX];
    size_t said_bytes[SESSIONS];
};

static void append(char *text, size_t *bytes, const char *what, size_t count)
{
    EXPECT(*bytes + count < CONVERSATION_MAX);
    memcpy(text + *bytes, what, count);
    *bytes += count;
}

static uint32_t draw(uint64_t seed, uint32_t *step, uint32_t below)
{
    return (uint32_t)(rng_uniform(seed, RNG_STREAM_TEST, (*step)++, 0) * below);
}

/* One line of a session, of nobody, or with a label that names nobody. */
static void say(struct conversation *talk, uint64_t seed, uint32_t *step)
{
    static const char *const false_labels[] = {"\x1e",
                                               "\x1e"
                                               "5 ",
                                               "\x1e"
                                               "x ",
                                               "\x1e"
                                               "12345678901 ",
                                               "\x1e"
                                               "1",
                                               "\x1e ",
                                               "\x1e\x1e"
                                               "1 "};
    char line[64];
    char label[16] = "";
    uint32_t who = draw(seed, step, SESSIONS + 2);
    int bytes = snprintf(line, sizeof line, "%s%.*s\n",
                         who > SESSIONS ? false_labels[draw(seed, step, 7)] : "",
                         (int)draw(seed, step, 20), "words of no meaning here");
    if (who < SESSIONS) {
        int label_bytes = snprintf(label, sizeof label, "\x1e%u ", who);
        append(talk->all, &talk->all_bytes, label, (size_t)label_bytes);
        append(talk->said[who], &talk->said_bytes[who], line, (size_t)bytes);
    }
    append(talk->all, &talk->all_bytes, line, (size_t)bytes);
    append(talk->tail, &talk->tail_bytes, line, (size_t)bytes);
}

static void put_in_pieces(struct planner_output *output, const struct conversation *talk,
                          uint64_t seed, uint32_t *step)
{
    for (size_t at = 0; at < talk->all_bytes;) {
        size_t piece = 1 + draw(seed, step, draw(seed, step, 4) == 0 ? 3000 : 5);
        piece = piece < talk->all_bytes - at ? piece : talk->all_bytes - at;
        planner_output_put(output, talk->all + at, piece);
        at += piece;
    }
}

static void expect_end(const char *found, size_t bytes, const char *all, size_t all_bytes)
{
    EXPECT(bytes <= all_bytes);
    EXPECT(memcmp(found, all + all_bytes - bytes, bytes) == 0);
}

static void expect_model(struct planner_output *output, const struct conversation *talk)
{
    static char text[PLANNER_OUTPUT_TAIL_BYTES + 1];
    planner_output_tail(output, text);
    size_t bytes = strlen(text);
    EXPECT_INT(bytes, talk->tail_bytes < PLANNER_OUTPUT_TAIL_BYTES ? talk->tail_bytes
                                                                   : PLANNER_OUTPUT_TAIL_BYTES);
    expect_end(text, bytes, talk->tail, talk->tail_bytes);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        bytes = planner_output_session(output, i, text);
        EXPECT_INT(bytes, strlen(text));
        EXPECT(bytes <= PLANNER_OUTPUT_BYTES);
        const char *start = text;
        if (talk->said_bytes[i] > PLANNER_OUTPUT_BYTES) {
            size_t dropped = (size_t)strtoul(text + 1, NULL, 10);
            start = strchr(text, '\n') + 1;
            EXPECT_INT(dropped + strlen(start), talk->said_bytes[i]);
            EXPECT(strlen(start) > PLANNER_OUTPUT_BYTES - 100);
        } else {
            EXPECT_INT(bytes, talk->said_bytes[i]);
        }
        expect_end(start, strlen(start), talk->said[i], talk->said_bytes[i]);
    }
}

static void sessions_are_told_apart_in_any_pieces(void)
{
    struct conversation *talk = malloc(sizeof *talk);
    struct error error;
    EXPECT(talk != NULL);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct planner_output *output = NULL;
        uint32_t step = 0;
        memset(talk, 0, sizeof *talk);
        EXPECT_OK(planner_output_create(SESSIONS, &output, &error), error);
        uint32_t lines = seed % 3 == 0 ? 2500 : draw(seed, &step, 300);
        for (uint32_t i = 0; i < lines; i++) {
            say(talk, seed, &step);
        }
        put_in_pieces(output, talk, seed, &step);
        expect_model(output, talk);
        planner_output_destroy(output);
    }
    free(talk);
}

static void note_line(void *context, uint32_t session, const char *line, size_t bytes)
{
    size_t *used = context;
    char *text = (char *)context + sizeof *used;
    *used += (size_t)snprintf(text + *used, 100 - *used, "%u:%.*s;", session, (int)bytes, line);
}

static void who_is_asked_alone_owns_what_has_no_label(void)
{
    struct {
        size_t used;
        char text[100];
    } told = {0, ""};
    struct planner_output *output = NULL;
    struct error error;
    char text[PLANNER_OUTPUT_BYTES + 1];
    EXPECT_OK(planner_output_create(2, &output, &error), error);
    planner_output_listen(output, note_line, &told);
    planner_output_put(output, "nobody\n", 7);
    planner_output_speaker(output, 1);
    planner_output_put(output,
                       "mine\n\x1e"
                       "0 other\npart",
                       18);
    planner_output_speaker(output, PLANNER_OUTPUT_NOBODY);
    planner_output_put(output, " of it\nlost\n", 12);
    EXPECT_INT(planner_output_session(output, 1, text), 16);
    EXPECT_TEXT(text, "mine\npart of it\n");
    EXPECT_INT(planner_output_session(output, 0, text), 6);
    EXPECT_TEXT(told.text, "1:mine;0:other;1:part of it;");
    planner_output_clear(output, 1);
    EXPECT_INT(planner_output_session(output, 1, text), 0);
    planner_output_destroy(output);
}

int main(void)
{
    return TEST_RUN(TEST(sessions_are_told_apart_in_any_pieces),
                    TEST(who_is_asked_alone_owns_what_has_no_label));
}
