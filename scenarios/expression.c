/*
 * Expression evaluation: Dijkstra's shunting-yard algorithm with a value stack and an operator
 * stack, so that no input can make us recurse. See expression.h.
 */
#include "scenarios/expression.h"

#include "base/text.h"
#include "base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_DEPTH = 64, NUMBER_BYTES = 64 };

/* Operators are their own characters; these are the others. */
enum { OPERATOR_NEGATE = '~', OPERATOR_PAREN = '(', OPERATOR_CALL = 'f' };

enum function { FUNCTION_MIN = 0, FUNCTION_MAX, FUNCTION_SQRT, FUNCTION_COUNT };

static const struct {
    const char *name;
    int arguments;
} functions[FUNCTION_COUNT] = {{"min", 2}, {"max", 2}, {"sqrt", 1}};

struct operator
{
    char kind;
    int function;
    int arguments; /* seen so far, of a call */
};

struct evaluation {
    const char *at; /* next character */
    struct symbol_table *table;
    char *message;
    double values[STACK_DEPTH];
    int value_count;
    struct operator operators[STACK_DEPTH];
    int operator_count;
};

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_part(char c)
{
    return is_name_start(c) || is_digit(c);
}

bool symbol_name_valid(const char *name)
{
    if (!is_name_start(name[0])) {
        return false;
    }
    size_t bytes = 1;
    while (is_name_part(name[bytes])) {
        bytes++;
    }
    return bytes < LIMIT_ID_BYTES && name[bytes] == '\0';
}

struct symbol *symbol_find(struct symbol_table *table, const char *name, size_t name_bytes)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (strlen(table->items[i].name) == name_bytes &&
            memcmp(table->items[i].name, name, name_bytes) == 0) {
            return &table->items[i];
        }
    }
    return NULL;
}

static enum expression_outcome __attribute__((format(printf, 2, 3)))
wrong(struct evaluation *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->message, EXPRESSION_MESSAGE_BYTES, format, args);
    va_end(args);
    return EXPRESSION_WRONG;
}

static enum expression_outcome wrong_character(struct evaluation *e, const char *expected)
{
    unsigned char c = (unsigned char)*e->at;
    if (c > ' ' && c < 0x7f) {
        return wrong(e, "expected %s, found %c", expected, c);
    }
    return wrong(e, "expected %s, found a character of code %u", expected, c);
}

static enum expression_outcome push_value(struct evaluation *e, double value)
{
    if (!isfinite(value)) {
        return wrong(e, "expected a finite result, found one that is not");
    }
    if (e->value_count == STACK_DEPTH) {
        return wrong(e, "expected an expression with fewer than %d open terms", STACK_DEPTH);
    }
    e->values[e->value_count++] = value;
    return EXPRESSION_OK;
}

static enum expression_outcome push_operator(struct evaluation *e, struct operator op)
{
    if (e->operator_count == STACK_DEPTH) {
        return wrong(e, "expected an expression with fewer than %d open operators", STACK_DEPTH);
    }
    e->operators[e->operator_count++] = op;
    return EXPRESSION_OK;
}

/* Operands are on the stack: the grammar has seen to it. */
static enum expression_outcome apply(struct evaluation *e, struct operator op)
{
    double right = e->values[--e->value_count];
    if (op.kind == OPERATOR_NEGATE) {
        return push_value(e, -right);
    }
    if (op.kind == OPERATOR_CALL && op.function == FUNCTION_SQRT) {
        if (right < 0) {
            return wrong(e, "expected the root of a number >= 0, found sqrt(%g)", right);
        }
        return push_value(e, sqrt(right));
    }
    double left = e->values[--e->value_count];
    switch (op.kind) {
    case '+':
        return push_value(e, left + right);
    case '-':
        return push_value(e, left - right);
    case '*':
        return push_value(e, left * right);
    case '/':
        if (right == 0) {
            return wrong(e, "expected a divisor other than 0, found %g / 0", left);
        }
        return push_value(e, left / right);
    default:
        if (op.function == FUNCTION_MIN) {
            return push_value(e, left < right ? left : right);
        }
        return push_value(e, left > right ? left : right);
    }
}

