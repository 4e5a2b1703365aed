/*
 * The screen with AVX2: eight bodies at a time, and of each four those that pass are moved to the
 * front by a permutation that their mask looks up.
 */
#include "kernels/screen.h"

#include <immintrin.h>

/* Places of the set bits of a mask, lowest first; places behind them hold anything. */
static const int32_t fronts[16][4] = {
    {0}, {0},    {1},    {0, 1},    {2},    {0, 2},    {1, 2},    {0, 1, 2},
    {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3},
};

static inline __m256 absolute(__m256 x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

/* Appends those of four bodies that a mask has; four elements of each output are written. */
static inline uint32_t append(__m128i actors, __m128 along, uint32_t mask, uint16_t *actor,
                              float *along_m)
{
    __m128i front = _mm_loadu_si128((const __m128i *)fronts[mask]);
    __m128i packed =
        _mm_castps_si128(_mm_permutevar_ps(_mm_castsi128_ps(_mm_cvtepu16_epi32(actors)), front));
    _mm_storel_epi64((__m128i *)actor, _mm_packus_epi32(packed, packed));
    _mm_storeu_ps(along_m, _mm_permutevar_ps(along, front));
    return (uint32_t)__builtin_popcount(mask);
}

uint32_t screen_find_avx2(const struct screen_bodies *bodies, const struct screen_outlook *outlook,
                          uint32_t first, uint32_t end, uint16_t *actor, float *along_m)
{
    const __m256 fx = _mm256_set1_ps(outlook->fx);
    const __m256 fy = _mm256_set1_ps(outlook->fy);
    const __m256 bend = _mm256_set1_ps(outlook->bend);
    const __m128i without[2] = {_mm_set1_epi16((int16_t)outlook->without[0]),
                                _mm_set1_epi16((int16_t)outlook->without[1])};
    uint32_t count = 0;
    for (uint32_t j = first; j < end; j += SCREEN_LANES) {
        __m256 dx = _mm256_sub_ps(_mm256_loadu_ps(bodies->x_m + j), _mm256_set1_ps(outlook->x_m));
        __m256 dy = _mm256_sub_ps(_mm256_loadu_ps(bodies->y_m + j), _mm256_set1_ps(outlook->y_m));
        __m256 vx = _mm256_loadu_ps(bodies->vx_mps + j);
        __m256 vy = _mm256_loadu_ps(bodies->vy_mps + j);
        __m256 reach = _mm256_loadu_ps(bodies->radius_m + j);
        __m256 lx = _mm256_loadu_ps(bodies->long_x_m + j);
        __m256 ly = _mm256_loadu_ps(bodies->long_y_m + j);
        __m256 sides = absolute(_mm256_sub_ps(_mm256_mul_ps(fx, ly), _mm256_mul_ps(fy, lx)));
        sides = _mm256_add_ps(sides, _mm256_loadu_ps(bodies->half_width_m + j));
        sides = _mm256_add_ps(sides, _mm256_mul_ps(bend, reach));
        sides = _mm256_min_ps(sides, reach);
        __m256 along = _mm256_add_ps(_mm256_mul_ps(dx, fx), _mm256_mul_ps(dy, fy));
        __m256 across = absolute(_mm256_sub_ps(_mm256_mul_ps(fx, dy), _mm256_mul_ps(fy, dx)));
        __m256 sideways = absolute(_mm256_sub_ps(_mm256_mul_ps(fx, vy), _mm256_mul_ps(fy, vx)));
        __m256 forwards = absolute(_mm256_add_ps(_mm256_mul_ps(fx, vx), _mm256_mul_ps(fy, vy)));
        __m256 drift = _mm256_add_ps(sideways, _mm256_mul_ps(forwards, bend));
        __m256 beside = _mm256_add_ps(_mm256_set1_ps(outlook->side_m), sides);
        beside = _mm256_add_ps(beside, _mm256_mul_ps(_mm256_set1_ps(outlook->foresight_s), drift));
        beside = _mm256_add_ps(beside, _mm256_mul_ps(_mm256_set1_ps(outlook->slope),
                                                     _mm256_add_ps(absolute(along), reach)));
        beside = _mm256_sub_ps(beside, across);
        __m256 before = _mm256_add_ps(along, reach);
        __m256 within = _mm256_sub_ps(_mm256_add_ps(_mm256_set1_ps(outlook->look_m), reach), along);
        /* The second operand where one is no number, as the comparisons of plain C have it. */
        __m256 margin = _mm256_min_ps(within, _mm256_min_ps(beside, before));
        __m128i actors = _mm_loadu_si128((const __m128i *)(bodies->actor + j));
        __m128i left_out =
            _mm_or_si128(_mm_cmpeq_epi16(actors, without[0]), _mm_cmpeq_epi16(actors, without[1]));
        uint32_t mask =
            (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(margin, _mm256_setzero_ps(), _CMP_GE_OQ)) &
            ~(uint32_t)_mm_movemask_epi8(_mm_packs_epi16(left_out, left_out)) & 255u;
        if (mask == 0) {
            continue;
        }
        count += append(actors, _mm256_castps256_ps128(along), mask & 15, actor + count,
                        along_m + count);
        count += append(_mm_srli_si128(actors, 8), _mm256_extractf128_ps(along, 1), mask >> 4,
                        actor + count, along_m + count);
    }
    return count;
}
