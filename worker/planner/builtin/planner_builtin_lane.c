/*
 * Parts that the builtin planners share: their table, reading a config text, and lane keeping by
 * pure pursuit on the route points of an observation. Pure functions.
 */
#include "worker/planner/builtin/planner_builtin.h"

#include "base/check.h"
#include "base/dmath.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct swerve_planner_ops *const builtins[] = {
    &planner_builtin_reference_ops, &planner_builtin_maintain_ops, &planner_builtin_brake_ops,
    &planner_builtin_log_ops,       &planner_builtin_idm_ops,      &planner_builtin_pdm_ops,
    &planner_builtin_r157_ops,      &planner_builtin_pid_ops,      &planner_builtin_zero_ops,
};

const struct swerve_planner_ops *planner_builtin_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(builtins); i++) {
        if (strcmp(builtins[i]->name, name) == 0) {
            return builtins[i];
        }
    }
    return NULL;
}

void planner_builtin_names(char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(builtins) && used < bytes; i++) {
        int wrote =
            snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : "", builtins[i]->name);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

void *planner_builtin_create(size_t sessions_at, size_t session_bytes, uint32_t session_count,
                             char *error_text, uint32_t error_bytes)
{
    struct planner_builtin *self = calloc(1, sessions_at + session_count * session_bytes);
    if (self == NULL) {
        snprintf(error_text, error_bytes, "out of memory");
        return NULL;
    }
    *self = (struct planner_builtin){session_count, session_bytes, sessions_at};
    return self;
}

int planner_builtin_fork(void *planner, uint32_t from, uint32_t to, char *error_text,
                         uint32_t error_bytes)
{
    (void)error_text;
    (void)error_bytes;
    const struct planner_builtin *self = planner;
    CHECK(from != to && from < self->session_count && to < self->session_count);
    char *sessions = (char *)planner + self->sessions_at;
    memcpy(sessions + to * self->session_bytes, sessions + from * self->session_bytes,
           self->session_bytes);
    return 0;
}

/* Sets the one parameter that key (key_bytes long) names. */
static int config_set(const char *key, size_t key_bytes, const char *value,
                      const struct planner_parameter *parameters, uint32_t count, uint32_t *seen,
                      char *error_text, uint32_t error_bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct planner_parameter *parameter = &parameters[i];
        if (strlen(parameter->key) != key_bytes || memcmp(parameter->key, key, key_bytes) != 0) {
            continue;
        }
        char *end = NULL;
        double number = strtod(value, &end);
        if (end == value || (*end != '\0' && *end != '&' && *end != ',') ||
            !(number >= parameter->low && number <= parameter->high)) {
            snprintf(error_text, error_bytes, "%s: expected a number from %g to %g, found \"%.*s\"",
                     parameter->key, parameter->low, parameter->high, (int)strcspn(value, "&,"),
                     value);
            return 1;
        }
        if ((*seen & 1u << i) != 0) {
            snprintf(error_text, error_bytes, "%s: given twice", parameter->key);
            return 1;
        }
        *seen |= 1u << i;
        *parameter->value = number;
        return 0;
    }
    size_t used = (size_t)snprintf(error_text, error_bytes, "unknown key \"%.*s\"; expected",
                                   (int)key_bytes, key);
    for (uint32_t i = 0; i < count && used < error_bytes; i++) {
        used += (size_t)snprintf(error_text + used, error_bytes - used, "%s %s", i > 0 ? "," : "",
                                 parameters[i].key);
    }
    if (count == 0) {
        snprintf(error_text, error_bytes, "takes no config, found \"%.*s\"", (int)key_bytes, key);
    }
    return 1;
}

int planner_config_read(const char *config, const struct planner_parameter *parameters,
                        uint32_t count, char *error_text, uint32_t error_bytes)
{
    CHECK(count < 32);
    uint32_t seen = 0;
    while (*config != '\0') {
        size_t key_bytes = strcspn(config, "=&,");
        if (config[key_bytes] != '=') {
            snprintf(error_text, error_bytes, "expected key=number, found \"%.*s\"", (int)key_bytes,
                     config);
            return 1;
        }
        const char *value = config + key_bytes + 1;
        if (config_set(config, key_bytes, value, parameters, count, &seen, error_text,
                       error_bytes) != 0) {
            return 1;
        }
        config = value + strcspn(value, "&,");
        config += *config != '\0';
    }
    return 0;
}

/* ---- lane keeping ---- */

struct planner_point planner_route_at(const struct swerve_observation *observation, double s_m,
                                      double offset_m)
{
    CHECK(observation->route_count >= 2);
    double station = s_m / SWERVE_ROUTE_STEP_M;
    double last = (double)(observation->route_count - 2);
    double floor_station = floor(dmath_clamp(station, 0.0, last));
    const struct swerve_route_point *from = &observation->route[(uint32_t)floor_station];
    double t = station - floor_station;
    double dx = (double)from[1].x_m - (double)from[0].x_m;
    double dy = (double)from[1].y_m - (double)from[0].y_m;
    double length = sqrt(dx * dx + dy * dy);
    double scale = length > 1e-6 ? offset_m / length : 0.0;
    return (struct planner_point){(double)from->x_m + t * dx - scale * dy,
                                  (double)from->y_m + t * dy + scale * dx};
}

double planner_pursue(struct planner_point target, double wheelbase_m)
{
    double ahead = target.x_m + 0.5 * wheelbase_m;
    double squared = ahead * ahead + target.y_m * target.y_m;
    if (ahead < 0.1 || squared < 0.25) {
        return 0.0;
    }
    return dmath_atan(2.0 * wheelbase_m * target.y_m / squared);
}

double planner_keep_lane(const struct swerve_observation *observation, double wheelbase_m,
                         double offset_m)
{
    if (observation->route_count < 2) {
        return 0.0;
    }
    double look_ahead_m = dmath_clamp(0.9 * observation->speed_mps, 5.0, 30.0);
    return planner_pursue(planner_route_at(observation, look_ahead_m, offset_m), wheelbase_m);
}
