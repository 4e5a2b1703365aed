/*
 * Momentum and curves. See severity.h; docs/risk.md discusses the choices.
 */
#include "report/risk/severity.h"

#include <math.h>

#define MPS_TO_KMH 3.6
#define COS_45_DEG 0.70710678118654752

const char *const severity_curve_names[SEVERITY_CURVE_COUNT] = {
    [SEVERITY_PEDESTRIAN_SEVERE] = "pedestrian_severe",
    [SEVERITY_PEDESTRIAN_FATAL] = "pedestrian_fatal",
    [SEVERITY_OCCUPANT_FRONT_FATAL] = "occupant_front_fatal",
    [SEVERITY_OCCUPANT_SIDE_FATAL] = "occupant_side_fatal",
};

struct severity_model severity_model_default(void)
{
    return (struct severity_model){
        .ego_kg = 1500,
        .mass_kg =
            {
                [AGENT_CAR] = 1500,
                [AGENT_VAN] = 2200,
                [AGENT_TRUCK] = 18000,
                [AGENT_BUS] = 13000,
                [AGENT_MOTORCYCLE] = 280,
                [AGENT_CYCLIST] = 90,
                [AGENT_PEDESTRIAN] = 75,
            },
        .density_kg_m3 = 200,
        .curves =
            {
                [SEVERITY_PEDESTRIAN_SEVERE] =
                    {-4.678, 0.08808, 77,
                     "Tefft, Accident Analysis and Prevention 50 (2013): 10, 25, 50, 75, 90% at "
                     "17.1, 24.9, 33.0, 40.8, 48.1 mph; a logistic within 1 point of each",
                     true},
                [SEVERITY_PEDESTRIAN_FATAL] =
                    {-6.9, 0.090, 75,
                     "Rosen, Sander, Accident Analysis and Prevention 41 (2009), 536-542: adults "
                     "hit by the front of a car",
                     true},
                [SEVERITY_OCCUPANT_FRONT_FATAL] =
                    {-9.315, 0.12059, 97,
                     "Richards, Road Safety Web Publication 16, DfT London 2010: belted drivers, "
                     "3, 17, 60% at 30, 40, 50 mph; a logistic through them",
                     true},
                [SEVERITY_OCCUPANT_SIDE_FATAL] =
                    {-9.598, 0.17604, 65,
                     "Richards, as above: 25 and 85% at 30 and 40 mph, from few crashes; a "
                     "logistic through them",
                     false},
            },
    };
}

static double curve_at(const struct severity_curve *curve, double speed_mps, bool *outside)
{
    double speed_kmh = speed_mps * MPS_TO_KMH;
    *outside = *outside || speed_kmh > curve->most_kmh;
    return speed_mps > 0 ? 1 / (1 + exp(-(curve->intercept + curve->per_kmh * speed_kmh))) : 0;
}

/* Whether the partner comes from the side: `along` is the closing speed along a body's heading. */
static bool from_the_side(double along_mps, double closing_mps)
{
    return fabs(along_mps) < COS_45_DEG * closing_mps;
}

static double occupants(const struct severity_model *model, double along_mps, double closing_mps,
                        double delta_mps, bool *outside)
{
    bool side = from_the_side(along_mps, closing_mps);
    return curve_at(
        &model->curves[side ? SEVERITY_OCCUPANT_SIDE_FATAL : SEVERITY_OCCUPANT_FRONT_FATAL],
        delta_mps, outside);
}

static double mass_of(const struct severity_model *model, const struct agent *agent)
{
    double mass_kg = model->mass_kg[agent->kind];
    double box_m3 = agent->length_m * agent->width_m * agent->height_m;
    return mass_kg > 0 ? mass_kg : model->density_kg_m3 * box_m3;
}

static bool carries_people(enum agent_kind kind)
{
    return kind == AGENT_CAR || kind == AGENT_VAN || kind == AGENT_TRUCK || kind == AGENT_BUS;
}

bool severity_is_person(enum agent_kind kind)
{
    return kind == AGENT_MOTORCYCLE || kind == AGENT_CYCLIST || kind == AGENT_PEDESTRIAN;
}

struct severity_harm severity_contact(const struct severity_model *model, const struct ego *ego,
                                      const struct severity_body *ego_at, const struct agent *other,
                                      const struct severity_body *other_at)
{
    struct severity_harm out = {.partner = other->kind};
    double ego_cos = cos(ego_at->pose.heading_rad);
    double ego_sin = sin(ego_at->pose.heading_rad);
    double other_cos = cos(other_at->pose.heading_rad);
    double other_sin = sin(other_at->pose.heading_rad);
    double x_mps = ego_at->speed_mps * ego_cos - other_at->speed_mps * other_cos;
    double y_mps = ego_at->speed_mps * ego_sin - other_at->speed_mps * other_sin;
    double other_kg = mass_of(model, other);
    double all_kg = model->ego_kg + other_kg;
    out.impact_mps = hypot(x_mps, y_mps);
    out.ego_delta_mps = out.impact_mps * other_kg / all_kg;
    out.other_delta_mps = out.impact_mps * model->ego_kg / all_kg;
    double spared = 1 - occupants(model, x_mps * ego_cos + y_mps * ego_sin, out.impact_mps,
                                  out.ego_delta_mps, &out.outside);
    if (carries_people(other->kind)) {
        spared *= 1 - occupants(model, x_mps * other_cos + y_mps * other_sin, out.impact_mps,
                                out.other_delta_mps, &out.outside);
    } else if (severity_is_person(other->kind)) {
        double ahead_m = (other_at->pose.x_m - ego_at->pose.x_m) * ego_cos +
                         (other_at->pose.y_m - ego_at->pose.y_m) * ego_sin;
        /* The curves are those of pedestrians before the front of a car. */
        out.outside = out.outside || other->kind != AGENT_PEDESTRIAN || ahead_m < ego->length_m / 2;
        /* These are of the car's speed, whatever the pedestrian's; who rides has a speed too. */
        double speed_mps =
            other->kind == AGENT_PEDESTRIAN ? fabs(ego_at->speed_mps) : out.impact_mps;
        out.vru_severe =
            curve_at(&model->curves[SEVERITY_PEDESTRIAN_SEVERE], speed_mps, &out.outside);
        spared *= 1 - curve_at(&model->curves[SEVERITY_PEDESTRIAN_FATAL], speed_mps, &out.outside);
    }
    out.fatal = 1 - spared;
    return out;
}
