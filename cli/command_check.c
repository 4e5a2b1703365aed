/*
 * swerve check: whether everything in a store fits together (store/keep/keep_check.h). One line per
 * finding; the exit code is 4 when there is a fault, 7 when the store is in use and nothing was
 * looked at. What was found may be signed, and held against what was signed before
 * (store/keep/statement.h).
 */
#include "cli/cli.h"
#include "report/summary.h"
#include "store/keep/keep_check.h"
#include "store/keep/statement.h"
#include "store/log/log_scan.h"
#include "store/postgres/postgres_store.h"
#include "store/sql/ownership.h"

#include "base/text.h"
#include "schemas/json_record.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FINDINGS_MAX = 100000, WAIT_MAX_S = 86400 };

struct check_output {
    bool json;
    json_t *findings;
    /* Keys in PEM; NULL: nothing is signed, or held against what was. */
    const char *sign_key;
    const char *verify_key;
    const char *statement; /* NULL: beside the store */
    struct statement found;
    struct statement said; /* as it was signed */
};

static void on_finding(void *context, const struct store_check_finding *finding)
{
    struct check_output *output = context;
    const char *severity = finding->note ? "note" : "fault";

    if (!output->json) {
        text_print(stdout, "%s: %s: %s [%s]\n", severity, finding->place, finding->text,
                   finding->kind);
        return;
    }
    json_array_append_new(output->findings,
                          json_pack("{s:s, s:s, s:o, s:o}", "severity", severity, "kind",
                                    finding->kind, "place",
                                    json_text_new(finding->place, sizeof finding->place), "text",
                                    json_text_new(finding->text, sizeof finding->text)));
}

static enum status on_suite(void *context, const struct store_check_suite *suite,
                            struct error *error)
{
    struct check_output *output = context;
    return statement_add(&output->found, suite, error);
}

/* Place of the statement, before anything is looked at. */
static enum status statement_path(struct check_output *output, const char *store,
                                  char out[LIMIT_PATH_BYTES], struct error *error)
{
    if (output->sign_key == NULL && output->verify_key == NULL) {
        return output->statement == NULL
                   ? STATUS_OK
                   : error_set(error, STATUS_USAGE,
                               "--statement: expected --sign-key or --verify-key beside it");
    }
    if (output->statement == NULL) {
        if (postgres_store_is_url(store)) {
            return error_set(error, STATUS_USAGE,
                             "expected --statement FILE, since a database has no file beside it");
        }
        if (snprintf(out, LIMIT_PATH_BYTES, "%s.statement", store) >= LIMIT_PATH_BYTES) {
            return error_set(error, STATUS_BAD_INPUT, "%s: the path is too long", store);
        }
        output->statement = out;
    }
    return output->verify_key != NULL
               ? statement_read(output->statement, output->verify_key, &output->said, error)
               : STATUS_OK;
}

/* Holds what was found against what was signed, then signs it. */
static enum status use_keys(struct check_output *output, const struct store_check_options *options,
                            struct store_check_summary *summary, struct error *error)
{
    if (output->verify_key != NULL) {
        statement_compare(&output->said, &output->found, options, summary);
    }
    return output->sign_key != NULL ? statement_sign(&output->found, summary, (int64_t)time(NULL),
                                                     output->sign_key, output->statement, error)
                                    : STATUS_OK;
}

static void finish_keys(const struct check_output *output)
{
    if (output->verify_key != NULL) {
        text_print(stdout, "%s: signed by the key in %s: %zu suite%s\n", output->statement,
                   output->verify_key, output->said.count,
                   summary_plural((int64_t)output->said.count));
    }
    if (output->sign_key != NULL) {
        text_print(stdout, "%s, %s.sig: signed\n", output->statement, output->statement);
    }
}

static int finish_json(const char *path, const struct store_check_summary *summary,
                       struct check_output *output)
{
    char digest[SHA256_HEX_BYTES];
    sha256_to_hex(summary->digest.bytes, digest);
    json_t *json = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:O}", "store", path,
        "faults", (json_int_t)summary->faults, "notes", (json_int_t)summary->notes, "suites",
        (json_int_t)summary->suites, "jobs", (json_int_t)summary->jobs, "attempts",
        (json_int_t)summary->attempts, "outcomes", (json_int_t)summary->outcomes,
        "outcomes_undigested", (json_int_t)summary->outcomes_undigested, "artifacts",
        (json_int_t)summary->artifacts, "artifact_bytes", (json_int_t)summary->artifact_bytes,
        "orphans", (json_int_t)summary->orphans, "let_go", (json_int_t)summary->let_go, "digest",
        digest, "findings", output->findings);
    if (output->statement != NULL) {
        json_object_set_new(json, "statement", json_string(output->statement));
        json_object_set_new(json, "signed", json_boolean(output->sign_key != NULL));
        json_object_set_new(json, "suites_verified", json_integer((json_int_t)output->said.count));
    }
    return cli_print_json(json);
}

