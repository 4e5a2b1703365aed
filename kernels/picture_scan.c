/*
 * Beams of a lidar's azimuth against a box (kernels/picture_rows.h): three slabs, all elevations.
 */
#include "kernels/picture_rows.h"

/* Ranges at which a beam is between the two planes of an axis. */
struct span {
    float near, far;
};

static inline struct span span_of(const struct slabs *slabs, int k, float cosine, float sine)
{
    float along = cosine * slabs->level[k] + sine * slabs->up[k];
    float size = along < 0.0f ? -along : along;
    float safe = size > 1e-12f ? along : 1e-12f;
    float low = (-slabs->half[k] - slabs->at[k]) / safe;
    float high = (slabs->half[k] - slabs->at[k]) / safe;
    return (struct span){low < high ? low : high, low < high ? high : low};
}

static void meet_box(const struct slabs *slabs, const float *restrict cosine,
                     const float *restrict sine, int32_t count, int32_t id, float *restrict range_m,
                     int32_t *restrict hit)
{
    const struct slabs own = *slabs;
    for (int32_t i = 0; i < count; i++) {
        const struct span x = span_of(&own, 0, cosine[i], sine[i]);
        const struct span y = span_of(&own, 1, cosine[i], sine[i]);
        const struct span z = span_of(&own, 2, cosine[i], sine[i]);
        float near = x.near > y.near ? x.near : y.near;
        float far = x.far < y.far ? x.far : y.far;
        near = near > z.near ? near : z.near;
        far = far < z.far ? far : z.far;
        /* A beam that begins inside ends nowhere. */
        bool meets = (near <= far) & (near > 0.0f) & (near < range_m[i]);
        range_m[i] = meets ? near : range_m[i];
        hit[i] = meets ? id : hit[i];
    }
}

void PICTURE_NAME(scan)(struct picture_kernels *kernels)
{
    kernels->beams = meet_box;
}
