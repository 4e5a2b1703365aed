/*
 * The store in PostgreSQL through the conformance suite, on a server of its own.
 */
#include "store/postgres/postgres_store.h"
#include "tests/store/conformance/conformance.h"
#include "tests/store/postgres/postgres_site.h"

#include <stdio.h>
#include <stdlib.h>

struct place {
    struct postgres_site site;
    int serial;
};

static struct store *open_postgres(void *context, bool fresh, const struct store_config *config)
{
    struct place *place = context;
    struct store *store = NULL;
    struct error error;
    char url[512];

    place->serial += fresh ? 1 : 0;
    if (!postgres_site_schema(&place->site, place->serial, url, sizeof url)) {
        return NULL;
    }
    if (postgres_store_open(url, config, &store, &error) != STATUS_OK) {
        printf("# %s\n", error.text);
    }
    return store;
}

static void close_postgres(void *context, struct store *store)
{
    (void)context;
    store->ops->close(store);
}

int main(int argc, char **argv)
{
    struct place place = {.serial = 0};
    struct conformance_backend backend = {.name = "postgresql",
                                          .context = &place,
                                          .open = open_postgres,
                                          .close = close_postgres,
                                          .slow = true,
                                          .holders = true};

    if (!postgres_site_installed(&place.site)) {
        printf("1..0 # SKIP no PostgreSQL server is installed (scripts/setup test)\n");
        return getenv("CI") != NULL ? 1 : 0;
    }
    int failed = postgres_site_make(&place.site) ? conformance_main(argc, argv, &backend) : 1;
    postgres_site_remove(&place.site);
    return failed;
}
