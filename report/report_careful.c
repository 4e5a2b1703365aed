/*
 * On the card of a failure: whether a careful driver would have avoided it. A scenario of another
 * domain says which.
 */
#include "report/report_internal.h"

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

enum status report_card_careful(struct report *report, const struct scenario *scenario,
                                const struct kept_outcome *outcome, struct error *error)
{
    struct html *html = &report->html;
    struct careful found;
    struct outcome whole;
    kept_outcome_whole(outcome, &whole);
    if (report->careful == NULL || !careful_asked(&whole)) {
        return STATUS_OK;
    }
    TRY(report->careful->ask(report->careful, scenario, &whole, &found, error));
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
