/*
 * Branches as follow-up scenes. See stage.h.
 */
#include "worker/score/field/stage.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "schemas/field/field.h"

#include <math.h>
#include <stdlib.h>

struct stage {
    uint32_t takeover_tick;
    uint32_t handback_tick;
    double wheelbase_m;
    bool planned;
    struct vec2 planned_axle; /* at the handback, as planned at the takeover */
    double distance_m;
    bool begun;
    struct plans plans;  /* from the handback on */
    struct score *score; /* own memory, behind the struct */
};

/* Space of the struct with the score aligned behind it. */
static size_t stage_bytes(void)
{
    size_t align = _Alignof(max_align_t);
    return (sizeof(struct stage) + align - 1) / align * align;
}

static bool of_ego(enum intervention_kind kind)
{
    return kind <= INTERVENE_EGO_PLANNER;
}

static const struct intervention *find(const struct branch *branch, bool planner, uint32_t after)
{
    for (uint32_t i = 0; i < branch->intervention_count; i++) {
        const struct intervention *what = &branch->interventions[i];
        if ((what->kind == INTERVENE_EGO_PLANNER) == planner && what->tick >= after) {
            return what;
        }
    }
    return NULL;
}

bool stage_is(const struct scenario *scenario, const struct branch *branch)
{
    const struct intervention *takeover = find(branch, false, 0);
    const struct intervention *handback =
        takeover != NULL ? find(branch, true, takeover->tick + 1) : NULL;
    for (uint32_t i = 0; i < branch->intervention_count; i++) {
        const struct intervention *what = &branch->interventions[i];
        bool again = handback != NULL && what > handback && what->kind != INTERVENE_EGO_PLANNER;
        if (!of_ego(what->kind) || again) {
            return false;
        }
    }
    return handback != NULL && handback->tick < scenario->horizon_ticks;
}

struct stage *stage_create(const struct prepared *prepared, const struct branch *branch)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    CHECK(stage_is(scenario, branch));
    struct stage *stage =
        malloc(stage_bytes() + score_bytes(scenario->horizon_ticks, scenario->agent_count));
    if (stage == NULL) {
        return NULL;
    }
    *stage = (struct stage){.wheelbase_m = scenario->ego.wheelbase_m, .distance_m = NAN};
    stage->takeover_tick = find(branch, false, 0)->tick;
    stage->handback_tick = find(branch, true, stage->takeover_tick + 1)->tick;
    stage->score =
        score_init_rest((uint8_t *)stage + stage_bytes(), prepared, stage->handback_tick);
    return stage;
}

void stage_destroy(struct stage *stage)
{
    free(stage);
}

/* [E] measures from rear axle to rear axle. */
static struct vec2 axle_of(const struct stage *stage, struct pose pose)
{
    double sine;
    double cosine;
    dmath_sincos(pose.heading_rad, &sine, &cosine);
    return (struct vec2){pose.x_m - 0.5 * stage->wheelbase_m * cosine,
                         pose.y_m - 0.5 * stage->wheelbase_m * sine};
}

void stage_update(struct stage *stage, const struct scene *scene)
{
    if (scene->tick < stage->handback_tick) {
        return;
    }
    if (!stage->begun) {
        CHECK(scene->tick == stage->handback_tick);
        stage->begun = true;
        if (stage->planned) {
            struct vec2 axle = axle_of(stage, scene->ego.pose);
            double x_m = axle.x_m - stage->planned_axle.x_m;
            double y_m = axle.y_m - stage->planned_axle.y_m;
            stage->distance_m = sqrt(x_m * x_m + y_m * y_m);
        }
    }
    score_update(stage->score, scene);
}

/* Place that a plan has after t_s, straight between its points; false: it ends before. */
static bool place_at(const struct swerve_observation *ego, const struct swerve_answer *answer,
                     double t_s, struct pose *out)
{
    struct swerve_trajectory_point before = {0.0, ego->x_m, ego->y_m, ego->heading_rad, 0.0};
    for (uint32_t i = 0; i < answer->point_count; i++) {
        const struct swerve_trajectory_point *after = &answer->points[i];
        if (after->t_s >= t_s - 1e-9) {
            double span_s = after->t_s - before.t_s;
            double share = span_s > 0.0 ? dmath_min((t_s - before.t_s) / span_s, 1.0) : 1.0;
            double turn_rad = dmath_wrap_angle(after->heading_rad - before.heading_rad);
            *out = (struct pose){before.x_m + share * (after->x_m - before.x_m),
                                 before.y_m + share * (after->y_m - before.y_m),
                                 before.heading_rad + share * turn_rad};
            return true;
        }
        before = *after;
    }
    return false;
}

void stage_plan(struct stage *stage, uint32_t tick, const struct swerve_observation *ego,
                const struct swerve_answer *answer)
{
    if (tick == stage->takeover_tick) {
        struct pose at;
        double ahead_s = (stage->handback_tick - stage->takeover_tick) * TICK_S;
        stage->planned = place_at(ego, answer, ahead_s, &at);
        if (stage->planned) {
            stage->planned_axle = axle_of(stage, at);
        }
    }
    if (tick >= stage->handback_tick) {
        plans_add(&stage->plans, tick, ego, stage->wheelbase_m, answer);
    }
}

void stage_finish(const struct stage *stage, double *distance_m, double *epdms)
{
    *distance_m = stage->distance_m;
    *epdms = NAN;
    if (stage->begun && stage->planned) {
        struct metrics metrics;
        enum verdict verdict;
        uint32_t reasons;
        score_finish(stage->score, &metrics, &verdict, &reasons);
        metrics.extended_comfort = plans_comfort(&stage->plans);
        const struct field_parts parts = field_parts_of(&metrics);
        *epdms = field_epdms(&parts);
    }
}
