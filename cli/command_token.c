/*
 * swerve token: makes, lists and revokes the tokens of a server. The secret of a new one goes to
 * stdout or to a file of mode 0600, once; it is kept nowhere else.
 */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "report/page/page.h"
#include "store/api/store_url.h"
#include "store/server/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS_PER_DAY = 86400, DAYS_USUAL = 90, DAYS_MAX = 36500 };

struct token_options {
    const char *store_path;
    const char *tokens_path;
    const char *role;
    const char *pool;
    const char *tenant;
    const char *output;
    int64_t days;
    bool json;
};

static int64_t now_s(void)
{
    return clock_wall_ns(clock_system()) / NS_PER_S;
}

/* File for the secret of a new token; opened before it is made, so that none is lost. */
static enum status open_output(const char *path, int *fd, struct error *error)
{
    *fd = path == NULL ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*fd < 0) {
        return error_set(error, STATUS_IO, "%s: cannot create the file for the token: %s", path,
                         strerror(errno));
    }
    return STATUS_OK;
}

static enum status write_secret(const char *path, int fd, char text[TOKEN_SECRET_BYTES],
                                struct error *error)
{
    char line[TOKEN_SECRET_BYTES + 1];
    snprintf(line, sizeof line, "%s\n", text);
    bool good = write(fd, line, TOKEN_SECRET_BYTES) == TOKEN_SECRET_BYTES;
    if (path != NULL) {
        good = fsync(fd) == 0 && good;
        good = close(fd) == 0 && good;
    }
    explicit_bzero(line, sizeof line);
    explicit_bzero(text, TOKEN_SECRET_BYTES);
    return good ? STATUS_OK
                : error_set(error, STATUS_IO, "%s: cannot write the token; revoke it and try again",
                            path != NULL ? path : "stdout");
}

static enum status fill_token(const struct token_options *options, const char *name,
                              struct token *token, struct error *error)
{
    memset(token, 0, sizeof *token);
    const char *name_of_role = options->role != NULL ? options->role : "";
    size_t role = cli_name(name_of_role, token_role_names, TOKEN_ROLE_COUNT);
    if (role == TOKEN_ROLE_COUNT) {
        return error_set(error, STATUS_USAGE,
                         "--role: expected read, submit, worker, admin or driver, found \"%s\"",
                         name_of_role);
    }
    const char *pool = options->pool != NULL ? options->pool : "";
    const char *tenant = options->tenant != NULL ? options->tenant : "";
    if (strlen(name) >= sizeof token->name || strlen(pool) >= sizeof token->pool ||
        strlen(tenant) >= sizeof token->tenant) {
        return error_set(error, STATUS_LIMIT,
                         "name, pool and tenant: expected at most %zu bytes each",
                         sizeof token->name - 1);
    }
    if (!utf8_valid(name) || !utf8_valid(pool) || !utf8_valid(tenant)) {
        return error_set(error, STATUS_USAGE, "name, pool and tenant: expected UTF-8");
    }
    if (options->days > DAYS_MAX) {
        return error_set(error, STATUS_USAGE, "--days: expected 0 (never) to %d", DAYS_MAX);
    }
    token->role = (enum token_role)role;
    strcpy(token->name, name);
    strcpy(token->pool, pool);
    strcpy(token->tenant, tenant);
    token->created_s = now_s();
    token->expires_s = options->days > 0 ? token->created_s + options->days * SECONDS_PER_DAY : 0;
    return STATUS_OK;
}

static enum status add_token(const char *path, const struct token_options *options,
                             const char *name, struct error *error)
{
    struct token token;
    char text[TOKEN_SECRET_BYTES];
    int fd = -1;
    if (name == NULL) {
        return error_set(error, STATUS_USAGE, "swerve token add NAME: the name is missing");
    }
    TRY(fill_token(options, name, &token, error));
    TRY(open_output(options->output, &fd, error));
    enum status status = tokens_add(path, &token, text, error);
    if (status != STATUS_OK) {
        if (options->output != NULL) {
            close(fd);
            unlink(options->output);
        }
        return status;
    }
    text_print(stderr, "token %s for %s (%s%s%s%s%s) added to %s%s\n", token.id, token.name,
               token_role_names[token.role], token.pool[0] != '\0' ? ", pool " : "", token.pool,
               token.tenant[0] != '\0' ? ", tenant " : "", token.tenant, path,
               options->output == NULL ? "; it is not shown again" : "");
    return write_secret(options->output, fd, text, error);
}

static json_t *list_json(const struct token_list *list)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < list->count; i++) {
        const struct token *token = &list->tokens[i];
        json_t *entry =
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s}", "id", token->id, "name",
                      token->name, "role", token_role_names[token->role], "pool", token->pool,
                      "tenant", token->tenant, "created_s", (json_int_t)token->created_s,
                      "expires_s", (json_int_t)token->expires_s, "first", token->principal);
        json_array_append_new(array, entry);
    }
    return json_pack("{s:o}", "tokens", array);
}

