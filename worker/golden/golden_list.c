/*
 * Lists of goldens as JSON. See golden_list.h.
 */
#include "worker/golden/golden_list.h"

#include "base/array.h"
#include "engine/worlds/foreign.h"
#include "schemas/json_record.h"
#include "schemas/outcome_json.h"

#include <stdlib.h>
#include <string.h>

static const char *const entry_keys[] = {"rollouts", NULL};
/* Lists of earlier versions say "device_ns", which is in the ledger now. */
static const char *const list_keys[] = {"format", "recordings", "device_ns", NULL};

#define LIST(member, kind) JSON_FIELD(struct golden_list, member, kind)
#define ENTRY(member, kind) JSON_FIELD(struct golden_entry, member, kind)
#define ROLLOUT(member, kind) JSON_FIELD(struct golden_rollout, member, kind)

static const struct json_field list_table[] = {
    LIST(name, JSON_FIELD_TEXT),
    LIST(suite, JSON_FIELD_TEXT),
    LIST(planner, JSON_FIELD_TEXT),
    LIST(planner_hash, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct golden_list, tier, tier_names, TIER_COUNT),
    LIST(model_hash, JSON_FIELD_TEXT),
    LIST(sampler, JSON_FIELD_TEXT),
    LIST(backend, JSON_FIELD_TEXT),
    LIST(revision, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct golden_list, rig, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct golden_list, rate_hz, JSON_FIELD_U32),
    JSON_FIELD_OPTIONAL(struct golden_list, chunk_frames, JSON_FIELD_U32),
    JSON_FIELD_OPTIONAL(struct golden_list, first_frames, JSON_FIELD_U32),
    LIST(horizon_ticks, JSON_FIELD_I64),
    LIST(ticks, JSON_FIELD_I64),
};
static const struct json_field entry_table[] = {
    ENTRY(scenario_id, JSON_FIELD_TEXT),
    ENTRY(scenario_hash, JSON_FIELD_TEXT),
    ENTRY(seed, JSON_FIELD_U64),
    ENTRY(artifact, JSON_FIELD_TEXT),
    ENTRY(bytes, JSON_FIELD_I64),
    ENTRY(ticks, JSON_FIELD_I64),
    JSON_FIELD_OBJECT_OPTIONAL(struct golden_entry, futures, &outcome_futures_field_list),
};
static const struct json_field rollout_table[] = {
    ROLLOUT(branch_id, JSON_FIELD_TEXT),
    ROLLOUT(trace_hash, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct golden_rollout, verdict, verdict_names, VERDICT_COUNT),
};
static const struct json_field_list list_fields = JSON_FIELD_LIST(list_table);
static const struct json_field_list entry_fields = JSON_FIELD_LIST(entry_table);
static const struct json_field_list rollout_fields = JSON_FIELD_LIST(rollout_table);

void golden_list_finish(struct golden_list *list)
{
    for (uint32_t i = 0; i < list->entry_count; i++) {
        free(list->entries[i].rollouts);
    }
    free(list->entries);
    list->entries = NULL;
    list->entry_count = 0;
}

struct golden_entry *golden_list_add(struct golden_list *list, struct error *error)
{
    if (array_room(&list->entries, list->entry_count, sizeof *list->entries, error) != STATUS_OK) {
        return NULL;
    }
    struct golden_entry *entry = &list->entries[list->entry_count++];
    *entry = (struct golden_entry){.seed = 0};
    return entry;
}

static int compare(const void *a, const void *b)
{
    const struct golden_entry *left = a;
    const struct golden_entry *right = b;
    int order = strcmp(left->scenario_id, right->scenario_id);
    return order != 0 ? order : (left->seed > right->seed) - (left->seed < right->seed);
}

void golden_list_sort(struct golden_list *list)
{
    if (list->entry_count > 0) {
        qsort(list->entries, list->entry_count, sizeof *list->entries, compare);
    }
}

const struct golden_entry *golden_list_twice(const struct golden_list *list)
{
    for (uint32_t i = 1; i < list->entry_count; i++) {
        if (compare(&list->entries[i - 1], &list->entries[i]) == 0) {
            return &list->entries[i];
        }
    }
    return NULL;
}

