/*
 * Texts are found by an open hash table of at most half its slots.
 */
#include "report/outcomes.h"

#include "base/check.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 1024 };

#define TEXT(member)                                                            \
    {                                                                           \
        offsetof(struct outcome, member), sizeof(((struct outcome *)0)->member) \
    }

/* Places of an outcome's texts, in the order of kept_outcome's. */
static const struct {
    size_t offset, bytes;
} text_members[] = {
    TEXT(suite_id),     TEXT(scenario_id), TEXT(scenario_hash), TEXT(branch_id),     TEXT(planner),
    TEXT(planner_hash), TEXT(pool),        TEXT(model_hash),    TEXT(sampler),       TEXT(backend),
    TEXT(rig),          TEXT(revision),    TEXT(trace_hash),    TEXT(artifact_hash), TEXT(slice[0]),
    TEXT(slice[1]),     TEXT(slice[2]),    TEXT(slice[3]),      TEXT(slice[4]),      TEXT(slice[5]),
    TEXT(given),        TEXT(error),       TEXT(health_check),  TEXT(evidence_hash),
};

enum { TEXT_COUNT = COUNT_OF(text_members) };

_Static_assert(TEXT_COUNT == COUNT_OF(((struct kept_outcome *)0)->texts), "texts of an outcome");
_Static_assert(offsetof(struct kept_outcome, texts[TEXT_COUNT - 1]) ==
                   offsetof(struct kept_outcome, evidence_hash),
               "texts of an outcome");

/* Copies the members that are no texts, either way: the one list of them. */
#define COPY_NUMBERS(to, from)                                                                    \
    ((to)->id = (from)->id, (to)->job_id = (from)->job_id, (to)->epoch = (from)->epoch,           \
     (to)->tier = (from)->tier, (to)->verdict = (from)->verdict, (to)->seed = (from)->seed,       \
     (to)->reasons = (from)->reasons, (to)->ticks = (from)->ticks,                                \
     (to)->prefix_ticks = (from)->prefix_ticks,                                                   \
     (to)->pages_used_percent = (from)->pages_used_percent,                                       \
     (to)->health_tick = (from)->health_tick, (to)->safety_critical = (from)->safety_critical,    \
     (to)->shadow = (from)->shadow, (to)->in_flight = (from)->in_flight,                          \
     (to)->metres_mm = (from)->metres_mm, (to)->device_ns = (from)->device_ns,                    \
     (to)->mflop = (from)->mflop, (to)->peak_mflops = (from)->peak_mflops,                        \
     (to)->metrics = (from)->metrics, (to)->health_value = (from)->health_value,                  \
     (to)->health_threshold = (from)->health_threshold,                                           \
     (to)->parent_job_id = (from)->parent_job_id, (to)->audit_of = (from)->audit_of,              \
     (to)->at_ms = (from)->at_ms, (to)->freeze = (from)->freeze, (to)->futures = (from)->futures, \
     (to)->route_reason = (from)->route_reason, (to)->route_own = (from)->route_own,              \
     (to)->route_other = (from)->route_other)

struct kept_outcome kept_outcome_of(const struct outcome *outcome)
{
    struct kept_outcome kept = {.id = 0};
    COPY_NUMBERS(&kept, outcome);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        kept.texts[i] = (const char *)outcome + text_members[i].offset;
    }
    kept.health = outcome->health.measured_ticks > 0 ? &outcome->health : NULL;
    return kept;
}

void kept_outcome_whole(const struct kept_outcome *kept, struct outcome *out)
{
    *out = (struct outcome){.id = 0};
    COPY_NUMBERS(out, kept);
    if (kept->health != NULL) {
        out->health = *kept->health;
    }
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        snprintf((char *)out + text_members[i].offset, text_members[i].bytes, "%s", kept->texts[i]);
    }
}

/* ---- texts ---- */

/* The slot of a text, or the free one that it would have. */
static const char **slot_of(const char **slots, size_t slot_count, const char *text, size_t *bytes)
{
    *bytes = strlen(text);
    uint64_t hash = text_hash_on(TEXT_HASH_FIRST, text, *bytes);
    size_t slot = (size_t)(hash ^ hash >> 32) & (slot_count - 1);
    while (slots[slot] != NULL && strcmp(slots[slot], text) != 0) {
        slot = (slot + 1) & (slot_count - 1);
    }
    return &slots[slot];
}

static enum status grow(struct kept_texts *texts, struct error *error)
{
    size_t slot_count = texts->slot_count > 0 ? 2 * texts->slot_count : SLOTS_FIRST;
    const char **slots = calloc(slot_count, sizeof *slots);
    size_t bytes;
    TRY(memory_check(slots, error, "out of memory for the texts of outcomes"));
    if (texts->slot_count == 0) {
        arena_init(&texts->arena, SIZE_MAX);
    }
    for (size_t i = 0; i < texts->slot_count; i++) {
        if (texts->slots[i] != NULL) {
            *slot_of(slots, slot_count, texts->slots[i], &bytes) = texts->slots[i];
        }
    }
    free(texts->slots);
    texts->slots = slots;
    texts->slot_count = slot_count;
    return STATUS_OK;
}

enum status kept_texts_copy(struct kept_texts *texts, const char **text, struct error *error)
{
    size_t bytes;
    if (2 * texts->count >= texts->slot_count) {
        TRY(grow(texts, error));
    }
    const char **slot = slot_of(texts->slots, texts->slot_count, *text, &bytes);
    if (*slot == NULL) {
        *slot = arena_copy_text(&texts->arena, *text, bytes);
        TRY(memory_check(*slot, error, "out of memory for the texts of outcomes"));
        texts->count++;
    }
    *text = *slot;
    return STATUS_OK;
}

static enum status take_health(struct kept_texts *texts, struct kept_outcome *kept,
                               struct error *error)
{
    if (kept->health == NULL) {
        return STATUS_OK;
    }
    struct drive_health *copy = arena_alloc(&texts->arena, 1, sizeof *copy);
    TRY(memory_check(copy, error, "out of memory for the health of outcomes"));
    *copy = *kept->health;
    kept->health = copy;
    return STATUS_OK;
}

enum status kept_texts_take(struct kept_texts *texts, struct kept_outcome *kept,
                            struct error *error)
{
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (texts->last[i] != NULL && strcmp(texts->last[i], kept->texts[i]) == 0) {
            kept->texts[i] = texts->last[i];
            continue;
        }
        TRY(kept_texts_copy(texts, &kept->texts[i], error));
        texts->last[i] = kept->texts[i];
    }
    return take_health(texts, kept, error);
}

void kept_texts_finish(struct kept_texts *texts)
{
    free(texts->slots);
    arena_finish(&texts->arena);
    *texts = (struct kept_texts){0};
}
