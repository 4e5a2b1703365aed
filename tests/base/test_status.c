/*
 * Statuses and errors: names, the exit codes of the command-line contract, and formatting that
 * always ends in a terminator, whatever its length. Log lines and clocks ride along.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "tests/harness.h"

#include <unistd.h>

static void names_are_present_and_distinct(void)
{
    for (int i = 0; i < STATUS_COUNT; i++) {
        EXPECT(status_name((enum status)i) != NULL && status_name((enum status)i)[0] != '\0');
        for (int j = 0; j < i; j++) {
            EXPECT(strcmp(status_name((enum status)i), status_name((enum status)j)) != 0);
        }
    }
    EXPECT_TEXT(status_name(STATUS_BAD_INPUT), "bad_input");
    EXPECT_TEXT(status_name(STATUS_COUNT), "unknown");
    EXPECT_TEXT(status_name((enum status) - 1), "unknown");
}

static void exit_codes_follow_the_contract(void)
{
    EXPECT_INT(status_exit_code(STATUS_OK), 0);
    EXPECT_INT(status_exit_code(STATUS_MISMATCH), 1);
    EXPECT_INT(status_exit_code(STATUS_USAGE), 2);
    EXPECT_INT(status_exit_code(STATUS_BAD_INPUT), 3);
    EXPECT_INT(status_exit_code(STATUS_LIMIT), 3);
    EXPECT_INT(status_exit_code(STATUS_STORE), 4);
    EXPECT_INT(status_exit_code(STATUS_DEVICE), 5);
    EXPECT_INT(status_exit_code(STATUS_PLANNER), 6);
    EXPECT_INT(status_exit_code(STATUS_BUSY), 7);
    for (int i = 1; i < STATUS_COUNT; i++) {
        int code = status_exit_code((enum status)i);
        EXPECT(code >= 1 && code <= 7);
    }
}

static void errors_keep_status_and_sentence(void)
{
    struct error error;
    EXPECT_INT(error_set(&error, STATUS_IO, "%s: line %d", "a.json", 7), STATUS_IO);
    EXPECT_INT(error.status, STATUS_IO);
    EXPECT_TEXT(error.text, "a.json: line 7");
    EXPECT_INT(error_prefix(&error, "suite %d", 3), STATUS_IO);
    EXPECT_TEXT(error.text, "suite 3: a.json: line 7");
    EXPECT_INT(error_set(NULL, STATUS_LIMIT, "nobody listens"), STATUS_LIMIT);
}

/* Bytes of a damaged file do not reach the terminal. */
static void sentences_are_printable(void)
{
    static const char *const rows[][2] = {
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x97", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x97"},
        {"a\tb\nc", "a\tb\nc"},
        {"\x1b[31mred\x7f", "?[31mred?"},
        {"\xff\xfe\x80", "???"},
        {"\xc2\x9b\x33\x31m \xe2\x80\xae", "??31m ???"},
        {"\xc3", "?"}, /* cut off */
        {"\xe2\x82", "??"},
        {"\xc0\xaf", "??"}, /* too long for what it says */
        {"\xe0\x80\xaf", "???"},
        {"\xed\xa0\x80", "???"},      /* half of a pair */
        {"\xf4\x90\x80\x80", "????"}, /* beyond the last character */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct error error;
        error_set(&error, STATUS_STORE, "%s", rows[i][0]);
        EXPECT_TEXT(error.text, rows[i][1]);
    }
}

/* Texts of every length around the buffer's size are cut, terminated and keep their beginning. */
static void long_texts_are_cut_and_terminated(void)
{
    char text[2 * ERROR_TEXT_BYTES];
    for (size_t length = ERROR_TEXT_BYTES - 4; length < ERROR_TEXT_BYTES + 4; length++) {
        struct error error;
        memset(text, 'e', length);
        text[length] = '\0';
        size_t kept = length < ERROR_TEXT_BYTES ? length : ERROR_TEXT_BYTES - 1;
        error_set(&error, STATUS_IO, "%s", text);
        EXPECT_INT(strlen(error.text), kept);
        error_prefix(&error, "p");
        EXPECT(strncmp(error.text, "p: e", 4) == 0);
        EXPECT_INT(strlen(error.text),
                   kept + 3 < ERROR_TEXT_BYTES ? kept + 3 : ERROR_TEXT_BYTES - 1);
        error_prefix(&error, "%s", text);
        EXPECT(error.text[ERROR_TEXT_BYTES - 1] == '\0');
        EXPECT_INT(error.text[0], 'e');
    }
}

static void log_lines_are_whole_and_filtered(void)
{
    int ends[2];
    char line[4096];
    char longest[3000];
    EXPECT_INT(pipe(ends), 0);
    struct logger logger = {.fd = ends[1], .level = LOG_INFO, .name = "w1"};
    log_event(&logger, LOG_WARNING, "lease of job %d lost", 12);
    log_event(&logger, LOG_DEBUG, "not shown");
    log_event(NULL, LOG_ERROR, "nobody");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    log_event(&logger, LOG_ERROR, "%s", longest);
    ssize_t got = read(ends[0], line, sizeof line - 1);
    close(ends[0]);
    close(ends[1]);
    EXPECT(got > 0);
    line[got] = '\0';
    static const char first[] = "w1: warning: lease of job 12 lost\n";
    EXPECT(strncmp(line, first, sizeof first - 1) == 0);
    /* The second line is cut to 1 KiB and still ends in one newline. */
    const char *second = line + sizeof first - 1;
    EXPECT(strlen(second) > 1000 && strlen(second) <= 1024);
    EXPECT(strncmp(second, "w1: error: xxx", 14) == 0);
    EXPECT(strchr(second, '\n') == second + strlen(second) - 1);
}

static void clocks_do_not_run_backwards(void)
{
    const struct clock *clock = clock_system();
    int64_t now_ns = clock_now_ns(clock);
    int64_t cpu_ns = clock_thread_cpu_ns(clock);
    EXPECT(now_ns > 0 && clock_wall_ns(clock) > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t next_ns = clock_now_ns(clock);
        int64_t next_cpu_ns = clock_thread_cpu_ns(clock);
        EXPECT(next_ns >= now_ns && next_cpu_ns >= cpu_ns);
        now_ns = next_ns;
        cpu_ns = next_cpu_ns;
    }
}

int main(void)
{
    return TEST_RUN(TEST(names_are_present_and_distinct), TEST(exit_codes_follow_the_contract),
                    TEST(errors_keep_status_and_sentence), TEST(sentences_are_printable),
                    TEST(long_texts_are_cut_and_terminated), TEST(log_lines_are_whole_and_filtered),
                    TEST(clocks_do_not_run_backwards));
}
