/*
 * Answers by question, in buckets of a table of fixed size. See arbiter.h.
 */
#include "report/trust/arbiter.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 18, WAYS = 4 };

/* Bits below an outcome's id. */
enum {
    VERDICT_MASK = 7,
    COLLIDED = 8,
    AT_FAULT = 16,
    INTERVENED = 32,
    COMFORTABLE = 64,
    ID_SHIFT = 7
};
_Static_assert(VERDICT_COUNT <= VERDICT_MASK + 1, "a verdict fits");

struct answer {
    uint64_t question;
    uint64_t said; /* 0: none */
};

struct arbiter {
    struct answer answers[BUCKETS][WAYS];
};

enum status arbiter_create(struct arbiter **out, struct error *error)
{
    *out = calloc(1, sizeof **out); /* pages are the system's until they are written */
    return memory_check(*out, error, "agreement: out of memory for the arbiter");
}

void arbiter_destroy(struct arbiter *arbiter)
{
    free(arbiter);
}

void arbiter_clear(struct arbiter *arbiter)
{
    memset(arbiter, 0, sizeof *arbiter);
}

void arbiter_add(struct arbiter *arbiter, const struct outcome *outcome)
{
    if (outcome->audit_of != 0 || outcome->tier != TIER_OBJECT) {
        return;
    }
    const struct pairs_side side = pairs_side_of(outcome);
    const uint64_t question = pairs_question(outcome);
    struct answer *bucket = arbiter->answers[question % BUCKETS];
    struct answer *place = bucket;
    for (int i = 0; i < WAYS && !(place->said != 0 && place->question == question); i++) {
        bool same = bucket[i].said != 0 && bucket[i].question == question;
        place = same || bucket[i].said < place->said ? &bucket[i] : place;
    }
    *place = (struct answer){
        .question = question,
        .said = (uint64_t)side.outcome_id << ID_SHIFT | (uint64_t)side.verdict |
                (side.collided ? COLLIDED : 0) | (side.at_fault ? AT_FAULT : 0) |
                (side.intervened ? INTERVENED : 0) | (side.comfortable ? COMFORTABLE : 0)};
}

void arbiter_ask(const struct arbiter *arbiter, struct pairs_pair *pair)
{
    const struct answer *bucket = arbiter->answers[pair->question % BUCKETS];
    for (int i = 0; i < WAYS; i++) {
        if (bucket[i].said != 0 && bucket[i].question == pair->question) {
            const uint64_t said = bucket[i].said;
            pair->object = (struct pairs_side){
                .outcome_id = (int64_t)(said >> ID_SHIFT),
                .verdict = (enum verdict)(said & VERDICT_MASK),
                .collided = (said & COLLIDED) != 0,
                .at_fault = (said & AT_FAULT) != 0,
                .intervened = (said & INTERVENED) != 0,
                .comfortable = (said & COMFORTABLE) != 0,
            };
        }
    }
}
