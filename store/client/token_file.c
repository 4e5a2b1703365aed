/*
 * The client's bearer token. See token_file.h.
 */
#include "store/client/token_file.h"

#include "schemas/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKEN_CHARACTERS_MIN = 16 };

struct token_file {
    char path[LIMIT_PATH_BYTES];
    pthread_mutex_t mutex; /* guards what follows */
    struct stat seen;      /* of the last attempt to read, so that a bad file is read once */
    uint32_t version;
    char text[TOKEN_TEXT_BYTES];
};

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static enum status check_file(const char *path, const struct stat *info, struct error *error)
{
    if (!S_ISREG(info->st_mode)) {
        return error_set(error, STATUS_BAD_INPUT, "token file %s: expected a regular file", path);
    }
    if (info->st_uid != geteuid() && info->st_uid != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "token file %s: expected a file of user %u or root, found one of user %u",
                         path, (unsigned)geteuid(), (unsigned)info->st_uid);
    }
    if ((info->st_mode & 077) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "token file %s: expected no rights for group and others, found mode %03o "
                         "(chmod 600 it)",
                         path, (unsigned)info->st_mode & 0777);
    }
    return STATUS_OK;
}

/* The first line of `text`, checked; cut there in place. */
static enum status check_token(const char *path, char *text, struct error *error)
{
    size_t characters = strcspn(text, "\r\n");
    text[characters] = '\0';
    for (size_t i = 0; i < characters; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return error_set(error, STATUS_BAD_INPUT,
                             "token file %s: expected visible ASCII characters in its first line, "
                             "found another at column %zu",
                             path, i + 1);
        }
    }
    if (characters < TOKEN_CHARACTERS_MIN) {
        return error_set(error, STATUS_BAD_INPUT,
                         "token file %s: expected a token of at least %d characters in its first "
                         "line, found %zu",
                         path, TOKEN_CHARACTERS_MIN, characters);
    }
    return STATUS_OK;
}

static enum status read_token(const char *path, char text[TOKEN_TEXT_BYTES], struct stat *info,
                              struct error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, info) != 0) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
        }
        return error_set(error, STATUS_IO, "token file %s: %s", path, strerror(code));
    }
    enum status status = check_file(path, info, error);
    size_t bytes = 0;
    while (status == STATUS_OK && bytes < TOKEN_TEXT_BYTES) {
        ssize_t got = read(fd, text + bytes, TOKEN_TEXT_BYTES - bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            status = error_set(error, STATUS_IO, "token file %s: %s", path, strerror(errno));
        }
        if (got <= 0) {
            break;
        }
        bytes += (size_t)got;
    }
    close(fd);
    if (status == STATUS_OK && bytes == TOKEN_TEXT_BYTES) {
        status = error_set(error, STATUS_LIMIT, "token file %s: expected at most %d bytes", path,
                           TOKEN_TEXT_BYTES - 1);
    }
    if (status == STATUS_OK) {
        text[bytes] = '\0';
        status = check_token(path, text, error);
    }
    return status;
}

enum status token_file_open(const char *path, struct token_file **out, struct error *error)
{
    if (strlen(path) >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_LIMIT, "token file: expected a path of at most %d bytes",
                         LIMIT_PATH_BYTES - 1);
    }
    struct token_file *file = calloc(1, sizeof *file);
    TRY(memory_check(file, error, "token file %s: out of memory", path));
    snprintf(file->path, sizeof file->path, "%s", path);
    enum status status = read_token(path, file->text, &file->seen, error);
    if (status != STATUS_OK) {
        explicit_bzero(file, sizeof *file);
        free(file);
        return status;
    }
    file->version = 1;
    pthread_mutex_init(&file->mutex, NULL);
    *out = file;
    return STATUS_OK;
}

void token_file_close(struct token_file *file)
{
    if (file == NULL) {
        return;
    }
    pthread_mutex_destroy(&file->mutex);
    explicit_bzero(file, sizeof *file);
    free(file);
}

void token_file_get(struct token_file *file, char text[TOKEN_TEXT_BYTES], uint32_t *version)
{
    struct stat now;
    char fresh[TOKEN_TEXT_BYTES];
    pthread_mutex_lock(&file->mutex);
    if (stat(file->path, &now) == 0 && !same_file(&now, &file->seen)) {
        file->seen = now;
        if (read_token(file->path, fresh, &file->seen, NULL) == STATUS_OK &&
            strcmp(fresh, file->text) != 0) {
            memcpy(file->text, fresh, sizeof file->text);
            file->version++;
        }
        explicit_bzero(fresh, sizeof fresh);
    }
    memcpy(text, file->text, sizeof file->text);
    *version = file->version;
    pthread_mutex_unlock(&file->mutex);
}

const char *token_file_path(const struct token_file *file)
{
    return file->path;
}
