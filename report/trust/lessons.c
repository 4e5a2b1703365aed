/*
 * Choice of lessons. See lessons.h.
 */
#include "report/trust/lessons.h"

#include "base/rng.h"
#include "base/text.h"
#include "schemas/scenario_id.h"

#include <stdlib.h>
#include <string.h>

/* A scenario of the audits: lessons[first] to lessons[first + count - 1]. */
struct found {
    uint32_t first, count;
    uint32_t alike; /* of a healthy one: values of slices that it has like one that differs */
    uint64_t family;
    uint64_t order; /* among those that are alike */
    bool differs, kept, held_out;
};

static bool has_verdict(const struct pairs_side *side)
{
    return side->outcome_id != 0 &&
           (side->verdict == VERDICT_PASS || side->verdict == VERDICT_FAIL);
}

/* A health check broke the drive off; nobody has to disagree with it. */
static bool is_flagged(const struct pairs_pair *pair)
{
    return pair->student.verdict == VERDICT_FLAGGED;
}

bool lessons_differs(const struct pairs_pair *pair)
{
    const struct pairs_side *judge = has_verdict(&pair->object) ? &pair->object : &pair->teacher;
    return is_flagged(pair) || pair->student.verdict != judge->verdict;
}

static uint64_t family_of(const char *scenario_id)
{
    return rng_mix(
        text_hash_on(TEXT_HASH_FIRST, scenario_id, scenario_id_logical_bytes(scenario_id)));
}

static int compare(const void *a, const void *b)
{
    const struct pairs_pair *x = ((const struct lesson *)a)->pair;
    const struct pairs_pair *y = ((const struct lesson *)b)->pair;
    int order = strcmp(x->scenario_hash, y->scenario_hash);
    return order != 0 ? order : (x->seed > y->seed) - (x->seed < y->seed);
}

/* By scenario's id, the newest drive first. */
static int compare_ids(const void *a, const void *b)
{
    const struct pairs_pair *x = ((const struct lesson *)a)->pair;
    const struct pairs_pair *y = ((const struct lesson *)b)->pair;
    int64_t newer = y->student.outcome_id - x->student.outcome_id;
    int order = strcmp(x->scenario_id, y->scenario_id);
    return order != 0 ? order : (newer > 0) - (newer < 0);
}

/* Audits of the student; of a scenario that was changed those of its newest text, since a suite has
 * an id once. */
static void collect(const struct pairs *pairs, const char *student_hash, struct lessons *out)
{
    const struct pairs_pair *newest = NULL;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pairs->count; i++) {
        const struct pairs_pair *pair = &pairs->pairs[i];
        if (!pair->shadow && !pair->unlike && (is_flagged(pair) || pairs_judged(pair)) &&
            strcmp(pair->student_hash, student_hash) == 0) {
            out->lessons[out->count++] = (struct lesson){.pair = pair};
        }
    }
    qsort(out->lessons, out->count, sizeof *out->lessons, compare_ids);
    for (uint32_t i = 0; i < out->count; i++) {
        const struct pairs_pair *pair = out->lessons[i].pair;
        if (newest == NULL || strcmp(newest->scenario_id, pair->scenario_id) != 0) {
            newest = pair;
        }
        if (strcmp(newest->scenario_hash, pair->scenario_hash) == 0) {
            out->lessons[kept++].pair = pair;
        }
    }
    out->count = kept;
    qsort(out->lessons, out->count, sizeof *out->lessons, compare);
}

static uint32_t group(const struct lessons *lessons, struct found *found)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lessons->count; i++) {
        const struct pairs_pair *pair = lessons->lessons[i].pair;
        if (i == 0 ||
            strcmp(pair->scenario_hash, lessons->lessons[i - 1].pair->scenario_hash) != 0) {
            found[count++] = (struct found){.first = i,
                                            .family = family_of(pair->scenario_id),
                                            .order = rng_mix(text_hash(pair->scenario_hash))};
        }
        found[count - 1].count++;
        found[count - 1].differs |= lessons_differs(pair);
    }
    return count;
}

/* Values that the slices of two scenarios have in common. */
static uint32_t alike(const struct pairs_pair *a, const struct pairs_pair *b)
{
    uint32_t same = a->safety_critical == b->safety_critical;
    for (size_t k = 0; k < sizeof a->slice / sizeof a->slice[0]; k++) {
        same += strcmp(a->slice[k], b->slice[k]) == 0;
    }
    return same;
}

/* Those that differ, then healthy ones by how much they are alike one of these. */
static int compare_found(const void *a, const void *b)
{
    const struct found *x = a;
    const struct found *y = b;
    if (x->differs != y->differs) {
        return y->differs - x->differs;
    }
    if (x->alike != y->alike) {
        return (y->alike > x->alike) - (y->alike < x->alike);
    }
    return (x->order > y->order) - (x->order < y->order);
}

