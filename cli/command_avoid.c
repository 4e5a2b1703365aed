/*
 * swerve avoid: until when ego could still have avoided what went wrong in a suite's drives, by
 * forks of each failed main line in which it brakes or swerves (worker/run/avoidance.h), and what
 * the same manoeuvres break in drives that are safe.
 */
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/kept/again.h"
#include "scheduler/rate.h"
#include "worker/careful/careful_drivers.h"
#include "worker/run/avoidance.h"
#include "worker/versions/versions.h"

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_MS = 3000 };

struct avoid_drive {
    struct outcome outcome;
    struct avoidance found;
    bool asked; /* whether a careful driver would have avoided it */
    struct careful careful;
};

struct avoid {
    struct store *store;
    const char *url; /* as the user names it */
    const char *suite;
    bool harm;
    bool json;
    struct again again;
    struct careful_drivers *careful; /* owned */
    uint32_t main_lines;             /* that passed or failed */
    uint32_t count;
    struct avoid_drive *drives; /* owned; main lines, by logical scenario and scenario */
};

/* ---- what is asked ---- */

static int compare_drives(const void *a, const void *b)
{
    return again_compare(&((const struct avoid_drive *)a)->outcome,
                         &((const struct avoid_drive *)b)->outcome);
}

static enum status add_drive(void *context, const struct outcome *outcome, struct error *error)
{
    struct avoid *avoid = context;
    bool unsafe = !careful_is_safe(outcome->verdict, outcome->reasons, &outcome->metrics);
    if (outcome->branch_id[0] != '\0' || outcome->audit_of != 0 ||
        outcome->verdict > VERDICT_FAIL) {
        return STATUS_OK;
    }
    avoid->main_lines++;
    if (!unsafe && !avoid->harm) {
        return STATUS_OK;
    }
    TRY(array_room(&avoid->drives, avoid->count, sizeof *avoid->drives, error));
    avoid->drives[avoid->count++] = (struct avoid_drive){.outcome = *outcome};
    return STATUS_OK;
}

static enum status load_drives(struct avoid *avoid, struct error *error)
{
    TRY(store_outcomes_each(avoid->store, avoid->suite, add_drive, avoid, error));
    if (avoid->count > 0) {
        qsort(avoid->drives, avoid->count, sizeof *avoid->drives, compare_drives);
    }
    return STATUS_OK;
}

/* ---- sweeps ---- */

static enum status sweep(struct avoid *avoid, struct avoid_drive *drive, struct error *error)
{
    struct scenario_document *document = NULL;
    enum status status = again_begin(&avoid->again, &drive->outcome, &document, error);
    THEN(status, avoidance_sweep(avoid->again.planner.open.runner, &document->scenario,
                                 &drive->outcome, &drive->found, error));
    drive->asked = status == STATUS_OK && careful_asked(&drive->outcome);
    if (drive->asked && avoid->careful == NULL) {
        status = careful_drivers_create(&avoid->careful, error);
    }
    if (drive->asked && status == STATUS_OK) {
        status = careful_ask(avoid->careful, &document->scenario, drive->outcome.scenario_hash,
                             drive->outcome.seed, &drive->careful, error);
    }
    scenario_destroy(document);
    return status == STATUS_OK ? status
                               : error_prefix(error, "outcome %lld", (long long)drive->outcome.id);
}

/* A line now and then: a drive is driven again with hundreds of forks. Returns when the last line
 * was shown. */
static int64_t show_progress(const struct clock *clock, int64_t shown_ns, uint32_t done,
                             uint32_t count)
{
    int64_t now_ns = clock_now_ns(clock);
    if (done == count || now_ns - shown_ns < PROGRESS_MS * NS_PER_MS) {
        return shown_ns;
    }
    text_print(stderr, "%u/%u drives\n", done, count);
    return now_ns;
}

/* ---- what is shown ---- */

/* Rates over drives: of unsafe ones those that a manoeuvre saves in time (all three together last),
 * or before ego could see it; of safe ones the share of forks that a manoeuvre breaks. */
struct avoid_rates {
    int64_t different; /* drives that are another one now, in no rate */
    struct rate in_time[AVOIDANCE_MANOEUVRES + 1];
    struct rate unseen;
    struct rate harm[AVOIDANCE_MANOEUVRES];
    int64_t unsafe;
    int64_t safe;
};

