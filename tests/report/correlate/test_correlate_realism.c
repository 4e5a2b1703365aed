/*
 * Realism of traffic. Method: features and likelihoods of made-up traffic against those of the
 * Waymo Open Dataset's own functions (tests/vectors/realism_vectors.py), within 1e-6; and
 * properties: a recording is most likely under itself, and moving the scene rigidly changes
 * nothing.
 */
#include "report/correlate/realism.h"
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-6
enum { OBJECTS = 8, STEPS = 32, ROLLOUTS = 8, SCENES = 4 };

struct vectors {
    uint32_t objects, steps, rollouts;
    struct realism_object object[OBJECTS];
    struct realism_state states[ROLLOUTS + 1][OBJECTS * STEPS];
    struct realism_scene scenes[ROLLOUTS + 1]; /* the recording, then rollouts */
};

static FILE *file;

static double number(void)
{
    double value = 0;
    EXPECT(fscanf(file, "%lf", &value) == 1);
    return value;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= TOLERANCE;
}

static bool vectors_read(struct vectors *v)
{
    if (fscanf(file, " scene %u %u %u", &v->objects, &v->steps, &v->rollouts) != 3) {
        return false;
    }
    EXPECT(v->objects <= OBJECTS && v->steps <= STEPS && v->rollouts <= ROLLOUTS);
    for (uint32_t i = 0; i < v->objects; i++) {
        v->object[i].length_m = number();
        v->object[i].width_m = number();
        v->object[i].vehicle = number() > 0;
        v->object[i].evaluated = number() > 0;
    }
    for (uint32_t r = 0; r <= v->rollouts; r++) {
        for (uint32_t k = 0; k < v->objects * v->steps; k++) {
            struct realism_state *at = &v->states[r][k];
            at->x_m = number();
            at->y_m = number();
            at->heading_rad = number();
            at->valid = number() > 0;
            at->off_road = number() > 0;
        }
        v->scenes[r] = (struct realism_scene){v->objects, v->steps, 0.1, v->object, v->states[r]};
    }
    return true;
}

static void features_and_likelihoods_are_the_originals(void)
{
    static struct vectors v;
    double series[STEPS];
    double likelihoods[REALISM_FEATURES];
    uint32_t scenes = 0;
    file = fopen(REALISM_VECTORS, "r");
    EXPECT(file != NULL);
    while (vectors_read(&v)) {
        for (uint32_t i = 0; i < v.objects; i++) {
            for (int f = 0; v.object[i].evaluated && f < REALISM_COLLISION; f++) {
                realism_series(&v.scenes[0], i, (enum realism_feature)f, series);
                for (uint32_t step = 0; step < v.steps; step++) {
                    double expected = number();
                    if (!same(series[step], expected)) {
                        TEST_FAIL("scene %u object %u %s step %u: %.9g, Waymo's %.9g", scenes, i,
                                  realism_names[f], step, series[step], expected);
                    }
                }
            }
        }
        realism_likelihoods(&v.scenes[0], &v.scenes[1], v.rollouts, series, likelihoods);
        for (int f = 0; f < REALISM_FEATURES; f++) {
            double expected = number();
            if (!same(likelihoods[f], expected)) {
                TEST_FAIL("scene %u %s: %.9g, Waymo's %.9g", scenes, realism_names[f],
                          likelihoods[f], expected);
            }
        }
        EXPECT_NEAR(realism_score(likelihoods), number(), TOLERANCE);
        scenes++;
    }
    EXPECT(feof(file));
    EXPECT_INT(scenes, SCENES);
    fclose(file);
}

static void a_recording_is_likeliest_under_itself(void)
{
    static struct vectors v;
    double series[STEPS];
    double own[REALISM_FEATURES];
    double other[REALISM_FEATURES];
    file = fopen(REALISM_VECTORS, "r");
    EXPECT(file != NULL && vectors_read(&v));
    fclose(file);
    realism_likelihoods(&v.scenes[0], &v.scenes[0], 1, series, own);
    realism_likelihoods(&v.scenes[0], &v.scenes[1], 1, series, other);
    EXPECT(realism_score(own) >= realism_score(other));
    EXPECT(realism_score(own) <= 1.0);
    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t k = 0; k < v.objects * v.steps; k++) {
            struct realism_state *at = &v.states[r][k];
            double x_m = at->x_m;
            at->x_m = 100 - at->y_m;
            at->y_m = x_m + 50;
            at->heading_rad += acos(0);
        }
    }
    realism_likelihoods(&v.scenes[0], &v.scenes[1], 1, series, own);
    for (int f = 0; f < REALISM_FEATURES; f++) {
        EXPECT(same(own[f], other[f]));
    }
}

static void nothing_to_judge_is_no_likelihood(void)
{
    static struct realism_object object = {4, 2, true, false};
    static struct realism_state states[STEPS];
    const struct realism_scene scene = {1, STEPS, 0.1, &object, states};
    double series[STEPS];
    double likelihoods[REALISM_FEATURES];
    realism_likelihoods(&scene, &scene, 1, series, likelihoods);
    for (int f = 0; f < REALISM_FEATURES; f++) {
        EXPECT(isnan(likelihoods[f]));
    }
    EXPECT(isnan(realism_score(likelihoods)));
}

int main(void)
{
    return TEST_RUN(TEST(features_and_likelihoods_are_the_originals),
                    TEST(a_recording_is_likeliest_under_itself),
                    TEST(nothing_to_judge_is_no_likelihood));
}
