/*
 * The embedded SQLite backend through the conformance suite.
 */
#include "tests/store/conformance/conformance.h"
#include "tests/store/faults/invariants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    char directory[64];
    int serial;
    bool checks; /* other parts make up results that `swerve check` would not believe */
    int faulty;  /* stores that were left with what cannot be */
};

/* Looks at the store that a test has left, before the next one is made. */
static void check_left(struct place *place)
{
    char path[128];
    char why[2048];

    snprintf(path, sizeof path, "%s/%d.db", place->directory, place->serial);
    if (place->checks && place->serial > 0 && !invariants_hold(path, why, sizeof why)) {
        printf("# store %d: %s\n", place->serial, why);
        place->faulty++;
    }
}

static struct store *open_sqlite(void *context, bool fresh, const struct store_config *config)
{
    struct place *place = context;
    struct store *store = NULL;
    struct error error;
    char path[128];

    if (fresh) {
        check_left(place);
        place->serial++;
    }
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
    struct place place = {
        .checks = argc > 1 && (strcmp(argv[1], "models") == 0 || strcmp(argv[1], "trust") == 0 ||
                               strcmp(argv[1], "door") == 0 || strcmp(argv[1], "budget") == 0 ||
                               strcmp(argv[1], "classes") == 0)};
    struct conformance_backend backend = {.name = "sqlite",
                                          .context = &place,
                                          .open = open_sqlite,
                                          .close = close_sqlite,
                                          .holders = true};
    char command[128];

    snprintf(place.directory, sizeof place.directory, "%s/swerve-conformance-XXXXXX",
             memory ? "/dev/shm" : "/tmp");
    if (mkdtemp(place.directory) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    int failed = conformance_main(argc, argv, &backend);
    check_left(&place);
    snprintf(command, sizeof command, "rm -rf '%s'", place.directory);
    return system(command) == 0 && place.faulty == 0 ? failed : 1;
}
