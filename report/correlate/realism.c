/*
 * Features of traffic and likelihoods under histograms of them. See realism.h.
 */
#include "report/correlate/realism.h"

#include "base/geom.h"
#include "base/units.h"

#include <math.h>
#include <stddef.h>

#define FAR_M 1e10
#define ROUNDING 0.7 /* of a box's corners: 0 none, 1 a capsule */
#define TTC_MOST_S 5.0
#define FOLLOWS_RAD (75.0 * PI_RAD / 180.0)
#define FOLLOWS_NARROW_RAD (10.0 * PI_RAD / 180.0)
#define NARROW_M 0.5
#define FLAG_PSEUDOCOUNT 0.001
enum { BINS_MOST = 11 };

const char *const realism_names[REALISM_FEATURES] = {
    "linear_speed",         "linear_acceleration",        "angular_speed",
    "angular_acceleration", "distance_to_nearest_object", "time_to_collision",
    "collision_indication", "offroad_indication"};

static const struct {
    double low, high;
    uint32_t bins;
    double pseudocount;
    double weight;
} CONFIG[REALISM_FEATURES] = {
    [REALISM_SPEED] = {0, 25, 10, 0.1, 0.05},
    [REALISM_ACCEL] = {-12, 12, 11, 0.1, 0.05},
    [REALISM_YAW_RATE] = {-0.628, 0.628, 11, 0.1, 0.05},
    [REALISM_YAW_ACCEL] = {-3.14, 3.14, 11, 0.1, 0.05},
    [REALISM_NEAREST] = {-5, 40, 10, 0.1, 0.1},
    [REALISM_TTC] = {0, 5, 10, 0.1, 0.1},
    [REALISM_COLLISION] = {-0.5, 1.5, 2, FLAG_PSEUDOCOUNT, 0.25},
    [REALISM_OFF_ROAD] = {-0.5, 1.5, 2, FLAG_PSEUDOCOUNT, 0.25},
};

/* ---- features ---- */

static const struct realism_state *state_at(const struct realism_scene *scene, uint32_t object,
                                            uint32_t step)
{
    return &scene->states[(size_t)object * scene->steps + step];
}

static double wrapped(double angle_rad)
{
    double turned = fmod(angle_rad + PI_RAD, 2 * PI_RAD);
    return (turned < 0 ? turned + 2 * PI_RAD : turned) - PI_RAD;
}

static double speed_at(const struct realism_scene *scene, uint32_t object, uint32_t step)
{
    if (step == 0 || step + 1 >= scene->steps) {
        return NAN;
    }
    const struct realism_state *a = state_at(scene, object, step - 1);
    const struct realism_state *b = state_at(scene, object, step + 1);
    return hypot((b->x_m - a->x_m) / 2, (b->y_m - a->y_m) / 2) / scene->step_s;
}

/* Turning per step. */
static double turn_at(const struct realism_scene *scene, uint32_t object, uint32_t step)
{
    if (step == 0 || step + 1 >= scene->steps) {
        return NAN;
    }
    return wrapped(state_at(scene, object, step + 1)->heading_rad -
                   state_at(scene, object, step - 1)->heading_rad) /
           2;
}

static double accel_at(const struct realism_scene *scene, uint32_t object, uint32_t step)
{
    if (step == 0 || step + 1 >= scene->steps) {
        return NAN;
    }
    return (speed_at(scene, object, step + 1) - speed_at(scene, object, step - 1)) / 2 /
           scene->step_s;
}

static double turn_change_at(const struct realism_scene *scene, uint32_t object, uint32_t step)
{
    if (step == 0 || step + 1 >= scene->steps) {
        return NAN;
    }
    return wrapped(turn_at(scene, object, step + 1) - turn_at(scene, object, step - 1)) / 2 /
           (scene->step_s * scene->step_s);
}

