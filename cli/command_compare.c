/*
 * swerve compare: two planners, models or revisions that drove the same scenarios (report/compare).
 *
 * swerve baseline: names for the runs that others are compared with, kept as labels of suites.
 *
 * swerve tag: tags of runs that have been sent already; `run --tag` sets them with the run.
 */
#include "cli/cli.h"
#include "cli/label/label_options.h"
#include "report/compare/compare.h"

#include "base/file.h"
#include "base/text.h"
#include "store/api/label_pages.h"
#include "store/api/store_url.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUITES_LOOKED_AT = 100 };

struct compare_options {
    const char *store_url; /* NULL: A and B are stores */
    const char *suite;
    const char *report;
    const char *summary; /* Markdown */
    const char *junit;
    const char *margin_text;
    struct compare_limits limits;
    bool gate;
    bool json;
};

/* A side and where it comes from. */
struct named_side {
    const char *name; /* as given */
    struct compare_side side;
    bool before; /* both have one name: this is the run, or the planner's version, before */
    char planner[LIMIT_SPEC_BYTES]; /* "": the suite's only one */
    struct store *opened;           /* to be closed here */
};

/* The store of a name that --store does not explain. */
static enum status expect_store(const char *name, struct error *error)
{
    struct error ignored;
    enum store_url_kind kind;
    if (access(name, F_OK) == 0 ||
        (store_url_kind(name, &kind, &ignored) == STATUS_OK && kind != STORE_URL_PATH)) {
        return STATUS_OK;
    }
    /* No path and no ending: the id of a suite. */
    if (strchr(name, ':') != NULL || strpbrk(name, "/.") == NULL) {
        return error_set(error, STATUS_USAGE,
                         "\"%s\": expected a store's path or URL; planners and suites of a store "
                         "are compared with --store URL",
                         name);
    }
    return error_set(error, STATUS_STORE,
                     "store %s: expected a database, found no such file; suites and planners of a "
                     "store are compared with --store URL",
                     name);
}

/* Whether the planner's drives in the suite are of another version of it than `hash`, which is
 * theirs then; "": none before. */
static enum status is_other_version(struct store *store, const char *suite, const char *planner,
                                    char hash[SHA256_HEX_BYTES], bool *other, struct error *error)
{
    struct store_outcome_filter filter = {.limit = 1};
    struct outcome *first = malloc(sizeof *first);
    uint32_t count = 1;
    TRY(memory_check(first, error, "compare: out of memory"));
    snprintf(filter.suite_id, sizeof filter.suite_id, "%s", suite);
    enum status status = STATUS_OK;
    *other = false;
    while (status == STATUS_OK && count > 0) {
        status = store->ops->outcomes(store, &filter, first, &count, error);
        filter.after_id = first->id;
        if (status == STATUS_OK && count > 0 && strcmp(first->planner, planner) == 0) {
            *other = strcmp(first->planner_hash, hash) != 0;
            memcpy(hash, first->planner_hash, SHA256_HEX_BYTES);
            break;
        }
    }
    free(first);
    return status;
}

/* The newest suite that this planner drove, or several planners; with `before` the newest one that
 * an earlier version of it did. "": none of the newest has. Each run of a file with another planner
 * is a suite of its own. */
static enum status suite_of_planner(struct store *store, const char *planner, bool before,
                                    char out[LIMIT_ID_BYTES], struct error *error)
{
    char hash[SHA256_HEX_BYTES] = "";
    char(*ids)[LIMIT_ID_BYTES] = calloc(SUITES_LOOKED_AT, sizeof *ids);
    uint32_t count = 0;
    TRY(memory_check(ids, error, "compare: out of memory"));
    enum status status = store->ops->suites(store, ids, SUITES_LOOKED_AT, &count, error);
    out[0] = '\0';
    for (uint32_t i = 0; status == STATUS_OK && i < count && out[0] == '\0'; i++) {
        struct store_suite_status suite;
        status = store->ops->suite_status(store, ids[i], &suite, error);
        bool drove =
            status == STATUS_OK && (suite.planner_count > 1 || strcmp(suite.planner, planner) == 0);
        bool newest = hash[0] == '\0';
        bool other = false;
        if (drove && before) {
            status = is_other_version(store, ids[i], planner, hash, &other, error);
        }
        if (drove && (!before || (other && !newest))) {
            memcpy(out, ids[i], LIMIT_ID_BYTES);
        }
    }
    free(ids);
    return status;
}

