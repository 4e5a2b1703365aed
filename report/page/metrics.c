/*
 * Definitions of metrics as people read them. They repeat worker/METRICS.md in a sentence each.
 */
#include "report/page/metrics.h"

#include "base/check.h"

#include <string.h>

static const struct definition {
    const char *metric;
    const char *text;
} definitions[] = {
    {"main line", "The planner drives from the start to the end, without intervention."},
    {"branch", "A fork from the live state of the main line that goes on under an intervention; "
               "what came before the fork is simulated once."},
    {"95% interval", "Of the pass rate of main lines in one world: each scenario counts once, with "
                     "the mean of its seeds; Wilson's interval with as many draws as the spread "
                     "between logical scenarios amounts to. " METRIC_INTERVAL_TEXT},
    {"score", "nuPlan's closed-loop score, 0 to 1: no at-fault collision x drivable area x making "
              "progress x direction x (5 progress + 5 TTC + 4 speed limit + 2 comfort) / 16."},
    {"PDMS",
     "NAVSIM's score over the whole drive, 0 to 1: no at-fault collision x drivable area x (5 "
     "progress + 5 TTC + 2 comfort) / 12."},
    {"EPDMS",
     "NAVSIM's extended score over the whole drive, 0 to 1: no at-fault collision x drivable "
     "area x direction x no red light passed x (5 progress + 5 TTC + 2 lane keeping + 2 "
     "comfort + 2 extended comfort) / 16; without plans the last term is left out, / 14."},
    {"extended comfort", "Share of plans that agree with the plan of 0.5 s before about "
                         "acceleration, jerk, yaw rate and yaw acceleration. Of planners that "
                         "answer with trajectories of 4 s or more."},
    {"two stages",
     "EPDMS of the main line times the weighted mean of EPDMS of its branches that take ego over "
     "and give it back, from there on; weights by how near to its planned place that was."},
    {"lane keeping", "1 unless ego was more than 0.5 m off the centre of its route for 2 s on end, "
                     "outside junctions."},
    {"closest", "Smallest distance between ego's box and any agent's box, in metres; 0 on "
                "contact."},
    {"TTC", "Smallest time to collision at constant speed and heading, in seconds, up to 3 s; "
            "nuPlan's rules say which agents count."},
    {"impact", "Length of the difference of the two velocity vectors at the first contact, m/s."},
    {"progress", "Progress along the route over the progress expected, 0 to 1."},
    {"at fault", "nuPlan: ego hit a stopped agent, hit with its front, or was hit sideways while "
                 "in several lanes."},
    {"guardian", "A rule-based monitor: how often it overrides, or would have, by "
                 "the RSS safe distances or about to leave the drivable area."},
    {"careful driver",
     "One of the two driver models of UN R157, driven from the same start with the "
     "same seed in the object world, on what ego's sensors see: it stays in its lane, "
     "takes time to notice, and brakes."},
    {"drivable area", "Off when a corner of ego's box is 0.3 m or more outside it."},
    {"direction", "1 if ego moves less than 2 m against the lane within 1 s, 0.5 below 6 m, "
                  "else 0."},
    {"comfort", "nuPlan's seven bounds on filtered acceleration, jerk and yaw."},
    {"miles", "Driven in simulation, what branches share counted once."},
    {"MFU", "Model FLOP utilisation: operations of the model, counted from its shapes, over what a "
            "core of the machine that drove, or its GPU, could have done in the device time at its "
            "measured peak."},
    {"$/1000 miles",
     "Device time of the results at the price of their pool, over the miles that they drove. What "
     "a "
     "planner computes in a process of its own is not in it; the ledger also charges attempts that "
     "failed."},
};

static const char *definition(const char *metric)
{
    for (size_t i = 0; i < COUNT_OF(definitions); i++) {
        if (strcmp(definitions[i].metric, metric) == 0) {
            return definitions[i].text;
        }
    }
    CHECK(!"a metric without a definition");
    return "";
}

void report_metric(struct html *html, const char *metric, const char *text)
{
    html_format(html, "<abbr title=\"%s\">", definition(metric));
    html_raw(html, text);
    html_raw(html, "</abbr>");
}

void report_definitions(struct html *html)
{
    html_raw(html, "<h2 id=\"words\">What the words mean</h2><div class=\"card\"><dl>");
    for (size_t i = 0; i < COUNT_OF(definitions); i++) {
        html_raw(html, "<dt>");
        html_raw(html, definitions[i].metric);
        html_format(html, "</dt><dd>%s</dd>", definitions[i].text);
    }
    html_raw(html, "</dl><p class=\"soft\">In full, with sources: worker/METRICS.md.</p></div>");
}
