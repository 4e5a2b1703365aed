/*
 * swerve plan: a fleet on paper. Miles a day become ticks, device time, cards and dollars, by
 * arithmetic; a day of that fleet is then simulated on the product's store, and both stand side by
 * side.
 */
#include "cli/budget/budget.h"
#include "cli/cli.h"
#include "report/page/page.h"
#include "report/plan/plan_mix.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "scheduler/audit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS_BYTES = 16 };

struct plan_command {
    const char *suite;
    const char *mix;
    const char *card;
    const char *rates_url;
    const char *budget;
    int64_t miles_per_day;
    int64_t seed;
    int64_t jobs_max;
    bool day;
    bool json;
    bool measured[TIER_COUNT];
    struct day_inputs inputs;
    struct day result;
};

/* ---- inputs ---- */

/* Ticks of each of the suite's jobs, a shared past once, and what ego drives in one by its speed at
 * the start. */
static enum status read_suite(const char *name, struct day_inputs *out, struct error *error)
{
    struct suite *suite = NULL;
    double ticks = 0.0;
    double metres = 0.0;
    TRY(cli_suite_load(name, &suite, error));
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        double own = scenario->horizon_ticks;
        for (uint32_t b = 0; b < scenario->branch_count; b++) {
            own += scenario->horizon_ticks - scenario->branches[b].at_tick;
        }
        if (out->length_count < DAY_LENGTHS_MAX && own >= 1.0) {
            out->lengths[out->length_count++] = (uint32_t)own;
            ticks += own;
            metres += own * 0.1 * scenario->ego.speed_mps;
        }
    }
    suite_destroy(suite);
    if (out->length_count == 0 || !(metres > 0.0)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "plan: %.200s: expected scenarios in which ego moves, found none", name);
    }
    out->plan.ticks_per_job = ticks / out->length_count;
    out->plan.metres_per_tick = metres / ticks;
    return STATUS_OK;
}

/* Rates that a store has measured take the place of planned ones. */
static enum status read_rates(struct plan_command *plan, struct error *error)
{
    double ns[TIER_COUNT] = {0};
    double rollouts[TIER_COUNT] = {0};
    struct store_demand *rows = calloc(STORE_DEMAND_ROWS_MAX, sizeof *rows);
    struct store *store = NULL;
    uint32_t count = 0;
    TRY(memory_check(rows, error, "plan: out of memory"));
    enum status status = cli_store_open(plan->rates_url, &store, error);
    if (status == STATUS_OK && store->ops->demand == NULL) {
        status = error_set(error, STATUS_STORE, "plan: this store does not tell its rates");
    }
    THEN(status, store->ops->demand(store, rows, STORE_DEMAND_ROWS_MAX, &count, error));
    cli_store_close(store);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        rollouts[rows[i].tier] += (double)rows[i].rollouts_seen;
        ns[rows[i].tier] += (double)rows[i].tick_ns * (double)rows[i].rollouts_seen;
    }
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        if (rollouts[tier] > 0.0 && ns[tier] > 0.0) {
            plan->inputs.plan.tick_s[tier] = ns[tier] / rollouts[tier] / (double)NS_PER_S;
            plan->measured[tier] = true;
        }
    }
    free(rows);
    return status;
}

static enum status gather(struct plan_command *plan, struct error *error)
{
    char names[128];
    const struct plan_card *card = plan_card_find(plan->card);
    if (card == NULL) {
        return error_set(error, STATUS_USAGE, "--card: expected one of %s, found \"%s\"",
                         plan_card_names(names, sizeof names), plan->card);
    }
    if (plan->miles_per_day < 1 || plan->miles_per_day > 1000000000 || plan->jobs_max < 100 ||
        plan->jobs_max > DAY_JOBS_MAX) {
        return error_set(error, STATUS_USAGE,
                         "plan: expected 1 to 1e9 miles a day and 100 to %d simulated jobs",
                         DAY_JOBS_MAX);
    }
    TRY(plan_mix_load(plan->mix, card, &plan->inputs, error));
    TRY(read_suite(plan->suite, &plan->inputs, error));
    TRY(plan->rates_url != NULL ? read_rates(plan, error) : STATUS_OK);
    plan->inputs.plan.miles_per_day = (double)plan->miles_per_day;
    plan->inputs.seed = (uint64_t)plan->seed;
    plan->inputs.jobs_max = plan->jobs_max;
    int64_t budget_uusd = 0;
    TRY(budget_read(plan->budget, &budget_uusd, error));
    plan->inputs.budget_usd = (double)budget_uusd / (double)UUSD_PER_USD;
    plan->inputs.sized = plan_of(&plan->inputs.plan);
    return STATUS_OK;
}

