/*
 * Expressions: arithmetic over a scenario's parameters ("=50 + gap_m / 2").
 *
 * Operators + - * / with the usual precedence, parentheses, numbers, names, pi, min(a,b),
 * max(a,b), sqrt(a). Evaluated with explicit stacks of fixed size; the result is finite or the
 * evaluation fails with a sentence.
 */
#ifndef SWERVE_SCENARIOS_EXPRESSION_H
#define SWERVE_SCENARIOS_EXPRESSION_H

#include "schemas/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXPRESSION_BYTES = 256, EXPRESSION_MESSAGE_BYTES = 256 };

enum symbol_state { SYMBOL_PENDING = 0, SYMBOL_NUMBER, SYMBOL_WORD };

struct symbol {
    const char *name; /* borrowed from the document */
    enum symbol_state state;
    double number;
    const char *word; /* borrowed from the document */
    bool used;        /* some expression or text asked for it */
};

struct symbol_table {
    uint32_t count;
    struct symbol items[LIMIT_PARAMETERS];
};

/* The symbol of that name (name_bytes long), or NULL. */
struct symbol *symbol_find(struct symbol_table *table, const char *name, size_t name_bytes);

/* True for a text that names a parameter: a letter or _, then letters, digits and _. */
bool symbol_name_valid(const char *name);

enum expression_outcome {
    EXPRESSION_OK = 0,
    EXPRESSION_PENDING, /* it needs a symbol that has no value yet; message: its name */
    EXPRESSION_WRONG    /* message: what was expected and found */
};

struct expression_value {
    bool is_word;
    double number;
    const char *word; /* borrowed from the table */
};

/* `text` is what follows the "=". Marks the symbols that it asks for as used. */
enum expression_outcome expression_evaluate(const char *text, struct symbol_table *table,
                                            struct expression_value *out,
                                            char message[EXPRESSION_MESSAGE_BYTES]);

#endif
