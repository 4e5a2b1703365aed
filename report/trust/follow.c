/*
 * Reading on in a store, and pairs that wait for their student's side. See follow.h.
 */
#include "report/trust/follow.h"

#include "base/array.h"
#include "report/trust/arbiter.h"
#include "report/trust/measures.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_OUTCOMES = 200 };

struct follow {
    struct trust_policy policy;
    int64_t up_to;
    int64_t redrives;   /* store_ops.redrives as it was; -1: not asked yet */
    struct pairs pairs; /* of audits and shadows in the order of outcomes; `missing` is unused */
    uint32_t waiting_count;
    uint32_t *waiting;       /* owned; into pairs: one side is not there yet */
    struct outcome *page;    /* owned */
    struct arbiter *arbiter; /* owned */
};

enum status follow_create(const struct trust_policy *policy, struct follow **out,
                          struct error *error)
{
    struct follow *follow = calloc(1, sizeof *follow);
    TRY(memory_check(follow, error, "agreement: out of memory"));
    follow->page = malloc(PAGE_OUTCOMES * sizeof *follow->page);
    enum status status = memory_check(follow->page, error, "agreement: out of memory");
    THEN(status, arbiter_create(&follow->arbiter, error));
    if (status != STATUS_OK) {
        follow_destroy(follow);
        return status;
    }
    follow->policy = *policy;
    follow->pairs.drives.keeps_measures = true;
    follow->redrives = -1;
    *out = follow;
    return STATUS_OK;
}

void follow_destroy(struct follow *follow)
{
    if (follow != NULL) {
        pairs_finish(&follow->pairs);
        free(follow->waiting);
        free(follow->page);
        arbiter_destroy(follow->arbiter);
        free(follow);
    }
}

int64_t follow_up_to(const struct follow *follow)
{
    return follow->up_to;
}

const struct decisions *follow_decisions(const struct follow *follow)
{
    return &follow->pairs.decisions;
}

static enum status refuse_more(const char *what, int most, struct error *error)
{
    return error_set(error, STATUS_LIMIT,
                     "agreement: a server follows at most %d %s, this store has more; swerve "
                     "agreement counts them all",
                     most, what);
}

/* The other side is in the store already, or comes later: then the pair waits. */
static enum status add_repeat(struct follow *follow, struct store *store,
                              struct pairs_lookup *lookup, const struct outcome *repeat,
                              struct error *error)
{
    struct pairs *pairs = &follow->pairs;
    struct pairs_pair pair = pairs_pair_of(repeat);
    if (pairs->count == FOLLOW_PAIRS_MAX) {
        return refuse_more("audited rollouts and shadows", FOLLOW_PAIRS_MAX, error);
    }
    TRY(pairs_lookup_answer(lookup, store, &pair, error));
    if (pair.moot || pair.unlike) {
        pairs->unlike += pair.unlike;
        return STATUS_OK;
    }
    TRY(array_room(&pairs->pairs, pairs->count, sizeof pair, error));
    if (!pairs_complete(&pair)) {
        TRY(array_room(&follow->waiting, follow->waiting_count, sizeof *follow->waiting, error));
        follow->waiting[follow->waiting_count++] = pairs->count;
    }
    pairs->pairs[pairs->count++] = pair;
    return STATUS_OK;
}

static enum status add_answer(struct follow *follow, const struct outcome *answer,
                              struct error *error)
{
    struct pairs *pairs = &follow->pairs;
    bool student = answer->tier == TIER_STUDENT;
    if (student && answer->branch_id[0] == '\0') {
        if (pairs->drives.count == FOLLOW_DRIVES_MAX) {
            return refuse_more("drives of students", FOLLOW_DRIVES_MAX, error);
        }
        TRY(drives_add(&pairs->drives, answer, error));
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < follow->waiting_count; i++) {
        struct pairs_pair *pair = &pairs->pairs[follow->waiting[i]];
        if ((student || pair->shadow) && pair->job_id == answer->job_id &&
            strcmp(pair->branch_id, answer->branch_id) == 0) {
            pairs_pair_answer(pair, answer);
            pairs->unlike += pair->unlike; /* and it stays without this side */
        } else if (!pairs_answered_instead(pair, answer)) {
            follow->waiting[kept++] = follow->waiting[i];
        }
    }
    follow->waiting_count = kept;
    return STATUS_OK;
}

