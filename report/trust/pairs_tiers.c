/*
 * Pairs of tiers: what one question was answered by all steps of a sampler and by fewer of them, or
 * drawn. See pairs.h.
 *
 * Answers are sorted by their question, then by model, then by steps, the most first; a model's by
 * the most steps is what its others are compared with, and those of a previous model, which takes
 * over for ticks at the wheel: all of its ticks made by itself are its tier. A branch that
 * prescribes fewer steps for some ticks, as one that was driven at the wheel, is by no tier,
 * whatever its job's sampler says.
 */
#include "report/trust/pairs.h"

#include "report/trust/skipped.h"

#include "base/array.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An answer of a learned world. */
struct answer {
    uint64_t key; /* of its question and its sampler but for the steps */
    uint32_t steps;
    struct pairs_pair pair; /* its `student` side */
};

struct reading {
    uint32_t count;
    struct answer *answers; /* owned */
};

/* Steps of a sampler of ours, all ticks alike, and what stands around them; false: another's. */
static bool take_apart(const char *sampler, char conditioning[LIMIT_ID_BYTES], uint32_t *steps,
                       char precision[LIMIT_ID_BYTES])
{
    _Static_assert(LIMIT_ID_BYTES == 64, "as the widths below");
    int end = 0;
    return sscanf(sampler, "%63[^/]/euler%u/%63s%n", conditioning, steps, precision, &end) == 3 &&
           sampler[end] == '\0';
}

static uint64_t key_of(const struct outcome *outcome, const char *conditioning,
                       const char *precision)
{
    const char *const texts[] = {outcome->branch_id, conditioning, precision};
    const uint64_t asked = pairs_asked(outcome);
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    uint64_t key;
    sha256_init(&hash);
    sha256_update(&hash, &asked, sizeof asked);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sha256_update(&hash, texts[i], strlen(texts[i]) + 1);
    }
    sha256_final(&hash, digest);
    memcpy(&key, digest, sizeof key);
    return key;
}

static enum status add_answer(void *context, const struct outcome *outcome, struct error *error)
{
    struct reading *reading = context;
    char conditioning[LIMIT_ID_BYTES];
    char precision[LIMIT_ID_BYTES];
    uint32_t steps;
    if (outcome->audit_of != 0 || outcome->model_hash[0] == '\0' ||
        !take_apart(outcome->sampler, conditioning, &steps, precision)) {
        return STATUS_OK;
    }
    TRY(array_room(&reading->answers, reading->count, sizeof *reading->answers, error));
    struct answer *answer = &reading->answers[reading->count++];
    *answer = (struct answer){key_of(outcome, conditioning, precision), steps,
                              pairs_pair_of_answer(outcome)};
    /* With the conditioning, in which verdicts may differ. */
    memcpy(answer->pair.student_sampler, outcome->sampler, sizeof answer->pair.student_sampler);
    return STATUS_OK;
}

static int compare_scenarios(const void *a, const void *b)
{
    const struct pairs_pair *x = &((const struct answer *)a)->pair;
    const struct pairs_pair *y = &((const struct answer *)b)->pair;
    int by_scenario = strcmp(x->scenario_hash, y->scenario_hash);
    return by_scenario != 0 ? by_scenario : strcmp(x->branch_id, y->branch_id);
}

/* Drops answers some of whose ticks leave out steps by their scenario, or of which nobody knows
 * since the store has lost it. Each branch is looked up once. */
static enum status drop_skipping(struct store *store, struct reading *reading, struct error *error)
{
    uint32_t kept = 0;
    bool drops = false;
    for (uint32_t i = 0; i < reading->count; i++) { /* those from `kept` on are as they were */
        const struct answer *answer = &reading->answers[i];
        const struct pairs_pair *pair = &answer->pair;
        if (i == 0 || compare_scenarios(answer, answer - 1) != 0) {
            uint32_t ticks;
            enum status status = skipped_find(store, pair->scenario_hash, pair->branch_id,
                                              UINT32_MAX, &ticks, error);
            if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
                return status;
            }
            drops = status != STATUS_OK || ticks > 0;
        }
        if (!drops) {
            reading->answers[kept++] = *answer;
        }
    }
    reading->count = kept;
    return STATUS_OK;
}

