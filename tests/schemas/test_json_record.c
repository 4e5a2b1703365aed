/*
 * Codecs of outcomes and jobs.
 *
 * Goal: what is written reads back exactly, whatever the record holds (NaN, infinities, 64-bit
 * seeds, ill-formed text), and anything else than what is written is refused.
 * Method: random records through encode, text, parse, decode, compared member by member; then every
 * member of a good object is removed, retyped and renamed in turn, and each variant must fail.
 */
#include "base/check.h"
#include "base/rng.h"
#include "schemas/job_json.h"
#include "schemas/json_record.h"
#include "schemas/json_scan.h"
#include "schemas/outcome_json.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t draw(void)
{
    return rng_mix(++state);
}

static double draw_double(void)
{
    switch (draw() % 8) {
    case 0:
        return NAN;
    case 1:
        return INFINITY;
    case 2:
        return -INFINITY;
    case 3:
        return draw() % 2 == 0 ? 0.0 : -0.0;
    case 4:
        return 4.9406564584124654e-324 * (double)(draw() % 1000);
    case 5:
        return (double)(int64_t)draw();
    default: {
        double value = 0;
        do {
            uint64_t bits = draw();
            memcpy(&value, &bits, sizeof value);
        } while (!isfinite(value));
        return value;
    }
    }
}

/* Random well-formed text with multi-byte characters and controls, filling up to capacity - 1. */
static void draw_text(char *out, size_t capacity)
{
    static const char *const pieces[] = {"a",    "Z", "9", "\"", "\\", "\n", "\x01",
                                         "\x7f", "é", "€", "𝄞",  " ",  "/"};
    size_t limit = draw() % capacity;
    size_t used = 0;
    for (;;) {
        const char *piece = pieces[draw() % COUNT_OF(pieces)];
        if (used + strlen(piece) > limit) {
            break;
        }
        memcpy(out + used, piece, strlen(piece));
        used += strlen(piece);
    }
    memset(out + used, 0, capacity - used);
}

#define DRAW_TEXT(member) draw_text(member, sizeof(member))

static void draw_outcome(struct outcome *out)
{
    memset(out, 0, sizeof *out);
    out->id = (int64_t)draw();
    out->job_id = (int64_t)draw();
    out->epoch = (int64_t)draw();
    DRAW_TEXT(out->suite_id);
    DRAW_TEXT(out->scenario_id);
    DRAW_TEXT(out->scenario_hash);
    DRAW_TEXT(out->branch_id);
    DRAW_TEXT(out->planner);
    DRAW_TEXT(out->planner_hash);
    out->tier = (enum tier)(draw() % TIER_COUNT);
    DRAW_TEXT(out->pool);
    DRAW_TEXT(out->model_hash);
    DRAW_TEXT(out->sampler);
    DRAW_TEXT(out->backend);
    DRAW_TEXT(out->revision);
    out->seed = draw() >> (draw() % 64);
    out->verdict = (enum verdict)(draw() % VERDICT_COUNT);
    out->reasons = (uint32_t)draw() & ((1u << REASON_BIT_COUNT) - 1);
    double *numbers = &out->metrics.no_at_fault_collision;
    for (size_t i = 0; &numbers[i] <= &out->metrics.total_cost; i++) {
        numbers[i] = draw_double();
    }
    out->metrics.intervention_count = (uint32_t)draw();
    out->metrics.collision_count = (uint32_t)draw();
    out->metrics.collision_tick = draw() % 2 == 0 ? UINT32_MAX : (uint32_t)draw();
    out->metrics.collision_agent = (int32_t)draw();
    out->metrics.collision_kind = (enum collision_kind)(draw() % COLLISION_KIND_COUNT);
    out->metrics.at_fault = draw() % 2 == 0;
    out->metrics.goal_reached = draw() % 2 == 0;
    out->ticks = (uint32_t)draw();
    out->prefix_ticks = (uint32_t)draw();
    out->metres_mm = (int64_t)draw();
    out->device_ns = (int64_t)draw();
    DRAW_TEXT(out->trace_hash);
    DRAW_TEXT(out->artifact_hash);
    for (size_t i = 0; i < COUNT_OF(out->slice); i++) {
        DRAW_TEXT(out->slice[i]);
    }
    out->safety_critical = draw() % 2 == 0;
    DRAW_TEXT(out->error);
    out->mflop = (int64_t)draw();
    DRAW_TEXT(out->health_check);
    out->health_tick = (uint32_t)draw();
    out->health_value = draw_double();
    out->health_threshold = draw_double();
    DRAW_TEXT(out->evidence_hash);
    out->parent_job_id = (int64_t)draw();
    out->audit_of = (int64_t)draw();
    DRAW_TEXT(out->given);
    DRAW_TEXT(out->rig);
    if (draw() % 2 == 0) { /* of a learned world */
        out->health.measured_ticks = (int64_t)(draw() >> (draw() % 63 + 1)) | 1;
        for (int i = 0; i < MEASURE_COUNT; i++) {
            out->health.worst[i] = draw_double();
            out->health.mean[i] = draw_double();
        }
    }
}