static void finish_text(const char *path, const struct store_check_summary *summary,
                        bool skip_artifacts)
{
    char digest[SHA256_HEX_BYTES];
    sha256_to_hex(summary->digest.bytes, digest);
    text_print(stdout,
               "%s: %" PRId64 " suite%s, %" PRId64 " job%s, %" PRId64 " attempt%s, %" PRId64
               " outcome%s (digest %.16s)",
               path, summary->suites, summary_plural(summary->suites), summary->jobs,
               summary_plural(summary->jobs), summary->attempts, summary_plural(summary->attempts),
               summary->outcomes, summary_plural(summary->outcomes), digest);
    if (skip_artifacts) {
        text_print(stdout, ", artifacts not read");
    } else {
        text_print(stdout, ", %" PRId64 " artifact%s of %.1f MB", summary->artifacts,
                   summary_plural(summary->artifacts), (double)summary->artifact_bytes / 1e6);
    }
    if (summary->faults == 0) {
        text_print(stdout, ": everything fits together\n");
    } else {
        text_print(stdout, ": %" PRId64 " fault%s\n", summary->faults,
                   summary_plural(summary->faults));
    }
}

static enum status store_of(const char *given, const char **out, struct error *error)
{
    *out = cli_store_url(given);
    if (postgres_store_is_url(*out)) {
        return STATUS_OK;
    }
    TRY(cli_store_path(given, out, error));
    return cli_store_exists(*out, error);
}

/* Whether a log beside the store holds commits that opening it will discard. A log that has an
 * owner was looked at when the owner opened it, and is being written to. Before SQLite has the file
 * open: closing a descriptor of it would drop SQLite's locks. */
static enum status check_log(const char *path, const struct store_check_options *options,
                             int64_t *faults, struct error *error)
{
    struct log_scan scan;
    struct store_check_finding finding = {.kind = "log"};
    int fd =
        ownership_look(path).owned ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return STATUS_OK; /* store_check says why */
    }
    enum status status = log_scan(path, fd, &scan, error);
    close(fd);
    if (status != STATUS_OK || !log_scan_sentence(&scan, finding.text) ||
        ownership_look(path).owned) { /* by now: what was read may be half of two logs */
        return status;
    }
    finding.note = scan.lost_commits == 0;
    *faults += finding.note ? 0 : 1;
    snprintf(finding.place, sizeof finding.place, "%.120s-wal", path);
    options->found(options->context, &finding);
    return STATUS_OK;
}

/* *code: of a check that was made. */
static enum status check_store(const char *url, const struct store_check_options *options,
                               struct check_output *output, int *code, struct error *error)
{
    char beside[LIMIT_PATH_BYTES];
    struct store_check_summary summary;
    const char *path = NULL;
    int64_t log_faults = 0;
    TRY(store_of(url, &path, error));
    TRY(statement_path(output, path, beside, error));
    output->findings = json_array();
    TRY(memory_check(output->findings, error, "check: out of memory"));
    if (!postgres_store_is_url(path)) {
        TRY(check_log(path, options, &log_faults, error));
    }
    TRY(keep_check(path, options, &summary, error));
    summary.faults += log_faults;
    TRY(use_keys(output, options, &summary, error));
    if (output->json) {
        *code = finish_json(path, &summary, output);
    } else {
        finish_text(path, &summary, options->skip_artifacts);
        finish_keys(output);
    }
    *code = *code != 0 || summary.faults == 0 ? *code : status_exit_code(STATUS_STORE);
    return STATUS_OK;
}

int command_check(int argc, char **argv)
{
    const char *url = NULL;
    int64_t findings_max = 20;
    int64_t wait_s = 10;
    struct check_output output = {.json = false};
    struct store_check_options options = {
        .found = on_finding, .suite = on_suite, .context = &output};
    const struct cli_option rows[] = {
        {"--store", "PATH", "job store, or postgresql://.. ($SWERVE_STORE, else swerve.db)",
         .text = &url},
        {"--skip-artifacts", NULL, "do not read the artifacts", .flag = &options.skip_artifacts},
        {"--findings", "N", "of one kind at most (20)", .number = &findings_max},
        {"--wait", "S", "for a program that has the store to itself (10)", .number = &wait_s},
        {"--sign-key", "PEM", "sign what was found, by an Ed25519 key", .text = &output.sign_key},
        {"--verify-key", "PEM", "hold it against what was signed, by the public key",
         .text = &output.verify_key},
        {"--statement", "FILE", "what is signed; FILE.sig: its signature (STORE.statement)",
         .text = &output.statement},
        {"--json", NULL, "print one JSON object", .flag = &output.json},
    };
    const struct cli_command command = {
        "check",
        "--store PATH",
        "Reads a store and says what in it does not fit together. Changes nothing.",
        rows,
        sizeof rows / sizeof *rows,
        0,
        0,
    };
    const char *argument = NULL;
    struct error error;
    int code = 0;
    CLI_PARSE(&command, argc, argv, &argument, NULL);
    if (findings_max < 1 || findings_max > FINDINGS_MAX) {
        error_set(&error, STATUS_USAGE, "expected --findings 1 to %d", FINDINGS_MAX);
        return cli_fail(&error);
    }
    if (wait_s > WAIT_MAX_S) {
        error_set(&error, STATUS_USAGE, "expected --wait 0 to %d", WAIT_MAX_S);
        return cli_fail(&error);
    }
    options.findings_max = (uint32_t)findings_max;
    options.wait_ms = wait_s * 1000;
    enum status status = check_store(url, &options, &output, &code, &error);
    json_decref(output.findings);
    statement_finish(&output.found);
    statement_finish(&output.said);
    return status == STATUS_OK ? code : cli_fail(&error);
}
