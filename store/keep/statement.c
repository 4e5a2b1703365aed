/*
 * Statements that are signed. See statement.h.
 */
#include "store/keep/statement.h"

#include "base/array.h"
#include "base/file.h"
#include "store/keep/signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char head[] = "swerve statement 1\n";

enum {
    STATEMENT_BYTES_MAX = 256 << 20,
    LINE_BYTES_MAX = 256, /* of a head's line, and of a suite's: digest, count, name */
    HEAD_LINES = 4
};

enum status statement_add(struct statement *statement, const struct store_check_suite *suite,
                          struct error *error)
{
    TRY(array_room(&statement->suites, statement->count, sizeof *statement->suites, error));
    statement->suites[statement->count++] = *suite;
    return STATUS_OK;
}

void statement_finish(struct statement *statement)
{
    free(statement->suites);
    *statement = (struct statement){.suites = NULL};
}

static enum status signature_path(const char *path, char out[LIMIT_PATH_BYTES], struct error *error)
{
    int length = snprintf(out, LIMIT_PATH_BYTES, "%s.sig", path);
    return length < LIMIT_PATH_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "%s: the path is too long", path);
}

/* ---- writing ---- */

static size_t write_text(const struct statement *found, const struct store_check_summary *summary,
                         int64_t now_s, char *out, size_t capacity)
{
    char hex[SHA256_HEX_BYTES];
    char date[32] = "";
    time_t now = (time_t)now_s;
    struct tm utc;

    if (gmtime_r(&now, &utc) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    sha256_to_hex(summary->digest.bytes, hex);
    size_t used = (size_t)snprintf(out, capacity, "%ssigned %s\ndigest %s\nsuites %zu\n", head,
                                   date, hex, found->count);
    for (size_t i = 0; i < found->count; i++) {
        const struct store_check_suite *suite = &found->suites[i];
        sha256_to_hex(suite->digest.bytes, hex);
        used += (size_t)snprintf(out + used, capacity - used, "suite %s %" PRId64 " %s\n", hex,
                                 suite->outcomes, suite->name);
    }
    return used;
}

enum status statement_sign(const struct statement *found, const struct store_check_summary *summary,
                           int64_t now_s, const char *key_path, const char *path,
                           struct error *error)
{
    uint8_t signature[SIGNATURE_BYTES];
    char beside[LIMIT_PATH_BYTES];
    size_t capacity = (found->count + HEAD_LINES) * LINE_BYTES_MAX;

    if (summary->faults > 0 || summary->outcomes_undigested > 0) {
        return error_set(error, STATUS_CONFLICT,
                         "%s: not signed: the store has %" PRId64 " faults and %" PRId64
                         " outcomes without a digest, expected none of either",
                         path, summary->faults, summary->outcomes_undigested);
    }
    for (size_t i = 0; i < found->count; i++) {
        if (strchr(found->suites[i].name, '\n') != NULL) {
            return error_set(error, STATUS_CONFLICT,
                             "%s: not signed: expected a name of one line, found suite \"%s\"",
                             path, found->suites[i].name);
        }
    }
    TRY(signature_path(path, beside, error));
    char *text = malloc(capacity);
    TRY(memory_check(text, error, "a statement: out of memory"));
    size_t bytes = write_text(found, summary, now_s, text, capacity);
    enum status status = signature_make(key_path, text, bytes, signature, error);
    THEN(status, file_replace(path, text, bytes, 0644, error));
    THEN(status, file_replace(beside, signature, sizeof signature, 0644, error));
    free(text);
    return status;
}

/* ---- reading ---- */

static bool read_digest(const char *hex, struct digest *out)
{
    for (size_t i = 0; i < sizeof out->bytes; i++) {
        if (sscanf(hex + 2 * i, "%2hhx", &out->bytes[i]) != 1) {
            return false;
        }
    }
    return true;
}

static bool read_suite(const char *line, struct store_check_suite *out)
{
    char hex[SHA256_HEX_BYTES];
    int at = 0;

    memset(out, 0, sizeof *out);
    if (sscanf(line, "suite %64[0-9a-f] %" SCNd64 "%n", hex, &out->outcomes, &at) != 2 ||
        line[at] != ' ' || strlen(hex) != sizeof hex - 1 || !read_digest(hex, &out->digest)) {
        return false;
    }
    const char *name = line + at + 1; /* may begin with a blank */
    size_t bytes = strlen(name);
    if (bytes == 0 || bytes >= sizeof out->name) {
        return false;
    }
    memcpy(out->name, name, bytes);
    return true;
}

/* Takes the text apart, which is changed. */
static enum status read_suites(const char *path, char *text, struct statement *out,
                               struct error *error)
{
    int number = 1;
    char *line = text;

    if (strncmp(text, head, strlen(head)) != 0) {
        return error_set(error, STATUS_BAD_INPUT, "%s: expected \"%.18s\" in line 1", path, head);
    }
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1, number++) {
        struct store_check_suite suite;
        *end = '\0';
        if (number <= HEAD_LINES) {
            continue;
        }
        if (!read_suite(line, &suite)) {
            return error_set(
                error, STATUS_BAD_INPUT,
                "%s: line %d: expected \"suite DIGEST OUTCOMES NAME\", found \"%.80s\"", path,
                number, line);
        }
        TRY(statement_add(out, &suite, error));
    }
    return STATUS_OK;
}