/* The newest run of that name, or the one before it; "": it is no run's. */
static enum status find_run(struct store *store, struct named_side *named, struct error *error)
{
    char ids[2][LIMIT_ID_BYTES];
    uint32_t count = 0;
    TRY(cli_suites_named(store, named->name, ids, 2, &count, error));
    if (count > 0 && named->before && count < 2) {
        return error_set(error, STATUS_USAGE,
                         "%s: A and B are the same: expected two runs of this name, found %s alone",
                         named->name, ids[0]);
    }
    snprintf(named->side.suite_id, sizeof named->side.suite_id, "%s",
             count > 0 ? ids[named->before ? 1 : 0] : "");
    return STATUS_OK;
}

/* Meaning of a name: a store, or in --store a suite, or a planner of --suite. */
static enum status find_side(const struct compare_options *options, struct store *shared,
                             struct named_side *named, struct error *error)
{
    struct compare_side *side = &named->side;
    if (shared == NULL) {
        TRY(expect_store(named->name, error));
        TRY(cli_store_open(named->name, &named->opened, error));
        side->store = named->opened;
        side->store_url = named->name;
    } else {
        side->store = shared;
        side->store_url = cli_store_url(options->store_url);
        TRY(find_run(shared, named, error));
        if (side->suite_id[0] != '\0') {
            return STATUS_OK;
        }
        snprintf(named->planner, sizeof named->planner, "%s", named->name);
        if (options->suite == NULL) {
            TRY(suite_of_planner(shared, named->planner, named->before, side->suite_id, error));
            if (side->suite_id[0] != '\0') {
                return STATUS_OK;
            }
        }
        if (named->before) {
            return error_set(error, STATUS_USAGE,
                             "%s: A and B are the same: expected two versions of this planner%s, "
                             "found one%s",
                             named->name, options->suite == NULL ? " in the newest suites" : "",
                             options->suite == NULL ? "" : "; leave --suite out");
        }
    }
    return cli_suite_id(side->store, side->store_url, options->suite, side->suite_id, error);
}

static enum status load_side(const struct compare_options *options, struct store *shared,
                             struct named_side *named, struct error *error)
{
    TRY(find_side(options, shared, named, error));
    const char *planner = named->planner[0] != '\0' ? named->planner : NULL;
    enum status status = compare_side_load(&named->side, planner, error);
    if (status == STATUS_NOT_FOUND && planner != NULL && options->suite == NULL) {
        return error_prefix(error, "%s: no suite, run or baseline has this name", planner);
    }
    return status;
}

/* The form of one of the files for a CI system. */
typedef void write_form(const struct compare *compare, const char *regression, FILE *out);

static void write_junit(const struct compare *compare, const char *regression, FILE *out)
{
    (void)regression;
    compare_junit(compare, out);
}

static enum status write_file(const struct compare *compare, const char *regression,
                              const char *path, write_form *form, struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    if (path == NULL) {
        return STATUS_OK;
    }
    FILE *out = open_memstream(&text, &bytes);
    TRY(memory_check(out, error, "compare: out of memory"));
    form(compare, regression, out);
    enum status status = fclose(out) == 0
                             ? file_replace(path, text, bytes, 0644, error)
                             : error_set(error, STATUS_NO_MEMORY, "compare: out of memory");
    free(text);
    return status;
}

static enum status show(const struct compare_options *options, const struct compare *compare,
                        struct error *error)
{
    char regression[COMPARE_REGRESSION_BYTES];
    if (options->report != NULL) {
        TRY(compare_html(compare, options->report, error));
    }
    compare_regression(compare, &options->limits, regression);
    TRY(write_file(compare, regression, options->summary, compare_markdown, error));
    TRY(write_file(compare, regression, options->junit, write_junit, error));
    if (options->json) {
        json_t *json = compare_json(compare);
        json_object_set_new(json, "regression", json_string(regression));
        TRY(cli_write_json(json, error));
    } else {
        compare_print(compare, stdout);
    }
    if (!options->gate) {
        return STATUS_OK;
    }
    if (regression[0] != '\0') {
        return error_set(error, STATUS_MISMATCH, "regression: %s", regression);
    }
    if (compare->all.mains == 0) {
        return error_set(error, STATUS_MISMATCH, "no main line could be compared");
    }
    if (!options->json) {
        text_print(stdout, "no regression\n");
    }
    return STATUS_OK;
}

