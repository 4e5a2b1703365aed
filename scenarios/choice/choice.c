/*
 * Choice of a user's among a suite: settings of its parameters, and which of its scenarios and
 * seeds are left. The expression is put in postfix order once, with stacks of fixed size, and
 * evaluated for each entry.
 */
#include "scenarios/choice/choice.h"

#include "base/check.h"
#include "base/text.h"
#include "scenarios/expression.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- settings ---- */

static enum status read_settings(const struct suite_choice *choice, json_t **set,
                                 struct error *error)
{
    json_t *settings = json_object();
    TRY(memory_check(settings, error, "--set: out of memory"));
    for (uint32_t i = 0; i < choice->set_count; i++) {
        const char *text = choice->sets[i];
        const char *equals = strchr(text, '=');
        char name[LIMIT_ID_BYTES];
        size_t bytes = equals != NULL ? (size_t)(equals - text) : 0;
        snprintf(name, sizeof name, "%.*s", (int)(bytes < sizeof name ? bytes : 0), text);
        if (!symbol_name_valid(name) || equals[1] == '\0') {
            json_decref(settings);
            return error_set(error, STATUS_USAGE,
                             "--set: expected NAME=VALUE, such as ego_kph=40, found \"%.200s\"",
                             text);
        }
        if (json_object_get(settings, name) != NULL) {
            json_decref(settings);
            return error_set(error, STATUS_USAGE, "--set: expected each name once, found %s again",
                             name);
        }
        char *end;
        double number = strtod(equals + 1, &end);
        json_t *value = *end == '\0' ? json_real(number) : json_string(equals + 1);
        if (value == NULL || json_object_set_new(settings, name, value) != 0) {
            json_decref(settings);
            return error_set(error, STATUS_BAD_INPUT,
                             "--set: expected a number or text in UTF-8, found \"%.200s\"", text);
        }
    }
    *set = settings;
    return STATUS_OK;
}

/* The names of a suite's parameters as the members of an object; NULL: no memory. */
static json_t *suite_parameters(const struct suite *suite)
{
    json_t *names = json_object();
    for (uint32_t i = 0; i < suite->entry_count && names != NULL; i++) {
        json_t *own = json_loads(suite->entries[i].document->parameters, 0, NULL);
        json_object_update_missing(names, own);
        json_decref(own);
    }
    return names;
}