static void keep(const struct lessons *lessons, struct found *found, uint32_t count,
                 uint32_t healthy_each, struct lessons *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct pairs_pair *pair = lessons->lessons[found[i].first].pair;
        for (uint32_t d = 0; !found[i].differs && d < count; d++) {
            uint32_t same =
                found[d].differs ? alike(pair, lessons->lessons[found[d].first].pair) : 0;
            found[i].alike = same > found[i].alike ? same : found[i].alike;
        }
    }
    qsort(found, count, sizeof *found, compare_found);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t most =
            found[i].differs ? LESSONS_DIFFERING_MAX : (uint64_t)healthy_each * out->differing;
        uint32_t *kept = found[i].differs ? &out->differing : &out->healthy;
        found[i].kept = *kept < most && out->differing + out->healthy < LIMIT_SUITE_SCENARIOS;
        *kept += found[i].kept;
    }
}

/* All of a family to one side. */
static void put(struct found *found, uint32_t count, uint64_t family, bool held_out)
{
    for (uint32_t i = 0; i < count; i++) {
        found[i].held_out = found[i].family == family ? held_out : found[i].held_out;
    }
}

/* The kept scenario with the least (or greatest) hash of its family among those on a side; NULL:
 * none. */
static const struct found *extreme(const struct found *found, uint32_t count, bool held_out,
                                   bool differing, bool least)
{
    const struct found *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (found[i].kept && found[i].held_out == held_out && (found[i].differs || !differing) &&
            (best == NULL ||
             (least ? found[i].family < best->family : found[i].family > best->family))) {
            best = &found[i];
        }
    }
    return best;
}

static void count_families(const struct found *found, uint32_t count, struct lessons *out)
{
    out->families = 0;
    out->families_held_out = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool first = found[i].kept;
        for (uint32_t k = 0; first && k < i; k++) {
            first = !found[k].kept || found[k].family != found[i].family;
        }
        out->families += first;
        out->families_held_out += first && found[i].held_out;
    }
}

static enum status hold_out(struct found *found, uint32_t count, double share, struct lessons *out,
                            struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        found[i].held_out = (double)(found[i].family >> 11) * 0x1p-53 < share;
    }
    count_families(found, count, out);
    if (out->families < 2) {
        return error_set(error, STATUS_NOT_FOUND,
                         "lessons: expected audited scenarios of two logical scenarios, one to "
                         "train on and one that ends the training, found them of one");
    }
    const struct found *taught = extreme(found, count, false, true, true);
    const struct found *moved = extreme(found, count, true, true, false);
    if (taught == NULL && moved != NULL) {
        put(found, count, moved->family, false);
        taught = moved;
    }
    if (extreme(found, count, true, false, true) == NULL) {
        const struct found *least = extreme(found, count, false, false, true);
        bool only_one_differs = taught->family == least->family &&
                                extreme(found, count, false, true, false)->family == least->family;
        moved = only_one_differs ? extreme(found, count, false, false, false) : least;
        put(found, count, moved->family, true);
    }
    count_families(found, count, out);
    return STATUS_OK;
}

enum status lessons_choose(const struct pairs *pairs, const struct lessons_options *options,
                           struct lessons *out, struct error *error)
{
    struct lessons chosen = {.lessons = calloc((size_t)pairs->count + 1, sizeof *chosen.lessons)};
    struct found *found = calloc((size_t)pairs->count + 1, sizeof *found);
    enum status status = memory_check(chosen.lessons != NULL ? found : NULL, error,
                                      "lessons: out of memory for %u pairs", pairs->count);
    uint32_t count = 0;
    if (status == STATUS_OK) {
        collect(pairs, options->student_hash, &chosen);
        count = group(&chosen, found);
        keep(&chosen, found, count, options->healthy, &chosen);
        if (chosen.differing == 0) {
            status = error_set(error, STATUS_NOT_FOUND,
                               "lessons: expected audits of %.12s whose verdict differs, or "
                               "flags, found none among %u: there is nothing to learn from",
                               options->student_hash, chosen.count);
        }
    }
    THEN(status, hold_out(found, count, options->held_out, &chosen, error));
    uint32_t kept = 0;
    struct lesson *list =
        status == STATUS_OK ? calloc((size_t)chosen.count + 1, sizeof *list) : NULL;
    THEN(status, memory_check(list, error, "lessons: out of memory"));
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        for (uint32_t k = 0; found[i].kept && k < found[i].count; k++) {
            list[kept++] = (struct lesson){.pair = chosen.lessons[found[i].first + k].pair,
                                           .differs = found[i].differs,
                                           .held_out = found[i].held_out};
        }
    }
    free(found);
    free(chosen.lessons);
    if (status == STATUS_OK) {
        qsort(list, kept, sizeof *list, compare);
        chosen.lessons = list;
        chosen.count = kept;
        *out = chosen;
    }
    return status;
}

void lessons_finish(struct lessons *lessons)
{
    free(lessons->lessons);
    lessons->lessons = NULL;
    lessons->count = 0;
}
