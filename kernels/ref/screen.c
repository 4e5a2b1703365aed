/*
 * The screen in plain C, and its table. A vector's worth of bodies is measured without branches, so
 * that compilers make vectors of it, and then picked from.
 */
#include "kernels/screen.h"

#include "kernels/cpu.h"

#include <math.h>

void screen_kernels_init(struct screen_kernels *kernels, uint32_t flags)
{
    kernels->find = screen_find_ref;
#if defined(__x86_64__)
    if (flags & CPU_FLAG_AVX2) {
        kernels->find = screen_find_avx2;
    }
#else
    (void)flags;
#endif
}

/* margin_m[k] >= 0: body j + k passes. */
static void measure(const struct screen_bodies *bodies, const struct screen_outlook *outlook,
                    uint32_t j, float along_m[restrict SCREEN_LANES],
                    float margin_m[restrict SCREEN_LANES])
{
    const struct screen_outlook o = *outlook;
    for (uint32_t k = 0; k < SCREEN_LANES; k++) {
        float dx = bodies->x_m[j + k] - o.x_m;
        float dy = bodies->y_m[j + k] - o.y_m;
        float vx = bodies->vx_mps[j + k];
        float vy = bodies->vy_mps[j + k];
        float reach = bodies->radius_m[j + k];
        float sides = fabsf(o.fx * bodies->long_y_m[j + k] - o.fy * bodies->long_x_m[j + k]) +
                      bodies->half_width_m[j + k] + o.bend * reach;
        sides = sides < reach ? sides : reach;
        float along = dx * o.fx + dy * o.fy;
        float across = fabsf(o.fx * dy - o.fy * dx);
        float drift = fabsf(o.fx * vy - o.fy * vx) + fabsf(o.fx * vx + o.fy * vy) * o.bend;
        float beside =
            o.side_m + sides + o.foresight_s * drift + o.slope * (fabsf(along) + reach) - across;
        float before = along + reach;
        float within = o.look_m + reach - along;
        float margin = beside < before ? beside : before;
        along_m[k] = along;
        margin_m[k] = within < margin ? within : margin;
    }
}

uint32_t screen_find_ref(const struct screen_bodies *bodies, const struct screen_outlook *outlook,
                         uint32_t first, uint32_t end, uint16_t *actor, float *along_m)
{
    uint32_t count = 0;
    for (uint32_t j = first; j < end; j += SCREEN_LANES) {
        float along[SCREEN_LANES];
        float margin[SCREEN_LANES];
        measure(bodies, outlook, j, along, margin);
        for (uint32_t k = 0; k < SCREEN_LANES; k++) {
            uint16_t index = bodies->actor[j + k];
            actor[count] = index;
            along_m[count] = along[k];
            count += (margin[k] >= 0.0f) & (index != outlook->without[0]) &
                     (index != outlook->without[1]);
        }
    }
    return count;
}
