/*
 * Options of a command line. See cli_options.h.
 */
#include "base/program/cli_options.h"

#include "base/text.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_usage(const struct cli_command *command, FILE *stream)
{
    text_print_lines(stream, "usage: swerve %s %s\n%s\n", command->name, command->usage,
                     command->help);
    for (uint32_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        if (option->help == NULL) {
            continue;
        }
        if (option->group != NULL) {
            text_print(stream, "%s:\n", option->group);
        }
        char left[64];
        snprintf(left, sizeof left, "%s %s", option->name,
                 option->value != NULL ? option->value : "");
        text_print(stream, "  %-26s %s\n", left, option->help);
    }
}

static const struct cli_option *find_option(const struct cli_command *command, const char *name,
                                            size_t bytes)
{
    if (bytes == 2 && strncmp(name, "-o", 2) == 0) {
        name = "--output";
        bytes = strlen(name);
    }
    for (uint32_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        if (strlen(option->name) == bytes && strncmp(option->name, name, bytes) == 0) {
            return option;
        }
    }
    return NULL;
}

bool cli_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 0 || value > 1000000000000LL) {
        return false;
    }
    *out = value;
    return true;
}

bool cli_real(const char *text, double least, double most, double *out)
{
    char *end;
    double value = strtod(text, &end);
    bool good = end != text && *end == '\0' && value >= least && value <= most;
    *out = good ? value : *out;
    return good;
}

enum { DOLLAR_DECIMALS = 6 };

enum status cli_dollars(const char *option, const char *text, int64_t least_uusd, int64_t most_uusd,
                        int64_t *uusd, struct error *error)
{
    if (text == NULL) {
        return STATUS_OK;
    }
    int64_t amount = 0;
    int decimals = -1; /* behind a point */
    bool good = text[0] != '\0' && text[0] != '.';
    for (const char *at = text; good && *at != '\0'; at++) {
        if (*at == '.' && decimals < 0 && at[1] != '\0') {
            decimals = 0;
            continue;
        }
        good = *at >= '0' && *at <= '9' && decimals < DOLLAR_DECIMALS && amount <= most_uusd;
        amount = good ? amount * 10 + (*at - '0') : amount;
        decimals += decimals >= 0;
    }
    for (int i = decimals > 0 ? decimals : 0; i < DOLLAR_DECIMALS && amount <= most_uusd; i++) {
        amount *= 10;
    }
    if (!good || amount < least_uusd || amount > most_uusd) {
        return error_set(error, STATUS_USAGE,
                         "%s: expected dollars %s %" PRId64
                         ", with at most %d decimals, found \"%.64s\"",
                         option, least_uusd > 0 ? "above 0 and up to" : "from 0 to",
                         most_uusd / UUSD_PER_USD, DOLLAR_DECIMALS, text);
    }
    *uusd = amount;
    return STATUS_OK;
}