/* In a folder of its own, which is gone afterwards. */
static enum status simulate(struct plan_command *plan, struct error *error)
{
    static const char *const files[] = {
        "", "-wal", "-shm", ".lock", ".sock", ".artifacts/unfinished", ".artifacts"};
    const char *temporary = getenv("TMPDIR");
    char folder[LIMIT_PATH_BYTES];
    char path[LIMIT_PATH_BYTES + 16];
    snprintf(folder, sizeof folder, "%s/swerve_plan_XXXXXX",
             temporary != NULL && strlen(temporary) < 1000 ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL) {
        return error_set(error, STATUS_IO, "plan: cannot make a folder %s", folder);
    }
    snprintf(path, sizeof path, "%s/day.db", folder);
    plan->inputs.store_path = path;
    enum status status = day_simulate(&plan->inputs, &plan->result, error);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char file[LIMIT_PATH_BYTES + 32];
        snprintf(file, sizeof file, "%s%s", path, files[i]);
        if (unlink(file) != 0) {
            rmdir(file);
        }
    }
    rmdir(folder);
    return status;
}

/* ---- showing ---- */

/* Milliseconds of a tick, in four digits and without an exponent. */
static const char *tick_text(double tick_s, char out[32])
{
    snprintf(out, 32, tick_s * 1e3 < 1e4 ? "%.4g" : "%.0f", tick_s * 1e3);
    return out;
}

static void print_tiers(const struct plan_command *plan, const struct plan *sized)
{
    const struct plan_inputs *in = &plan->inputs.plan;
    text_print_lines(
        stdout,
        "%lld miles a day of %.200s: %.2f m and %.1f ticks a job on average, %.3f m a tick\n"
        "audits %.2f%%, flags %.2f%%, frozen %.2f%% of the student's jobs; failed %.2f%%\n\n",
        (long long)plan->miles_per_day, plan->suite, in->metres_per_tick * in->ticks_per_job,
        in->ticks_per_job, in->metres_per_tick, 100 * in->audit_rate, 100 * in->flag_rate,
        100 * in->frozen_share, 100 * in->failed_share);
    struct page page = {.out = stdout};
    page_table(&page, "",
               "8 tier| #12 miles| #12 jobs| #14 ticks| #12 ms a tick| #14 device hours");
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        char text[32];
        const struct plan_tier *row = &sized->tiers[tier];
        page_row(&page, "%s|%.0f|%.0f|%.0f|%s %c|%.2f", tier_names[tier], row->miles, row->jobs,
                 row->ticks, tick_text(in->tick_s[tier], text), plan->measured[tier] ? 'm' : 'p',
                 row->device_s / 3600.0);
    }
    text_print(stdout, "p: planned rate, m: measured in the store\n\n");
}

