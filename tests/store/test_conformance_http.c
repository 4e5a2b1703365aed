/*
 * The HTTP face through the conformance suite: client, Unix socket, server, embedded store, all in
 * this process so that the suite's clock reaches the store.
 */
#include "tests/store/conformance.h"
#include "tests/store/http_support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct stack {
    int serial;
    struct store *inner;
    struct store_server *server;
};

static struct store *open_stack(void *context, bool fresh, const struct store_config *config)
{
    struct stack *stack = context;
    struct store *client = NULL;
    struct error error;
    char path[200];
    char socket_path[200];
    char url[220];

    stack->serial += fresh ? 1 : 0;
    snprintf(path, sizeof path, "%s/%d.db", support_directory(), stack->serial);
    snprintf(socket_path, sizeof socket_path, "%s/%d.sock", support_directory(), stack->serial);
    snprintf(url, sizeof url, "unix:%s", socket_path);
    unlink(socket_path); /* of the one before, when reopening; absent otherwise */
    if (store_sqlite_open(path, config, &stack->inner, &error) != STATUS_OK ||
        store_server_start(stack->inner, support_listen(socket_path), config, &stack->server,
                           &error) != STATUS_OK ||
        store_http_open(url, config, &client, &error) != STATUS_OK) {
        printf("# %s\n", error.text);
    }
    return client;
}

static void close_stack(void *context, struct store *store)
{
    struct stack *stack = context;

    store->ops->close(store);
    store_server_stop(stack->server);
    stack->inner->ops->close(stack->inner);
    stack->server = NULL;
    stack->inner = NULL;
}

int main(int argc, char **argv)
{
    struct stack stack = {.serial = 0};
    struct conformance_face face = {
        .name = "http", .context = &stack, .open = open_stack, .close = close_stack};

    return conformance_main(argc, argv, &face);
}
