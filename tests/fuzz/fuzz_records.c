/*
 * Fuzz target: the decoders of every record that travels as JSON (jobs, leases, completions,
 * outcomes and the store's own), of error replies, and of percent-coding. The first byte chooses
 * the decoder, the rest is its input. What is accepted must encode, decode again, and encode to the
 * same text, whatever the records held before; what is refused must say why.
 */
#include "base/check.h"
#include "schemas/job_json.h"
#include "schemas/outcome_json.h"
#include "store/wire/http_wire.h"
#include "tests/fuzz/json_mutator.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);

static const char *const name = "input";

enum { ELEMENTS_MAX = 8 };

/* ---- records of other rooms as codecs ---- */

static const struct wire_codec specs = {sizeof(struct job_spec), &job_spec_field_list, NULL};
static const struct wire_codec metrics_codec = {sizeof(struct metrics), &metric_field_list, NULL};
static const struct wire_codec totals = {sizeof(struct ledger_totals), &ledger_totals_field_list,
                                         NULL};

enum { SHORT_SPEC = 1 }; /* place of a spec whose absent members come from another */

static const struct wire_codec *const codecs[] = {
    &specs,
    &specs,
    &metrics_codec,
    &totals,
    &wire_submit_result,
    &wire_progress,
    &wire_completion_result,
    &wire_suite_status,
    &wire_ledger_row,
    &wire_job,
    &wire_lease,
    &wire_outcome,
    &wire_text_id,
    &wire_i64,
};

/* ---- checks ---- */

static void check_error(enum status status, const struct error *error)
{
    CHECK(status == error->status);
    CHECK(strstr(error->text, "input") != NULL);
}

static char *text_of(const struct wire_codec *codec, const void *record)
{
    json_t *value = wire_encode(codec, record);
    CHECK(value != NULL);
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    CHECK(text != NULL);
    json_decref(value);
    return text;
}

static void check_codec(const struct wire_codec *codec, const struct json_cursor *cursor)
{
    struct error error = {0};
    unsigned char *record = malloc(codec->bytes);
    unsigned char *other = malloc(codec->bytes);
    CHECK(record != NULL && other != NULL);
    memset(record, 0xa5, codec->bytes);
    memset(other, 0x5a, codec->bytes);
    enum status status = wire_decode(codec, cursor, record, &error);
    if (status != STATUS_OK) {
        check_error(status, &error);
    } else {
        char *first = text_of(codec, record);
        json_t *again = json_loads(first, JSON_DECODE_ANY, NULL);
        CHECK(again != NULL);
        struct json_cursor root = json_cursor_root(name, again);
        CHECK(wire_decode(codec, &root, other, &error) == STATUS_OK);
        char *second = text_of(codec, other);
        CHECK(strcmp(first, second) == 0);
        json_decref(again);
        free(first);
        free(second);
    }
    free(record);
    free(other);
}

/* A text that the scanner takes the decoder takes too, and both find the same. */
static void check_scan(const char *text, size_t bytes)
{
    struct scan scan = scan_begin("message", "record", text, bytes, NULL);
    struct job_completion scanned;
    struct job_completion decoded;
    struct outcome *scanned_outcomes = NULL;
    struct outcome *decoded_outcomes = NULL;
    struct error error = {0};
    json_t *root = NULL;
    if (!job_completion_scan(&scan, &scanned, &scanned_outcomes)) {
        return;
    }
    CHECK(json_read_text(name, text, scan.at, &root, &error) == STATUS_OK);
    struct json_cursor cursor = json_cursor_root(name, root);
    CHECK(job_completion_decode(&cursor, &decoded, &decoded_outcomes, &error) == STATUS_OK);
    json_decref(root);
    json_t *first = job_completion_encode(&scanned);
    json_t *second = job_completion_encode(&decoded);
    CHECK(first != NULL && second != NULL && json_equal(first, second));
    json_decref(first);
    json_decref(second);
    free(scanned_outcomes);
    free(decoded_outcomes);
}

/* Members that are absent come from a record of zeroes. */
static void check_short_spec(const struct json_cursor *cursor)
{
    const struct job_spec common = {.rollout_count = 1};
    struct job_spec spec;
    struct job_spec again;
    struct error error = {0};
    enum status status = job_spec_decode(cursor, &common, &spec, &error);
    if (status != STATUS_OK) {
        check_error(status, &error);
        return;
    }
    json_t *value = job_spec_encode(&spec, &common);
    CHECK(value != NULL);
    struct json_cursor root = json_cursor_root(name, value);
    CHECK(job_spec_decode(&root, &common, &again, &error) == STATUS_OK);
    json_t *second = job_spec_encode(&again, &common);
    CHECK(second != NULL && json_equal(value, second));
    json_decref(value);
    json_decref(second);
}