/* Each setting concerned a scenario. */
static enum status check_settings(const struct suite_choice *choice, const char *path,
                                  const struct suite *suite, struct error *error)
{
    enum status status = STATUS_OK;
    json_t *names = choice->set_count > 0 ? suite_parameters(suite) : NULL;
    const char **words = calloc(json_object_size(names) + 1, sizeof *words);
    status = memory_check(words, error, "--set: out of memory");
    const char *key;
    json_t *value;
    size_t count = 0;
    if (status == STATUS_OK) {
        json_object_foreach (names, key, value) {
            words[count++] = key;
        }
    }
    for (uint32_t i = 0; i < choice->set_count && status == STATUS_OK; i++) {
        char name[LIMIT_ID_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(choice->sets[i], "="), choice->sets[i]);
        if (json_object_get(names, name) == NULL) {
            const char *nearest = text_nearest(name, words);
            status =
                error_set(error, STATUS_USAGE,
                          "--set %s: expected a parameter of %s, found one that none of its "
                          "%u scenarios has%s%s%s",
                          name, path, suite->entry_count, nearest != NULL ? "; did you mean " : "",
                          nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
        }
    }
    free(words);
    json_decref(names);
    return status;
}

/* ---- expressions ---- */

enum { EXPRESSION_WORDS_MAX = 64 };

enum term_kind { TERM_WORD, TERM_NOT, TERM_AND, TERM_OR, TERM_OPEN };

struct term {
    enum term_kind kind;
    char word[LIMIT_ID_BYTES];
};

struct postfix {
    uint32_t count;
    struct term terms[EXPRESSION_WORDS_MAX];
};

/* The next word, "(" or ")" at *at; false: the end. *bytes may be more than fits a word. */
static bool next_token(const char **at, const char **token, size_t *bytes)
{
    *at += strspn(*at, " \t\n");
    *token = *at;
    *bytes = **at == '(' || **at == ')' ? 1 : strcspn(*at, " \t\n()");
    *at += *bytes;
    return *bytes > 0;
}

static enum term_kind term_kind_of(const char *token, size_t bytes)
{
    static const char *const words[] = {
        [TERM_NOT] = "not", [TERM_AND] = "and", [TERM_OR] = "or", [TERM_OPEN] = "("};
    for (enum term_kind kind = TERM_NOT; kind <= TERM_OPEN; kind++) {
        if (strlen(words[kind]) == bytes && strncasecmp(token, words[kind], bytes) == 0) {
            return kind;
        }
    }
    return TERM_WORD;
}

/* Moves operators that bind at least as tightly as `kind` from the stack to the output; TERM_OPEN:
 * all down to the parenthesis. */
static void pop_operators(struct postfix *stack, enum term_kind kind, struct postfix *out)
{
    while (stack->count > 0 && stack->terms[stack->count - 1].kind != TERM_OPEN &&
           (kind == TERM_OPEN || stack->terms[stack->count - 1].kind <= kind)) {
        out->terms[out->count++] = stack->terms[--stack->count];
    }
}

static enum status fail_expression(const char *text, const char *expected, const char *found,
                                   size_t bytes, struct error *error)
{
    return error_set(error, STATUS_USAGE, "-k \"%.200s\": expected %s, found %s%.*s%s", text,
                     expected, bytes > 0 ? "\"" : "the end", (int)(bytes < 64 ? bytes : 64), found,
                     bytes > 0 ? "\"" : "");
}

/* One token; *operand: a word, "not" or "(" comes next, and not an operator or ")". */
static enum status take_token(const char *text, const char *token, size_t bytes, bool *operand,
                              struct postfix *stack, struct postfix *out, struct error *error)
{
    enum term_kind kind = term_kind_of(token, bytes);
    bool close = token[0] == ')';
    bool opens = !close && (kind == TERM_WORD || kind == TERM_NOT || kind == TERM_OPEN);
    if (opens != *operand) {
        return fail_expression(text, *operand ? "a word" : "and, or, or the end", token, bytes,
                               error);
    }
    if (bytes >= LIMIT_ID_BYTES) {
        return fail_expression(text, "a shorter word", token, bytes, error);
    }
    if (out->count + stack->count >= EXPRESSION_WORDS_MAX) {
        return fail_expression(text, "at most 64 words", token, bytes, error);
    }
    if (close) {
        pop_operators(stack, TERM_OPEN, out);
        if (stack->count == 0) {
            return fail_expression(text, "an open parenthesis before it", token, bytes, error);
        }
        stack->count--;
        return STATUS_OK;
    }
    struct term term = {.kind = kind};
    memcpy(term.word, token, bytes);
    if (kind == TERM_WORD) {
        out->terms[out->count++] = term;
    } else {
        if (kind == TERM_AND || kind == TERM_OR) {
            pop_operators(stack, kind, out);
        }
        stack->terms[stack->count++] = term;
    }
    *operand = kind != TERM_WORD;
    return STATUS_OK;
}

static enum status compile_expression(const char *text, struct postfix *out, struct error *error)
{
    struct postfix stack = {0};
    const char *at = text;
    const char *token;
    size_t bytes;
    bool operand = true;
    *out = (struct postfix){0};
    while (next_token(&at, &token, &bytes)) {
        TRY(take_token(text, token, bytes, &operand, &stack, out, error));
    }
    if (operand) {
        return fail_expression(text, "a word", "", 0, error);
    }
    pop_operators(&stack, TERM_OPEN, out);
    return stack.count == 0 ? STATUS_OK : fail_expression(text, "\")\"", "", 0, error);
}

/* "actor=pedestrian" asks the slice of that name; other words are looked for in id, slices and
 * traceability. Upper and lower case are alike. */
static bool word_matches(const char *word, const struct scenario *scenario)
{
    const struct slices *slices = &scenario->slices;
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        size_t bytes = strlen(slice_names[i]);
        if (strncasecmp(word, slice_names[i], bytes) == 0 && word[bytes] == '=') {
            return strcasecmp(word + bytes + 1, slices->value[i]) == 0;
        }
    }
    bool found = strcasestr(scenario->id, word) != NULL ||
                 (slices->safety_critical && strcasecmp(word, "safety_critical") == 0);
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        found = found || strcasestr(slices->value[i], word) != NULL;
    }
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        const struct trace_links *links = &scenario->links[k];
        for (uint32_t i = 0; i < links->count; i++) {
            found = found || strcasestr(links->ids[i], word) != NULL;
        }
    }
    return found;
}

static bool expression_matches(const struct postfix *postfix, const struct scenario *scenario)
{
    bool stack[EXPRESSION_WORDS_MAX] = {false};
    uint32_t depth = 0;
    for (uint32_t i = 0; i < postfix->count; i++) {
        const struct term *term = &postfix->terms[i];
        if (term->kind == TERM_WORD) {
            stack[depth++] = word_matches(term->word, scenario);
        } else if (term->kind == TERM_NOT) {
            stack[depth - 1] = !stack[depth - 1];
        } else {
            bool right = stack[--depth];
            stack[depth - 1] =
                term->kind == TERM_AND ? stack[depth - 1] && right : stack[depth - 1] || right;
        }
    }
    CHECK(depth == 1);
    return stack[0];
}

