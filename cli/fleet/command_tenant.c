/*
 * swerve tenant: parties that share a store, their shares and quotas, and what they use of them.
 */
#include "cli/cli.h"
#include "report/summary.h"

#include "base/text.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_TENANTS = 100 };

#define UUSD_MAX (INT64_C(1000000000) * UUSD_PER_USD)

struct tenant_options {
    const char *store_url;
    const char *usd_day;
    const char *usd_month;
    int64_t weight; /* -1: as it is; so -1 below and NULL above */
    int64_t jobs_queued;
    int64_t units_leased; /* likewise */
    int64_t scenario_bytes;
    int64_t sessions;
    bool json;
};

typedef void visit_tenant(void *context, const struct tenant *tenant);

static enum status each_tenant(struct store *store, visit_tenant *visit, void *context,
                               struct error *error)
{
    char after[LIMIT_ID_BYTES] = "";
    uint32_t count = PAGE_TENANTS;
    struct tenant *page = calloc(PAGE_TENANTS, sizeof *page);
    enum status status = memory_check(page, error, "tenant: out of memory");
    while (status == STATUS_OK && count == PAGE_TENANTS) {
        status = store->ops->tenants(store, after, page, PAGE_TENANTS, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            visit(context, &page[i]);
            memcpy(after, page[i].name, sizeof after);
        }
    }
    free(page);
    return status;
}

/* ---- ls ---- */

static const char *limit_text(int64_t uusd_max, char out[SUMMARY_MONEY_BYTES])
{
    return uusd_max == 0 ? "any" : summary_amount_text(uusd_max, out);
}

static void print_tenant(void *context, const struct tenant *tenant)
{
    char jobs[32];
    char units[32];
    char bytes[32];
    char sessions[32];
    char money[4][SUMMARY_MONEY_BYTES];
    (void)context;
    snprintf(jobs, sizeof jobs, "%" PRId64, tenant->jobs_queued_max);
    snprintf(units, sizeof units, "%" PRId64, tenant->units_leased_max);
    snprintf(bytes, sizeof bytes, "%" PRId64, tenant->scenario_bytes_max);
    snprintf(sessions, sizeof sessions, "%" PRId64, tenant->sessions_max);
    text_print(
        stdout,
        "%-24s weight %" PRId64 ", queued %" PRId64 " of %s, leased %" PRId64 " (units %" PRId64
        " of %s), scenarios %" PRId64
        " of %s bytes, today %s of %s, this month %s of %s, sessions at once %s\n",
        tenant->name, tenant->weight, tenant->jobs_queued,
        tenant->jobs_queued_max == 0 ? "any" : jobs, tenant->jobs_leased, tenant->units_leased,
        tenant->units_leased_max == 0 ? "any" : units, tenant->scenario_bytes,
        tenant->scenario_bytes_max == 0 ? "any" : bytes,
        summary_amount_text(tenant->uusd_day, money[0]), limit_text(tenant->uusd_day_max, money[1]),
        summary_amount_text(tenant->uusd_month, money[2]),
        limit_text(tenant->uusd_month_max, money[3]), tenant->sessions_max == 0 ? "any" : sessions);
}

static void list_tenant(void *context, const struct tenant *tenant)
{
    json_array_append_new(
        context,
        json_pack("{s:s, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I}", "name",
                  tenant->name, "weight", (json_int_t)tenant->weight, "jobs_queued_max",
                  (json_int_t)tenant->jobs_queued_max, "usd_day_max",
                  (double)tenant->uusd_day_max / UUSD_PER_USD, "usd_month_max",
                  (double)tenant->uusd_month_max / UUSD_PER_USD, "units_leased_max",
                  (json_int_t)tenant->units_leased_max, "jobs_queued",
                  (json_int_t)tenant->jobs_queued, "jobs_leased", (json_int_t)tenant->jobs_leased,
                  "usd_day", (double)tenant->uusd_day / UUSD_PER_USD, "usd_month",
                  (double)tenant->uusd_month / UUSD_PER_USD, "units_leased",
                  (json_int_t)tenant->units_leased, "scenario_bytes_max",
                  (json_int_t)tenant->scenario_bytes_max, "scenario_bytes",
                  (json_int_t)tenant->scenario_bytes, "sessions_max",
                  (json_int_t)tenant->sessions_max));
}

