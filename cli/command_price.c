/*
 * swerve price: what a device-hour costs in a store. The ledger books every attempt at the price of
 * the moment at which it ends; what is booked stays.
 */
#include "cli/cli.h"
#include "report/summary.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUSD_PER_HOUR_MAX (INT64_C(1000000) * UUSD_PER_USD)

/* The pools and devices that `swerve run` and workers use by themselves. */
static const char *const pools[] = {"bulk", "teacher"};
static const char *const devices[] = {"cpu", "cuda"};

struct price_command {
    const char *store_url;
    bool json;
    struct store *store;
    json_t *list;
};

static enum status present(struct price_command *command, const char *pool, const char *device,
                           struct error *error)
{
    int64_t uusd = 0;
    TRY(command->store->ops->price_get(command->store, pool, device, &uusd, error));
    if (command->json) {
        json_array_append_new(command->list,
                              json_pack("{s:s, s:s, s:f}", "pool", pool, "device", device,
                                        "usd_per_hour", (double)uusd / (double)UUSD_PER_USD));
    } else {
        char price[SUMMARY_MONEY_BYTES];
        text_print(stdout, "%-24s %-8s %s per device-hour\n", pool, device,
                   summary_amount_text(uusd, price));
    }
    return STATUS_OK;
}

static enum status list_prices(struct price_command *command, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(pools) * COUNT_OF(devices); i++) {
        TRY(present(command, pools[i / COUNT_OF(devices)], devices[i % COUNT_OF(devices)], error));
    }
    return STATUS_OK;
}

static enum status act(struct price_command *command, const char *const *arguments, uint32_t count,
                       int64_t uusd, struct error *error)
{
    if (count == 1) {
        return list_prices(command, error);
    }
    if (count == 4) {
        TRY(command->store->ops->price_set(command->store, arguments[1], arguments[2], uusd,
                                           error));
    }
    return present(command, arguments[1], arguments[2], error);
}

int command_price(int argc, char **argv)
{
    struct price_command price = {0};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &price.store_url},
        {"--json", NULL, "print one JSON object", .flag = &price.json},
    };
    const struct cli_command command = {
        "price",
        "ls | show POOL DEVICE | set POOL DEVICE USD_PER_HOUR [--store URL]",
        "What an hour of a device costs, for attempts that end from now on. ls shows the pools "
        "bulk\n"
        "and teacher on cpu and cuda, show any pool. A server asks for an admin token to set one.",
        CLI_ROWS(rows, 1, 4),
    };
    static const struct {
        const char *name;
        uint32_t arguments;
    } verbs[] = {{"ls", 1}, {"show", 3}, {"set", 4}};
    const char *arguments[4] = {NULL};
    uint32_t count = 0;
    int64_t uusd = 0;
    struct error error;
    int code = 0;
    CLI_PARSE(&command, argc, argv, arguments, &count);
    size_t verb = 0;
    while (verb < COUNT_OF(verbs) &&
           (strcmp(verbs[verb].name, arguments[0]) != 0 || verbs[verb].arguments != count)) {
        verb++;
    }
    enum status status = verb < COUNT_OF(verbs)
                             ? STATUS_OK
                             : error_set(&error, STATUS_USAGE, "price: expected %s", command.usage);
    if (status == STATUS_OK && count == 4) {
        status = cli_dollars("price", arguments[3], 0, UUSD_PER_HOUR_MAX, &uusd, &error);
    }
    THEN(status,
         (count == 4 ? cli_store_make : cli_store_open)(price.store_url, &price.store, &error));
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    price.list = json_array();
    status = act(&price, arguments, count, uusd, &error);
    price.store->ops->close(price.store);
    code = status != STATUS_OK ? cli_fail(&error)
           : price.json        ? cli_print_json(json_pack("{s:O}", "prices", price.list))
                               : 0;
    json_decref(price.list);
    return code;
}
