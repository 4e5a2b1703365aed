/*
 * The conditions vector of a tick (engine/model.md): conditioning, weather, light, ego's state and
 * motion, its place in the window, and language tags. Language comes in as a bag of hashed words:
 * a small, fixed vocabulary of slices and prompts needs no more, and any other text is harmless.
 */
#include "engine/sensors/layout.h"

#include "base/dmath.h"
#include "engine/sensors/layout_internal.h"
#include "engine/sensors/prepared_internal.h"

#include <string.h>

enum {
    COND_CONDITIONING = 0,
    COND_WEATHER = 3,
    COND_LIGHT = 8,
    COND_VISIBILITY = 11,
    COND_EGO = 13,
    COND_HEADING = 17,
    COND_MOTION = 19,
    COND_PLACE = 22,
    COND_TAGS = 24,
    TAG_BUCKETS = 16,
};

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Adds each word [a-z0-9]+ of the text, lower case, to its bucket. */
static void add_words(const char *text, float *buckets)
{
    const uint32_t basis = 2166136261u; /* FNV-1a, 32 bits */
    const uint32_t prime = 16777619u;
    uint32_t hash = basis;
    bool in_word = false;
    for (;; text++) {
        char c = is_upper(*text) ? (char)(*text - 'A' + 'a') : *text;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            hash = (hash ^ (uint8_t)c) * prime;
            in_word = true;
            continue;
        }
        if (in_word) {
            buckets[hash % TAG_BUCKETS] += 1.0f;
        }
        if (c == '\0') {
            return;
        }
        hash = basis;
        in_word = false;
    }
}

static void add_tags(const struct scenario *scenario, float *buckets)
{
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        add_words(scenario->slices.value[i], buckets);
    }
    add_words(scenario->prompt, buckets);
    for (int i = 0; i < TAG_BUCKETS; i++) {
        buckets[i] = buckets[i] > 4.0f ? 1.0f : 0.25f * buckets[i];
    }
}

void layout_conditions(const struct prepared *prepared, const struct scene *scene,
                       const struct ego_state *before, const struct anchor *anchor,
                       struct window window, enum conditioning conditioning, float cond[COND_COUNT])
{
    const struct conditions *now = &scene->conditions;
    const struct ego_state *ego = &scene->ego;
    struct pose local = anchor_local(anchor, ego->pose);
    struct window_place place = layout_place(scene, anchor, window);
    memset(cond, 0, COND_COUNT * sizeof cond[0]);
    cond[COND_CONDITIONING + (int)conditioning] = 1.0f;
    cond[COND_WEATHER + (int)now->weather] = 1.0f;
    cond[COND_LIGHT + (int)now->light] = 1.0f;
    cond[COND_VISIBILITY] = (float)dmath_min(now->visibility_m / 200.0, 1.0);
    cond[COND_VISIBILITY + 1] = (float)now->friction;
    cond[COND_EGO] = (float)(ego->speed_mps / 20.0);
    cond[COND_EGO + 1] = (float)(ego->accel_mps2 / 5.0);
    cond[COND_EGO + 2] = (float)ego->yaw_rate_rps;
    cond[COND_EGO + 3] = (float)(ego->steer_rad * 2.0);
    double s;
    double c;
    dmath_sincos(local.heading_rad, &s, &c);
    cond[COND_HEADING] = (float)c;
    cond[COND_HEADING + 1] = (float)s;
    struct anchor last = anchor_make(before->pose);
    struct pose moved = anchor_local(&last, ego->pose);
    cond[COND_MOTION] = (float)(moved.x_m / 2.0);
    cond[COND_MOTION + 1] = (float)(moved.y_m / 2.0);
    cond[COND_MOTION + 2] = (float)(moved.heading_rad * 10.0);
    const double half = WINDOW_CELLS / 2.0;
    cond[COND_PLACE] = (float)((place.row - half) / half);
    cond[COND_PLACE + 1] = (float)((place.col - half) / half);
    add_tags(prepared->scenario, cond + COND_TAGS);
}
