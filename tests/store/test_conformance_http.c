/*
 * The faces that reach the embedded store from elsewhere, through the conformance suite: the HTTP
 * client of a server ("http"), and a path's handles in both roles of the election ("owner",
 * "client").
 */
#include "base/check.h"
#include "tests/store/conformance.h"
#include "tests/store/http_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum role { ROLE_HTTP = 0, ROLE_OWNER, ROLE_CLIENT, ROLE_COUNT };

static const char *const role_names[ROLE_COUNT] = {"http", "owner", "client"};

struct place {
    enum role role;
    int serial;
    struct store *behind; /* the embedded store, or the handle that owns the path */
    struct store_server *server;
};

static struct store *open_http(struct place *place, const char *path,
                               const struct store_config *config, struct error *error)
{
    char socket_path[160];
    char url[180];
    struct store *store = NULL;
    snprintf(socket_path, sizeof socket_path, "%s.sock", path);
    snprintf(url, sizeof url, "unix:%s", socket_path);
    if (store_sqlite_open(path, config, &place->behind, error) != STATUS_OK) {
        return NULL;
    }
    if (store_server_start(place->behind, support_listen(socket_path), config, &place->server,
                           error) != STATUS_OK ||
        store_http_open(url, config, &store, error) != STATUS_OK) {
        return NULL;
    }
    return store;
}

static struct store *open_face(void *context, bool fresh, const struct store_config *config)
{
    struct place *place = context;
    struct store *store = NULL;
    struct error error = {.text = ""};
    char path[128];
    place->serial += fresh ? 1 : 0;
    snprintf(path, sizeof path, "%s/%d.db", support_directory(), place->serial);
    if (place->role == ROLE_HTTP) {
        store = open_http(place, path, config, &error);
    } else if (place->role == ROLE_OWNER ||
               store_open(path, config, &place->behind, &error) == STATUS_OK) {
        store_open(path, config, &store, &error);
    }
    if (store == NULL) {
        printf("# %s\n", error.text);
    }
    return store;
}

static void close_face(void *context, struct store *store)
{
    struct place *place = context;
    store->ops->close(store);
    store_server_stop(place->server);
    if (place->behind != NULL) {
        place->behind->ops->close(place->behind);
    }
    place->server = NULL;
    place->behind = NULL;
}

/* Arguments: the part of the suite ("queue", "results"), then the role. */
int main(int argc, char **argv)
{
    struct place place = {.role = ROLE_HTTP};
    while (argc == 3 && place.role < ROLE_COUNT && strcmp(argv[2], role_names[place.role]) != 0) {
        place.role++;
    }
    CHECK(argc == 3 && place.role < ROLE_COUNT);
    struct conformance_face face = {
        .name = argv[2], .context = &place, .open = open_face, .close = close_face};
    return conformance_main(2, argv, &face);
}