/* Distance of two boxes with rounded corners; below 0 the depth of one in the other. */
static double gap_m(const struct realism_scene *scene, uint32_t one, uint32_t other, uint32_t step)
{
    struct box boxes[2];
    double radii_m = 0;
    const uint32_t both[2] = {one, other};
    for (int i = 0; i < 2; i++) {
        const struct realism_object *object = &scene->object[both[i]];
        const struct realism_state *at = state_at(scene, both[i], step);
        double radius_m = fmin(object->length_m, object->width_m) * ROUNDING / 2;
        boxes[i] = box_make((struct pose){at->x_m, at->y_m, at->heading_rad},
                            object->length_m - 2 * radius_m, object->width_m - 2 * radius_m);
        radii_m += radius_m;
    }
    double apart_m = box_distance_m(&boxes[0], &boxes[1]);
    if (apart_m > 0) {
        return apart_m - radii_m;
    }
    double turned =
        cos(state_at(scene, one, step)->heading_rad - state_at(scene, other, step)->heading_rad);
    double crossed = sqrt(fmax(0, 1 - turned * turned));
    double x_m = boxes[1].center.x_m - boxes[0].center.x_m;
    double y_m = boxes[1].center.y_m - boxes[0].center.y_m;
    double least_m = -INFINITY;
    for (int i = 0; i < 2; i++) {
        const struct box *own = &boxes[i];
        const struct box *its = &boxes[1 - i];
        double along_m = fabs(x_m * own->cos_heading + y_m * own->sin_heading);
        double across_m = fabs(y_m * own->cos_heading - x_m * own->sin_heading);
        double reach_m = fabs(turned) * its->half_length_m + crossed * its->half_width_m;
        double spread_m = crossed * its->half_length_m + fabs(turned) * its->half_width_m;
        least_m = fmax(least_m, along_m - own->half_length_m - reach_m);
        least_m = fmax(least_m, across_m - own->half_width_m - spread_m);
    }
    return least_m - radii_m;
}

static double nearest_m(const struct realism_scene *scene, uint32_t object, uint32_t step)
{
    double least_m = FAR_M;
    for (uint32_t i = 0; i < scene->objects; i++) {
        if (i != object && state_at(scene, i, step)->valid &&
            state_at(scene, object, step)->valid) {
            least_m = fmin(least_m, gap_m(scene, object, i, step));
        }
    }
    return least_m;
}

/* Distance ahead to another whose back an object follows; FAR_M: it does not follow it. */
static double following_m(const struct realism_scene *scene, uint32_t object, uint32_t other,
                          uint32_t step)
{
    const struct realism_state *own = state_at(scene, object, step);
    const struct realism_state *its = state_at(scene, other, step);
    const struct realism_object *size = &scene->object[other];
    double turned_rad = fabs(its->heading_rad - own->heading_rad);
    double c = fabs(cos(turned_rad));
    double s = fabs(sin(turned_rad));
    double x_m = its->x_m - own->x_m;
    double y_m = its->y_m - own->y_m;
    double along_m = x_m * cos(own->heading_rad) + y_m * sin(own->heading_rad) -
                     scene->object[object].length_m / 2 -
                     (size->length_m * c + size->width_m * s) / 2;
    double aside_m = fabs(y_m * cos(own->heading_rad) - x_m * sin(own->heading_rad)) -
                     scene->object[object].width_m / 2 -
                     (size->length_m * s + size->width_m * c) / 2;
    bool follows = its->valid && along_m > 0 && turned_rad <= FOLLOWS_RAD && aside_m < 0 &&
                   (aside_m < -NARROW_M || turned_rad <= FOLLOWS_NARROW_RAD);
    return follows ? along_m : FAR_M;
}

static double ttc_s(const struct realism_scene *scene, uint32_t object, uint32_t step)
{
    double least_m = FAR_M;
    uint32_t ahead = object;
    for (uint32_t i = 0; i < scene->objects; i++) {
        double way_m = following_m(scene, object, i, step);
        if (way_m < least_m) {
            least_m = way_m;
            ahead = i;
        }
    }
    double closing_mps = speed_at(scene, object, step) - speed_at(scene, ahead, step);
    return closing_mps > 0 ? fmin(least_m / closing_mps, TTC_MOST_S) : TTC_MOST_S;
}

void realism_series(const struct realism_scene *scene, uint32_t object,
                    enum realism_feature feature, double *out)
{
    for (uint32_t step = 0; step < scene->steps; step++) {
        out[step] = feature == REALISM_SPEED       ? speed_at(scene, object, step)
                    : feature == REALISM_ACCEL     ? accel_at(scene, object, step)
                    : feature == REALISM_YAW_RATE  ? turn_at(scene, object, step) / scene->step_s
                    : feature == REALISM_YAW_ACCEL ? turn_change_at(scene, object, step)
                    : feature == REALISM_TTC       ? ttc_s(scene, object, step)
                                                   : nearest_m(scene, object, step);
    }
}

/* ---- likelihoods ---- */

