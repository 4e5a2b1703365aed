/*
 * On the card of a failure: whether a careful driver would have avoided it (worker/careful). Driven
 * when the report is written; a scenario of another domain says which.
 */
#include "worker/report/report_internal.h"

#include <string.h>

static const char *const who[CAREFUL_MODELS] = {"A careful driver", "The fuzzy safety model"};

static void one(struct html *html, const struct scenario *scenario, enum careful_model model,
                const struct careful_drive *drive)
{
    html_raw(html, model > 0 ? " " : "");
    report_metric(html, "careful driver", who[model]);
    if (drive->avoids) {
        html_raw(html, " would have <b class=\"good\">avoided</b> it.");
    } else if (drive->collides && drive->agent >= 0 &&
               (uint32_t)drive->agent < scenario->agent_count) {
        html_format(html, " would have touched %s, at %.1f m/s.", scenario->agents[drive->agent].id,
                    drive->impact_mps);
    } else {
        html_raw(html, " would have touched nothing, but broken a criterion of safety.");
    }
}

enum status report_careful(struct report *report, const struct scenario *scenario,
                           const struct outcome *outcome, struct error *error)
{
    struct html *html = &report->html;
    struct careful found;
    if (!careful_asked(outcome)) {
        return STATUS_OK;
    }
    if (report->careful == NULL) {
        TRY(careful_drivers_create(&report->careful, error));
    }
    TRY(careful_ask(report->careful, scenario, outcome->scenario_hash, outcome->seed, &found,
                    error));
    html_raw(html, "<p>");
    if (found.outside[0] != '\0') {
        html_raw(html, "<span class=\"soft\">What a ");
        report_metric(html, "careful driver", "careful driver");
        html_format(html, " would have done is not known: %s.</span>", found.outside);
    }
    for (int m = 0; found.outside[0] == '\0' && m < CAREFUL_MODELS; m++) {
        one(html, scenario, (enum careful_model)m, &found.drives[m]);
    }
    html_raw(html, "</p>");
    return STATUS_OK;
}
