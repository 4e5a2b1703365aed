/*
 * Expressions. Method: random expression trees are printed and evaluated both by the room and by
 * the tree itself (a model); a table fixes precedence, functions and every kind of refusal.
 */
#include "base/rng.h"
#include "base/units.h"
#include "scenarios/expression.h"
#include "tests/harness.h"

static struct symbol_table table_of_two(void)
{
    struct symbol_table table = {.count = 4};
    table.items[0] = (struct symbol){.name = "gap_m", .state = SYMBOL_NUMBER, .number = 40};
    table.items[1] = (struct symbol){.name = "b", .state = SYMBOL_NUMBER, .number = -2.5};
    table.items[2] = (struct symbol){.name = "sky", .state = SYMBOL_WORD, .word = "rain"};
    table.items[3] = (struct symbol){.name = "later", .state = SYMBOL_PENDING};
    return table;
}

/* Goal: precedence, associativity, unary signs, functions, names and spacing. */
static void values_are_right(void)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1", 1},
        {" 2 + 3 * 4 ", 14},
        {"(2+3)*4", 20},
        {"10-4-3", 3},
        {"64/4/2", 8},
        {"-3*-2", 6},
        {"--3", 3},
        {"2*-b", 5},
        {"-(1+2)", -3},
        {"+5", 5},
        {"1.5e2", 150},
        {".5+2e-1", 0.7},
        {"gap_m/2", 20},
        {"50 + 4.65 + gap_m", 94.65},
        {"min(gap_m, 3)", 3},
        {"max(1+1,min(7,5)*2)", 10},
        {"sqrt(16)+sqrt(2+2)", 6},
        {"pi/2", PI_RAD / 2},
        {"((((1))))", 1},
        {"max(-1,-2)", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct symbol_table table = table_of_two();
        struct expression_value value;
        char message[EXPRESSION_MESSAGE_BYTES] = "";
        if (expression_evaluate(cases[i].text, &table, &value, message) != EXPRESSION_OK) {
            TEST_FAIL("%s: %s", cases[i].text, message);
        }
        EXPECT(!value.is_word);
        EXPECT_NEAR(value.number, cases[i].value, 1e-12);
    }
}

/* Goal: everything else is refused with a sentence that says what is wrong. */
static void wrong_expressions_are_refused(void)
{
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"", "found the end"},
        {"1+", "found the end"},
        {"1 2", "expected an operator"},
        {"(1", "expected a )"},
        {"1)", "without its ("},
        {"gap", "\"gap\""},
        {"1/0", "divisor"},
        {"1/(b+2.5)", "divisor"},
        {"sqrt(-1)", "root"},
        {"min(1)", "2 arguments of min, found 1"},
        {"min(1,2,3)", "found 3"},
        {"sqrt(1,2)", "1 arguments of sqrt"},
        {"log(1)", "functions min, max, sqrt"},
        {"1,2", "comma outside"},
        {"(1,2)", "comma outside"},
        {"min()", "expected a number, a name or ("},
        {"1..2", "expected a number"},
        {"1e", "expected a number"},
        {"1e999", "finite"},
        {"1e308*10", "finite"},
        {"0x10", "expected an operator"},
        {"sky+1", "holds the word \"rain\""},
        {"1 $ 2", "found $"},
        {"\xc3\xa4", "character of code 195"},
        {"*2", "found *"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct symbol_table table = table_of_two();
        struct expression_value value;
        char message[EXPRESSION_MESSAGE_BYTES] = "";
        EXPECT_INT(expression_evaluate(cases[i].text, &table, &value, message), EXPRESSION_WRONG);
        EXPECT_CONTAINS(message, cases[i].part);
    }
}

/* Goal: a lone name may hold a word; a name without a value yet is pending, not wrong. */
static void words_and_pending_names(void)
{
    struct symbol_table table = table_of_two();
    struct expression_value value;
    char message[EXPRESSION_MESSAGE_BYTES];
    EXPECT_INT(expression_evaluate(" sky ", &table, &value, message), EXPRESSION_OK);
    EXPECT(value.is_word);
    EXPECT_TEXT(value.word, "rain");
    EXPECT_INT(expression_evaluate("1+later", &table, &value, message), EXPRESSION_PENDING);
    EXPECT_TEXT(message, "later");
    EXPECT(table.items[2].used && table.items[3].used && !table.items[0].used);
}

/* Goal: depth is bounded by refusal, never by the call stack. */
static void deep_expressions_are_bounded(void)
{
    struct symbol_table table = {0};
    struct expression_value value;
    char message[EXPRESSION_MESSAGE_BYTES];
    char text[EXPRESSION_BYTES];
    for (int depth = 1; depth < 120; depth++) {
        memset(text, '(', (size_t)depth);
        text[depth] = '1';
        memset(text + depth + 1, ')', (size_t)depth);
        text[2 * depth + 1] = '\0';
        enum expression_outcome outcome = expression_evaluate(text, &table, &value, message);
        EXPECT_INT(outcome, depth <= 64 ? EXPRESSION_OK : EXPRESSION_WRONG);
    }
    char longest[1024];
    memset(longest, '1', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    EXPECT_INT(expression_evaluate(longest, &table, &value, message), EXPRESSION_WRONG);
    EXPECT_CONTAINS(message, "255 bytes");
}

/* ---- the model ---- */

static uint32_t draws;

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(rng_uniform(77, RNG_STREAM_TEST, draws++, 0) * below);
}

/* Appends a random expression and returns its value; depth is small. */
static double grow(char *text, size_t capacity, int depth)
{
    size_t used = strlen(text);
    uint32_t kind = depth == 0 ? 0 : draw(6);
    if (kind == 0) {
        double number = draw(1000) / 8.0;
        snprintf(text + used, capacity - used, "%g", number);
        return number;
    }
    if (kind == 1) {
        snprintf(text + used, capacity - used, "-(");
        double value = -grow(text, capacity, depth - 1);
        strncat(text, ")", capacity - strlen(text) - 1);
        return value;
    }
    static const char *const openings[] = {"(", "(", "min(", "max("};
    static const char *const separators[] = {"+", "*", ", ", ","};
    snprintf(text + used, capacity - used, "%s", openings[kind - 2]);
    double left = grow(text, capacity, depth - 1);
    strncat(text, separators[kind - 2], capacity - strlen(text) - 1);
    double right = grow(text, capacity, depth - 1);
    strncat(text, ")", capacity - strlen(text) - 1);
    switch (kind) {
    case 2:
        return left + right;
    case 3:
        return left * right;
    case 4:
        return left < right ? left : right;
    default:
        return left > right ? left : right;
    }
}

/* Goal: the evaluator agrees with the model on random trees. */
static void random_trees_agree(void)
{
    for (int i = 0; i < 5000; i++) {
        char text[4096] = "";
        char message[EXPRESSION_MESSAGE_BYTES];
        struct symbol_table table = {0};
        struct expression_value value;
        double expected = grow(text, sizeof text, 4);
        if (strlen(text) >= EXPRESSION_BYTES) {
            continue;
        }
        EXPECT_INT(expression_evaluate(text, &table, &value, message), EXPRESSION_OK);
        EXPECT(value.number == expected);
    }
}

int main(void)
{
    return TEST_RUN(TEST(values_are_right), TEST(wrong_expressions_are_refused),
                    TEST(words_and_pending_names), TEST(deep_expressions_are_bounded),
                    TEST(random_trees_agree));
}
