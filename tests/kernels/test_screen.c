/*
 * Goal: every variant of the screen finds the same bodies as its plain C, with the same bits.
 *
 * Method: random crowds of all sizes and on many bounds of the test at once (bodies that stand, on
 * one line, at the outlook's own place, far away, infinitely far, nowhere), ranges within them,
 * and nothing written outside the outputs; and bodies whose answer is known.
 */
#include "base/check.h"
#include "base/rng.h"
#include "kernels/cpu.h"
#include "kernels/screen.h"
#include "tests/harness.h"

enum {
    BODIES_MAX = 264,
    GUARD = 16,
    GUARD_BYTE = 0xA5,
    ROUNDS = 3000,
};

struct crowd {
    float x_m[BODIES_MAX];
    float y_m[BODIES_MAX];
    float vx_mps[BODIES_MAX];
    float vy_mps[BODIES_MAX];
    float radius_m[BODIES_MAX];
    float long_x_m[BODIES_MAX];
    float long_y_m[BODIES_MAX];
    float half_width_m[BODIES_MAX];
    uint16_t actor[BODIES_MAX];
};

struct found {
    uint16_t actor[GUARD + BODIES_MAX + GUARD];
    float along_m[GUARD + BODIES_MAX + GUARD];
    uint32_t count;
};

static struct screen_bodies bodies_of(const struct crowd *crowd)
{
    return (struct screen_bodies){
        .x_m = crowd->x_m,
        .y_m = crowd->y_m,
        .vx_mps = crowd->vx_mps,
        .vy_mps = crowd->vy_mps,
        .radius_m = crowd->radius_m,
        .long_x_m = crowd->long_x_m,
        .long_y_m = crowd->long_y_m,
        .half_width_m = crowd->half_width_m,
        .actor = crowd->actor,
    };
}

/* In -scale .. scale; now and then a round number, an end, or what is no place. */
static float random_value(uint32_t *element, double scale)
{
    uint32_t counter[4] = {0, RNG_STREAM_TEST, (*element)++, 0};
    uint32_t words[4];
    rng_philox(11, counter, words);
    static const float odd[] = {0.0f, -0.0f, 1.0f, 4.0f, -4.0f, 1e9f, -1e9f, INFINITY, NAN};
    return words[1] % 16 < COUNT_OF(odd) ? odd[words[1] % 16]
                                         : (float)(scale * ((int32_t)words[0] / 2147483648.0));
}

static void find(const struct screen_kernels *kernels, const struct crowd *crowd,
                 const struct screen_outlook *outlook, uint32_t first, uint32_t end,
                 struct found *out)
{
    const struct screen_bodies bodies = bodies_of(crowd);
    memset(out, GUARD_BYTE, sizeof *out);
    out->count =
        kernels->find(&bodies, outlook, first, end, out->actor + GUARD, out->along_m + GUARD);
    CHECK(out->count <= end - first);
    static const uint8_t guard[GUARD * sizeof(float)] = {[0 ... GUARD * sizeof(float) - 1] =
                                                             GUARD_BYTE};
    EXPECT(memcmp(out->actor, guard, GUARD * sizeof out->actor[0]) == 0);
    EXPECT(memcmp(out->along_m, guard, GUARD * sizeof out->along_m[0]) == 0);
    EXPECT(memcmp(out->actor + GUARD + (end - first), guard, GUARD * sizeof out->actor[0]) == 0);
    EXPECT(memcmp(out->along_m + GUARD + (end - first), guard, GUARD * sizeof out->along_m[0]) ==
           0);
}

