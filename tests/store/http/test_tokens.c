/*
 * Tokens: the file, and the guard that watches it.
 *
 * Goal: exactly the live tokens of the file open a server, from the moment when they are in it to
 * the moment when they leave it; a file that is no good changes nothing; no secret is ever written
 * down.
 * Method: the real file and guard, time from a clock of the test's own, log and errors into a file
 * that is searched for the secrets.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/server/tokens.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DAY_S = 86400, START_S = 1700000000 };

static int64_t time_s;

static int64_t fake_wall_ns(void *context)
{
    (void)context;
    return time_s * NS_PER_S;
}

static const struct clock fake_clock = {.wall_ns = fake_wall_ns};
static struct logger logger = {.fd = -1, .level = LOG_DEBUG, .name = "test"};
static char path[160];
static char log_path[160];

/* A fresh file name and an empty log. */
static void begin(const char *name)
{
    time_s = START_S;
    snprintf(path, sizeof path, "%s/%s", support_directory(), name);
    snprintf(log_path, sizeof log_path, "%s/log", support_directory());
    if (logger.fd >= 0) {
        close(logger.fd);
    }
    logger.fd = open(log_path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    CHECK(logger.fd >= 0);
}

static const char *slurp(const char *name)
{
    static char text[1 << 16];
    FILE *file = fopen(name, "r");
    CHECK(file != NULL);
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

static void spill(const char *name, const char *text, mode_t mode)
{
    char draft[200];
    snprintf(draft, sizeof draft, "%s.draft", name);
    FILE *file = fopen(draft, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    CHECK(chmod(draft, mode) == 0 && rename(draft, name) == 0);
}

static enum status add(const char *name, enum token_role role, const char *pool, int64_t days,
                       struct token *token, char text[TOKEN_SECRET_BYTES], struct error *error)
{
    memset(token, 0, sizeof *token);
    strcpy(token->name, name);
    strcpy(token->pool, pool);
    token->role = role;
    token->created_s = time_s;
    token->expires_s = days > 0 ? time_s + days * DAY_S : 0;
    return tokens_add(path, token, text, error);
}

static struct token_guard *guard_of(void)
{
    struct error error;
    struct token_guard *guard = NULL;
    EXPECT_OK(token_guard_create(path, &fake_clock, &logger, &guard, &error), error);
    return guard;
}

static bool admits(struct token_guard *guard, const char *text, struct token *grant)
{
    char header[256];
    snprintf(header, sizeof header, "Bearer %.240s", text);
    return token_guard_admit(guard, header, grant);
}

/* Goal: a token speaks for the party of the one that it takes over from, for as long as somebody
 * does, and for another one when nobody was left; files of before say so by names alone. */
static void a_rotation_is_one_party(void)
{
    struct error error;
    struct token first;
    struct token second;
    struct token third;
    struct token later;
    struct token grant;
    uint32_t count = 0;
    char text[TOKEN_SECRET_BYTES];
    char legacy[4096];
    begin("party");
    EXPECT_OK(add("w", TOKEN_ROLE_WORKER, "bulk", 0, &first, text, &error), error);
    EXPECT_TEXT(first.principal, first.id);
    EXPECT(strstr(slurp(path), "principal") == NULL); /* as older programs write and read it */
    EXPECT_OK(add("w", TOKEN_ROLE_WORKER, "bulk", 1, &second, text, &error), error);
    EXPECT_TEXT(second.principal, first.id);
    EXPECT_OK(tokens_revoke(path, first.id, &count, &error), error);
    EXPECT_OK(add("w", TOKEN_ROLE_WORKER, "bulk", 0, &third, text, &error), error);
    EXPECT_TEXT(third.principal, first.id);
    struct token_guard *guard = guard_of();
    EXPECT(admits(guard, text, &grant));
    EXPECT_TEXT(grant.principal, first.id);
    EXPECT_TEXT(grant.id, third.id);
    EXPECT_OK(tokens_revoke(path, third.id, &count, &error), error);
    time_s += 2 * DAY_S; /* the second has expired */
    EXPECT_OK(add("w", TOKEN_ROLE_WORKER, "bulk", 0, &later, text, &error), error);
    EXPECT_TEXT(later.principal, later.id);
    EXPECT(admits(guard, text, &grant));
    EXPECT_TEXT(grant.principal, later.id);
    token_guard_destroy(guard);

    begin("party-of-before");
    snprintf(legacy, sizeof legacy,
             "{\"format\":1,\"tokens\":["
             "{\"id\":\"aaaaaaaaaaaa\",\"name\":\"w\",\"role\":\"worker\",\"pool\":\"bulk\","
             "\"created_s\":1,\"expires_s\":0,\"sha256\":\"%064d\"},"
             "{\"id\":\"bbbbbbbbbbbb\",\"name\":\"w\",\"role\":\"worker\",\"pool\":\"bulk\","
             "\"created_s\":2,\"expires_s\":0,\"sha256\":\"%064d\"}]}",
             1, 2);
    spill(path, legacy, 0600);
    EXPECT_OK(tokens_revoke(path, "aaaaaaaaaaaa", &count, &error), error);
    EXPECT_OK(add("w", TOKEN_ROLE_WORKER, "bulk", 0, &later, text, &error), error);
    EXPECT_TEXT(later.principal, "aaaaaaaaaaaa");
    snprintf(legacy, sizeof legacy,
             "{\"format\":1,\"tokens\":["
             "{\"id\":\"aaaaaaaaaaaa\",\"name\":\"w\",\"role\":\"worker\",\"pool\":\"bulk\","
             "\"principal\":\"../x\",\"created_s\":1,\"expires_s\":0,\"sha256\":\"%064d\"}]}",
             1);
    spill(path, legacy, 0600);
    EXPECT_INT(tokens_revoke(path, "aaaaaaaaaaaa", &count, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, path);
    EXPECT_CONTAINS(error.text, "tokens[0].principal");
}

static void a_token_opens_and_nothing_else_does(void)
{
    struct error error;
    struct token token;
    struct token grant = {.name = ""};
    char text[TOKEN_SECRET_BYTES];
    char header[256];
    begin("one");
    EXPECT_OK(add("ci", TOKEN_ROLE_WORKER, "bulk", 0, &token, text, &error), error);
    EXPECT_INT(strlen(text), TOKEN_SECRET_BYTES - 1);
    struct token_guard *guard = guard_of();
    EXPECT(admits(guard, text, &grant));
    EXPECT_INT(grant.role, TOKEN_ROLE_WORKER);
    EXPECT_TEXT(grant.name, "ci");
    EXPECT_TEXT(grant.pool, "bulk");
    snprintf(header, sizeof header, "bEARER   %s", text);
    EXPECT(token_guard_admit(guard, header, &grant)); /* RFC 9110: any case, any spaces */
    EXPECT(!token_guard_admit(guard, NULL, &grant));
    EXPECT(!token_guard_admit(guard, "", &grant));
    EXPECT(!token_guard_admit(guard, "Bearer", &grant));
    EXPECT(!token_guard_admit(guard, "Bearer ", &grant));
    EXPECT(!token_guard_admit(guard, text, &grant));
    snprintf(header, sizeof header, "Basic %s", text);
    EXPECT(!token_guard_admit(guard, header, &grant));
    for (size_t i = 0; text[i] != '\0'; i++) {
        char kept = text[i];
        text[i] = kept == '0' ? '1' : '0';
        EXPECT(!admits(guard, text, &grant));
        text[i] = '\0';
        EXPECT(!admits(guard, text, &grant)); /* a beginning */
        text[i] = kept;
    }
    snprintf(header, sizeof header, "%s0", text);
    EXPECT(!admits(guard, header, &grant));
    token_guard_destroy(guard);
}

static void tokens_are_random(void)
{
    struct error error;
    struct token tokens[2];
    char texts[2][TOKEN_SECRET_BYTES];
    begin("random");
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(add("twin", TOKEN_ROLE_READ, "", 0, &tokens[i], texts[i], &error), error);
    }
    EXPECT(strcmp(texts[0], texts[1]) != 0);
    EXPECT(strcmp(tokens[0].id, tokens[1].id) != 0);
    EXPECT(strcmp(tokens[0].sha256, tokens[1].sha256) != 0);
}

static void two_live_tokens_a_name(void)
{
    struct error error;
    struct token old;
    struct token token;
    struct token grant;
    char texts[3][TOKEN_SECRET_BYTES];
    uint32_t count = 0;
    begin("rotation");
    EXPECT_OK(add("ci", TOKEN_ROLE_SUBMIT, "", 10, &old, texts[0], &error), error);
    struct token_guard *guard = guard_of();
    EXPECT_OK(add("ci", TOKEN_ROLE_SUBMIT, "", 30, &token, texts[1], &error), error);
    EXPECT(admits(guard, texts[0], &grant) && admits(guard, texts[1], &grant));
    EXPECT_INT(add("ci", TOKEN_ROLE_SUBMIT, "", 30, &token, texts[2], &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "2 live tokens");
    EXPECT_OK(tokens_revoke(path, old.id, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT(!admits(guard, texts[0], &grant) && admits(guard, texts[1], &grant));
    EXPECT_INT(add("ci", TOKEN_ROLE_ADMIN, "", 30, &token, texts[2], &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "submit"); /* a name is not promoted on the sly */
    EXPECT_OK(add("ci", TOKEN_ROLE_SUBMIT, "", 60, &token, texts[2], &error), error);
    time_s += 31 * DAY_S; /* the second has expired: there is room again */
    EXPECT_OK(add("ci", TOKEN_ROLE_SUBMIT, "", 60, &token, texts[0], &error), error);
    EXPECT(admits(guard, texts[0], &grant) && admits(guard, texts[2], &grant));
    EXPECT(!admits(guard, texts[1], &grant));
    EXPECT_OK(tokens_revoke(path, "ci", &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT(!admits(guard, texts[0], &grant) && !admits(guard, texts[2], &grant));
    EXPECT_INT(tokens_revoke(path, "ci", &count, &error), STATUS_NOT_FOUND);
    token_guard_destroy(guard);
}

static void tokens_expire(void)
{
    struct error error;
    struct token token;
    struct token grant;
    char text[TOKEN_SECRET_BYTES];
    begin("expiry");
    EXPECT_OK(add("ci", TOKEN_ROLE_READ, "", 1, &token, text, &error), error);
    struct token_guard *guard = guard_of();
    time_s += DAY_S - 1;
    EXPECT(admits(guard, text, &grant));
    time_s += 1;
    EXPECT(!admits(guard, text, &grant));
    token_guard_destroy(guard);
}

#define HEX_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_bad_file_changes_nothing(void)
{
    static const struct {
        const char *text;
        mode_t mode;
        const char *says;
    } bad[] = {
        {"", 0600, "JSON"},
        {"{\"format\": 1, \"tokens\": [", 0600, "JSON"},
        {"{\"format\": 2, \"tokens\": []}", 0600, "format"},
        {"{\"format\": 1, \"tokens\": [{\"id\": \"1\"}]}", 0600, "tokens[0]"},
        {"{\"format\": 1, \"tokens\": [], \"more\": 1}", 0600, "more"},
        {"{\"format\": 1, \"tokens\": [{\"id\": \"1\", \"name\": \"\", \"role\": \"read\", "
         "\"pool\": \"\", "
         "\"created_s\": 1, \"expires_s\": 0, \"sha256\": \"" HEX_64 "\"}]}",
         0600, "expected an id and a name"},
        {"{\"format\": 1, \"tokens\": []}", 0644, "0600"},
        {"{\"format\": 1, \"tokens\": []}", 0620, "0600"},
    };
    struct error error;
    struct token token;
    struct token grant;
    struct token_guard *none = NULL;
    char text[TOKEN_SECRET_BYTES];
    char *good;
    begin("damage");
    EXPECT_OK(add("ci", TOKEN_ROLE_READ, "", 0, &token, text, &error), error);
    good = strdup(slurp(path));
    struct token_guard *guard = guard_of();
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        spill(path, bad[i].text, bad[i].mode);
        EXPECT(admits(guard, text, &grant));
        EXPECT(admits(guard, text, &grant));
        EXPECT_CONTAINS(slurp(log_path), bad[i].says);
        EXPECT_CONTAINS(slurp(log_path), "stay in force");
        CHECK(ftruncate(logger.fd, 0) == 0);
        EXPECT(admits(guard, text, &grant));
        EXPECT_TEXT(slurp(log_path), ""); /* said once */
        EXPECT_INT(token_guard_create(path, &fake_clock, &logger, &none, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, path);
        EXPECT_INT(add("x", TOKEN_ROLE_READ, "", 0, &token, text, &error) == STATUS_OK, false);
    }
    unlink(path);
    EXPECT(admits(guard, text, &grant));
    EXPECT_CONTAINS(slurp(log_path), "stay in force");
    spill(path, "{\"format\": 1, \"tokens\": []}", 0600);
    EXPECT(!admits(guard, text, &grant)); /* good again, and empty */
    spill(path, good, 0600);
    EXPECT(admits(guard, text, &grant));
    free(good);
    token_guard_destroy(guard);
}

static void secrets_are_not_written_down(void)
{
    struct error error;
    struct token token;
    struct token grant;
    char text[TOKEN_SECRET_BYTES];
    struct stat info;
    uint32_t count;
    begin("secret");
    EXPECT_OK(add("ci", TOKEN_ROLE_ADMIN, "", 0, &token, text, &error), error);
    EXPECT(stat(path, &info) == 0 && (info.st_mode & 07777) == 0600);
    EXPECT(strstr(slurp(path), text + 4) == NULL);
    struct token_guard *guard = guard_of();
    EXPECT(admits(guard, text, &grant));
    EXPECT_INT(tokens_revoke(path, text, &count, &error), STATUS_NOT_FOUND);
    EXPECT(strstr(error.text, text + 4) == NULL); /* pasted by mistake */
    spill(path, "damaged", 0600);
    EXPECT(admits(guard, text, &grant));
    EXPECT(strstr(slurp(log_path), text + 4) == NULL);
    token_guard_destroy(guard);
}

static void pools_belong_to_workers(void)
{
    struct error error;
    struct token token;
    char text[TOKEN_SECRET_BYTES];
    begin("pools");
    EXPECT_INT(add("w", TOKEN_ROLE_WORKER, "", 0, &token, text, &error), STATUS_USAGE);
    EXPECT_INT(add("w", TOKEN_ROLE_READ, "bulk", 0, &token, text, &error), STATUS_USAGE);
    EXPECT_INT(add("", TOKEN_ROLE_READ, "", 0, &token, text, &error), STATUS_USAGE);
    EXPECT_INT(access(path, F_OK), -1); /* nothing was written */
}

int main(void)
{
    return TEST_RUN(TEST(a_rotation_is_one_party), TEST(a_token_opens_and_nothing_else_does),
                    TEST(tokens_are_random), TEST(two_live_tokens_a_name), TEST(tokens_expire),
                    TEST(a_bad_file_changes_nothing), TEST(secrets_are_not_written_down),
                    TEST(pools_belong_to_workers));
}