static void print_pools(const struct plan_command *plan, const struct plan *sized)
{
    struct page page = {.out = stdout};
    page_table(&page, "", "8 pool| #8 cards| #8 load| #14 $ a day| #14 $ busy alone");
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        const struct plan_pool_size *pool = &sized->pools[i];
        page_row(&page, "%s|%lld|%.1f%%|%.2f|%.2f", plan_pool_names[i], (long long)pool->cards,
                 100 * pool->load, pool->usd_per_day, pool->usd_busy);
    }
    text_print(stdout, "$%.2f a day, $%.4f a mile\n\n", sized->usd_per_day, sized->usd_per_mile);
    struct day_inputs frozen = plan->inputs;
    frozen.plan.frozen_share =
        frozen.plan.frozen_share + 0.1 < 1.0 ? frozen.plan.frozen_share + 0.1 : 1.0;
    struct plan with = plan_of(&frozen.plan);
    text_print(stdout,
               "a tenth of the student's jobs frozen all day: %+lld student, %+lld teacher "
               "cards, $%+.2f a day\n",
               (long long)(with.pools[PLAN_STUDENT].cards - sized->pools[PLAN_STUDENT].cards),
               (long long)(with.pools[PLAN_TEACHER].cards - sized->pools[PLAN_TEACHER].cards),
               with.usd_per_day - sized->usd_per_day);
    for (int i = PLAN_STUDENT; i < PLAN_POOL_COUNT; i++) {
        struct plan_loss loss = plan_lose(sized, (enum plan_pool)i, 32, 4.0);
        text_print(stdout,
                   "a rack of 32 %s cards gone for 4 h: %.1f device hours wait, caught up %.1f h "
                   "later\n",
                   plan_pool_names[i], loss.queued_s / 3600.0, loss.recovery_h);
    }
}

static double busy_usd(const struct plan *sized)
{
    double usd = 0.0;
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        usd += sized->pools[i].usd_busy;
    }
    return usd;
}

static void print_day(const struct plan_command *plan)
{
    const struct day *day = &plan->result;
    struct page page = {.out = stdout};
    text_print(
        stdout,
        "\na day of seed %lld, %.4g of the fleet: %lld jobs, %lld audits, %lld flagged, %lld "
        "frozen, %lld driven again\n",
        (long long)plan->seed, day->fraction, (long long)day->jobs, (long long)day->audits,
        (long long)day->flagged, (long long)day->frozen, (long long)day->redriven);
    page_table(&page, "",
               "8 pool| #6 cards| #8 jobs| #8 attempts| #7 losses| #7 queued| #8 load| #9 planned| "
               "#9 wait p50| #9 wait p99| #11 $ ledger| #11 $ planned");
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        const struct day_pool *pool = &day->pools[i];
        page_row(&page, "%s|%lld|%lld|%lld|%lld|%lld|%.1f%%|%.1f%%|%.0f s|%.0f s|%.2f|%.2f",
                 plan_pool_names[i], (long long)pool->cards, (long long)pool->jobs,
                 (long long)pool->attempts, (long long)pool->losses, (long long)pool->queued,
                 100 * pool->load, 100 * pool->load_planned, pool->wait_p50_s, pool->wait_p99_s,
                 pool->usd_ledger, pool->usd_planned);
    }
    if (plan->inputs.budget_usd > 0.0) {
        char stop[64] = "is not spent";
        if (!isnan(day->stopped_h)) {
            snprintf(stop, sizeof stop, "is spent after %.2f h, which cancels %lld jobs",
                     day->stopped_h, (long long)day->cancelled);
        }
        text_print(stdout, "a budget of $%.2f a day (here $%.2f) %s; planned: $%.2f busy\n",
                   plan->inputs.budget_usd, plan->inputs.budget_usd * day->fraction, stop,
                   busy_usd(&plan->inputs.sized));
    }
    text_print(stdout, "day %.16s\n", day->digest);
}

static json_t *day_json(const struct day *day)
{
    json_t *pools = json_object();
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        const struct day_pool *pool = &day->pools[i];
        json_t *row = json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "cards",
            (json_int_t)pool->cards, "jobs", (json_int_t)pool->jobs, "attempts",
            (json_int_t)pool->attempts, "losses", (json_int_t)pool->losses, "queued",
            (json_int_t)pool->queued, "busy_s", pool->busy_s, "load", pool->load, "load_planned",
            pool->load_planned, "wait_mean_s", pool->wait_mean_s, "wait_p50_s", pool->wait_p50_s,
            "wait_p99_s", pool->wait_p99_s, "wait_max_s", pool->wait_max_s, "usd_ledger",
            pool->usd_ledger, "usd_planned", pool->usd_planned);
        json_put(pools, plan_pool_names[i], row);
    }
    return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:s}", "fraction",
                     day->fraction, "jobs", (json_int_t)day->jobs, "audits",
                     (json_int_t)day->audits, "flagged", (json_int_t)day->flagged, "frozen",
                     (json_int_t)day->frozen, "redriven", (json_int_t)day->redriven, "stopped_h",
                     json_finite_new(day->stopped_h), "cancelled", (json_int_t)day->cancelled,
                     "pools", pools, "digest", day->digest);
}