static void draw_spec(struct job_spec *out)
{
    memset(out, 0, sizeof *out);
    DRAW_TEXT(out->key);
    DRAW_TEXT(out->suite_id);
    DRAW_TEXT(out->scenario_id);
    DRAW_TEXT(out->scenario_hash);
    DRAW_TEXT(out->planner);
    DRAW_TEXT(out->planner_hash);
    DRAW_TEXT(out->pool);
    out->tier = (enum tier)(draw() % TIER_COUNT);
    DRAW_TEXT(out->model_hash);
    DRAW_TEXT(out->sampler);
    DRAW_TEXT(out->backend);
    DRAW_TEXT(out->revision);
    out->seed = draw();
    out->priority = (int32_t)draw();
    DRAW_TEXT(out->rig);
    out->rollout_count = (uint32_t)draw();
    out->attempts_max = (uint32_t)draw();
    out->parent_job_id = (int64_t)draw();
    DRAW_TEXT(out->prefix_key);
    DRAW_TEXT(out->audit_key);
    out->follows = draw() % 2 == 0;
    out->evaluates = draw() % 2 == 0;
    if (draw() % 2 == 0) {
        DRAW_TEXT(out->escalate_pool);
        out->escalate_tier = (enum tier)(draw() % TIER_COUNT);
        DRAW_TEXT(out->escalate_model_hash);
        DRAW_TEXT(out->escalate_sampler);
    }
}

/* Through text and back; the encoder's reference is consumed. */
static json_t *through_text(json_t *value)
{
    struct error error;
    json_t *root = NULL;
    EXPECT(value != NULL);
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(value);
    EXPECT(text != NULL);
    EXPECT_OK(json_read_text("test", text, strlen(text), &root, &error), error);
    free(text);
    return root;
}

/* NaN payloads are not kept: any NaN is as good as another. */
static void normalise_nan(struct outcome *outcome)
{
    double *numbers = &outcome->metrics.no_at_fault_collision;
    for (size_t i = 0; &numbers[i] <= &outcome->metrics.total_cost; i++) {
        numbers[i] = isnan(numbers[i]) ? NAN : numbers[i];
    }
    outcome->health_value = isnan(outcome->health_value) ? NAN : outcome->health_value;
    outcome->health_threshold = isnan(outcome->health_threshold) ? NAN : outcome->health_threshold;
    for (int i = 0; i < MEASURE_COUNT; i++) {
        double *worst = &outcome->health.worst[i];
        double *mean = &outcome->health.mean[i];
        *worst = isnan(*worst) ? NAN : *worst;
        *mean = isnan(*mean) ? NAN : *mean;
    }
}

/* A measure's two members are called after it, and lie where it has its number. */
static void measures_have_their_names(void)
{
    struct drive_health health = {.measured_ticks = 1};
    for (int i = 0; i < MEASURE_COUNT; i++) {
        health.worst[i] = i + 0.25;
        health.mean[i] = i + 0.5;
    }
    json_t *json = json_record_encode(&drive_health_field_list, &health, NULL);
    EXPECT_INT(json_object_size(json), 1 + 2 * MEASURE_COUNT);
    for (int i = 0; i < MEASURE_COUNT; i++) {
        char name[LIMIT_ID_BYTES];
        snprintf(name, sizeof name, "%s_worst", health_measure_kinds[i].name);
        EXPECT(json_real_value(json_object_get(json, name)) == i + 0.25);
        snprintf(name, sizeof name, "%s_mean", health_measure_kinds[i].name);
        EXPECT(json_real_value(json_object_get(json, name)) == i + 0.5);
    }
    json_decref(json);
}