static int precedence(char kind)
{
    switch (kind) {
    case '+':
    case '-':
        return 1;
    case '*':
    case '/':
        return 2;
    case OPERATOR_NEGATE:
        return 3;
    default:
        return 0; /* an open parenthesis or call stops everything */
    }
}

/* Applies what binds at least as strongly as `floor`. */
static enum expression_outcome reduce(struct evaluation *e, int floor)
{
    while (e->operator_count > 0) {
        struct operator top = e->operators[e->operator_count - 1];
        if (precedence(top.kind) < floor) {
            break;
        }
        e->operator_count--;
        enum expression_outcome outcome = apply(e, top);
        if (outcome != EXPRESSION_OK) {
            return outcome;
        }
    }
    return EXPRESSION_OK;
}

static void skip_spaces(struct evaluation *e)
{
    while (*e->at == ' ' || *e->at == '\t') {
        e->at++;
    }
}

static enum expression_outcome read_number(struct evaluation *e)
{
    const char *start = e->at;
    char text[NUMBER_BYTES];
    while (is_digit(*e->at) || *e->at == '.') {
        e->at++;
    }
    if (*e->at == 'e' || *e->at == 'E') {
        e->at++;
        if (*e->at == '+' || *e->at == '-') {
            e->at++;
        }
        while (is_digit(*e->at)) {
            e->at++;
        }
    }
    size_t bytes = (size_t)(e->at - start);
    if (bytes >= sizeof text) {
        return wrong(e, "expected a number of at most %d characters", NUMBER_BYTES - 1);
    }
    memcpy(text, start, bytes);
    text[bytes] = '\0';
    char *end;
    double value = strtod(text, &end);
    if (*end != '\0') {
        return wrong(e, "expected a number, found \"%s\"", text);
    }
    return push_value(e, value);
}

static enum expression_outcome open_call(struct evaluation *e, const char *name, size_t bytes)
{
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        if (strlen(functions[i].name) == bytes && memcmp(functions[i].name, name, bytes) == 0) {
            e->at++;
            return push_operator(
                e, (struct operator){.kind = OPERATOR_CALL, .function = i, .arguments = 1});
        }
    }
    return wrong(e, "expected one of the functions min, max, sqrt, found \"%.*s\"",
                 (int)(bytes < 64 ? bytes : 64), name);
}

/* A name that is not a call leaves a value; *operand says whether an operand is still due. */
static enum expression_outcome read_name(struct evaluation *e, bool *operand)
{
    const char *name = e->at;
    while (is_name_part(*e->at)) {
        e->at++;
    }
    size_t bytes = (size_t)(e->at - name);
    skip_spaces(e);
    if (*e->at == '(') {
        return open_call(e, name, bytes);
    }
    *operand = false;
    struct symbol *symbol = symbol_find(e->table, name, bytes);
    if (symbol == NULL && bytes == 2 && memcmp(name, "pi", 2) == 0) {
        return push_value(e, PI_RAD);
    }
    int shown = (int)(bytes < 64 ? bytes : 64);
    if (symbol == NULL) {
        char word[64];
        const char *names[LIMIT_PARAMETERS + 1] = {NULL};
        for (uint32_t i = 0; i < e->table->count; i++) {
            names[i] = e->table->items[i].name;
        }
        snprintf(word, sizeof word, "%.*s", shown, name);
        const char *nearest = text_nearest(word, names);
        return wrong(e, "expected the name of a parameter, found \"%s\"%s%s%s", word,
                     nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "\"?" : "");
    }
    symbol->used = true;
    if (symbol->state == SYMBOL_PENDING) {
        snprintf(e->message, EXPRESSION_MESSAGE_BYTES, "%s", symbol->name);
        return EXPRESSION_PENDING;
    }
    if (symbol->state == SYMBOL_WORD) {
        return wrong(e, "expected a number, found \"%.*s\", which holds the word \"%.64s\"", shown,
                     name, symbol->word);
    }
    return push_value(e, symbol->number);
}