/* Of equal questions, models and steps the newest first. */
static int compare_answers(const void *a, const void *b)
{
    const struct answer *x = a;
    const struct answer *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    int by_model = strcmp(x->pair.student_hash, y->pair.student_hash);
    if (by_model != 0) {
        return by_model;
    }
    if (x->steps != y->steps) {
        return x->steps > y->steps ? -1 : 1;
    }
    return (x->pair.student.outcome_id < y->pair.student.outcome_id) -
           (x->pair.student.outcome_id > y->pair.student.outcome_id);
}

static int compare_outcomes(const void *a, const void *b)
{
    int64_t x = ((const struct pairs_pair *)a)->student.outcome_id;
    int64_t y = ((const struct pairs_pair *)b)->student.outcome_id;
    return (x > y) - (x < y);
}

static bool same_model(const struct answer *a, const struct answer *b)
{
    return strcmp(a->pair.student_hash, b->pair.student_hash) == 0;
}

/* Pairs an answer with the one that counts in its place. */
static enum status add_pair(struct pairs *out, const struct answer *answer,
                            const struct answer *most, struct error *error)
{
    TRY(array_room(&out->pairs, out->count, sizeof *out->pairs, error));
    struct pairs_pair *pair = &out->pairs[out->count++];
    *pair = answer->pair;
    pair->job_id = most->pair.job_id;
    pair->teacher = most->pair.student;
    memcpy(pair->teacher_hash, most->pair.student_hash, sizeof pair->teacher_hash);
    memcpy(pair->teacher_sampler, most->pair.student_sampler, sizeof pair->teacher_sampler);
    memcpy(pair->answer_sampler, most->pair.student_sampler, sizeof pair->answer_sampler);
    return STATUS_OK;
}

/* Pairs one answer of a question, `count` answers; the first of each model is by its most steps. */
static enum status pair_answer(const struct answer *answers, uint32_t count, uint32_t index,
                               const char *previous, struct pairs *out, struct error *error)
{
    const struct answer *answer = &answers[index];
    const bool takes_over =
        previous[0] != '\0' && strncmp(answer->pair.student_hash, previous, strlen(previous)) == 0;
    if (index > 0 && same_model(answer, answer - 1) && answer->steps == answer[-1].steps) {
        return STATUS_OK; /* a newer one is there */
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct answer *most = &answers[i];
        if ((i == 0 || !same_model(most, most - 1)) &&
            (same_model(most, answer) ? answer->steps < most->steps : takes_over)) {
            TRY(add_pair(out, answer, most, error));
        }
    }
    return STATUS_OK;
}

static enum status pair_answers(const struct reading *reading, const char *previous,
                                struct pairs *out, struct error *error)
{
    for (uint32_t first = 0, end = 0; first < reading->count; first = end) {
        const struct answer *answers = &reading->answers[first];
        while (end < reading->count && reading->answers[end].key == answers->key) {
            end++;
        }
        for (uint32_t i = 0; i < end - first; i++) {
            TRY(pair_answer(answers, end - first, i, previous, out, error));
        }
    }
    return STATUS_OK;
}

enum status pairs_read_tiers(struct store *store, const char *previous, struct pairs *out,
                             struct error *error)
{
    struct reading reading = {.count = 0};
    struct pairs pairs = {.tiers = true};
    enum status status = store_outcomes_each(store, NULL, add_answer, &reading, error);
    if (status == STATUS_OK && reading.count > 0) {
        qsort(reading.answers, reading.count, sizeof *reading.answers, compare_scenarios);
        status = drop_skipping(store, &reading, error);
        qsort(reading.answers, reading.count, sizeof *reading.answers, compare_answers);
    }
    THEN(status, pair_answers(&reading, previous, &pairs, error));
    if (status == STATUS_OK && pairs.count > 0) {
        qsort(pairs.pairs, pairs.count, sizeof *pairs.pairs, compare_outcomes);
    }
    free(reading.answers);
    if (status != STATUS_OK) {
        pairs_finish(&pairs);
        return status;
    }
    *out = pairs;
    return STATUS_OK;
}