/* Sides of the stores that they name, or of the one they share. */
static enum status compare_sides(const struct compare_options *options, struct store *shared,
                                 const char *const names[2], struct error *error)
{
    struct compare compare = {0};
    struct named_side *sides = calloc(2, sizeof *sides);
    TRY(memory_check(sides, error, "compare: out of memory"));
    enum status status = STATUS_OK;
    for (int i = 0; status == STATUS_OK && i < 2; i++) {
        sides[i].name = names[i];
        sides[i].before = i == 0 && shared != NULL && strcmp(names[0], names[1]) == 0;
        status = load_side(options, shared, &sides[i], error);
    }
    THEN(status, compare_make(&sides[0].side, &sides[1].side, &compare, error));
    if (status == STATUS_OK) {
        status = show(options, &compare, error);
        compare_finish(&compare);
    }
    for (int i = 0; i < 2; i++) {
        compare_side_finish(&sides[i].side);
        cli_store_close(sides[i].opened);
    }
    free(sides);
    return status;
}

static enum status run_compare(const struct compare_options *options, const char *const names[2],
                               struct error *error)
{
    struct store *shared = NULL;
    if (options->store_url != NULL) {
        TRY(cli_store_open(options->store_url, &shared, error));
    }
    enum status status = compare_sides(options, shared, names, error);
    cli_store_close(shared);
    return status;
}

static enum status read_margin(struct compare_options *options, struct error *error)
{
    const char *text = options->margin_text;
    options->limits.margin = NAN;
    return text == NULL || cli_real(text, 0, 1, &options->limits.margin)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--margin: expected a share from 0 to 1, found \"%s\"", text);
}

/* Parts of a comparison that are written and judged; `which`: verbs that have it, NULL: any. */
#define COMPARE_OPTION_ROWS(options, which)                                                        \
    {"--report", "FILE", "HTML with the frames of both sides", .text = &(options).report,          \
     .verbs = (which)},                                                                            \
        {"--summary", "FILE.md", "Markdown for a CI page or a comment",                            \
         .text = &(options).summary, .verbs = (which)},                                            \
        {"--junit", "FILE.xml", "JUnit for a CI system: what broke is a failure",                  \
         .text = &(options).junit, .verbs = (which)},                                              \
        {"--fail-on-regression", NULL,                                                             \
         "exit 1 when a main line passes with A and not with B, or has no result there",           \
         .flag = &(options).gate, .verbs = (which)},                                               \
        {"--margin", "SHARE", "with it: what breaks counts when the rate of passes falls by more", \
         .text = &(options).margin_text, .verbs = (which)},                                        \
    {                                                                                              \
        "--allow-invalid", "N", "with it: as many passes of A may have no result with B (0)",      \
            .number = &(options).limits.allow_invalid, .verbs = (which)                            \
    }

static enum status check_limits(struct compare_options *options, struct error *error)
{
    TRY(read_margin(options, error));
    if (!options->gate && (options->margin_text != NULL || options->limits.allow_invalid > 0)) {
        return error_set(error, STATUS_USAGE, "%s: expected --fail-on-regression with it",
                         options->margin_text != NULL ? "--margin" : "--allow-invalid");
    }
    return STATUS_OK;
}

int command_compare(int argc, char **argv)
{
    struct compare_options options = {0};
    const struct cli_option rows[] = {
        {"--store", "URL",
         "A and B are suites, baselines or runs of this store, or planners of --suite; of one name "
         "twice A is the one before",
         .text = &options.store_url},
        {"--suite", "ID", "of the stores, or of the planners (else the newest that it drove)",
         .text = &options.suite},
        {"--json", NULL, "print one JSON object", .flag = &options.json},
        COMPARE_OPTION_ROWS(options, NULL),
    };
    const struct cli_command command = {
        "compare",
        "A B [--store URL] [options]",
        "What B, a store, suite or planner, does better and worse than A.",
        CLI_ROWS(rows, 2, 2),
    };
    const char *names[2];
    struct error error;
    CLI_PARSE(&command, argc, argv, names, NULL);
    enum status status = check_limits(&options, &error);
    THEN(status, run_compare(&options, names, &error));
    return status == STATUS_OK ? 0 : cli_fail(&error);
}

/* ---- baselines ---- */

struct baseline_names {
    char text[512]; /* those that there are, ", " between them, as far as they fit */
};

