/*
 * Texts are found by an open hash table of at most half its slots.
 */
#include "report/outcomes.h"

#include "base/check.h"

#include <stddef.h>
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

struct kept_outcome kept_outcome_of(const struct outcome *outcome)
{
    struct kept_outcome kept = {
        .id = outcome->id,
        .job_id = outcome->job_id,
        .epoch = outcome->epoch,
        .tier = outcome->tier,
        .verdict = outcome->verdict,
        .seed = outcome->seed,
        .reasons = outcome->reasons,
        .ticks = outcome->ticks,
        .prefix_ticks = outcome->prefix_ticks,
        .pages_used_percent = outcome->pages_used_percent,
        .health_tick = outcome->health_tick,
        .safety_critical = outcome->safety_critical,
        .shadow = outcome->shadow,
        .in_flight = outcome->in_flight,
        .metres_mm = outcome->metres_mm,
        .device_ns = outcome->device_ns,
        .mflop = outcome->mflop,
        .peak_mflops = outcome->peak_mflops,
        .metrics = outcome->metrics,
        .health_value = outcome->health_value,
        .health_threshold = outcome->health_threshold,
        .parent_job_id = outcome->parent_job_id,
        .audit_of = outcome->audit_of,
        .at_ms = outcome->at_ms,
        .freeze = outcome->freeze,
    };
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        kept.texts[i] = (const char *)outcome + text_members[i].offset;
    }
    return kept;
}

void kept_outcome_whole(const struct kept_outcome *kept, struct outcome *out)
{
    *out = (struct outcome){
        .id = kept->id,
        .job_id = kept->job_id,
        .epoch = kept->epoch,
        .tier = kept->tier,
        .verdict = kept->verdict,
        .seed = kept->seed,
        .reasons = kept->reasons,
        .ticks = kept->ticks,
        .prefix_ticks = kept->prefix_ticks,
        .pages_used_percent = kept->pages_used_percent,
        .health_tick = kept->health_tick,
        .safety_critical = kept->safety_critical,
        .shadow = kept->shadow,
        .in_flight = kept->in_flight,
        .metres_mm = kept->metres_mm,
        .device_ns = kept->device_ns,
        .mflop = kept->mflop,
        .peak_mflops = kept->peak_mflops,
        .metrics = kept->metrics,
        .health_value = kept->health_value,
        .health_threshold = kept->health_threshold,
        .parent_job_id = kept->parent_job_id,
        .audit_of = kept->audit_of,
        .at_ms = kept->at_ms,
        .freeze = kept->freeze,
    };
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        snprintf((char *)out + text_members[i].offset, text_members[i].bytes, "%s", kept->texts[i]);
    }
}

/* ---- texts ---- */

/* The slot of a text, or the free one that it would have. */
static const char **slot_of(const char **slots, size_t slot_count, const char *text, size_t *bytes)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    const char *at = text;
    for (; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    }
    *bytes = (size_t)(at - text);
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

static enum status take_text(struct kept_texts *texts, const char **text, struct error *error)
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

enum status kept_texts_take(struct kept_texts *texts, struct kept_outcome *kept,
                            struct error *error)
{
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (texts->last[i] != NULL && strcmp(texts->last[i], kept->texts[i]) == 0) {
            kept->texts[i] = texts->last[i];
            continue;
        }
        TRY(take_text(texts, &kept->texts[i], error));
        texts->last[i] = kept->texts[i];
    }
    return STATUS_OK;
}

void kept_texts_finish(struct kept_texts *texts)
{
    free(texts->slots);
    arena_finish(&texts->arena);
    *texts = (struct kept_texts){0};
}
