/*
 * Lessons out of pairs. Goal: all that differs is learnt from, with so many healthy scenarios of
 * like slices; no logical scenario is on both sides, each side has one, and one that differs is
 * trained on; where a logical scenario is does not depend on what else there is.
 *
 * Method: named pairs for each rule, then stores drawn at random, whose lessons are held to the
 * rules as they are written in the header.
 */
#include "report/trust/lessons.h"

#include "base/rng.h"
#include "schemas/scenario_id.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 6000, STORES = 300 };

static uint64_t state = 1;
static struct pairs_pair list[PAIRS_MAX];
static struct pairs pairs = {.pairs = list};
static struct lessons lessons;
static struct error error;

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(rng_mix(++state) >> 33) % below;
}

/* A pair of the student in question; fails: the student's verdict is not the teacher's. */
static struct pairs_pair *add(const char *id, const char *weather, uint64_t seed, bool fails)
{
    const uint32_t at = pairs.count++;
    struct pairs_pair *pair = &list[at];
    *pair = (struct pairs_pair){.seed = seed};
    pair->student = (struct pairs_side){.outcome_id = 2 * (int64_t)at + 1,
                                        .verdict = fails ? VERDICT_FAIL : VERDICT_PASS};
    pair->teacher = (struct pairs_side){.outcome_id = 2 * (int64_t)at + 2, .verdict = VERDICT_PASS};
    snprintf(pair->scenario_id, sizeof pair->scenario_id, "%s", id);
    snprintf(pair->scenario_hash, sizeof pair->scenario_hash, "hash of %s", id);
    snprintf(pair->student_hash, sizeof pair->student_hash, "student");
    snprintf(pair->slice[0], sizeof pair->slice[0], "%s", weather);
    return pair;
}

static enum status choose(uint32_t healthy, double held_out)
{
    const struct lessons_options options = {
        .student_hash = "student", .healthy = healthy, .held_out = held_out};
    lessons_finish(&lessons);
    lessons = (struct lessons){0};
    return lessons_choose(&pairs, &options, &lessons, &error);
}

static const struct lesson *find(const char *id)
{
    for (uint32_t i = 0; i < lessons.count; i++) {
        if (strcmp(lessons.lessons[i].pair->scenario_id, id) == 0) {
            return &lessons.lessons[i];
        }
    }
    return NULL;
}

static void healthy_ones_are_of_like_slices(void)
{
    pairs.count = 0;
    add("wet", "rain", 1, true);
    add("dry/a=1", "clear", 1, false);
    add("dry/a=2", "clear", 1, false);
    for (uint64_t i = 0; i < 9; i++) {
        char id[LIMIT_ID_BYTES];
        snprintf(id, sizeof id, "dry/a=%u", (unsigned)i + 3);
        add(id, "clear", 1, false);
    }
    add("soaked", "rain", 1, false);
    EXPECT_OK(choose(1, 0.2), error);
    EXPECT_INT(lessons.differing, 1);
    EXPECT_INT(lessons.healthy, 1);
    EXPECT(find("soaked") != NULL && !find("soaked")->differs && find("wet")->differs);
    EXPECT(!find("wet")->held_out && find("soaked")->held_out);
    EXPECT_OK(choose(99, 0.2), error);
    EXPECT_INT(lessons.healthy, 12);
    EXPECT_INT(lessons.families, 3);
    EXPECT_INT(find("dry/a=1")->held_out, find("dry/a=2")->held_out);
}

static void only_what_the_student_was_asked_counts(void)
{
    pairs.count = 0;
    add("mine", "rain", 1, true);
    add("healthy", "rain", 1, false);
    add("a_shadow", "rain", 1, true)->shadow = true;
    add("unlike", "rain", 1, true)->unlike = true;
    strcpy(add("another", "rain", 1, true)->student_hash, "another");
    /* The object world says that it was the teacher; in the other that both were wrong. */
    add("teacher_wrong", "rain", 1, true)->object =
        (struct pairs_side){.outcome_id = 9, .verdict = VERDICT_FAIL};
    add("both_wrong", "rain", 1, false)->object =
        (struct pairs_side){.outcome_id = 9, .verdict = VERDICT_FAIL};
    struct pairs_pair *flagged = add("flagged", "rain", 1, false);
    flagged->student.verdict = VERDICT_FLAGGED;
    flagged->teacher = (struct pairs_side){.outcome_id = 0};
    EXPECT_OK(choose(9, 0.2), error);
    EXPECT_INT(lessons.count, 5);
    EXPECT_INT(lessons.differing, 3);
    EXPECT(find("mine")->differs && find("flagged")->differs && find("both_wrong")->differs);
    EXPECT(!find("teacher_wrong")->differs && !find("healthy")->differs);
}

/* A suite has an id once. */
static void the_newest_text_of_a_scenario_counts(void)
{
    pairs.count = 0;
    strcpy(add("changed", "rain", 1, true)->scenario_hash, "hash of an earlier text");
    add("changed", "rain", 1, true);
    add("changed", "rain", 2, false);
    add("healthy", "rain", 1, false);
    EXPECT_OK(choose(1, 0.2), error);
    EXPECT_INT(lessons.count, 3); /* two seeds of one, and the healthy one */
    EXPECT_TEXT(find("changed")->pair->scenario_hash, "hash of changed");
}