static void count_drive(struct avoid_rates *rates, const struct avoidance *found,
                        int64_t logical_key, int64_t case_key)
{
    bool any = false;
    bool ever = false;
    rates->unsafe += !found->safe;
    rates->safe += found->safe;
    for (int m = 0; m < AVOIDANCE_MANOEUVRES; m++) {
        bool in_time = avoidance_in_time(found, (enum avoidance_manoeuvre)m);
        any = any || in_time;
        ever = ever || found->last_tick[m] != UINT32_MAX;
        if (!found->safe) {
            rate_add(&rates->in_time[m], logical_key, case_key, in_time);
        } else if (found->forks[m] > 0) {
            rate_add(&rates->harm[m], logical_key, case_key,
                     1.0 - (double)found->safe_forks[m] / found->forks[m]);
        }
    }
    if (!found->safe) {
        rate_add(&rates->in_time[AVOIDANCE_MANOEUVRES], logical_key, case_key, any);
        rate_add(&rates->unseen, logical_key, case_key, ever && !any);
    }
}

static void count_rates(const struct avoid *avoid, struct avoid_rates *rates)
{
    int64_t logical_key = 0;
    int64_t case_key = 0;
    *rates = (struct avoid_rates){0};
    for (uint32_t i = 0; i < avoid->count; i++) {
        const struct outcome *outcome = &avoid->drives[i].outcome;
        const struct outcome *last = i > 0 ? &avoid->drives[i - 1].outcome : NULL;
        again_keys(last, outcome, &logical_key, &case_key);
        if (avoid->drives[i].found.same) {
            count_drive(rates, &avoid->drives[i].found, logical_key, case_key);
        } else {
            rates->different++;
        }
    }
}

/* A tick as seconds before the contact or the end; "-": there is none. */
static const char *before_text(const struct avoidance *found, uint32_t tick, char out[16])
{
    snprintf(out, 16, "-");
    if (tick != UINT32_MAX) {
        snprintf(out, 16, "%.1f", ((double)found->end_tick - (double)tick) * TICK_S);
    }
    return out;
}

static void print_rate(const char *name, const struct rate *rate)
{
    struct rate_estimate at = rate_estimate(rate);
    if (at.cases > 0) {
        text_print(stdout, "  %-44s %5.1f%% [%.1f-%.1f]\n", name, 100 * at.value,
                   rate_down(100 * at.low, 0.1), rate_up(100 * at.high, 0.1));
    }
}

/* Names drives that cannot be swept, since the planner or the simulation changed. */
static void print_different(const struct avoid *avoid, int64_t different)
{
    for (uint32_t i = 0; different > 0 && i < avoid->count; i++) {
        const struct outcome *outcome = &avoid->drives[i].outcome;
        if (!avoid->drives[i].found.same) {
            text_print(stderr,
                       "swerve: %lld drive%s not what is stored when driven again, and left out: "
                       "swerve replay %lld --store %s says why\n",
                       (long long)different, different == 1 ? " is" : "s are",
                       (long long)outcome->id, avoid->url);
            return;
        }
    }
}

static const char *careful_text(const struct avoid_drive *drive)
{
    return !drive->asked || drive->careful.outside[0] != '\0' ? "-"
           : drive->careful.drives[CAREFUL_DRIVER].avoids     ? "avoids"
                                                              : "fails";
}

/* The manoeuvre that may begin last, and how that lies to the moment of sight. */
static void print_sentence(const struct avoidance *found)
{
    static const char *const names[AVOIDANCE_MANOEUVRES] = {"braking", "swerving left",
                                                            "swerving right"};
    const char *end = found->agent >= 0 ? "the contact" : "the end";
    char before[16];
    int best = 0;
    for (int m = 1; m < AVOIDANCE_MANOEUVRES; m++) {
        bool later =
            found->last_tick[m] != UINT32_MAX &&
            (found->last_tick[best] == UINT32_MAX || found->last_tick[m] > found->last_tick[best]);
        best = later ? m : best;
    }
    uint32_t last = found->last_tick[best];
    if (last == UINT32_MAX) {
        text_print(stdout, "        neither braking nor swerving avoids it, whenever it begins\n");
        return;
    }
    bool in_time = avoidance_in_time(found, (enum avoidance_manoeuvre)best);
    text_print(stdout, "        %s %s %s s before %s", names[best],
               in_time ? "avoids it when it begins by" : "had to begin by",
               before_text(found, last, before), end);
    if (found->agent < 0) {
        text_print(stdout, "\n");
    } else if (found->visible_tick == UINT32_MAX) {
        text_print(stdout, ", and the hazard never came in sight\n");
    } else {
        text_print(stdout, ", %.1f s %s the hazard came in sight\n",
                   fabs((double)last - (double)found->visible_tick) * TICK_S,
                   in_time ? "after" : "before");
    }
}