static enum expression_outcome read_operand(struct evaluation *e, bool *operand)
{
    char c = *e->at;
    if (is_digit(c) || c == '.') {
        *operand = false;
        return read_number(e);
    }
    if (is_name_start(c)) {
        return read_name(e, operand);
    }
    if (c == '(') {
        e->at++;
        return push_operator(e, (struct operator){.kind = OPERATOR_PAREN});
    }
    if (c == '-') {
        e->at++;
        return push_operator(e, (struct operator){.kind = OPERATOR_NEGATE});
    }
    if (c == '+') {
        e->at++;
        return EXPRESSION_OK;
    }
    if (c == '\0') {
        return wrong(e, "expected a number, a name or (, found the end of the expression");
    }
    return wrong_character(e, "a number, a name or (");
}

static enum expression_outcome close_paren(struct evaluation *e)
{
    enum expression_outcome outcome = reduce(e, 1);
    if (outcome != EXPRESSION_OK) {
        return outcome;
    }
    if (e->operator_count == 0) {
        return wrong(e, "expected an operator, found a ) without its (");
    }
    struct operator op = e->operators[--e->operator_count];
    if (op.kind == OPERATOR_PAREN) {
        return EXPRESSION_OK;
    }
    if (op.arguments != functions[op.function].arguments) {
        return wrong(e, "expected %d arguments of %s, found %d", functions[op.function].arguments,
                     functions[op.function].name, op.arguments);
    }
    return apply(e, op);
}

static enum expression_outcome next_argument(struct evaluation *e)
{
    enum expression_outcome outcome = reduce(e, 1);
    if (outcome != EXPRESSION_OK) {
        return outcome;
    }
    if (e->operator_count == 0 || e->operators[e->operator_count - 1].kind != OPERATOR_CALL) {
        return wrong(e, "expected an operator, found a comma outside a function");
    }
    e->operators[e->operator_count - 1].arguments++;
    return EXPRESSION_OK;
}

/* Operators that may follow an operand. */
static enum expression_outcome read_operator(struct evaluation *e, bool *operand)
{
    char c = *e->at;
    enum expression_outcome outcome;
    switch (c) {
    case '+':
    case '-':
    case '*':
    case '/':
        outcome = reduce(e, precedence(c));
        if (outcome == EXPRESSION_OK) {
            outcome = push_operator(e, (struct operator){.kind = c});
        }
        *operand = true;
        break;
    case ',':
        outcome = next_argument(e);
        *operand = true;
        break;
    case ')':
        outcome = close_paren(e);
        break;
    default:
        return wrong_character(e, "an operator");
    }
    e->at++;
    return outcome;
}

/* The whole text is one name that holds a word. */
static bool is_lone_word(const char *text, struct symbol_table *table, struct expression_value *out)
{
    while (*text == ' ') {
        text++;
    }
    size_t bytes = 0;
    while (is_name_part(text[bytes])) {
        bytes++;
    }
    const char *rest = text + bytes;
    while (*rest == ' ') {
        rest++;
    }
    struct symbol *symbol = symbol_find(table, text, bytes);
    if (*rest != '\0' || symbol == NULL || symbol->state != SYMBOL_WORD) {
        return false;
    }
    symbol->used = true;
    *out = (struct expression_value){.is_word = true, .word = symbol->word};
    return true;
}

enum expression_outcome expression_evaluate(const char *text, struct symbol_table *table,
                                            struct expression_value *out,
                                            char message[EXPRESSION_MESSAGE_BYTES])
{
    struct evaluation e = {.at = text, .table = table, .message = message};
    bool operand = true;
    if (is_lone_word(text, table, out)) {
        return EXPRESSION_OK;
    }
    if (strlen(text) >= EXPRESSION_BYTES) {
        return wrong(&e, "expected an expression of at most %d bytes, found %zu",
                     EXPRESSION_BYTES - 1, strlen(text));
    }
    for (;;) {
        skip_spaces(&e);
        if (*e.at == '\0' && !operand) {
            break;
        }
        enum expression_outcome outcome =
            operand ? read_operand(&e, &operand) : read_operator(&e, &operand);
        if (outcome != EXPRESSION_OK) {
            return outcome;
        }
    }
    enum expression_outcome outcome = reduce(&e, 1);
    if (outcome != EXPRESSION_OK) {
        return outcome;
    }
    if (e.operator_count > 0) {
        return wrong(&e, "expected a ), found the end of the expression");
    }
    *out = (struct expression_value){.number = e.values[0]};
    return EXPRESSION_OK;
}