static void what_cannot_be_learnt_from_is_said(void)
{
    pairs.count = 0;
    add("healthy", "rain", 1, false);
    EXPECT_INT(choose(1, 0.2), STATUS_NOT_FOUND);
    EXPECT_CONTAINS(error.text, "nothing to learn from");
    pairs.count = 0;
    add("one/a=1", "rain", 1, true);
    add("one/a=2", "rain", 1, false);
    EXPECT_INT(choose(1, 0.2), STATUS_NOT_FOUND);
    EXPECT_CONTAINS(error.text, "two logical scenarios");
}

static void fill(void)
{
    pairs.count = 0;
    const uint32_t families = 2 + draw(12);
    for (uint32_t f = 0; f < families; f++) {
        const uint32_t name = 100 * draw(1000) + f;
        for (uint32_t c = 0; c <= draw(4); c++) {
            char id[LIMIT_ID_BYTES];
            snprintf(id, sizeof id, "family%u/a=%u", name, c);
            for (uint64_t seed = 0; seed <= draw(3); seed++) {
                add(id, draw(2) == 0 ? "rain" : "clear", seed, draw(4) == 0);
            }
        }
    }
}

static bool differs(const char *id)
{
    bool found = false;
    for (uint32_t i = 0; i < pairs.count; i++) {
        found |= strcmp(list[i].scenario_id, id) == 0 && lessons_differs(&list[i]);
    }
    return found;
}

static void rules_hold_of_any_store(void)
{
    uint32_t chosen = 0;
    for (int s = 0; s < STORES; s++) {
        uint32_t held_out = 0;
        uint32_t taught = 0;
        const uint32_t healthy = draw(3);
        const double share = (double)draw(11) / 10.0;
        fill();
        if (choose(healthy, share) != STATUS_OK) {
            continue;
        }
        chosen++;
        for (uint32_t i = 0; i < lessons.count; i++) {
            const struct lesson *lesson = &lessons.lessons[i];
            held_out += lesson->held_out;
            taught += lesson->differs && !lesson->held_out;
            EXPECT_INT(lesson->differs, differs(lesson->pair->scenario_id));
            for (uint32_t k = 0; k < i; k++) {
                const struct lesson *other = &lessons.lessons[k];
                EXPECT(other->pair != lesson->pair);
                EXPECT(scenario_id_compare_logical(other->pair->scenario_id,
                                                   lesson->pair->scenario_id) != 0 ||
                       other->held_out == lesson->held_out);
            }
        }
        for (uint32_t i = 0; i < pairs.count; i++) {
            EXPECT(!lessons_differs(&list[i]) || find(list[i].scenario_id) != NULL);
        }
        EXPECT(held_out > 0 && taught > 0);
        EXPECT(lessons.healthy <= healthy * lessons.differing);
        EXPECT(lessons.families_held_out > 0 && lessons.families_held_out < lessons.families);
    }
    EXPECT(chosen > STORES / 2);
}

static void no_more_are_chosen_than_a_suite_takes(void)
{
    pairs.count = 0;
    for (uint32_t i = 0; i < PAIRS_MAX; i++) {
        char id[LIMIT_ID_BYTES];
        snprintf(id, sizeof id, "scene%u", i);
        add(id, "rain", 1, i % 2 == 0);
    }
    EXPECT_OK(choose(9, 0.3), error);
    EXPECT_INT(lessons.differing, LESSONS_DIFFERING_MAX);
    EXPECT_INT(lessons.count, LIMIT_SUITE_SCENARIOS);
}

/* Else a successor's successor would be judged by what this one was trained on. */
static void a_family_stays_on_its_side(void)
{
    char id[LIMIT_ID_BYTES];
    bool before[40];
    pairs.count = 0;
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(id, sizeof id, "scene%u", i);
        add(id, "rain", 1, true);
    }
    EXPECT_OK(choose(1, 0.3), error);
    EXPECT(lessons.families_held_out > 4 && lessons.families_held_out < 20);
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(id, sizeof id, "scene%u", i);
        before[i] = find(id)->held_out;
    }
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "other%u", i);
        add(id, "rain", 1, i % 2 == 0);
    }
    EXPECT_OK(choose(1, 0.3), error);
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(id, sizeof id, "scene%u", i);
        EXPECT_INT(find(id)->held_out, before[i]);
    }
}

int main(void)
{
    int failed = TEST_RUN(
        TEST(healthy_ones_are_of_like_slices), TEST(only_what_the_student_was_asked_counts),
        TEST(the_newest_text_of_a_scenario_counts), TEST(what_cannot_be_learnt_from_is_said),
        TEST(rules_hold_of_any_store), TEST(no_more_are_chosen_than_a_suite_takes),
        TEST(a_family_stays_on_its_side));
    lessons_finish(&lessons);
    return failed;
}