/* As in the original, what lies beyond the ends counts in them, and NAN in the last bin. */
static uint32_t bin_of(enum realism_feature feature, double value)
{
    uint32_t bins = CONFIG[feature].bins;
    if (isnan(value)) {
        return bins - 1;
    }
    double share = (value - CONFIG[feature].low) / (CONFIG[feature].high - CONFIG[feature].low);
    double bin = floor(share * bins);
    return bin < 0 ? 0 : bin >= bins ? bins - 1 : (uint32_t)bin;
}

struct histogram {
    double counts[BINS_MOST];
    double total;
};

static void histogram_add(struct histogram *histogram, enum realism_feature feature, double value)
{
    histogram->counts[bin_of(feature, value)] += 1;
    histogram->total += 1;
}

static double histogram_log(const struct histogram *histogram, enum realism_feature feature,
                            double value)
{
    double pseudocount = CONFIG[feature].pseudocount;
    return log((histogram->counts[bin_of(feature, value)] + pseudocount) /
               (histogram->total + pseudocount * CONFIG[feature].bins));
}

/* Whether a feature of the recording has all the steps that it is made of. */
static bool valid_at(const struct realism_scene *scene, uint32_t object,
                     enum realism_feature feature, uint32_t step)
{
    uint32_t reach = feature == REALISM_SPEED || feature == REALISM_YAW_RATE    ? 1
                     : feature == REALISM_ACCEL || feature == REALISM_YAW_ACCEL ? 2
                                                                                : 0;
    if (step < reach || step + reach >= scene->steps) {
        return false;
    }
    if (feature == REALISM_TTC && !scene->object[object].vehicle) {
        return false;
    }
    bool middle = reach == 1 || state_at(scene, object, step)->valid;
    return middle && state_at(scene, object, step - reach)->valid &&
           state_at(scene, object, step + reach)->valid;
}

/* Whether an object ever touched another or left the road while the recording has it. */
static bool happened(const struct realism_scene *recorded, const struct realism_scene *scene,
                     uint32_t object, enum realism_feature feature)
{
    for (uint32_t step = 0; step < scene->steps; step++) {
        if (state_at(recorded, object, step)->valid &&
            (feature == REALISM_OFF_ROAD ? state_at(scene, object, step)->off_road
                                         : nearest_m(scene, object, step) < 0)) {
            return true;
        }
    }
    return false;
}

struct sum {
    double logs;
    double count;
};

static void add_series(struct sum *sum, const struct realism_scene *recorded,
                       const struct realism_scene *rollout, uint32_t rollouts, uint32_t object,
                       enum realism_feature feature, double *scratch)
{
    struct histogram histogram = {.total = 0};
    for (uint32_t r = 0; r < rollouts; r++) {
        realism_series(&rollout[r], object, feature, scratch);
        for (uint32_t step = 0; step < recorded->steps; step++) {
            histogram_add(&histogram, feature, scratch[step]);
        }
    }
    realism_series(recorded, object, feature, scratch);
    for (uint32_t step = 0; step < recorded->steps; step++) {
        if (valid_at(recorded, object, feature, step)) {
            sum->logs += histogram_log(&histogram, feature, scratch[step]);
            sum->count += 1;
        }
    }
}

void realism_likelihoods(const struct realism_scene *recorded, const struct realism_scene *rollout,
                         uint32_t rollouts, double *scratch, double out[REALISM_FEATURES])
{
    for (enum realism_feature feature = 0; feature < REALISM_FEATURES; feature++) {
        struct sum sum = {0, 0};
        for (uint32_t object = 0; object < recorded->objects; object++) {
            if (!recorded->object[object].evaluated) {
                continue;
            }
            if (feature < REALISM_COLLISION) {
                add_series(&sum, recorded, rollout, rollouts, object, feature, scratch);
                continue;
            }
            struct histogram histogram = {.total = 0};
            for (uint32_t r = 0; r < rollouts; r++) {
                histogram_add(&histogram, feature,
                              happened(recorded, &rollout[r], object, feature));
            }
            sum.logs +=
                histogram_log(&histogram, feature, happened(recorded, recorded, object, feature));
            sum.count += 1;
        }
        out[feature] = sum.count > 0 ? exp(sum.logs / sum.count) : NAN;
    }
}

double realism_score(const double likelihoods[REALISM_FEATURES])
{
    double sum = 0;
    double weights = 0;
    for (int feature = 0; feature < REALISM_FEATURES; feature++) {
        if (!isnan(likelihoods[feature])) {
            sum += CONFIG[feature].weight * likelihoods[feature];
            weights += CONFIG[feature].weight;
        }
    }
    return weights > 0 ? sum / weights : NAN;
}