/* ---- the whole ---- */

/* Whether it is the scenario's id, or its logical scenario's. */
static bool is_named(const char *id, const char *name)
{
    size_t bytes = scenario_id_logical_bytes(id);
    return strcmp(id, name) == 0 || (strlen(name) == bytes && strncmp(id, name, bytes) == 0);
}

static enum status check_ids(const struct suite_choice *choice, const char *path,
                             const struct suite *suite, struct error *error)
{
    for (uint32_t i = 0; i < choice->id_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < suite->entry_count && !found; k++) {
            found = is_named(suite->entries[k].document->scenario.id, choice->ids[i]);
        }
        if (found) {
            continue;
        }
        const char **ids = calloc((size_t)suite->entry_count + 1, sizeof *ids);
        TRY(memory_check(ids, error, "%s: out of memory", path));
        const char *nearest = NULL;
        for (uint32_t k = 0; k < suite->entry_count; k++) {
            const char *id = suite->entries[k].document->scenario.id;
            ids[k] = id;
            bool begins = strncmp(id, choice->ids[i], strlen(choice->ids[i])) == 0;
            nearest = nearest == NULL && begins ? id : nearest;
        }
        nearest = nearest == NULL ? text_nearest(choice->ids[i], ids) : nearest;
        error_set(error, STATUS_USAGE,
                  "--scenario: expected the id of a scenario of %s, found \"%.64s\"%s%s%s", path,
                  choice->ids[i], nearest != NULL ? "; did you mean " : "",
                  nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
        free(ids);
        return error->status;
    }
    return STATUS_OK;
}

int suite_pick_compare(const struct suite_pick *a, const struct suite_pick *b)
{
    int order = strcmp(a->scenario, b->scenario);
    return order != 0 ? order : (a->seed > b->seed) - (a->seed < b->seed);
}

static int compare_picks(const void *a, const void *b)
{
    return suite_pick_compare(a, b);
}

struct choosing {
    const struct suite_choice *choice;
    struct postfix postfix;
};

static bool is_chosen(void *context, const struct suite_entry *entry, uint64_t seed)
{
    const struct choosing *choosing = context;
    const struct suite_choice *choice = choosing->choice;
    const struct scenario *scenario = &entry->document->scenario;
    bool chosen = choice->id_count == 0;
    for (uint32_t i = 0; i < choice->id_count && !chosen; i++) {
        chosen = is_named(scenario->id, choice->ids[i]);
    }
    chosen =
        chosen && (choice->expression == NULL || expression_matches(&choosing->postfix, scenario));
    if (!chosen || !choice->picked) {
        return chosen;
    }
    struct suite_pick pick = {.seed = seed};
    memcpy(pick.scenario, scenario->id, sizeof pick.scenario);
    return choice->pick_count > 0 &&
           bsearch(&pick, choice->picks, choice->pick_count, sizeof pick, compare_picks) != NULL;
}

static enum status apply(const struct suite_choice *choice, const char *path, struct suite *suite,
                         struct error *error)
{
    struct choosing choosing = {.choice = choice};
    uint32_t all = suite->entry_count;
    TRY(check_settings(choice, path, suite, error));
    TRY(check_ids(choice, path, suite, error));
    if (choice->expression != NULL) {
        TRY(compile_expression(choice->expression, &choosing.postfix, error));
    }
    TRY(suite_keep(suite, is_chosen, &choosing, error));
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        if (suite->entries[i].refused != NULL) {
            return error_set(error, STATUS_BAD_INPUT, "--set: %s", suite->entries[i].refused);
        }
    }
    if (suite->entry_count > 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_USAGE,
                     "%s: expected at least one scenario that the options choose, found none among "
                     "%u%s",
                     path, all,
                     choice->expression != NULL
                         ? "; words of -k are looked for in ids, slices (\"swerve coverage\" lists "
                           "them) and traceability"
                         : "");
}

enum status suite_load_chosen(const char *path, const struct suite_choice *choice,
                              struct suite **out, struct error *error)
{
    json_t *set = NULL;
    struct suite *suite = NULL;
    TRY(read_settings(choice, &set, error));
    enum status status = suite_load_set(path, set, &suite, error);
    THEN(status, apply(choice, path, suite, error));
    json_decref(set);
    if (status != STATUS_OK) {
        suite_destroy(suite);
        return status;
    }
    *out = suite;
    return STATUS_OK;
}
