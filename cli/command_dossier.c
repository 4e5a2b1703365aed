/*
 * swerve dossier: what a suite and a store can say for a safety argument, as Markdown.
 */
#include "cli/cli.h"
#include "report/dossier/dossier.h"
#include "worker/run/revision.h"

#include "base/file.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

struct dossier_options {
    const char *path;
    const char *store_url;
    const char *suite; /* in the store; NULL: the newest */
    const char *protocols;
    const char *exposure; /* NULL: no chapter on risk */
    const char *items;    /* register of hazards and requirements; NULL: no chapter on it */
    const char *output;   /* NULL: stdout */
    bool html;
};

/* Exposures and what follows from them. */
struct dossier_risk {
    struct exposure_file *file;
    struct risk_study *studies;
    uint32_t count;
};

static void risk_finish(struct dossier_risk *risk)
{
    risk_studies_free(risk->studies, risk->count);
    exposure_destroy(risk->file);
}

static enum status read_risk(const struct dossier_options *options, struct store *store,
                             const struct summary *summary, struct dossier_risk *risk,
                             struct error *error)
{
    char found[LIMIT_PATH_BYTES];
    TRY(exposure_load(cli_suite_path(options->exposure, found), &risk->file, error));
    TRY(risk_studies_load(store, summary, risk->file, &risk->studies, &risk->count, error));
    for (uint32_t s = 0; s < risk->count; s++) {
        risk->studies[s].plan_event = RISK_CONTACT;
    }
    return STATUS_OK;
}

/* The suite in the store that was asked for, or the newest. */
static enum status read_results(const struct dossier_options *options, char id[LIMIT_ID_BYTES],
                                struct summary *summary, struct dossier_risk *risk,
                                struct error *error)
{
    struct store *store = NULL;
    TRY(cli_store_open(options->store_url, &store, error));
    enum status status = cli_suite_id(store, options->store_url, options->suite, id, error);
    THEN(status, summary_load(store, id, summary, error));
    if (options->exposure != NULL) {
        THEN(status, read_risk(options, store, summary, risk, error));
    }
    store->ops->close(store);
    return status;
}

static enum status write_text(const struct dossier_options *options,
                              struct dossier_request *request, struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    request->out = open_memstream(&text, &bytes);
    TRY(memory_check(request->out, error, "dossier: out of memory"));
    enum status status = dossier_write(request, error);
    if (fclose(request->out) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_NO_MEMORY, "dossier: out of memory");
    }
    if (status == STATUS_OK && options->html) {
        char *page = NULL;
        status = dossier_html("Swerve: credibility dossier", text, &page, &bytes, error);
        free(text);
        text = page;
    }
    THEN(status, cli_put_text(options->output, text, bytes, error));
    free(text);
    return status;
}

/* Hazards and requirements against the suite. */
struct dossier_trace {
    struct trace_register *items;
    struct trace_matrix matrix;
};

static enum status read_trace(const struct dossier_options *options, const struct suite *suite,
                              const struct summary *summary, struct dossier_trace *trace,
                              struct error *error)
{
    char found[LIMIT_PATH_BYTES];
    TRY(trace_register_load(cli_suite_path(options->items, found), &trace->items, error));
    return trace_matrix_make(trace->items, suite, summary, &trace->matrix, error);
}

/* Now, or the time that reproducible builds set (SOURCE_DATE_EPOCH): then equal inputs give equal
 * bytes. */
static int64_t written_s(void)
{
    const char *set = getenv("SOURCE_DATE_EPOCH");
    char *end = NULL;
    long long seconds = set != NULL ? strtoll(set, &end, 10) : 0;
    return end != NULL && end != set && *end == '\0' && seconds > 0 ? seconds : (int64_t)time(NULL);
}

static enum status write_dossier(const struct dossier_options *options, struct error *error)
{
    static struct summary summary;
    char store_suite[LIMIT_ID_BYTES] = "";
    struct suite *suite = NULL;
    struct coverage *coverage = NULL;
    struct protocol_register *protocols = NULL;
    struct dossier_risk risk = {0};
    struct dossier_trace trace = {0};
    enum status status = cli_suite_load(options->path, &suite, error);
    THEN(status, coverage_load(suite, &coverage, error));
    if (options->protocols != NULL) {
        THEN(status, protocol_register_load(options->protocols, &protocols, error));
    }
    bool read = status == STATUS_OK && options->store_url != NULL;
    if (read) {
        status = read_results(options, store_suite, &summary, &risk, error);
    }
    if (options->items != NULL) {
        THEN(status, read_trace(options, suite, read ? &summary : NULL, &trace, error));
    }
    if (status == STATUS_OK) {
        struct dossier_request request = {
            .suite_path = options->path,
            .suite = suite,
            .coverage = coverage,
            .protocols = protocols,
            .store_url = options->store_url,
            .store_suite = store_suite,
            .summary = read ? &summary : NULL,
            .studies = risk.studies,
            .study_count = risk.count,
            .traceability = trace.items != NULL ? &trace.matrix : NULL,
            .version = SWERVE_VERSION,
            .revision = revision_hash,
            .written_s = written_s(),
        };
        status = write_text(options, &request, error);
    }
    risk_finish(&risk);
    trace_matrix_finish(&trace.matrix);
    trace_register_destroy(trace.items);
    if (read) {
        summary_finish(&summary);
    }
    protocol_register_destroy(protocols);
    coverage_destroy(coverage);
    suite_destroy(suite);
    return status;
}

int command_dossier(int argc, char **argv)
{
    struct dossier_options options = {0};
    const struct cli_option rows[] = {
        {"--store", "URL", "results of this job store; without it the dossier has none",
         .text = &options.store_url},
        {"--suite", "ID", "of the store's suites (the newest)", .text = &options.suite},
        {"--protocols", "REGISTER", "a chapter on scenarios named after test protocols",
         .text = &options.protocols},
        {"--register", "FILE", "a chapter on hazards, triggering conditions and requirements",
         .text = &options.items},
        {"--exposure", "FILE", "a chapter on risk, from how often traffic brings situations about",
         .text = &options.exposure},
        {"--html", NULL, "a page instead of Markdown", .flag = &options.html},
        {"--output", "FILE", "write there instead of to stdout", .text = &options.output},
    };
    const struct cli_command command = {
        "dossier",
        "SUITE [options]",
        "Writes a credibility dossier of a suite, and of its results in a store.",
        CLI_ROWS(rows, 1, 1),
    };
    struct error error;
    CLI_PARSE(&command, argc, argv, &options.path, NULL);
    if (options.exposure != NULL && options.store_url == NULL) {
        error_set(&error, STATUS_USAGE, "dossier: --exposure weighs results: expected --store");
        return cli_fail(&error);
    }
    return write_dossier(&options, &error) == STATUS_OK ? 0 : cli_fail(&error);
}
