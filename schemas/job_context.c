/*
 * Job contexts: one table of members, by which they are copied, compared and named.
 */
#include "schemas/job_context.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum kind { KIND_TEXT = 0, KIND_NUMBER, KIND_TIER };

#define MEMBER(member, member_kind)                                                       \
    {                                                                                     \
        .name = #member, .kind = (member_kind),                                           \
        .offsets = {offsetof(struct job_spec, member), offsetof(struct outcome, member)}, \
        .bytes = sizeof(((struct job_spec *)0)->member)                                   \
    }

static const struct {
    const char *name;
    enum kind kind;
    size_t offsets[JOB_CONTEXT_RECORDS]; /* 0 in an outcome: it does not say it */
    size_t bytes;
} members[] = {
    MEMBER(scenario_id, KIND_TEXT),
    MEMBER(scenario_hash, KIND_TEXT),
    MEMBER(seed, KIND_NUMBER),
    MEMBER(planner, KIND_TEXT),
    MEMBER(planner_hash, KIND_TEXT),
    MEMBER(revision, KIND_TEXT),
    {"rollout_count", KIND_NUMBER, {offsetof(struct job_spec, rollout_count), 0}, sizeof(uint32_t)},
    MEMBER(pool, KIND_TEXT),
    MEMBER(tier, KIND_TIER),
    MEMBER(model_hash, KIND_TEXT),
    MEMBER(sampler, KIND_TEXT),
    MEMBER(backend, KIND_TEXT),
    MEMBER(rig, KIND_TEXT),
};

_Static_assert(sizeof members / sizeof *members == JOB_CONTEXT_MEMBER_COUNT,
               "one bit for each member");

void job_escalation_clear(struct job_spec *spec)
{
    spec->escalate_pool[0] = '\0';
    spec->escalate_tier = TIER_REPLAY;
    spec->escalate_model_hash[0] = '\0';
    spec->escalate_sampler[0] = '\0';
}

void job_escalation_take(const struct job_spec *flagged, struct job_spec *out)
{
    *out = *flagged;
    memcpy(out->pool, flagged->escalate_pool, sizeof out->pool);
    out->tier = flagged->escalate_tier;
    memcpy(out->model_hash, flagged->escalate_model_hash, sizeof out->model_hash);
    memcpy(out->sampler, flagged->escalate_sampler, sizeof out->sampler);
    job_escalation_clear(out);
}

struct job_context job_context_of_spec(const struct job_spec *spec)
{
    return (struct job_context){.record = spec, .kind = JOB_CONTEXT_IN_SPEC};
}

struct job_context job_context_of_outcome(const struct outcome *outcome)
{
    return (struct job_context){.record = outcome, .kind = JOB_CONTEXT_IN_OUTCOME};
}

static const char *text_at(const struct job_context *context, size_t index)
{
    return (const char *)context->record + members[index].offsets[context->kind];
}

/* Into a record of a kind. */
static void copy(const struct job_context *from, uint32_t asked, void *to, size_t kind)
{
    for (size_t i = 0; i < JOB_CONTEXT_MEMBER_COUNT; i++) {
        if ((asked >> i & 1) != 0) {
            memcpy((char *)to + members[i].offsets[kind], text_at(from, i), members[i].bytes);
        }
    }
}

void job_context_copy(const struct job_spec *spec, struct outcome *outcome)
{
    const struct job_context from = job_context_of_spec(spec);
    copy(&from, JOB_CONTEXT_OF_OUTCOME, outcome, JOB_CONTEXT_IN_OUTCOME);
}

void job_context_take(const struct outcome *outcome, uint32_t asked, struct job_spec *spec)
{
    const struct job_context from = job_context_of_outcome(outcome);
    copy(&from, asked & JOB_CONTEXT_OF_OUTCOME, spec, JOB_CONTEXT_IN_SPEC);
}

/* A number's value; of a tier its number. */
static uint64_t number_at(const struct job_context *context, size_t index)
{
    uint32_t narrow;
    uint64_t wide;
    if (members[index].bytes == sizeof wide) {
        memcpy(&wide, text_at(context, index), sizeof wide);
        return wide;
    }
    memcpy(&narrow, text_at(context, index), sizeof narrow);
    return narrow;
}

static bool same(const struct job_context *a, const struct job_context *b, size_t index)
{
    return members[index].kind == KIND_TEXT ? strcmp(text_at(a, index), text_at(b, index)) == 0
                                            : number_at(a, index) == number_at(b, index);
}

uint32_t job_context_differs(const struct job_context *a, const struct job_context *b,
                             uint32_t asked)
{
    for (size_t i = 0; i < JOB_CONTEXT_MEMBER_COUNT; i++) {
        if ((asked >> i & 1) != 0 && !same(a, b, i)) {
            return UINT32_C(1) << i;
        }
    }
    return 0;
}

uint64_t job_context_hash(const struct job_context *context, uint32_t asked)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    uint64_t out = 0;
    sha256_init(&hash);
    for (size_t i = 0; i < JOB_CONTEXT_MEMBER_COUNT; i++) {
        uint64_t number = members[i].kind == KIND_TEXT ? 0 : number_at(context, i);
        const char *text = members[i].kind == KIND_TEXT ? text_at(context, i) : "";
        if ((asked >> i & 1) != 0) {
            sha256_update(&hash, text, strlen(text) + 1);
            sha256_update(&hash, &number, sizeof number);
        }
    }
    sha256_final(&hash, digest);
    memcpy(&out, digest, sizeof out);
    return out;
}

/* The value for people, cut so that two fit into a sentence. */
static const char *value_text(const struct job_context *context, size_t index, char out[200])
{
    uint64_t number = members[index].kind == KIND_TEXT ? 0 : number_at(context, index);
    if (members[index].kind == KIND_TEXT) {
        snprintf(out, 200, "\"%.190s\"", text_at(context, index));
    } else if (members[index].kind == KIND_TIER && number < TIER_COUNT) {
        snprintf(out, 200, "%s", tier_names[number]);
    } else {
        snprintf(out, 200, "%" PRIu64, number);
    }
    return out;
}

const char *job_context_text(const struct job_context *found, const struct job_context *job,
                             uint32_t member, char out[JOB_CONTEXT_TEXT_BYTES])
{
    char is[200];
    char asked[200];
    size_t index = 0;
    while (index + 1 < JOB_CONTEXT_MEMBER_COUNT && (member >> index & 1) == 0) {
        index++;
    }
    snprintf(out, JOB_CONTEXT_TEXT_BYTES, "%s is %s, the job asks for %s", members[index].name,
             value_text(found, index, is), value_text(job, index, asked));
    return out;
}