static void outcomes_read_back_exactly(void)
{
    static struct outcome in;
    static struct outcome out;
    struct error error;
    for (int round = 0; round < test_rounds(1500, 300); round++) {
        draw_outcome(&in);
        json_t *root = through_text(outcome_encode(&in));
        struct json_cursor cursor = json_cursor_root("test", root);
        memset(&out, 0, sizeof out);
        EXPECT_OK(outcome_decode(&cursor, &out, &error), error);
        json_decref(root);
        normalise_nan(&in);
        normalise_nan(&out);
        EXPECT(memcmp(&in, &out, sizeof in) == 0);
    }
}

static void jobs_read_back_exactly(void)
{
    static struct job_spec common;
    static struct job_lease in;
    static struct job_lease out;
    static struct outcome outcomes[3];
    static struct job_completion completion_in;
    struct error error;
    for (int round = 0; round < test_rounds(1500, 300); round++) {
        memset(&in, 0, sizeof in);
        memset(&out, 0, sizeof out);
        in.job_id = (int64_t)draw();
        in.epoch = (int64_t)draw();
        in.attempt = (uint32_t)draw();
        in.lost = (uint32_t)draw();
        draw_spec(&in.spec);
        json_t *root = through_text(json_record_encode(&job_lease_field_list, &in, NULL));
        struct json_cursor cursor = json_cursor_root("test", root);
        EXPECT_OK(json_record_decode(&job_lease_field_list, NULL, true, &cursor, &out, &error),
                  error);
        json_decref(root);
        EXPECT(memcmp(&in, &out, sizeof in) == 0);

        /* Against a common record that shares some members. */
        draw_spec(&common);
        common.tier = in.spec.tier;
        common.seed = in.spec.seed;
        memcpy(common.planner, in.spec.planner, sizeof common.planner);
        root = through_text(job_spec_encode(&in.spec, &common));
        EXPECT(json_object_get(root, "planner") == NULL);
        cursor = json_cursor_root("test", root);
        memset(&out.spec, 0, sizeof out.spec);
        EXPECT_OK(job_spec_decode(&cursor, &common, &out.spec, &error), error);
        json_decref(root);
        EXPECT(memcmp(&in.spec, &out.spec, sizeof in.spec) == 0);

        completion_in = (struct job_completion){
            .job_id = in.job_id,
            .epoch = in.epoch,
            .kind = (enum completion_kind)(draw() % COMPLETION_KIND_COUNT),
            .escalate_tier = (enum tier)(draw() % TIER_COUNT),
            .device_ns = (int64_t)draw(),
            .mflop = (int64_t)draw(),
            .outcome_count = (uint32_t)(draw() % 3),
            .outcomes = outcomes,
        };
        DRAW_TEXT(completion_in.worker_id);
        DRAW_TEXT(completion_in.error);
        DRAW_TEXT(completion_in.escalate_model_hash);
        DRAW_TEXT(completion_in.escalate_sampler);
        DRAW_TEXT(completion_in.escalate_key);
        for (uint32_t i = 0; i < completion_in.outcome_count; i++) {
            draw_outcome(&outcomes[i]);
            normalise_nan(&outcomes[i]);
        }
        struct job_completion completion_out;
        struct outcome *list = NULL;
        root = through_text(job_completion_encode(&completion_in));
        cursor = json_cursor_root("test", root);
        EXPECT_OK(job_completion_decode(&cursor, &completion_out, &list, &error), error);
        json_decref(root);
        EXPECT_INT(completion_out.outcome_count, completion_in.outcome_count);
        EXPECT(completion_out.outcomes == list);
        EXPECT_INT(completion_out.kind, completion_in.kind);
        EXPECT_INT(completion_out.device_ns, completion_in.device_ns);
        EXPECT_INT(completion_out.mflop, completion_in.mflop);
        EXPECT_TEXT(completion_out.escalate_model_hash, completion_in.escalate_model_hash);
        EXPECT_TEXT(completion_out.escalate_sampler, completion_in.escalate_sampler);
        EXPECT_TEXT(completion_out.escalate_key, completion_in.escalate_key);
        EXPECT_TEXT(completion_out.error, completion_in.error);
        EXPECT_TEXT(completion_out.worker_id, completion_in.worker_id);
        for (uint32_t i = 0; i < completion_out.outcome_count; i++) {
            normalise_nan(&list[i]);
            EXPECT(memcmp(&list[i], &outcomes[i], sizeof list[i]) == 0);
        }
        free(list);
    }
}