static int show_json(const struct plan_command *plan)
{
    const struct plan *sized = &plan->inputs.sized;
    json_t *tiers = json_object();
    json_t *pools = json_object();
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        const struct plan_tier *row = &sized->tiers[tier];
        json_put(tiers, tier_names[tier],
                 json_pack("{s:f, s:f, s:f, s:f, s:f, s:b}", "miles", row->miles, "jobs", row->jobs,
                           "ticks", row->ticks, "tick_s", plan->inputs.plan.tick_s[tier],
                           "device_s", row->device_s, "measured", plan->measured[tier]));
    }
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        const struct plan_pool_size *pool = &sized->pools[i];
        json_put(pools, plan_pool_names[i],
                 json_pack("{s:I, s:f, s:f, s:f, s:f}", "cards", (json_int_t)pool->cards,
                           "device_s", pool->device_s, "load", pool->load, "usd_per_day",
                           pool->usd_per_day, "usd_busy", pool->usd_busy));
    }
    json_t *root =
        json_pack("{s:I, s:o, s:o, s:f, s:f}", "miles_per_day", (json_int_t)plan->miles_per_day,
                  "tiers", tiers, "pools", pools, "usd_per_day", sized->usd_per_day, "usd_per_mile",
                  sized->usd_per_mile);
    if (plan->day && !json_put(root, "day", day_json(&plan->result))) {
        root = NULL;
    }
    return cli_print_json(root);
}

int command_plan(int argc, char **argv)
{
    static struct plan_command plan = {.card = "h100", .seed = 1, .jobs_max = 20000};
    const struct cli_option rows[] = {
        {"--miles-per-day", "N", "that count", .number = &plan.miles_per_day},
        {"--suite", "SUITE", "of such scenarios", .text = &plan.suite},
        {"--mix", "FILE", "shares, rates, prices, events (docs/plan.md)", .text = &plan.mix},
        {"--card", "NAME", "that models run on: h100 or h200 (h100)", .text = &plan.card},
        {"--rates", "URL", "a store whose measured rates replace planned ones",
         .text = &plan.rates_url},
        {"--day", NULL, "simulate a day of that fleet", .flag = &plan.day},
        {"--budget", "USD", "that the day's jobs may cost: when it is spent", .text = &plan.budget},
        {"--seed", "N", "of that day (1)", .number = &plan.seed},
        {"--jobs", "N", "simulated at most, of a part of the fleet (20000)",
         .number = &plan.jobs_max},
        {"--json", NULL, "print one JSON object", .flag = &plan.json},
    };
    const struct cli_command command = {
        "plan",
        "--miles-per-day N --suite SUITE [--mix FILE] [--card NAME] [--day]",
        "A fleet on paper: ticks, device time, cards and dollars of so many miles a day; what a\n"
        "frozen slice or a lost rack does; and a simulated day beside it.",
        CLI_ROWS(rows, 0, 0),
    };
    uint32_t count;
    struct error error;
    CLI_PARSE(&command, argc, argv, NULL, &count);
    if (plan.suite == NULL || plan.miles_per_day == 0) {
        error_set(&error, STATUS_USAGE, "plan: expected --miles-per-day N and --suite SUITE");
        return cli_fail(&error);
    }
    enum status status = gather(&plan, &error);
    if (status == STATUS_OK && plan.day) {
        status = simulate(&plan, &error);
    }
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    if (plan.json) {
        return show_json(&plan);
    }
    print_tiers(&plan, &plan.inputs.sized);
    print_pools(&plan, &plan.inputs.sized);
    if (plan.day) {
        print_day(&plan);
    }
    return 0;
}
