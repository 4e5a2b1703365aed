/*
 * The HTTP client over TLS: which servers it trusts, which token it shows, when that changes, and
 * what it does with refusals and overload. The other side is tls_server.py, whose answers are files
 * in a directory of the test's own. argv[1]: that script.
 */
#include "base/check.h"
#include "store/api/store.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOKEN_A "first-token-0123456789abcdef"
#define TOKEN_B "second-token-0123456789abcdef"

static struct {
    const char *script;
    pid_t pid;
    int input; /* closing it ends the server */
    char url[64];
    char token[160];
    char ca[160];
} server;

static const char *path_of(const char *name)
{
    static char paths[4][160];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", support_directory(), name);
    return path;
}

/* In one step, as a token is to be replaced; mode as given. */
static void put(const char *name, const char *text, mode_t mode)
{
    const char *draft = path_of("draft");
    FILE *file = fopen(draft, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    CHECK(chmod(draft, mode) == 0 && rename(draft, path_of(name)) == 0);
}

static int count_seen(const char *line)
{
    char text[128];
    int count = 0;
    FILE *file = fopen(path_of("seen"), "r");
    while (file != NULL && fgets(text, sizeof text, file) != NULL) {
        count += strncmp(text, line, strlen(line)) == 0 ? 1 : 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static void start_server(void)
{
    int in[2];
    int out[2];
    char port[16] = "";
    CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    const char *directory = support_directory();
    server.pid = fork();
    if (server.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execlp("python3", "python3", server.script, directory, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server.input = in[1];
    for (size_t at = 0; at + 1 < sizeof port && strchr(port, '\n') == NULL; at++) {
        CHECK(read(out[0], port + at, 1) == 1);
    }
    close(out[0]);
    snprintf(server.url, sizeof server.url, "https://127.0.0.1:%ld", strtol(port, NULL, 10));
    snprintf(server.token, sizeof server.token, "%s", path_of("token"));
    snprintf(server.ca, sizeof server.ca, "%s", path_of("ca.pem"));
}

static void stop_server(void)
{
    close(server.input);
    waitpid(server.pid, NULL, 0);
}

static enum status open_client(const char *token, const char *ca, struct store **store,
                               struct error *error)
{
    const struct store_config config = {.token_file = token, .ca_file = ca};
    *store = NULL;
    error->text[0] = '\0';
    return store_http_open(server.url, &config, store, error);
}

static enum status ask(struct store *store, struct error *error)
{
    char ids[4][LIMIT_ID_BYTES];
    uint32_t count = 0;
    enum status status = store->ops->suites(store, ids, 4, &count, error);
    CHECK(status != STATUS_OK || (count == 1 && strcmp(ids[0], "one") == 0));
    return status;
}

static void begin(void)
{
    put("expected", TOKEN_A "\n", 0600);
    put("token", TOKEN_A "\n", 0600);
    unlink(path_of("forbidden"));
    unlink(path_of("overloaded"));
    unlink(path_of("seen"));
}

static void a_token_opens_a_store_that_a_known_authority_vouches_for(void)
{
    struct store *store;
    struct error error;
    begin();
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_OK);
    EXPECT_INT(ask(store, &error), STATUS_OK);
    store->ops->close(store);
}

static void the_environment_names_token_and_authority(void)
{
    struct store *store = NULL;
    struct error error;
    begin();
    setenv("SWERVE_TOKEN_FILE", server.token, 1);
    setenv("SWERVE_CA_FILE", server.ca, 1);
    enum status status = store_open(server.url, NULL, &store, &error);
    unsetenv("SWERVE_TOKEN_FILE");
    unsetenv("SWERVE_CA_FILE");
    EXPECT_INT(status, STATUS_OK);
    store->ops->close(store);
}

static void a_server_without_a_known_authority_hears_nothing(void)
{
    struct store *store;
    struct error error;
    begin();
    EXPECT_INT(open_client(server.token, NULL, &store, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "certificate");
    EXPECT_INT(count_seen("200"), 0);
    EXPECT_INT(open_client(server.token, "/nowhere/ca.pem", &store, &error), STATUS_IO);
    EXPECT_CONTAINS(error.text, "/nowhere/ca.pem");
}

static void a_refusal_is_final_and_names_the_file_but_not_the_token(void)
{
    struct store *store;
    struct error error;
    begin();
    put("expected", TOKEN_B "\n", 0600);
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "401");
    EXPECT_CONTAINS(error.text, server.token);
    EXPECT(strstr(error.text, TOKEN_A) == NULL);
    EXPECT_INT(count_seen("401"), 1);
    put("expected", TOKEN_A "\n", 0600);
    put("forbidden", "", 0600);
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "(HTTP 403): not yours"); /* the server's own words */
    EXPECT(strstr(error.text, TOKEN_A) == NULL);
    EXPECT_INT(count_seen("403"), 1);
    EXPECT_INT(open_client(NULL, server.ca, &store, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "SWERVE_TOKEN_FILE");
}

static void a_replaced_token_is_shown_without_a_restart(void)
{
    struct store *store;
    struct error error;
    begin();
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_OK);
    put("expected", TOKEN_B "\n", 0600);
    put("token", TOKEN_B "\n", 0600);
    EXPECT_INT(ask(store, &error), STATUS_OK);
    EXPECT_INT(count_seen("401"), 0);
    store->ops->close(store);
}

static void a_bad_replacement_leaves_the_last_token_in_force(void)
{
    struct store *store;
    struct error error;
    begin();
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_OK);
    put("token", "short\n", 0600);
    EXPECT_INT(ask(store, &error), STATUS_OK);
    put("token", TOKEN_B "\n", 0644);
    EXPECT_INT(ask(store, &error), STATUS_OK);
    unlink(server.token);
    EXPECT_INT(ask(store, &error), STATUS_OK);
    store->ops->close(store);
}

static void a_token_file_that_others_can_read_is_refused(void)
{
    struct store *store;
    struct error error;
    begin();
    put("token", TOKEN_A "\n", 0640);
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "640");
    put("token", "", 0600);
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_BAD_INPUT);
    put("token", "two words are no token at all\n", 0600);
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_BAD_INPUT);
    EXPECT(strstr(error.text, "words") == NULL);
    EXPECT_INT(open_client("/nowhere/token", server.ca, &store, &error), STATUS_IO);
}

