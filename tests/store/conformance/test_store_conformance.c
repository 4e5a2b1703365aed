/*
 * The embedded SQLite backend through the conformance suite.
 */
#include "tests/store/conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    char directory[64];
    int serial;
};

static struct store *open_sqlite(void *context, bool fresh, const struct store_config *config)
{
    struct place *place = context;
    struct store *store = NULL;
    struct error error;
    char path[128];

    place->serial += fresh ? 1 : 0;
    snprintf(path, sizeof path, "%s/%d.db", place->directory, place->serial);
    if (store_sqlite_open(path, config, &store, &error) != STATUS_OK) {
        printf("# %s\n", error.text);
    }
    return store;
}

static void close_sqlite(void *context, struct store *store)
{
    (void)context;
    store->ops->close(store);
}

int main(int argc, char **argv)
{
    /* In memory where possible: the disk's pace is not what is tested here. */
    bool memory = access("/dev/shm", W_OK) == 0;
    struct place place = {.serial = 0};
    struct conformance_backend backend = {
        .name = "sqlite", .context = &place, .open = open_sqlite, .close = close_sqlite};
    char command[128];

    snprintf(place.directory, sizeof place.directory, "%s/swerve-conformance-XXXXXX",
             memory ? "/dev/shm" : "/tmp");
    if (mkdtemp(place.directory) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    int failed = conformance_main(argc, argv, &backend);
    snprintf(command, sizeof command, "rm -rf '%s'", place.directory);
    return system(command) == 0 ? failed : 1;
}