static const char legend[] =
    "in sight: since when the planner could see the hazard without a break; map: nobody was "
    "touched\n"
    "brake, swerve left, swerve right: the last moment at which that still avoids it; -: none\n"
    "careful driver: a model of UN R157 in the planner's place; not in time: avoidable only before "
    "it was in sight\n";

static void print_unsafe(const struct avoid *avoid)
{
    text_print(stdout, "seconds before the contact or the end%25s %9s %9s %12s %12s %14s\n", "",
               "in sight", "brake", "swerve left", "swerve right", "careful driver");
    for (uint32_t i = 0; i < avoid->count; i++) {
        const struct avoid_drive *drive = &avoid->drives[i];
        const struct avoidance *found = &drive->found;
        char text[AVOIDANCE_MANOEUVRES + 1][16];
        if (found->safe || !found->same) {
            continue;
        }
        text_print(stdout, "%7lld %-48s %4llu %9s %9s %12s %12s %14s%s\n",
                   (long long)drive->outcome.id, drive->outcome.scenario_id,
                   (unsigned long long)drive->outcome.seed,
                   found->agent >= 0 ? before_text(found, found->visible_tick, text[0]) : "map",
                   before_text(found, found->last_tick[0], text[1]),
                   before_text(found, found->last_tick[1], text[2]),
                   before_text(found, found->last_tick[2], text[3]), careful_text(drive),
                   avoidance_in_time(found, AVOIDANCE_BRAKE) ||
                           avoidance_in_time(found, AVOIDANCE_SWERVE_LEFT) ||
                           avoidance_in_time(found, AVOIDANCE_SWERVE_RIGHT)
                       ? ""
                       : "  not in time");
        print_sentence(found);
    }
    text_print_lines(stdout, "\n%s", legend);
}

static void print_drives(const struct avoid *avoid, const struct avoid_rates *rates)
{
    if (rates->unsafe > 0) {
        print_unsafe(avoid);
        text_print(stdout, "\nof %lld unsafe drive%s, avoidable once the hazard is in sight\n",
                   (long long)rates->unsafe, rates->unsafe == 1 ? "" : "s");
    } else if (rates->different == 0) {
        text_print(stdout, "suite %s: none of %u main lines was unsafe\n", avoid->suite,
                   avoid->main_lines);
    }
    for (int m = 0; m < AVOIDANCE_MANOEUVRES; m++) {
        print_rate(avoidance_names[m], &rates->in_time[m]);
    }
    print_rate("any of them", &rates->in_time[AVOIDANCE_MANOEUVRES]);
    print_rate("only before it is in sight", &rates->unseen);
    if (rates->safe > 0) {
        text_print(stdout, "harm: in %lld safe drives, share of forks that end unsafe\n",
                   (long long)rates->safe);
        for (int m = 0; m < AVOIDANCE_MANOEUVRES; m++) {
            print_rate(avoidance_names[m], &rates->harm[m]);
        }
    }
}

static json_t *tick_json(uint32_t tick)
{
    return tick == UINT32_MAX ? json_null() : json_integer(tick);
}

static json_t *rate_json(const struct rate *rate)
{
    struct rate_estimate at = rate_estimate(rate);
    json_t *json =
        json_pack("{s:I, s:I, s:f, s:f}", "scenarios", (json_int_t)at.cases, "logical_scenarios",
                  (json_int_t)at.logical, "low", at.low, "high", at.high);
    if (at.cases > 0) {
        json_object_set_new(json, "rate", json_real(at.value));
    }
    return json;
}