static void a_token_does_not_travel_in_the_clear(void)
{
    struct store *store = NULL;
    struct error error;
    begin();
    const struct store_config config = {.token_file = server.token};
    EXPECT_INT(store_http_open("http://192.0.2.1:80", &config, &store, &error), STATUS_USAGE);
    EXPECT_CONTAINS(error.text, "clear");
    /* Names that only look like this machine. */
    EXPECT_INT(store_http_open("http://localhost.example:80", &config, &store, &error),
               STATUS_USAGE);
    EXPECT_INT(store_http_open("http://localhost:x@192.0.2.1:80", &config, &store, &error),
               STATUS_USAGE);
}

static void overload_is_waited_out(void)
{
    struct store *store;
    struct error error;
    begin();
    EXPECT_INT(open_client(server.token, server.ca, &store, &error), STATUS_OK);
    put("overloaded", "1 429", 0600);
    EXPECT_INT(ask(store, &error), STATUS_OK);
    EXPECT_INT(count_seen("429"), 1);
    put("overloaded", "1 503", 0600);
    EXPECT_INT(ask(store, &error), STATUS_OK);
    EXPECT_INT(count_seen("503"), 1);
    EXPECT_INT(count_seen("200 GET /v1/suites"), 2);
    store->ops->close(store);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    server.script = argv[1];
    signal(SIGPIPE, SIG_IGN);
    start_server();
    int failed = TEST_RUN(TEST(a_token_opens_a_store_that_a_known_authority_vouches_for),
                          TEST(the_environment_names_token_and_authority),
                          TEST(a_server_without_a_known_authority_hears_nothing),
                          TEST(a_refusal_is_final_and_names_the_file_but_not_the_token),
                          TEST(a_replaced_token_is_shown_without_a_restart),
                          TEST(a_bad_replacement_leaves_the_last_token_in_force),
                          TEST(a_token_file_that_others_can_read_is_refused),
                          TEST(a_token_does_not_travel_in_the_clear), TEST(overload_is_waited_out));
    stop_server();
    return failed;
}