const struct golden_entry *golden_list_find(const struct golden_list *list, const char *scenario_id,
                                            uint64_t seed)
{
    struct golden_entry key = {.seed = seed};
    if (strlen(scenario_id) >= sizeof key.scenario_id || list->entry_count == 0) {
        return NULL;
    }
    strcpy(key.scenario_id, scenario_id);
    return bsearch(&key, list->entries, list->entry_count, sizeof key, compare);
}

/* ---- JSON ---- */

static json_t *encode_entry(const struct golden_entry *entry)
{
    json_t *object = json_record_encode(&entry_fields, entry, NULL);
    json_t *rollouts = json_array();
    bool good = object != NULL && rollouts != NULL;
    for (uint32_t i = 0; good && i < entry->rollout_count; i++) {
        good = json_array_append_new(
                   rollouts, json_record_encode(&rollout_fields, &entry->rollouts[i], NULL)) == 0;
    }
    good = json_put(object, "rollouts", rollouts) && good;
    if (!good) {
        json_decref(object);
        return NULL;
    }
    return object;
}

char *golden_list_encode(const struct golden_list *list)
{
    json_t *object = json_record_encode(&list_fields, list, NULL);
    json_t *recordings = json_array();
    bool good = object != NULL && recordings != NULL;
    for (uint32_t i = 0; good && i < list->entry_count; i++) {
        good = json_array_append_new(recordings, encode_entry(&list->entries[i])) == 0;
    }
    good = json_put(object, "format", json_string(GOLDEN_FORMAT)) && good;
    good = json_put(object, "recordings", recordings) && good;
    char *text = good ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(object);
    return text;
}

static enum status decode_entry(const struct json_cursor *cursor, struct golden_entry *entry,
                                struct error *error)
{
    struct json_cursor rollouts = json_cursor_member(cursor, "rollouts");
    size_t count = 0;
    TRY(json_record_decode(&entry_fields, entry_keys, true, cursor, entry, error));
    TRY(json_array_begin(&rollouts, 1, 1 + LIMIT_BRANCHES, &count, error));
    entry->rollouts = calloc(count, sizeof *entry->rollouts);
    TRY(memory_check(entry->rollouts, error, "golden: out of memory"));
    entry->rollout_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct json_cursor one = json_cursor_element(&rollouts, i);
        TRY(json_record_decode(&rollout_fields, NULL, true, &one, &entry->rollouts[i], error));
    }
    return STATUS_OK;
}

static enum status decode_list(const struct json_cursor *cursor, struct golden_list *out,
                               struct error *error)
{
    struct json_cursor recordings = json_cursor_member(cursor, "recordings");
    char format[LIMIT_ID_BYTES] = "";
    size_t count = 0;
    TRY(json_record_decode(&list_fields, list_keys, true, cursor, out, error));
    TRY(json_member_text(cursor, "format", true, format, sizeof format, error));
    if (strcmp(format, GOLDEN_FORMAT) != 0) {
        return json_fail(cursor, error, "expected format \"" GOLDEN_FORMAT "\", found \"%s\"",
                         format);
    }
    if (out->chunk_frames > 0 &&
        !foreign_chunks_can_be(out->rate_hz, out->chunk_frames, out->first_frames)) {
        return json_fail(cursor, error,
                         "expected chunks of a tick's frames or more, the first no longer than the "
                         "others, found %u and %u at %u Hz",
                         out->first_frames, out->chunk_frames, out->rate_hz);
    }
    TRY(json_array_begin(&recordings, 1, GOLDEN_ENTRIES_MAX, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor one = json_cursor_element(&recordings, i);
        struct golden_entry *entry = golden_list_add(out, error);
        TRY(entry != NULL ? decode_entry(&one, entry, error) : error->status);
    }
    golden_list_sort(out);
    const struct golden_entry *twice = golden_list_twice(out);
    return twice == NULL ? STATUS_OK
                         : json_fail(&recordings, error,
                                     "expected each scenario and seed once, found %s with seed "
                                     "%llu twice",
                                     twice->scenario_id, (unsigned long long)twice->seed);
}

enum status golden_list_decode(const char *text, size_t bytes, struct golden_list *out,
                               struct error *error)
{
    json_t *root = NULL;
    *out = (struct golden_list){.name = ""};
    TRY(json_read_text("golden", text, bytes, &root, error));
    struct json_cursor cursor = json_cursor_root("golden", root);
    enum status status = decode_list(&cursor, out, error);
    json_decref(root);
    if (status != STATUS_OK) {
        golden_list_finish(out);
    }
    return status;
}
