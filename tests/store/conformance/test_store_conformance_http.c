/*
 * The backends that reach the embedded store from elsewhere, through the conformance suite: the
 * HTTP client of a server ("http"), the same over TLS with a token ("https"), and a path's handles
 * in both roles of ownership ("owner", "client").
 */
#include "base/check.h"
#include "base/units.h"
#include "store/server/server.h"
#include "store/server/tokens.h"
#include "tests/store/conformance/conformance.h"
#include "tests/store/http/http_support.h"
#include "tests/store/http/tls_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum role { ROLE_HTTP = 0, ROLE_HTTPS, ROLE_OWNER, ROLE_CLIENT, ROLE_COUNT };

static const char *const role_names[ROLE_COUNT] = {"http", "https", "owner", "client"};

struct place {
    enum role role;
    int serial;
    struct store *behind; /* the embedded store, or the handle that owns the path */
    struct store_server *server;
    struct token_guard *guard;
    struct tls_identity *tls;
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

/* A certificate and an administrator's token, each new; the client's token goes into a file. */
static enum status make_secrets(struct place *place, const char *path, struct store_config *client,
                                struct error *error)
{
    static char files[4][160];
    static const char *const names[] = {"cert", "key", "tokens", "token"};
    struct token token = {.name = "conformance", .role = TOKEN_ROLE_ADMIN};
    char text[TOKEN_SECRET_BYTES];
    int64_t now_s = clock_wall_ns(clock_system()) / NS_PER_S;
    for (int i = 0; i < 4; i++) {
        snprintf(files[i], sizeof files[i], "%s.%s", path, names[i]);
        unlink(files[i]);
    }
    tls_kit_make(files[0], files[1], now_s - 3600, now_s + 3600, 1);
    enum status status = tls_identity_create(files[0], files[1], NULL, &place->tls, error);
    token.created_s = now_s;
    if (status == STATUS_OK) {
        status = tokens_add(files[2], &token, text, error);
    }
    if (status == STATUS_OK) {
        status = token_guard_create(files[2], clock_system(), NULL, &place->guard, error);
    }
    int fd = open(files[3], O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
    client->token_file = files[3];
    client->ca_file = files[0];
    return status;
}

static struct store *open_https(struct place *place, const char *path,
                                const struct store_config *config, struct error *error)
{
    struct store_config client = config != NULL ? *config : (struct store_config){0};
    struct store *store = NULL;
    struct tcp_place tcp;
    char url[TCP_PLACE_BYTES + 16];
    int fd = -1;
    if (store_sqlite_open(path, config, &place->behind, error) != STATUS_OK ||
        make_secrets(place, path, &client, error) != STATUS_OK ||
        tcp_listen("127.0.0.1:0", &fd, &tcp, error) != STATUS_OK) {
        return NULL;
    }
    const struct store_server_options options = {.guard = place->guard, .tls = place->tls};
    snprintf(url, sizeof url, "https://%s", tcp.text);
    if (store_server_start_with(place->behind, fd, config, &options, &place->server, error) !=
            STATUS_OK ||
        store_http_open(url, &client, &store, error) != STATUS_OK) {
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
    } else if (place->role == ROLE_HTTPS) {
        store = open_https(place, path, config, &error);
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
    token_guard_destroy(place->guard);
    tls_identity_destroy(place->tls);
    place->guard = NULL;
    place->tls = NULL;
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
    struct conformance_backend backend = {.name = argv[2],
                                          .context = &place,
                                          .open = open_face,
                                          .close = close_face,
                                          .slow = place.role != ROLE_HTTP};
    return conformance_main(2, argv, &backend);
}