size_t cli_name(const char *name, const char *const *names, size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

enum status cli_bounds_check(const struct cli_bounds *bounds, size_t count, struct error *error)
{
    for (const struct cli_bounds *at = bounds; at < bounds + count; at++) {
        if (at->found < at->least || at->found > at->most) {
            return error_set(error, STATUS_USAGE, "%s: expected %lld to %lld, found %lld",
                             at->option, (long long)at->least, (long long)at->most,
                             (long long)at->found);
        }
    }
    return STATUS_OK;
}

/* One line of what is wrong and one of what is right; all options only where somebody asks. */
static int usage_error(const struct cli_command *command, const char *what, const char *which)
{
    text_print(stderr, "swerve %s: %s%s\n", command->name, what, which);
    text_print_lines(stderr, "usage: swerve %s %s   (swerve %s --help for more)\n", command->name,
                     command->usage, command->name);
    return 2;
}

static int number_error(const struct cli_command *command, const char *option, const char *found)
{
    char what[256];
    snprintf(what, sizeof what, "%s: expected a whole number from 0 to 10^12, found \"%.64s\"",
             option, found);
    return usage_error(command, what, "");
}

enum { OPTIONS_MAX = 80 };

/* The option that a word is a slip of, or NULL. */
static const char *nearest_option(const struct cli_command *command, const char *word, size_t bytes)
{
    const char *names[OPTIONS_MAX + 1];
    char name[64];
    for (uint32_t i = 0; i < command->option_count; i++) {
        names[i] = command->options[i].name;
    }
    names[command->option_count] = NULL;
    snprintf(name, sizeof name, "%.*s", (int)bytes, word);
    return bytes < sizeof name ? text_nearest(name, names) : NULL;
}

static int unknown_option(const struct cli_command *command, const char *word, size_t bytes)
{
    const char *nearest = nearest_option(command, word, bytes);
    char what[256];
    char meant[80] = "";
    snprintf(what, sizeof what, "unknown option %.200s", word);
    if (nearest != NULL) {
        snprintf(meant, sizeof meant, "; did you mean %s?", nearest);
    }
    return usage_error(command, what, meant);
}

/* "..:PORT": what no file is called and every address ends in. */
static bool is_address(const char *word)
{
    const char *colon = strrchr(word, ':');
    return word[0] != '-' && colon != NULL && colon[1] != '\0' &&
           strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

/* Whether an option goes with what the command was asked to do. */
static bool goes_with(const struct cli_option *option, const char *verb)
{
    size_t bytes = strlen(verb);
    for (const char *at = option->verbs; at != NULL; at = strchr(at, ' ')) {
        at += at[0] == ' ';
        if (strcspn(at, " ") == bytes && strncmp(at, verb, bytes) == 0) {
            return true;
        }
    }
    return option->verbs == NULL;
}

/* Handles argv[*index], which starts with '-'; may consume the next word. given[OPTIONS_MAX]. */
static int take_option(const struct cli_command *command, int argc, char **argv, int *index,
                       bool *given)
{
    const char *word = argv[*index];
    const char *equals = strchr(word, '=');
    size_t bytes = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const struct cli_option *option = find_option(command, word, bytes);
    if (option == NULL) {
        return unknown_option(command, word, bytes);
    }
    bool again = given[option - command->options];
    given[option - command->options] = true;
    if (option->flag != NULL) {
        if (equals != NULL) {
            return usage_error(command, "takes no value: ", option->name);
        }
        *option->flag = true;
        return 0;
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (value == NULL && option->implied != NULL &&
        (*index + 1 >= argc || !is_address(argv[*index + 1]))) {
        value = option->implied;
    }
    if (value == NULL) {
        if (*index + 1 >= argc) {
            return usage_error(command, "needs a value: ", option->name);
        }
        value = argv[++*index];
    }
    if (again && option->texts == NULL) {
        text_print(stderr, "swerve %s: warning: %s is given twice; %s counts\n", command->name,
                   option->name, value);
    }
    if (option->text != NULL) {
        *option->text = value;
        return 0;
    }
    if (option->texts != NULL) {
        if (option->texts->count == option->texts->max) {
            return usage_error(command, "given too often: ", option->name);
        }
        option->texts->values[option->texts->count++] = value;
        return 0;
    }
    CHECK(option->number != NULL);
    if (!cli_number(value, option->number)) {
        return number_error(command, option->name, value);
    }
    return 0;
}

int cli_parse(const struct cli_command *command, int argc, char **argv, const char **arguments,
              uint32_t *argument_count, bool *help)
{
    uint32_t count = 0;
    bool options = true;
    bool given[OPTIONS_MAX] = {false};
    CHECK(command->option_count <= OPTIONS_MAX);
    *help = false;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            print_usage(command, stdout);
            *help = true;
            return 0;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            int code = take_option(command, argc, argv, &i, given);
            if (code != 0) {
                return code;
            }
        } else if (count == command->argument_max) {
            return usage_error(command, "one argument too many: ", argv[i]);
        } else {
            arguments[count++] = argv[i];
        }
    }
    if (count < command->argument_min) {
        return usage_error(command, "too few arguments", "");
    }
    for (uint32_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        if (given[i] && !goes_with(option, count > 0 ? arguments[0] : "")) {
            char what[96];
            snprintf(what, sizeof what, "%.32s goes with %.40s alone", option->name, option->verbs);
            return usage_error(command, what, "");
        }
    }
    if (argument_count != NULL) {
        *argument_count = count;
    }
    return 0;
}

int cli_fail(const struct error *error)
{
    text_print_lines(stderr, "swerve: %s\n", error->text);
    return status_exit_code(error->status);
}
