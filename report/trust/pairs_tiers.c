/*
 * Pairs of tiers: what one question was answered by all steps of a sampler and by fewer of them, or
 * drawn. See pairs.h.
 *
 * Answers are sorted by their question, the model and its most steps first; that of the most steps
 * is what the others of its question are compared with. A branch that prescribes fewer steps for
 * some ticks, as one that was driven at the wheel, is by no tier, whatever its job's sampler says.
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
    uint64_t key; /* of its question, its model and its sampler but for the steps */
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
    const char *const texts[] = {outcome->branch_id, outcome->model_hash, conditioning, precision};
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

/* Of equal questions and steps the newest first. */
static int compare_answers(const void *a, const void *b)
{
    const struct answer *x = a;
    const struct answer *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
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

static void pair_answers(const struct reading *reading, struct pairs *out)
{
    const struct answer *most = NULL;
    for (uint32_t i = 0; i < reading->count; i++) {
        const struct answer *answer = &reading->answers[i];
        if (most == NULL || answer->key != most->key) {
            most = answer;
        } else if (answer->steps < answer[-1].steps) {
            struct pairs_pair *pair = &out->pairs[out->count++];
            *pair = answer->pair;
            pair->job_id = most->pair.job_id;
            pair->teacher = most->pair.student;
            memcpy(pair->teacher_hash, most->pair.student_hash, sizeof pair->teacher_hash);
            memcpy(pair->teacher_sampler, most->pair.student_sampler, sizeof pair->teacher_sampler);
            memcpy(pair->answer_sampler, most->pair.student_sampler, sizeof pair->answer_sampler);
        }
    }
    qsort(out->pairs, out->count, sizeof *out->pairs, compare_outcomes);
}

enum status pairs_read_tiers(struct store *store, struct pairs *out, struct error *error)
{
    struct reading reading = {.count = 0};
    struct pairs pairs = {.tiers = true};
    enum status status = store_outcomes_each(store, NULL, add_answer, &reading, error);
    if (status == STATUS_OK && reading.count > 0) {
        qsort(reading.answers, reading.count, sizeof *reading.answers, compare_scenarios);
        status = drop_skipping(store, &reading, error);
    }
    if (status == STATUS_OK) {
        pairs.pairs = calloc((size_t)reading.count + 1, sizeof *pairs.pairs);
        status = memory_check(pairs.pairs, error, "agreement: out of memory");
    }
    if (status == STATUS_OK) {
        if (reading.count > 0) {
            qsort(reading.answers, reading.count, sizeof *reading.answers, compare_answers);
        }
        pair_answers(&reading, &pairs);
        *out = pairs;
    }
    free(reading.answers);
    return status;
}