/* Text from outside, random bytes: the result is JSON, never longer than the member, and every
 * well-formed character is still there. */
static void ill_formed_text_is_made_well_formed(void)
{
    static struct outcome in;
    static struct outcome out;
    struct error error;
    static const struct {
        const char *bytes;
        const char *expected;
    } cases[] = {
        {"ok \xff end", "ok ? end"},
        {"\xc0\xaf", "??"},           /* overlong */
        {"\xed\xa0\x80", "???"},      /* surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* above U+10FFFF */
        {"cut \xe2\x82", "cut ??"},   /* cut in the middle */
        {"\xe2\x82\xac\x80", "\xe2\x82\xac?"},
        {"\xf0\x9d\x84\x9e", "\xf0\x9d\x84\x9e"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *text = json_text_new(cases[i].bytes, 64);
        EXPECT(text != NULL);
        EXPECT_TEXT(json_string_value(text), cases[i].expected);
        json_decref(text);
    }
    for (int round = 0; round < test_rounds(1000, 200); round++) {
        draw_outcome(&in);
        size_t bytes = draw() % sizeof in.error;
        for (size_t i = 0; i < sizeof in.error; i++) {
            in.error[i] = i < bytes ? (char)(1 + draw() % 255) : '\0';
        }
        json_t *root = through_text(outcome_encode(&in));
        struct json_cursor cursor = json_cursor_root("test", root);
        EXPECT_OK(outcome_decode(&cursor, &out, &error), error);
        json_decref(root);
        EXPECT_INT(strlen(out.error), bytes);
        for (size_t i = 0; i < bytes; i++) {
            EXPECT(out.error[i] == in.error[i] || out.error[i] == '?');
            EXPECT(in.error[i] < 0 || out.error[i] == in.error[i]);
        }
    }
}

static void expect_refused(json_t *root, const char *key)
{
    struct error error = {.text = ""};
    struct outcome out;
    struct json_cursor cursor = json_cursor_root("test", root);
    out.id = 77;
    enum status status = outcome_decode(&cursor, &out, &error);
    if (status != STATUS_BAD_INPUT && status != STATUS_LIMIT) {
        TEST_FAIL("a wrong \"%s\" gave %s", key, status_name(status));
    }
    EXPECT_CONTAINS(error.text, key);
    EXPECT_INT(out.id, 77);
}

static void anything_else_is_refused(void)
{
    static struct outcome in;
    state = 11;
    draw_outcome(&in);
    in.rig[0] = '\0'; /* it may be missing, as may health */
    in.health = (struct drive_health){0};
    json_t *good = outcome_encode(&in);
    EXPECT(good != NULL);
    const char *key;
    json_t *value;
    json_object_foreach (good, key, value) {
        json_t *bad = json_deep_copy(good);
        json_object_del(bad, key); /* missing */
        expect_refused(bad, key);
        json_object_set_new(bad, key, json_true()); /* another type */
        if (strcmp(key, "safety_critical") != 0) {
            expect_refused(bad, key);
        }
        json_decref(bad);
    }
    json_t *bad = json_deep_copy(good);
    json_object_set_new(bad, "surplus", json_true());
    expect_refused(bad, "surplus");
    json_decref(bad);

    static const struct {
        const char *key;
        const char *value;
    } wrong[] = {
        {"health", "true"},
        {"health", "{}"},
        {"health", "{\"measured_ticks\": 3}"},
        {"seed", "-1"},
        {"seed", "\"18446744073709551616\""},
        {"seed", "\"0x1\""},
        {"seed", "\"\""},
        {"seed", "\" 1\""},
        {"ticks", "4294967296"},
        {"ticks", "-1"},
        {"ticks", "1.0"},
        {"tier", "\"cloud\""},
        {"tier", "1"},
        {"verdict", "\"PASS\""},
        {"reasons", "[\"luck\"]"},
        {"reasons", "[\"ttc\",\"ttc\"]"},
        {"slices", "{}"},
        {"metrics", "{}"},
        {"id", "9223372036854775808.0"},
        {"pool", "\"0123456789012345678901234567890123456789012345678901234567890123\""},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        bad = json_deep_copy(good);
        json_object_set_new(bad, wrong[i].key, json_loads(wrong[i].value, JSON_DECODE_ANY, NULL));
        expect_refused(bad, wrong[i].key);
        json_decref(bad);
    }
    json_decref(good);
}

/* ---- without a document ---- */

static void make_plain(char *text, size_t capacity)
{
    for (size_t i = 0; i < capacity && text[i] != '\0'; i++) {
        bool plain = text[i] >= 0x20 && text[i] < 0x7f && text[i] != '"' && text[i] != '\\';
        text[i] = plain ? text[i] : '_';
    }
}

/* Bounds of what the scanner takes: text that stands for itself, seeds and ids of 18 digits. */
static void make_outcome_plain(struct outcome *outcome)
{
    char *const texts[] = {outcome->suite_id,      outcome->scenario_id, outcome->scenario_hash,
                           outcome->branch_id,     outcome->planner,     outcome->planner_hash,
                           outcome->pool,          outcome->model_hash,  outcome->sampler,
                           outcome->backend,       outcome->revision,    outcome->trace_hash,
                           outcome->artifact_hash, outcome->error,       outcome->health_check,
                           outcome->evidence_hash, outcome->given,       outcome->rig};
    int64_t *const numbers[] = {
        &outcome->id,        &outcome->job_id,   &outcome->epoch,
        &outcome->metres_mm, &outcome->mflop,    &outcome->parent_job_id,
        &outcome->device_ns, &outcome->audit_of, &outcome->health.measured_ticks};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        make_plain(texts[i], SIZE_MAX);
    }
    for (size_t i = 0; i < COUNT_OF(outcome->slice); i++) {
        make_plain(outcome->slice[i], SIZE_MAX);
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        *numbers[i] %= 1000000000000000000;
    }
    outcome->seed %= UINT64_C(1) << 53;
}