static enum status read_signature(const char *path, uint8_t out[SIGNATURE_BYTES],
                                  struct error *error)
{
    char *data = NULL;
    size_t bytes = 0;
    char beside[LIMIT_PATH_BYTES];

    TRY(signature_path(path, beside, error));
    TRY(file_read(beside, SIGNATURE_BYTES, &data, &bytes, error));
    enum status status = STATUS_OK;
    if (bytes == SIGNATURE_BYTES) {
        memcpy(out, data, SIGNATURE_BYTES);
    } else {
        status = error_set(error, STATUS_BAD_INPUT, "%s: expected %d bytes, found %zu", beside,
                           SIGNATURE_BYTES, bytes);
    }
    free(data);
    return status;
}

enum status statement_read(const char *path, const char *key_path, struct statement *out,
                           struct error *error)
{
    uint8_t signature[SIGNATURE_BYTES];
    char *text = NULL;
    size_t bytes = 0;

    *out = (struct statement){.suites = NULL};
    TRY(file_read(path, STATEMENT_BYTES_MAX, &text, &bytes, error));
    enum status status = read_signature(path, signature, error);
    THEN(status, signature_verify(key_path, text, bytes, signature, error));
    if (status == STATUS_MISMATCH) {
        error_prefix(error, "%s", path);
    }
    THEN(status, read_suites(path, text, out, error));
    free(text);
    if (status != STATUS_OK) {
        statement_finish(out);
    }
    return status;
}

/* ---- comparing ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct store_check_suite *)a)->name,
                  ((const struct store_check_suite *)b)->name);
}

static void sort(struct statement *statement)
{
    if (statement->count > 0) {
        qsort(statement->suites, statement->count, sizeof *statement->suites, by_name);
    }
}

static void tell(const struct store_check_options *options, struct store_check_summary *summary,
                 struct store_check_finding *finding)
{
    *(finding->note ? &summary->notes : &summary->faults) += 1;
    finding->kind = "signature";
    if (options->found != NULL) {
        options->found(options->context, finding);
    }
}

static void compare_one(const struct store_check_suite *said, const struct store_check_suite *now,
                        const struct store_check_options *options,
                        struct store_check_summary *summary)
{
    struct store_check_finding finding = {.note = false};
    snprintf(finding.place, sizeof finding.place, "suite %s", said->name);
    if (now == NULL) {
        snprintf(finding.text, sizeof finding.text,
                 "was signed with %" PRId64 " outcomes, and is not there", said->outcomes);
    } else if (memcmp(said->digest.bytes, now->digest.bytes, sizeof said->digest.bytes) != 0) {
        snprintf(finding.text, sizeof finding.text,
                 "is not what was signed: it had %" PRId64 " outcomes, and has %" PRId64 "%s",
                 said->outcomes, now->outcomes,
                 said->outcomes == now->outcomes ? ", of other figures" : "");
    } else {
        return;
    }
    tell(options, summary, &finding);
}

void statement_compare(struct statement *signed_suites, struct statement *found,
                       const struct store_check_options *options,
                       struct store_check_summary *summary)
{
    size_t matched = 0;

    sort(signed_suites);
    sort(found);
    for (size_t i = 0; i < signed_suites->count; i++) {
        const struct store_check_suite *said = &signed_suites->suites[i];
        const struct store_check_suite *now =
            found->count > 0
                ? bsearch(said, found->suites, found->count, sizeof *found->suites, by_name)
                : NULL;
        matched += now != NULL;
        compare_one(said, now, options, summary);
    }
    if (matched < found->count) {
        struct store_check_finding finding = {.note = true};
        snprintf(finding.place, sizeof finding.place, "store");
        snprintf(finding.text, sizeof finding.text, "%zu of %zu suites were not signed",
                 found->count - matched, found->count);
        tell(options, summary, &finding);
    }
}
