/*
 * Cells of CSV. Goal: no text is run as a formula, and each one can be had back. Method: texts of
 * every beginning, alone, quoted and behind apostrophes, read by the rule that docs/export.md gives
 * to readers.
 */
#include "base/check.h"
#include "report/csv_cell.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

static char *cell_of(const char *text)
{
    char *cell = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&cell, &bytes);
    CHECK(out != NULL);
    EXPECT(csv_cell_put(text, out));
    CHECK(fclose(out) == 0);
    return cell;
}

/* The text that a reader has, quotes taken off, in place. */
static char *unquoted(char *cell)
{
    size_t bytes = strlen(cell);
    if (cell[0] != '"') {
        return cell;
    }
    char *to = cell;
    for (size_t i = 1; i + 1 < bytes; i++) {
        i += cell[i] == '"' ? 1 : 0;
        *to++ = cell[i];
    }
    *to = '\0';
    return cell;
}

static void no_text_is_a_formula_and_each_comes_back(void)
{
    static const char *const begins[] = {
        "=", "+", "-", "@", "\t=", "\n=", "\t", "\xef\xbc\x9d", "\xef\xbc\xa0"};
    static const char *const behind[] = {"", "1+1", "cmd|' /C calc'!A0", "a,b", "say \"x\""};
    static const char *const before[] = {"", "'", "''"};
    char text[64];
    for (size_t i = 0; i < COUNT_OF(begins) * COUNT_OF(behind) * COUNT_OF(before); i++) {
        snprintf(text, sizeof text, "%s%s%s", before[i % 3], begins[i / 3 % COUNT_OF(begins)],
                 behind[i / 3 / COUNT_OF(begins)]);
        char *cell = unquoted(cell_of(text));
        EXPECT(cell[0] == '\'' && csv_cell_is_formula(cell + 1));
        EXPECT_TEXT(cell + 1, text);
        free(cell);
    }
}

static void other_texts_stay_as_they_are(void)
{
    static const char *const texts[] = {"",
                                        "pass",
                                        "builtin:maintain",
                                        "a=1,light=day",
                                        "'twas",
                                        "it's=1",
                                        "0-1",
                                        "caf\xc3\xa9",
                                        " =1",
                                        "#=comment",
                                        "exec:./run -v"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char *cell = unquoted(cell_of(texts[i]));
        EXPECT_TEXT(cell, texts[i]);
        free(cell);
    }
    char *cell = cell_of("\r=1"); /* guarded by what it was, though it is spelled out */
    EXPECT_TEXT(cell, "'\\u000d=1");
    free(cell);
}

int main(void)
{
    return TEST_RUN(TEST(no_text_is_a_formula_and_each_comes_back),
                    TEST(other_texts_stay_as_they_are));
}
