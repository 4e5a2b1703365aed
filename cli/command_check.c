/*
 * swerve check: whether everything in a store fits together (store/keep/keep_check.h). One line per
 * finding; the exit code is 4 when there is a fault, 7 when the store is in use and nothing was
 * looked at.
 */
#include "cli/cli.h"
#include "report/summary.h"
#include "store/keep/keep_check.h"
#include "store/log/log_scan.h"
#include "store/postgres/postgres_store.h"
#include "store/sql/ownership.h"

#include "base/text.h"
#include "schemas/json_record.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FINDINGS_MAX = 100000, WAIT_MAX_S = 86400 };

struct check_output {
    bool json;
    json_t *findings;
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

static int finish_json(const char *path, const struct store_check_summary *summary,
                       struct check_output *output)
{
    char digest[SHA256_HEX_BYTES];
    sha256_to_hex(summary->digest.bytes, digest);
    return cli_print_json(json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "store", path,
        "faults", (json_int_t)summary->faults, "notes", (json_int_t)summary->notes, "suites",
        (json_int_t)summary->suites, "jobs", (json_int_t)summary->jobs, "attempts",
        (json_int_t)summary->attempts, "outcomes", (json_int_t)summary->outcomes,
        "outcomes_undigested", (json_int_t)summary->outcomes_undigested, "artifacts",
        (json_int_t)summary->artifacts, "artifact_bytes", (json_int_t)summary->artifact_bytes,
        "orphans", (json_int_t)summary->orphans, "let_go", (json_int_t)summary->let_go, "digest",
        digest, "findings", output->findings));
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

int command_check(int argc, char **argv)
{
    const char *url = NULL;
    const char *path = NULL;
    int64_t findings_max = 20;
    int64_t wait_s = 10;
    struct check_output output = {.json = false};
    struct store_check_options options = {.found = on_finding, .context = &output};
    const struct cli_option rows[] = {
        {"--store", "PATH", "job store, or postgresql://.. ($SWERVE_STORE, else swerve.db)",
         .text = &url},
        {"--skip-artifacts", NULL, "do not read the artifacts", .flag = &options.skip_artifacts},
        {"--findings", "N", "of one kind at most (20)", .number = &findings_max},
        {"--wait", "S", "for a program that has the store to itself (10)", .number = &wait_s},
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
    struct store_check_summary summary;
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
    output.findings = json_array();
    enum status status = store_of(url, &path, &error);
    if (status == STATUS_OK && output.findings == NULL) {
        status = error_set(&error, STATUS_NO_MEMORY, "check: out of memory");
    }
    int64_t log_faults = 0;
    THEN(status,
         postgres_store_is_url(path) ? STATUS_OK : check_log(path, &options, &log_faults, &error));
    if (status == STATUS_OK) {
        status = keep_check(path, &options, &summary, &error);
        summary.faults += log_faults;
    }
    if (status != STATUS_OK) {
        json_decref(output.findings);
        return cli_fail(&error);
    }
    if (output.json) {
        code = finish_json(path, &summary, &output);
    } else {
        finish_text(path, &summary, options.skip_artifacts);
        json_decref(output.findings);
    }
    return code != 0 || summary.faults == 0 ? code : status_exit_code(STATUS_STORE);
}