static int print_json(const struct avoid *avoid, const struct avoid_rates *rates)
{
    json_t *drives = json_array();
    json_t *in_time = json_object();
    json_t *harm = json_object();
    json_t *different = json_array();
    for (uint32_t i = 0; i < avoid->count; i++) {
        const struct avoid_drive *drive = &avoid->drives[i];
        const struct avoidance *found = &drive->found;
        if (!found->same) {
            json_array_append_new(different, json_integer(drive->outcome.id));
            continue;
        }
        json_t *json =
            json_pack("{s:I, s:s, s:I, s:s, s:b, s:i, s:i, s:o}", "outcome",
                      (json_int_t)drive->outcome.id, "scenario", drive->outcome.scenario_id, "seed",
                      (json_int_t)drive->outcome.seed, "planner", drive->outcome.planner, "safe",
                      found->safe, "end_tick", (int)found->end_tick, "agent", (int)found->agent,
                      "visible_tick", tick_json(found->visible_tick));
        if (drive->asked) {
            json_object_set_new(json, "careful", careful_json(&drive->careful));
        }
        for (int m = 0; m < AVOIDANCE_MANOEUVRES; m++) {
            json_object_set_new(json, avoidance_names[m],
                                json_pack("{s:i, s:i, s:o, s:b}", "forks", (int)found->forks[m],
                                          "safe_forks", (int)found->safe_forks[m], "last_tick",
                                          tick_json(found->last_tick[m]), "in_time",
                                          avoidance_in_time(found, (enum avoidance_manoeuvre)m)));
        }
        json_array_append_new(drives, json);
    }
    for (int m = 0; m < AVOIDANCE_MANOEUVRES; m++) {
        json_object_set_new(in_time, avoidance_names[m], rate_json(&rates->in_time[m]));
        json_object_set_new(harm, avoidance_names[m], rate_json(&rates->harm[m]));
    }
    json_object_set_new(in_time, "any", rate_json(&rates->in_time[AVOIDANCE_MANOEUVRES]));
    return cli_print_json(json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "unsafe", (json_int_t)rates->unsafe, "safe",
        (json_int_t)rates->safe, "avoidable", in_time, "avoidable_unseen",
        rate_json(&rates->unseen), "harm", harm, "drives", drives, "different", different));
}

static int finish(struct avoid *avoid, enum status status, const struct error *error)
{
    int code = 0;
    if (status == STATUS_OK) {
        struct avoid_rates rates;
        count_rates(avoid, &rates);
        if (avoid->json) {
            code = print_json(avoid, &rates);
        } else {
            print_drives(avoid, &rates);
        }
        print_different(avoid, rates.different);
        code = code == 0 && rates.different > 0 ? 1 : code;
    } else {
        code = cli_fail(error);
    }
    again_close(&avoid->again);
    careful_drivers_destroy(avoid->careful);
    models_close(avoid->again.models);
    free(avoid->drives);
    avoid->store->ops->close(avoid->store);
    return code;
}

int command_avoid(int argc, char **argv)
{
    const char *url = NULL;
    const char *models = NULL;
    struct avoid avoid = {0};
    struct confinement_options confinement = CONFINEMENT_OPTIONS_DEFAULT;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url},
        {"--harm", NULL, "also what the manoeuvres break in drives that are safe",
         .flag = &avoid.harm},
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &models},
        {"--json", NULL, "print one JSON object", .flag = &avoid.json},
        AGAIN_DEADLINE_ROW(avoid.again),
        CONFINEMENT_OPTION_ROWS(confinement),
    };
    const struct cli_command command = {
        "avoid",
        "[SUITE] --store URL",
        "Until when unsafe drives of a suite (the newest) could have been avoided. Exits 1 when "
        "some\n"
        "are not what is stored when driven again: another planner or simulation, in no figure.",
        CLI_ROWS(rows, 0, 1),
    };
    char suite[LIMIT_ID_BYTES];
    struct error error;
    CLI_PARSE(&command, argc, argv, &avoid.suite, NULL);
    if (confinement_options_settle(&confinement, cli_store_url(url), &avoid.again.confinement,
                                   &error) != STATUS_OK ||
        cli_store_open(url, &avoid.store, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    avoid.url = cli_store_url(url);
    avoid.again.store = avoid.store;
    avoid.again.url = avoid.url;
    enum status status = cli_suite_id(avoid.store, avoid.url, avoid.suite, suite, &error);
    avoid.suite = suite;
    THEN(status, models_open(models, NULL, &avoid.again.models, &error));
    if (status == STATUS_OK) { /* without a place for them those of the directory remain */
        versions_fetch_from(avoid.store, avoid.again.models, NULL);
    }
    THEN(status, load_drives(&avoid, &error));
    const struct clock *clock = clock_system();
    int64_t shown_ns = clock_now_ns(clock);
    for (uint32_t i = 0; status == STATUS_OK && i < avoid.count; i++) {
        status = sweep(&avoid, &avoid.drives[i], &error);
        shown_ns = show_progress(clock, shown_ns, i + 1, avoid.count);
    }
    return finish(&avoid, status, &error);
}
