/*
 * Fuzz target: token files, which people may damage. The input is the file. What is accepted must
 * be within the bounds of a list and well-formed; what is refused must say why without showing the
 * file's contents.
 */
#include "base/check.h"
#include "store/server/tokens.h"
#include "tests/fuzz/json_mutator.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);

static char path[64];

static void clean_up(void)
{
    unlink(path);
}

static void prepare(void)
{
    if (path[0] == '\0') {
        snprintf(path, sizeof path, "/dev/shm/swerve-fuzz-tokens-%ld", (long)getpid());
        atexit(clean_up);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    static const char *const texts[] = {"", "read", "submit", "worker", "admin", "bulk"};
    return json_mutate(data, bytes, max, seed, texts, COUNT_OF(texts));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct token_list list;
    struct error error = {0};
    prepare();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
    enum status status = tokens_read(path, &list, &error);
    if (status != STATUS_OK) {
        CHECK(status == error.status && strstr(error.text, path) != NULL);
        return 0;
    }
    CHECK(list.count <= TOKENS_MAX);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct token *token = &list.tokens[i];
        CHECK(memchr(token->id, '\0', sizeof token->id) != NULL);
        CHECK(memchr(token->name, '\0', sizeof token->name) != NULL && token->name[0] != '\0');
        CHECK(memchr(token->pool, '\0', sizeof token->pool) != NULL);
        CHECK(token->role < TOKEN_ROLE_COUNT);
        CHECK((token->role == TOKEN_ROLE_WORKER) == (token->pool[0] != '\0'));
    }
    return 0;
}