/* A text that the scanner takes the decoder takes, and they find the same. */
static bool scan_agrees(const char *text, size_t bytes)
{
    static struct outcome scanned;
    static struct outcome decoded;
    struct error error;
    json_t *root = NULL;
    struct scan scan = scan_begin("message", "record", text, bytes, NULL);
    memset(&scanned, 0, sizeof scanned);
    if (!scan_literal(&scan, "{") || !json_scan_fields(&scan, &outcome_record, &scanned) ||
        !scan_literal(&scan, "}") || scan.at != scan.bytes) {
        return false;
    }
    EXPECT_OK(json_read_text("test", text, bytes, &root, &error), error);
    struct json_cursor cursor = json_cursor_root("test", root);
    EXPECT_OK(outcome_decode(&cursor, &decoded, &error), error);
    json_decref(root);
    normalise_nan(&scanned);
    normalise_nan(&decoded);
    EXPECT(memcmp(&scanned, &decoded, sizeof scanned) == 0);
    return true;
}

static void integers_are_written_as_printf_writes_them(void)
{
    static const int64_t values[] = {0, 7, -1, 10, -10, 1234567890123, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct json_text text = {0};
        char expected[32];
        int bytes = snprintf(expected, sizeof expected, "%lld", (long long)values[i]);
        json_write_integer(&text, values[i]);
        EXPECT_INT(text.bytes, bytes);
        EXPECT(!text.failed && memcmp(text.data, expected, text.bytes) == 0);
        free(text.data);
    }
}