/* Begins anew where outcomes were dropped since: those may be among what was counted. */
static enum status look_for_redrives(struct follow *follow, struct store *store,
                                     struct error *error)
{
    int64_t redrives = 0;
    TRY(store_redrives(store, &redrives, error));
    if (follow->redrives >= 0 && redrives != follow->redrives) {
        struct decisions decisions = follow->pairs.decisions;
        follow->pairs.decisions = (struct decisions){.count = 0};
        pairs_finish(&follow->pairs);
        follow->pairs = (struct pairs){.decisions = decisions, .drives.keeps_measures = true};
        arbiter_clear(follow->arbiter);
        follow->waiting_count = 0;
        follow->up_to = 0;
    }
    follow->redrives = redrives;
    return STATUS_OK;
}

enum status follow_step(struct follow *follow, struct store *store, uint32_t outcomes_max,
                        bool *end, struct error *error)
{
    struct store_outcome_filter filter = {.limit = PAGE_OUTCOMES};
    struct pairs_lookup lookup = {.job_id = 0};
    enum status status = look_for_redrives(follow, store, error);
    *end = false;
    for (uint32_t read = 0; status == STATUS_OK && !*end && read < outcomes_max;) {
        uint32_t count = 0;
        filter.after_id = follow->up_to;
        lookup.job_id = 0; /* its job may have ended since */
        status = store->ops->outcomes(store, &filter, follow->page, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            const struct outcome *outcome = &follow->page[i];
            if (outcome_is_made(outcome)) {
                status = STATUS_OK; /* of no pair */
            } else if (outcome->audit_of != 0) {
                status = add_repeat(follow, store, &lookup, outcome, error);
            } else if (outcome->model_hash[0] != '\0') {
                status = add_answer(follow, outcome, error);
            } else {
                arbiter_add(follow->arbiter, outcome);
            }
            follow->up_to = status == STATUS_OK ? outcome->id : follow->up_to;
        }
        *end = status == STATUS_OK && count < PAGE_OUTCOMES;
        read += count;
    }
    pairs_lookup_finish(&lookup);
    if (status == STATUS_OK && *end) {
        struct decisions decisions;
        TRY(decisions_read(store, &decisions, error));
        decisions_finish(&follow->pairs.decisions);
        follow->pairs.decisions = decisions;
    }
    return status;
}

enum status follow_drift(const struct follow *follow, json_t **out, struct error *error)
{
    const struct drives *drives = &follow->pairs.drives;
    struct measures_alarm *alarms = NULL;
    uint32_t count = 0;
    TRY(measures_alarms(drives, &follow->policy, &alarms, &count, error));
    *out = measures_json(drives, alarms, count);
    free(alarms);
    return memory_check(*out, error, "agreement: out of memory");
}

enum status follow_table(const struct follow *follow, struct table *out, struct error *error)
{
    const struct pairs *all = &follow->pairs;
    struct pairs whole = {.missing = follow->waiting_count,
                          .unlike = all->unlike,
                          .drives = all->drives,
                          .decisions = all->decisions};
    whole.pairs = malloc(((size_t)all->count + 1) * sizeof *whole.pairs);
    TRY(memory_check(whole.pairs, error, "agreement: out of memory"));
    for (uint32_t i = 0; i < all->count; i++) {
        if (pairs_complete(&all->pairs[i])) {
            whole.pairs[whole.count] = all->pairs[i];
            arbiter_ask(follow->arbiter, &whole.pairs[whole.count++]);
        }
    }
    enum status status = table_make_by_day(&whole, &follow->policy, DAY_NEVER, out, error);
    free(whole.pairs);
    return status;
}
