/*
 * Screen: which bodies may matter to a driver, by a test that is cheap and safe; a tick of traffic
 * asks it of all bodies for each driver (engine/traffic/traffic_idm.c). Every variant finds the
 * same bodies, in the same order, with the same bits: each operation is one of single precision,
 * never fused (tests/kernels/test_screen.c compares them).
 */
#ifndef SWERVE_KERNELS_SCREEN_H
#define SWERVE_KERNELS_SCREEN_H

#include <stdint.h>

enum { SCREEN_LANES = 8 }; /* bodies that a vector holds */

/* Arrays of one element a body, borrowed; places relative to an origin that they share. */
struct screen_bodies {
    const float *x_m;
    const float *y_m;
    const float *vx_mps;
    const float *vy_mps;
    const float *radius_m;
    const float *long_x_m; /* half its length, as a vector along it */
    const float *long_y_m;
    const float *half_width_m;
    const uint16_t *actor; /* index that a body is known by */
};

/* Point that a driver looks from, and its reach. A body reaches to the side as far as its length
 * and its width do across the forward direction, turned by `bend` at most, and no further than its
 * radius. */
struct screen_outlook {
    float x_m; /* relative to the bodies' origin */
    float y_m;
    float fx; /* forward, a unit vector */
    float fy;
    float look_m;
    float side_m;
    float bend;          /* how far the track may turn ahead, rad */
    float slope;         /* how far the track can be beside its tangent, per metre ahead */
    float foresight_s;   /* of bodies that drift towards it */
    uint16_t without[2]; /* indices of bodies that do not count; one twice: it alone */
};

struct screen_kernels {
    /* Bodies first to end - 1 that are not too far ahead, behind, or beside more than the track can
     * turn there: their indices and how far ahead they are along the tangent, in the order of the
     * arrays. Returns how many. first, end: multiples of SCREEN_LANES. actor, along_m: [end -
     * first], all of which may be written; they overlap nothing. */
    uint32_t (*find)(const struct screen_bodies *bodies, const struct screen_outlook *outlook,
                     uint32_t first, uint32_t end, uint16_t *actor, float *along_m);
};

/* flags: a set of enum cpu_flag (kernels/cpu.h). */
void screen_kernels_init(struct screen_kernels *kernels, uint32_t flags);

/* ---- variants ---- */

uint32_t screen_find_ref(const struct screen_bodies *bodies, const struct screen_outlook *outlook,
                         uint32_t first, uint32_t end, uint16_t *actor, float *along_m);
#if defined(__x86_64__)
uint32_t screen_find_avx2(const struct screen_bodies *bodies, const struct screen_outlook *outlook,
                          uint32_t first, uint32_t end, uint16_t *actor, float *along_m);
#endif

#endif
