/*
 * Routes in words and as JSON. See routes.h.
 */
#include "cli/budget/routes.h"

#include "base/check.h"
#include "base/text.h"

/* Jobs of a tier and reason; its figures are those of the first of them. */
struct route {
    enum tier tier;
    enum route_reason reason;
    int64_t own, other, jobs;
};

enum { ROUTES_MAX = TIER_COUNT * ROUTE_REASON_COUNT };

/* In the order in which they come up; returns how many. */
static uint32_t count_routes(struct submission *submission, struct route routes[ROUTES_MAX])
{
    uint32_t count = 0;
    for (bool more = submission_first(submission); more; more = submission_next(submission)) {
        for (uint32_t i = 0; i < submission->page_count; i++) {
            const struct job_spec *spec = &submission->specs[i];
            uint32_t k = 0;
            while (k < count &&
                   (routes[k].tier != spec->tier || routes[k].reason != spec->route_reason)) {
                k++;
            }
            if (k == count) {
                routes[count++] = (struct route){.tier = spec->tier,
                                                 .reason = spec->route_reason,
                                                 .own = spec->route_own,
                                                 .other = spec->route_other};
            }
            routes[k].jobs++;
        }
    }
    submission_first(submission);
    return count;
}

void routes_tell_reasons(struct submission *submission)
{
    struct route routes[ROUTES_MAX];
    char why[ROUTE_TEXT_BYTES];
    uint32_t count = count_routes(submission, routes);
    for (uint32_t i = 0; i < count; i++) {
        const struct route *route = &routes[i];
        text_print(stderr, "%lld job%s in the %s world: %s\n", (long long)route->jobs,
                   route->jobs == 1 ? "" : "s", tier_names[route->tier],
                   route_reason_text(route->tier, route->reason, route->own, route->other, why));
    }
}

static json_t *routes_json(struct submission *submission)
{
    struct route routes[ROUTES_MAX];
    char why[ROUTE_TEXT_BYTES];
    uint32_t count = count_routes(submission, routes);
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct route *route = &routes[i];
        json_array_append_new(
            list,
            json_pack(
                "{s:s, s:s, s:I, s:I, s:I, s:s}", "tier", tier_names[route->tier], "route_reason",
                route_reason_names[route->reason], "route_own", (json_int_t)route->own,
                "route_other", (json_int_t)route->other, "jobs", (json_int_t)route->jobs, "why",
                route_reason_text(route->tier, route->reason, route->own, route->other, why)));
    }
    return list;
}

void routes_tell(const struct submission *submission)
{
    if (submission->frozen_count > 0) {
        text_print(stdout,
                   "%u scenario%s answered by the teacher: the student is frozen there (swerve "
                   "agreement says why)\n",
                   submission->frozen_count, submission->frozen_count == 1 ? " is" : "s are");
    }
    const struct {
        uint32_t count;
        const char *what;
    } rows[] = {
        {submission->clipped_count, "driven as far as the model is trusted (--horizon clip)"},
        {submission->rerouted_count,
         "answered by another world, trusted for longer (--horizon route)"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].count > 0) {
            text_print(stdout, "%u scenario%s longer than the model's trusted horizon: %s\n",
                       rows[i].count, rows[i].count == 1 ? "" : "s", rows[i].what);
        }
    }
}

void routes_put(struct submission *submission, json_t *json)
{
    json_object_set_new(json, "degraded", json_integer(submission->degraded_count));
    json_object_set_new(json, "clipped", json_integer(submission->clipped_count));
    json_object_set_new(json, "frozen", json_integer(submission->frozen_count));
    json_object_set_new(json, "rerouted", json_integer(submission->rerouted_count));
    json_object_set_new(json, "routes", routes_json(submission));
}