static enum status note_baseline(void *context, const struct label *label, struct error *error)
{
    struct baseline_names *names = context;
    size_t used = strlen(names->text);
    (void)error;
    snprintf(names->text + used, sizeof names->text - used, "%s%s", used > 0 ? ", " : "",
             label->text);
    return STATUS_OK;
}

/* The baseline's suite, or what baselines there are instead. */
static enum status expect_baseline(struct store *store, const char *name, char id[LIMIT_ID_BYTES],
                                   struct error *error)
{
    struct baseline_names names = {.text = ""};
    TRY(cli_baseline_find(store, name, id, error));
    if (id[0] != '\0') {
        return STATUS_OK;
    }
    TRY(labels_each(store, LABEL_BASELINE, note_baseline, &names, error));
    return error_set(error, STATUS_NOT_FOUND,
                     "baseline %s: the store has none of that name; expected %s", name,
                     names.text[0] != '\0' ? names.text : "one that \"swerve baseline set\" made");
}

static enum status set_baseline(const struct compare_options *options, struct store *store,
                                const char *name, const char *run, struct error *error)
{
    char before[LIMIT_ID_BYTES];
    char id[LIMIT_ID_BYTES];
    TRY(label_name_check("baseline", name, error));
    TRY(cli_suite_id(store, cli_store_url(options->store_url), run, id, error));
    TRY(cli_baseline_find(store, name, before, error));
    TRY(label_send(store, id, LABEL_BASELINE, name, error));
    if (options->json) {
        return cli_write_json(json_pack("{s:s, s:s, s:o}", "baseline", name, "suite", id, "before",
                                        before[0] != '\0' ? json_string(before) : json_null()),
                              error);
    }
    bool moved = before[0] != '\0' && strcmp(before, id) != 0;
    text_print(stdout, "baseline %s: %s%s%s%s\n", name, id, moved ? " (was " : "",
               moved ? before : "", moved ? ")" : "");
    return STATUS_OK;
}

/* Takes the name from its suite, whose results stay. */
static enum status remove_baseline(const struct compare_options *options, struct store *store,
                                   const char *name, struct error *error)
{
    struct label label = {.kind = LABEL_BASELINE};
    TRY(expect_baseline(store, name, label.suite, error));
    snprintf(label.text, sizeof label.text, "%s", name);
    TRY(store->ops->label_drop(store, &label, error));
    if (options->json) {
        return cli_write_json(
            json_pack("{s:s, s:n, s:s}", "baseline", name, "suite", "before", label.suite), error);
    }
    text_print(stdout, "baseline %s: gone (was %s)\n", name, label.suite);
    return STATUS_OK;
}

struct baseline_list {
    const char *name; /* NULL: all */
    json_t *rows;     /* NULL: they are printed */
};

static enum status show_baseline(void *context, const struct label *label, struct error *error)
{
    const struct baseline_list *list = context;
    char date[CLI_DATE_BYTES];
    (void)error;
    if (list->name != NULL && strcmp(label->text, list->name) != 0) {
        return STATUS_OK;
    }
    if (list->rows != NULL) {
        json_array_append_new(list->rows,
                              json_pack("{s:s, s:s, s:I}", "baseline", label->text, "suite",
                                        label->suite, "set_s", (json_int_t)label->at_s));
    } else {
        text_print(stdout, "%-24s %-40s set %s\n", label->text, label->suite,
                   cli_date(label->at_s, date));
    }
    return STATUS_OK;
}

/* The baselines of the store, or the one of that name. */
static enum status show_baselines(const struct compare_options *options, struct store *store,
                                  const char *name, struct error *error)
{
    char id[LIMIT_ID_BYTES];
    struct baseline_list list = {name, options->json ? json_array() : NULL};
    enum status status = name != NULL ? expect_baseline(store, name, id, error) : STATUS_OK;
    THEN(status, labels_each(store, LABEL_BASELINE, show_baseline, &list, error));
    if (status == STATUS_OK && options->json) {
        status = cli_write_json(json_pack("{s:O}", "baselines", list.rows), error);
    }
    json_decref(list.rows);
    return status;
}