static enum status list(struct store *store, bool json, struct error *error)
{
    if (!json) {
        return each_tenant(store, print_tenant, NULL, error);
    }
    json_t *rows = json_array();
    enum status status = each_tenant(store, list_tenant, rows, error);
    if (status == STATUS_OK) {
        return cli_write_json(json_pack("{s:o}", "tenants", rows), error);
    }
    json_decref(rows);
    return status;
}

/* ---- set ---- */

static void take_named(void *context, const struct tenant *tenant)
{
    struct tenant *wanted = context;
    if (strcmp(wanted->name, tenant->name) == 0) {
        *wanted = *tenant;
    }
}

static enum status set(struct store *store, const struct tenant_options *options, const char *name,
                       struct error *error)
{
    struct tenant tenant = {.weight = options->weight,
                            .jobs_queued_max = options->jobs_queued,
                            .units_leased_max = options->units_leased,
                            .scenario_bytes_max = options->scenario_bytes,
                            .sessions_max = options->sessions};
    uint32_t settings = (options->weight >= 0 ? TENANT_WEIGHT : 0U) |
                        (options->jobs_queued >= 0 ? TENANT_JOBS_QUEUED : 0U) |
                        (options->units_leased >= 0 ? TENANT_UNITS_LEASED : 0U) |
                        (options->scenario_bytes >= 0 ? TENANT_SCENARIO_BYTES : 0U) |
                        (options->sessions >= 0 ? TENANT_SESSIONS : 0U) |
                        (options->usd_day != NULL ? TENANT_UUSD_DAY : 0U) |
                        (options->usd_month != NULL ? TENANT_UUSD_MONTH : 0U);
    if (name == NULL || strlen(name) >= sizeof tenant.name) {
        return error_set(error, STATUS_USAGE,
                         "swerve tenant set NAME: expected a name of 1 to %d bytes",
                         LIMIT_ID_BYTES - 1);
    }
    strcpy(tenant.name, name);
    TRY(cli_dollars("--usd-day", options->usd_day, 0, UUSD_MAX, &tenant.uusd_day_max, error));
    TRY(cli_dollars("--usd-month", options->usd_month, 0, UUSD_MAX, &tenant.uusd_month_max, error));
    TRY(store->ops->tenant_set(store, &tenant, settings, error));
    TRY(each_tenant(store, take_named, &tenant, error)); /* as others have set it, too */
    print_tenant(NULL, &tenant);
    return STATUS_OK;
}

int command_tenant(int argc, char **argv)
{
    struct tenant_options options = {
        .weight = -1, .jobs_queued = -1, .units_leased = -1, .scenario_bytes = -1, .sessions = -1};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &options.store_url},
        {"--weight", "N", "set: share beside other tenants with work, 1 to 100",
         .number = &options.weight},
        {"--jobs-queued", "N", "set: most jobs that wait; 0: any number",
         .number = &options.jobs_queued},
        {"--units-leased", "N",
         "set: most device time that is leased at once, in rollouts of the object world; 0: any",
         .number = &options.units_leased},
        {"--scenario-bytes", "N", "set: most bytes of scenarios that it brings; 0: any number",
         .number = &options.scenario_bytes},
        {"--sessions", "N",
         "set: most sessions at the wheel at once, at a server; 0: as many as that lets any tenant",
         .number = &options.sessions},
        {"--usd-day", "USD", "set: most that is booked on a day (UTC); 0: any sum",
         .text = &options.usd_day},
        {"--usd-month", "USD", "set: the same in a month", .text = &options.usd_month},
        {"--json", NULL, "ls: print one JSON object", .flag = &options.json},
    };
    const struct cli_command command = {
        "tenant",
        "ls | set NAME [options]",
        "Parties that share a store: shares of the workers' time, quotas, and what is used of "
        "them.\n"
        "What set does not name stays. A server asks for an admin token to set.",
        CLI_ROWS(rows, 1, 2),
    };
    const char *arguments[2] = {NULL, NULL};
    struct store *store = NULL;
    struct error error;
    uint32_t count = 0;
    CLI_PARSE(&command, argc, argv, arguments, &count);
    bool setting = strcmp(arguments[0], "set") == 0;
    if (!setting && (strcmp(arguments[0], "ls") != 0 || count != 1)) {
        error_set(&error, STATUS_USAGE, "tenant: expected %s", command.usage);
        return cli_fail(&error);
    }
    enum status status =
        (setting ? cli_store_make : cli_store_open)(options.store_url, &store, &error);
    THEN(status,
         setting ? set(store, &options, arguments[1], &error) : list(store, options.json, &error));
    cli_store_close(store);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