static void variants_find_the_same(void)
{
    static const uint32_t flags[] = {CPU_FLAG_AVX2, CPU_FLAG_ALL};
    uint32_t element = 0;
    uint64_t passed = 0;
    for (uint32_t round = 0; round < test_rounds(ROUNDS, 300); round++) {
        static struct crowd crowd;
        static struct found expected;
        static struct found found;
        uint32_t vectors = 1 + round % (BODIES_MAX / SCREEN_LANES);
        uint32_t first = round / 7 % vectors * SCREEN_LANES;
        double scale = round % 3 == 0 ? 300.0 : 30.0;
        for (uint32_t i = 0; i < vectors * SCREEN_LANES; i++) {
            crowd.x_m[i] = random_value(&element, scale);
            crowd.y_m[i] = random_value(&element, scale / 4);
            crowd.vx_mps[i] = random_value(&element, 40.0);
            crowd.vy_mps[i] = random_value(&element, 40.0);
            crowd.radius_m[i] = fabsf(random_value(&element, 9.0));
            crowd.long_x_m[i] = random_value(&element, 9.0);
            crowd.long_y_m[i] = random_value(&element, 9.0);
            crowd.half_width_m[i] = fabsf(random_value(&element, 2.0));
            crowd.actor[i] = (uint16_t)(round % 2 == 0 ? i : (i * 37 + round) % BODIES_MAX);
        }
        double angle = random_value(&element, 3.0);
        const struct screen_outlook outlook = {
            .x_m = random_value(&element, 20.0),
            .y_m = random_value(&element, 20.0),
            .fx = isfinite(angle) ? (float)cos(angle) : 1.0f,
            .fy = isfinite(angle) ? (float)sin(angle) : 0.0f,
            .look_m = 20.0f + 10.0f * (float)(round % 14),
            .side_m = 1.25f,
            .bend = round % 4 == 0 ? 0.0f : 0.3f,
            .slope = round % 5 == 0 ? 0.0f : 0.345f,
            .foresight_s = 2.0f,
            .without = {crowd.actor[round % (vectors * SCREEN_LANES)], (uint16_t)(round % 300)},
        };
        find(&(struct screen_kernels){screen_find_ref}, &crowd, &outlook, first,
             vectors * SCREEN_LANES, &expected);
        passed += expected.count;
        for (size_t k = 0; k < COUNT_OF(flags); k++) {
            struct screen_kernels kernels;
            screen_kernels_init(&kernels, flags[k] & cpu_flags_detect());
            find(&kernels, &crowd, &outlook, first, vectors * SCREEN_LANES, &found);
            EXPECT_INT(found.count, expected.count);
            EXPECT(memcmp(found.actor + GUARD, expected.actor + GUARD,
                          expected.count * sizeof found.actor[0]) == 0);
            EXPECT(memcmp(found.along_m + GUARD, expected.along_m + GUARD,
                          expected.count * sizeof found.along_m[0]) == 0);
        }
    }
    EXPECT(passed > 0);
}

/* From the origin, looking along x to 50 m, 1 m to each side, a quarter of a metre per metre. */
static void who_may_matter_passes(void)
{
    static const struct {
        float x_m, y_m, vy_mps, radius_m, long_y_m, half_width_m;
        bool passes;
    } known[2 * SCREEN_LANES] = {
        {30.0f, 0.0f, 0.0f, 0.5f, 0.0f, 0.5f, true},    /* ahead */
        {50.5f, 0.0f, 0.0f, 0.5f, 0.0f, 0.5f, true},    /* at the end of the look */
        {50.625f, 0.0f, 0.0f, 0.5f, 0.0f, 0.5f, false}, /* .. and beyond it */
        {-0.5f, 0.0f, 0.0f, 0.5f, 0.0f, 0.5f, true},    /* beside */
        {-0.625f, 0.0f, 0.0f, 0.5f, 0.0f, 0.5f, false}, /* behind */
        {20.0f, 6.625f, 0.0f, 0.5f, 0.0f, 0.5f, true},  /* 1 + 0.5 + (20 + 0.5) / 4 */
        {20.0f, 6.75f, 0.0f, 0.5f, 0.0f, 0.5f, false},
        {20.0f, 16.5f, -5.0f, 0.5f, 0.0f, 0.5f, true},   /* will be there in two seconds */
        {20.0f, 6.625f, 0.0f, 0.5f, 0.0f, 0.25f, false}, /* half as wide, along the track */
        {20.0f, 6.375f, 0.0f, 0.5f, 0.0f, 0.25f, true},
        {20.0f, 6.625f, 0.0f, 0.5f, 0.25f, 0.25f, true}, /* .. and across it */
        {20.0f, 6.75f, 0.0f, 0.5f, 9.0f, 0.5f, false},   /* no further than its radius */
    };
    struct crowd crowd = {0};
    for (uint32_t i = 0; i < COUNT_OF(known); i++) {
        crowd.x_m[i] = known[i].radius_m > 0.0f ? known[i].x_m : 1e9f;
        crowd.y_m[i] = known[i].y_m;
        crowd.vy_mps[i] = known[i].vy_mps;
        crowd.radius_m[i] = known[i].radius_m;
        crowd.long_y_m[i] = known[i].long_y_m;
        crowd.half_width_m[i] = known[i].half_width_m;
        crowd.actor[i] = (uint16_t)(100 + i);
    }
    struct screen_outlook outlook = {
        .fx = 1.0f, .look_m = 50.0f, .side_m = 1.0f, .slope = 0.25f, .foresight_s = 2.0f};
    for (uint32_t without = 0; without <= COUNT_OF(known); without++) {
        static struct found found;
        struct screen_kernels kernels;
        outlook.without[0] = outlook.without[1] = (uint16_t)(99 + without);
        screen_kernels_init(&kernels, cpu_flags_detect());
        find(&kernels, &crowd, &outlook, 0, COUNT_OF(known), &found);
        uint32_t count = 0;
        for (uint32_t i = 0; i < COUNT_OF(known); i++) {
            if (known[i].passes && i + 1 != without) {
                EXPECT(count < found.count);
                EXPECT_INT(found.actor[GUARD + count], 100 + i);
                EXPECT(found.along_m[GUARD + count] == known[i].x_m);
                count++;
            }
        }
        EXPECT_INT(found.count, count);
    }
}

int main(void)
{
    return TEST_RUN(TEST(variants_find_the_same), TEST(who_may_matter_passes));
}