static void print_list(const struct token_list *list)
{
    struct page page = {.out = stdout};
    page_table(&page, "", "12 id|  20 name|  6 role|  12 pool|  12 tenant|  23 created|  expires");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct token *token = &list->tokens[i];
        char created[CLI_DATE_BYTES];
        char expires[CLI_DATE_BYTES];
        bool over = token->expires_s != 0 && token->expires_s <= now_s();
        bool rotated = strcmp(token->principal, token->id) != 0;
        page_row(&page, "%s|%s|%s|%s|%s|%s|%s%s%s%s", token->id, token->name,
                 token_role_names[token->role], token->pool, token->tenant,
                 cli_date(token->created_s, created),
                 token->expires_s == 0 ? "never" : cli_date(token->expires_s, expires),
                 over ? " (expired)" : "", rotated ? ", known to stores as " : "",
                 rotated ? token->principal : "");
    }
}

static enum status list_tokens(const char *path, bool json, struct error *error)
{
    struct token_list *list = malloc(sizeof *list);
    TRY(memory_check(list, error, "out of memory"));
    enum status status = tokens_read(path, list, error);
    if (status == STATUS_OK && json) {
        status = cli_write_json(list_json(list), error);
    } else if (status == STATUS_OK) {
        print_list(list);
    }
    free(list);
    return status;
}

static enum status revoke_tokens(const char *path, const char *which, struct error *error)
{
    uint32_t count = 0;
    if (which == NULL) {
        return error_set(error, STATUS_USAGE, "swerve token revoke ID|NAME: which one is missing");
    }
    TRY(tokens_revoke(path, which, &count, error));
    text_print(stdout, "%u revoked\n", count);
    return STATUS_OK;
}

static enum status tokens_path(const struct token_options *options, char *out, size_t capacity,
                               struct error *error)
{
    enum store_url_kind kind = STORE_URL_PATH;
    TRY(options->tokens_path == NULL
            ? store_url_kind(cli_store_url(options->store_path), &kind, error)
            : STATUS_OK);
    if (kind != STORE_URL_PATH) {
        return error_set(error, STATUS_USAGE,
                         "tokens are kept beside a database file: expected its path for --store, "
                         "found a URL; --tokens FILE names the list itself");
    }
    int bytes = options->tokens_path != NULL
                    ? snprintf(out, capacity, "%s", options->tokens_path)
                    : snprintf(out, capacity, "%s.tokens", cli_store_url(options->store_path));
    if (bytes < 0 || (size_t)bytes >= capacity) {
        return error_set(error, STATUS_LIMIT, "tokens file: expected a path of at most %zu bytes",
                         capacity - 1);
    }
    return STATUS_OK;
}

int command_token(int argc, char **argv)
{
    struct token_options options = {.days = DAYS_USUAL};
    const struct cli_option list[] = {
        {"--store", "PATH", "database whose server the token is for (PATH.tokens)",
         .text = &options.store_path},
        {"--tokens", "FILE", "the tokens file itself", .text = &options.tokens_path},
        {"--role", "ROLE", "add: read, submit, worker, admin or driver", .text = &options.role},
        {"--pool", "NAME", "add: pool that a worker's token works for", .text = &options.pool},
        {"--tenant", "NAME",
         "add: for whom a submitter's or driver's token acts; whose sessions alone a worker's "
         "serves, "
         "which then takes no jobs",
         .text = &options.tenant},
        {"--days", "N", "add: until it expires (90); 0: never", .number = &options.days},
        {"--output", "FILE", "add: new file for the token, mode 0600 (stdout)",
         .text = &options.output},
        {"--json", NULL, "ls: print JSON", .flag = &options.json},
    };
    const struct cli_command command = {
        "token",
        "add NAME --role ROLE | ls | revoke ID|NAME  [options]",
        "Makes, lists and revokes the tokens of swerve serve.",
        CLI_ROWS(list, 1, 2),
    };
    const char *arguments[2] = {NULL, NULL};
    char path[LIMIT_PATH_BYTES];
    struct error error;
    CLI_PARSE(&command, argc, argv, arguments, NULL);
    enum status status = tokens_path(&options, path, sizeof path, &error);
    if (status == STATUS_OK && strcmp(arguments[0], "add") == 0) {
        status = add_token(path, &options, arguments[1], &error);
    } else if (status == STATUS_OK && strcmp(arguments[0], "ls") == 0) {
        status = list_tokens(path, options.json, &error);
    } else if (status == STATUS_OK && strcmp(arguments[0], "revoke") == 0) {
        status = revoke_tokens(path, arguments[1], &error);
    } else if (status == STATUS_OK) {
        status = error_set(&error, STATUS_USAGE, "token: expected add, ls or revoke, found \"%s\"",
                           arguments[0]);
    }
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
