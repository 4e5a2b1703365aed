/*
 * swerve risk: events per distance and time, from a suite's outcomes and a file of exposures; and
 * how many more jobs it takes to know them better.
 */
#include "cli/cli.h"
#include "report/risk/risk.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRECISION_DEFAULT 0.3

struct risk_options {
    const char *url;
    const char *suite; /* in the store */
    const char *exposure;
    const char *event_text;
    const char *precision_text;
    const char *plan; /* suite file to write */
    const char *from; /* suite file that was driven */
    const char *planner;
    bool json;
    enum risk_event event;
    double precision; /* 0: no plan is asked for */
};

static enum status settle(struct risk_options *options, struct error *error)
{
    options->event = RISK_CONTACT;
    if (options->exposure == NULL) {
        return error_set(error, STATUS_USAGE,
                         "risk: expected --exposure FILE, such as exposure_us2004 of the library");
    }
    if (options->event_text != NULL) {
        options->event =
            (enum risk_event)cli_name(options->event_text, risk_event_names, RISK_EVENT_COUNT);
    }
    if (options->event == RISK_EVENT_COUNT) {
        return error_set(error, STATUS_USAGE,
                         "--event: expected fail, contact, at_fault, vru_severe or fatal; found %s",
                         options->event_text);
    }
    if ((options->plan == NULL) != (options->from == NULL)) {
        return error_set(error, STATUS_USAGE,
                         "risk: expected --plan FILE and --from SUITE together");
    }
    options->precision = options->plan != NULL ? PRECISION_DEFAULT : 0;
    if (options->precision_text != NULL &&
        !cli_real(options->precision_text, 0.01, 10, &options->precision)) {
        return error_set(error, STATUS_USAGE, "--precision: expected 0.01 to 10, found %s",
                         options->precision_text);
    }
    return STATUS_OK;
}

static enum status write_plan(const struct risk_options *options, const struct risk_study *study,
                              struct error *error)
{
    struct suite *suite = NULL;
    uint32_t entries = 0;
    double unvaried = 0;
    enum status status = cli_suite_load(options->from, &suite, error);
    THEN(status, risk_plan_write(study, suite, options->plan, &entries, &unvaried, error));
    if (status == STATUS_OK && !options->json) {
        text_print(stdout, "%s: %u scenarios", entries > 0 ? options->plan : "nothing to write",
                   entries);
        if (unvaried > 0) {
            text_print(stdout,
                       "; %.0f more need scenarios whose parameters the suite does not vary",
                       unvaried);
        }
        text_print(stdout, "\n");
    }
    suite_destroy(suite);
    return status;
}

static bool is_asked_for(const struct risk_options *options, const struct risk_study *study)
{
    return options->planner == NULL || strcmp(options->planner, study->planner) == 0;
}

static enum status show(const struct risk_options *options, const struct summary *summary,
                        struct risk_study *studies, uint32_t count, json_t *json,
                        struct error *error)
{
    uint32_t shown = 0;
    for (uint32_t s = 0; s < count; s++) {
        if (!is_asked_for(options, &studies[s])) {
            continue;
        }
        studies[s].plan_event = options->event;
        if (options->precision > 0) {
            TRY(risk_study_plan(&studies[s], options->event, options->precision, error));
        }
        if (options->json) {
            json_array_append_new(json, risk_study_json(&studies[s], summary));
        } else {
            if (shown > 0) {
                text_print(stdout, "\n");
            }
            risk_study_print(&studies[s], summary, stdout);
        }
        if (options->plan != NULL && shown > 0) {
            return error_set(error, STATUS_USAGE,
                             "--plan: expected one planner and tier, found several: --planner "
                             "names one");
        }
        if (options->plan != NULL) {
            TRY(write_plan(options, &studies[s], error));
        }
        shown++;
    }
    return shown > 0 ? STATUS_OK
                     : error_set(error, STATUS_NOT_FOUND, "suite %s: no main line%s%s",
                                 options->suite, options->planner != NULL ? " of " : "",
                                 options->planner != NULL ? options->planner : "");
}

static enum status load_and_show(const struct risk_options *options, struct store *store,
                                 json_t *json, struct error *error)
{
    static struct summary summary;
    struct exposure_file *file = NULL;
    struct risk_study *studies = NULL;
    uint32_t count = 0;
    char found[LIMIT_PATH_BYTES];
    TRY(exposure_load(cli_suite_path(options->exposure, found), &file, error));
    enum status status = summary_load(store, options->suite, &summary, error);
    if (status == STATUS_OK) {
        status = risk_studies_load(store, &summary, file, &studies, &count, error);
        THEN(status, show(options, &summary, studies, count, json, error));
        risk_studies_free(studies, count);
        summary_finish(&summary);
    }
    exposure_destroy(file);
    return status;
}

int command_risk(int argc, char **argv)
{
    struct risk_options options = {0};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &options.url},
        {"--exposure", "FILE", "how often traffic brings the suite's situations about",
         .text = &options.exposure},
        {"--planner", "SPEC", "of the suite's planners this one alone", .text = &options.planner},
        {"--event", "NAME",
         "fail, contact (the default), at_fault, vru_severe, fatal: what is "
         "broken down and planned for",
         .text = &options.event_text},
        {"--precision", "X",
         "how many more jobs until half the interval is X times the value (0.3)",
         .text = &options.precision_text},
        {"--plan", "FILE", "write these jobs as a suite, beside that of --from or above it",
         .text = &options.plan},
        {"--from", "SUITE", "the suite file that was driven", .text = &options.from},
        {"--json", NULL, "print one JSON object", .flag = &options.json},
    };
    const struct cli_command command = {
        "risk",
        "[SUITE] --store URL --exposure FILE",
        "Events per distance and time from a suite's outcomes (the newest) and exposures.",
        CLI_ROWS(rows, 0, 1),
    };
    char id[LIMIT_ID_BYTES] = "";
    struct error error;
    struct store *store = NULL;
    int code = 0;
    CLI_PARSE(&command, argc, argv, &options.suite, NULL);
    json_t *json = json_array();
    enum status status = settle(&options, &error);
    THEN(status, cli_store_open(options.url, &store, &error));
    THEN(status, cli_suite_id(store, cli_store_url(options.url), options.suite, id, &error));
    options.suite = id;
    THEN(status, load_and_show(&options, store, json, &error));
    if (status != STATUS_OK) {
        code = cli_fail(&error);
    } else if (options.json) {
        code = cli_print_json(json_pack("{s:s, s:O}", "suite", options.suite, "studies", json));
    }
    json_decref(json);
    cli_store_close(store);
    return code;
}