/* As `compare`, whose A is the baseline; B: a suite or run, NULL: the newest suite. */
static enum status compare_baseline(const struct compare_options *options, struct store *store,
                                    const char *name, const char *run, struct error *error)
{
    char a[LIMIT_ID_BYTES];
    char b[LIMIT_ID_BYTES];
    TRY(expect_baseline(store, name, a, error));
    TRY(cli_suite_id(store, cli_store_url(options->store_url), run, b, error));
    if (strcmp(a, b) == 0) {
        return error_set(error, STATUS_USAGE,
                         "baseline %s: %s is the baseline itself: expected another run", name, a);
    }
    const char *const names[2] = {a, b};
    return compare_sides(options, store, names, error);
}

int command_baseline(int argc, char **argv)
{
    struct compare_options options = {0};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &options.store_url},
        {"--json", NULL, "print one JSON object", .flag = &options.json},
        COMPARE_OPTION_ROWS(options, "compare"),
    };
    const struct cli_command command = {
        "baseline",
        "set NAME [RUN] | show [NAME] | rm NAME | compare NAME [RUN] [--store URL] [options]",
        "Names for runs that later ones are compared with. set names a suite, or the newest run "
        "of\n"
        "that name (the newest of all); a name that another suite has moves. compare is that of "
        "the\n"
        "baseline, A, with a run, B (the newest). rm takes the name away; the run stays.",
        CLI_ROWS(rows, 1, 3),
    };
    const char *words[3] = {NULL, NULL, NULL};
    struct error error;
    struct store *store = NULL;
    CLI_PARSE(&command, argc, argv, words, NULL);
    bool set = strcmp(words[0], "set") == 0;
    bool compares = strcmp(words[0], "compare") == 0;
    bool removes = strcmp(words[0], "rm") == 0 && words[1] != NULL && words[2] == NULL;
    bool shows = strcmp(words[0], "show") == 0 && words[2] == NULL;
    enum status status =
        shows || removes || ((set || compares) && words[1] != NULL)
            ? check_limits(&options, &error)
            : error_set(&error, STATUS_USAGE, "baseline: expected %s", command.usage);
    THEN(status, cli_store_open(options.store_url, &store, &error));
    if (status == STATUS_OK) {
        status = set        ? set_baseline(&options, store, words[1], words[2], &error)
                 : compares ? compare_baseline(&options, store, words[1], words[2], &error)
                 : removes  ? remove_baseline(&options, store, words[1], &error)
                            : show_baselines(&options, store, words[1], &error);
    }
    cli_store_close(store);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}

/* ---- tags ---- */

static enum status change_tag(struct store *store, const char *suite, const char *name, bool adds,
                              struct error *error)
{
    struct label label = {.kind = LABEL_TAG};
    if (adds) {
        return label_send(store, suite, LABEL_TAG, name, error);
    }
    snprintf(label.suite, sizeof label.suite, "%s", suite);
    snprintf(label.text, sizeof label.text, "%s", name);
    return store->ops->label_drop(store, &label, error);
}

int command_tag(int argc, char **argv)
{
    const char *url = NULL;
    bool json = false;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url},
        {"--json", NULL, "print one JSON object", .flag = &json},
    };
    const struct cli_command command = {
        "tag",
        "add NAME [RUN] | rm NAME [RUN] [--store URL]",
        "Tags by which \"status --tag\" finds runs, put on one later, or taken away again. RUN: a\n"
        "suite, or a name of runs, whose newest is meant (the newest of all).",
        CLI_ROWS(rows, 2, 3),
    };
    const char *words[3] = {NULL, NULL, NULL};
    char id[LIMIT_ID_BYTES];
    struct error error;
    struct store *store = NULL;
    struct store_suite_status after = {.tags = ""};
    CLI_PARSE(&command, argc, argv, words, NULL);
    bool adds = strcmp(words[0], "add") == 0;
    enum status status = adds || strcmp(words[0], "rm") == 0
                             ? label_name_check("tag", words[1], &error)
                             : error_set(&error, STATUS_USAGE, "tag: expected %s", command.usage);
    THEN(status, cli_store_open(url, &store, &error));
    THEN(status, cli_suite_id(store, cli_store_url(url), words[2], id, &error));
    THEN(status, change_tag(store, id, words[1], adds, &error));
    THEN(status, store->ops->suite_status(store, id, &after, &error));
    cli_store_close(store);
    if (status == STATUS_OK && json) {
        status = cli_write_json(json_pack("{s:s, s:s}", "suite", id, "tags", after.tags), &error);
    } else if (status == STATUS_OK) {
        text_print(stdout, "%s: %s\n", id, after.tags[0] != '\0' ? after.tags : "no tags");
    }
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