static void the_scanner_finds_what_the_decoder_finds(void)
{
    static struct outcome in;
    static struct outcome out;
    struct error error;
    uint32_t mutants_taken = 0;
    for (int round = 0; round < test_rounds(600, 120); round++) {
        draw_outcome(&in);
        if (round % 2 == 0) {
            make_outcome_plain(&in);
        }
        json_t *document = outcome_encode(&in);
        char *encoded = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(17));
        EXPECT(encoded != NULL);
        json_decref(document);
        struct json_text text = {0};
        json_write_record(&text, &outcome_record, &in);
        EXPECT(!text.failed);
        EXPECT(scan_agrees(encoded, strlen(encoded)) || round % 2 != 0);
        EXPECT(scan_agrees(text.data, text.bytes) || round % 2 != 0);
        for (int i = 0; i < 30; i++) {
            static const char bytes[] = "0123456789.eE+-\"\\{}[],: ntf\x01\x80";
            size_t at = draw() % text.bytes;
            char kept = text.data[at];
            text.data[at] = bytes[draw() % (sizeof bytes - 1)];
            mutants_taken += scan_agrees(text.data, text.bytes);
            text.data[at] = kept;
            EXPECT(!scan_agrees(text.data, draw() % text.bytes));
        }
        json_t *root = NULL;
        EXPECT_OK(json_read_text("test", text.data, text.bytes, &root, &error), error);
        struct json_cursor cursor = json_cursor_root("test", root);
        EXPECT_OK(outcome_decode(&cursor, &out, &error), error);
        json_decref(root);
        normalise_nan(&in);
        normalise_nan(&out);
        EXPECT(memcmp(&in, &out, sizeof in) == 0);
        free(encoded);
        free(text.data);
    }
    EXPECT(mutants_taken > 1000);
}

static void leases_and_completions_are_scanned(void)
{
    static struct job_lease lease;
    static struct job_lease lease_out;
    static struct outcome outcomes[3];
    struct job_completion completion = {.job_id = 7, .epoch = 2, .outcomes = outcomes};
    struct job_completion completion_out;
    struct outcome *list = NULL;
    strcpy(lease.spec.key, "key");
    lease.spec.seed = 1 << 20;
    lease.epoch = 3;
    struct json_text text = {0};
    json_write_record(&text, &job_lease_field_list, &lease);
    struct scan scan = scan_begin("message", "record", text.data, text.bytes, NULL);
    EXPECT(scan_literal(&scan, "{") && json_scan_fields(&scan, &job_lease_field_list, &lease_out) &&
           scan_literal(&scan, "}") && scan.at == scan.bytes);
    EXPECT(memcmp(&lease, &lease_out, sizeof lease) == 0);
    lease.spec.follows = true; /* which is left out where it is not so */
    text.bytes = 0;
    json_write_record(&text, &job_lease_field_list, &lease);
    scan = scan_begin("message", "record", text.data, text.bytes, NULL);
    EXPECT(scan_literal(&scan, "{") && json_scan_fields(&scan, &job_lease_field_list, &lease_out) &&
           scan_literal(&scan, "}") && scan.at == scan.bytes);
    EXPECT(memcmp(&lease, &lease_out, sizeof lease) == 0);
    for (uint32_t count = 0; count <= 3; count++) {
        completion.outcome_count = count;
        for (uint32_t i = 0; i < count; i++) {
            draw_outcome(&outcomes[i]);
            make_outcome_plain(&outcomes[i]);
            normalise_nan(&outcomes[i]);
        }
        json_t *document = job_completion_encode(&completion);
        char *sent = json_compact_text(document);
        EXPECT(sent != NULL);
        size_t sent_bytes = strlen(sent);
        json_decref(document);
        scan = scan_begin("message", "record", sent, sent_bytes, NULL);
        EXPECT(job_completion_scan(&scan, &completion_out, &list) && scan.at == scan.bytes);
        EXPECT(completion_out.outcome_count == count && completion_out.epoch == 2);
        for (uint32_t i = 0; i < count; i++) {
            normalise_nan(&list[i]);
            EXPECT(memcmp(&list[i], &outcomes[i], sizeof list[i]) == 0);
        }
        free(list);
        list = NULL;
        for (size_t bytes = 0; bytes < sent_bytes; bytes += 7) {
            scan = scan_begin("message", "record", sent, bytes, NULL);
            EXPECT(!job_completion_scan(&scan, &completion_out, &list));
        }
        free(sent);
    }
    free(text.data);
}

int main(void)
{
    return TEST_RUN(
        TEST(outcomes_read_back_exactly), TEST(measures_have_their_names),
        TEST(jobs_read_back_exactly), TEST(ill_formed_text_is_made_well_formed),
        TEST(anything_else_is_refused), TEST(integers_are_written_as_printf_writes_them),
        TEST(the_scanner_finds_what_the_decoder_finds), TEST(leases_and_completions_are_scanned));
}