static void check_list(const struct wire_codec *codec, const struct json_cursor *cursor)
{
    struct error error = {0};
    uint32_t count = 0;
    void *records = calloc(ELEMENTS_MAX, codec->bytes);
    CHECK(records != NULL);
    enum status status = wire_list_decode(codec, cursor, records, ELEMENTS_MAX, &count, &error);
    if (status == STATUS_OK) {
        CHECK(count <= ELEMENTS_MAX);
        json_t *list = wire_list_encode(codec, records, count);
        CHECK(list != NULL && json_array_size(list) == count);
        json_decref(list);
    } else {
        check_error(status, &error);
    }
    free(records);
}

static void check_completion(const struct json_cursor *cursor)
{
    struct error error = {0};
    struct job_completion completion;
    struct outcome *outcomes = NULL;
    enum status status = job_completion_decode(cursor, &completion, &outcomes, &error);
    if (status != STATUS_OK) {
        check_error(status, &error);
        CHECK(outcomes == NULL);
        return;
    }
    CHECK(completion.outcomes == outcomes && (completion.outcome_count == 0) == (outcomes == NULL));
    json_t *first = job_completion_encode(&completion);
    CHECK(first != NULL);
    free(outcomes);
    outcomes = NULL;
    struct json_cursor root = json_cursor_root(name, first);
    CHECK(job_completion_decode(&root, &completion, &outcomes, &error) == STATUS_OK);
    json_t *second = job_completion_encode(&completion);
    CHECK(second != NULL && json_equal(first, second));
    json_decref(first);
    json_decref(second);
    free(outcomes);
}

static void check_json(unsigned choice, const char *text, size_t bytes)
{
    struct error error = {0};
    json_t *root = NULL;
    enum status status = json_read_text(name, text, bytes, &root, &error);
    if (status != STATUS_OK) {
        check_error(status, &error);
        return;
    }
    struct json_cursor cursor = json_cursor_root(name, root);
    if (choice == SHORT_SPEC) {
        check_short_spec(&cursor);
    } else if (choice < COUNT_OF(codecs)) {
        check_codec(codecs[choice], &cursor);
    } else if (choice < 2 * COUNT_OF(codecs)) {
        check_list(codecs[choice - COUNT_OF(codecs)], &cursor);
    } else {
        check_completion(&cursor);
        check_scan(text, bytes);
    }
    json_decref(root);
}

/* Any byte sequence, decoded or refused; what was decoded is found again. */
static void check_percent(const char *text, size_t bytes)
{
    struct error error = {0};
    char plain[256];
    char coded[sizeof plain * 3] = "";
    char again[sizeof plain];
    enum status status = http_percent_decode(name, text, bytes, plain, sizeof plain, &error);
    if (status != STATUS_OK) {
        check_error(status, &error);
        return;
    }
    CHECK(strlen(plain) < sizeof plain);
    CHECK(http_percent_encode(plain, coded, sizeof coded));
    CHECK(http_percent_decode(name, coded, strlen(coded), again, sizeof again, &error) ==
          STATUS_OK);
    CHECK(strcmp(plain, again) == 0);
}

static void check_error_reply(const char *text, size_t bytes)
{
    struct error error = {0};
    enum status status = http_error_decode(name, 500, text, bytes, &error);
    CHECK(status == error.status && status != STATUS_OK && status < STATUS_COUNT);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    static const char *const texts[] = {"",       "inf",  "-inf",    "18446744073709551615",
                                        "object", "done", "leased",  "\xc3\xa9",
                                        "stale",  "ttc",  "flagged", "failed"};
    if (bytes < 2 || max < 2 || seed % 16 == 0) {
        return LLVMFuzzerMutate(data, bytes, max);
    }
    return 1 + json_mutate(data + 1, bytes - 1, max - 1, seed, texts, COUNT_OF(texts));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) {
        return 0;
    }
    unsigned choice = data[0];
    /* A copy of its own, so that AddressSanitizer sees a single byte too far. */
    char *text = malloc(bytes);
    CHECK(text != NULL);
    memcpy(text, data + 1, bytes - 1);
    if (choice == 'p') {
        check_percent(text, bytes - 1);
    } else if (choice == 'e') {
        check_error_reply(text, bytes - 1);
    } else {
        check_json(choice % (2 * COUNT_OF(codecs) + 1), text, bytes - 1);
    }
    free(text);
    return 0;
}
