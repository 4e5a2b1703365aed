/*
 * The tokens file and the guard that watches it. See tokens.h.
 */
#include "store/server/tokens.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "schemas/json_record.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FORMAT = 1,
    FILE_BYTES_MAX = 1 << 20,
    PRIVATE_MODE = 0600,
};

const char *const token_role_names[TOKEN_ROLE_COUNT] = {"read", "submit", "worker", "admin",
                                                        "driver"};

static const char secret_prefix[] = "swt_";

static const struct json_field fields[] = {
    JSON_FIELD(struct token, id, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct token, principal, JSON_FIELD_TEXT),
    JSON_FIELD(struct token, name, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct token, role, token_role_names, TOKEN_ROLE_COUNT),
    JSON_FIELD(struct token, pool, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct token, tenant, JSON_FIELD_TEXT),
    JSON_FIELD(struct token, created_s, JSON_FIELD_I64),
    JSON_FIELD(struct token, expires_s, JSON_FIELD_I64),
    JSON_FIELD(struct token, sha256, JSON_FIELD_TEXT),
};

static const struct json_field_list field_list = JSON_FIELD_LIST(fields);

static bool is_live(const struct token *token, int64_t now_s)
{
    return token->expires_s == 0 || now_s < token->expires_s;
}

static bool has_tenant(enum token_role role)
{
    return role == TOKEN_ROLE_SUBMIT || role == TOKEN_ROLE_DRIVER || role == TOKEN_ROLE_WORKER;
}

/* ---- reading ---- */

static enum status decode_token(const struct json_cursor *cursor, struct token *out,
                                struct error *error)
{
    memset(out, 0, sizeof *out);
    TRY(json_record_decode(&field_list, NULL, true, cursor, out, error));
    if (!sha256_is_hex(out->sha256, strlen(out->sha256))) {
        return json_fail(cursor, error, "expected \"sha256\" to have 64 lower-case digits");
    }
    if ((out->role == TOKEN_ROLE_WORKER) != (out->pool[0] != '\0')) {
        return json_fail(cursor, error, "expected a pool for the role worker and for no other");
    }
    if (!has_tenant(out->role) && out->tenant[0] != '\0') {
        return json_fail(cursor, error,
                         "expected a tenant for the roles submit, driver and worker alone");
    }
    if (out->id[0] == '\0' || out->name[0] == '\0') {
        return json_fail(cursor, error, "expected an id and a name, found \"\"");
    }
    struct error why; /* who redrives its jobs names it */
    if (out->principal[0] != '\0' &&
        text_name_check("principal", out->principal, sizeof out->principal, &why) != STATUS_OK) {
        struct json_cursor principal = json_cursor_member(cursor, "principal");
        return json_fail(&principal, error, "%.300s", why.text);
    }
    return STATUS_OK;
}

/* The token of that name in the list, which was made first; NULL: none is. */
static const struct token *first_named(const struct token_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->tokens[i].name, name) == 0) {
            return &list->tokens[i];
        }
    }
    return NULL;
}

/* Fills the principals that the file leaves out. Files of before principals were kept do so for all
 * tokens: two of one name were live at one time there, too. */
static void settle_principals(struct token_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct token *token = &list->tokens[i];
        const struct token *first = first_named(list, token->name);
        if (token->principal[0] == '\0') {
            memcpy(token->principal, first == token ? token->id : first->principal,
                   sizeof token->principal);
        }
    }
}

static enum status decode_list(const char *path, const json_t *root, struct token_list *out,
                               struct error *error)
{
    static const char *const keys[] = {"format", "tokens", NULL};
    struct json_cursor cursor = json_cursor_root(path, root);
    struct json_cursor list = json_cursor_member(&cursor, "tokens");
    int64_t format = 0;
    size_t count = 0;
    enum status status = json_object_begin(&cursor, keys, error);
    THEN(status, json_member_integer(&cursor, "format", true, FORMAT, FORMAT, &format, error));
    THEN(status, json_array_begin(&list, 0, TOKENS_MAX, &count, error));
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        status = decode_token(&element, &out->tokens[i], error);
    }
    out->count = status == STATUS_OK ? (uint32_t)count : 0;
    settle_principals(out);
    return status;
}

/* Marks that tell one version of the file from another. */
struct file_stamp {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
};

static struct file_stamp stamp_of(const struct stat *info)
{
    return (struct file_stamp){info->st_dev, info->st_ino, info->st_size, info->st_ctim};
}

static bool same_stamp(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* The file's text, malloc'ed and terminated. */
static enum status read_text(const char *path, char **text, size_t *bytes, struct file_stamp *stamp,
                             struct error *error)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return error_set(error, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                         "%s: cannot open the tokens file: %s", path, strerror(errno));
    }
    if (fstat(fd, &info) != 0) {
        int reason = errno;
        close(fd);
        return error_set(error, STATUS_IO, "%s: %s", path, strerror(reason));
    }
    if (!S_ISREG(info.st_mode) || (info.st_mode & 077) != 0 || info.st_size > FILE_BYTES_MAX) {
        close(fd);
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected a tokens file of at most %d bytes that only its owner may "
                         "touch (mode 0600), found mode %04o and %lld bytes",
                         path, FILE_BYTES_MAX, (unsigned)(info.st_mode & 07777),
                         (long long)info.st_size);
    }
    size_t capacity = (size_t)info.st_size;
    size_t used = 0;
    char *buffer = malloc(capacity + 1);
    while (buffer != NULL && used < capacity) {
        ssize_t got = read(fd, buffer + used, capacity - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    close(fd);
    if (buffer == NULL || used < capacity) {
        enum status status = buffer == NULL ? STATUS_NO_MEMORY : STATUS_IO;
        free(buffer);
        return error_set(error, status, "%s: cannot read the tokens file%s", path,
                         status == STATUS_NO_MEMORY ? ": out of memory" : "");
    }
    buffer[used] = '\0';
    *text = buffer;
    *bytes = used;
    *stamp = stamp_of(&info);
    return STATUS_OK;
}

static enum status read_stamped(const char *path, struct token_list *out, struct file_stamp *stamp,
                                struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    json_t *root = NULL;
    out->count = 0;
    enum status status = read_text(path, &text, &bytes, stamp, error);
    THEN(status, json_read_text(path, text, bytes, &root, error));
    THEN(status, decode_list(path, root, out, error));
    json_decref(root);
    free(text);
    return status;
}

enum status tokens_read(const char *path, struct token_list *out, struct error *error)
{
    struct file_stamp stamp;
    return read_stamped(path, out, &stamp, error);
}

/* ---- writing ---- */

static json_t *encode_token(const struct token *token)
{
    struct token kept = *token;
    if (strcmp(kept.principal, kept.id) == 0) { /* older programs read the file without */
        kept.principal[0] = '\0';
    }
    return json_record_encode(&field_list, &kept, NULL);
}

static char *encode_list(const struct token_list *list)
{
    json_t *root = json_object();
    json_t *array = json_array();
    bool good = root != NULL && array != NULL && json_put(root, "format", json_integer(FORMAT));
    for (uint32_t i = 0; good && i < list->count; i++) {
        good = json_array_append_new(array, encode_token(&list->tokens[i])) == 0;
    }
    good = good && json_put(root, "tokens", json_incref(array));
    char *text = good ? json_indented_text(root) : NULL;
    json_decref(array);
    json_decref(root);
    return text;
}

static enum status sync_parent(const char *path)
{
    char parent[LIMIT_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof parent, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
             slash != NULL ? path : ".");
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    int reason = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = reason;
    return good ? STATUS_OK : STATUS_IO;
}

/* Replaces the file as a whole; the new one is on the disk on return. */
static enum status write_list(const char *path, const struct token_list *list, struct error *error)
{
    char temporary[LIMIT_PATH_BYTES + 8];
    char *text = encode_list(list);
    TRY(memory_check(text, error, "%s: out of memory", path));
    snprintf(temporary, sizeof temporary, "%s.new", path);
    unlink(temporary); /* left by a process that was killed here; we hold the lock */
    size_t bytes = strlen(text);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, PRIVATE_MODE);
    bool good = fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes && fsync(fd) == 0;
    int reason = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        reason = errno;
    }
    free(text);
    if (good && (rename(temporary, path) != 0 || sync_parent(path) != STATUS_OK)) {
        good = false;
        reason = errno;
    }
    if (!good) {
        unlink(temporary);
        return error_set(error, STATUS_IO, "%s: cannot write the tokens file: %s", path,
                         strerror(reason));
    }
    return STATUS_OK;
}

/* One change at a time, over all processes. */
static enum status lock_file(const char *path, int *fd, struct error *error)
{
    char lock_path[LIMIT_PATH_BYTES + 8];
    if (strlen(path) >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_LIMIT, "tokens file: expected a path of at most %d bytes",
                         LIMIT_PATH_BYTES - 1);
    }
    snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, PRIVATE_MODE);
    int result = lock < 0 ? -1 : flock(lock, LOCK_EX);
    while (result != 0 && lock >= 0 && errno == EINTR) {
        result = flock(lock, LOCK_EX);
    }
    if (result != 0) {
        int reason = errno;
        if (lock >= 0) {
            close(lock);
        }
        return error_set(error, STATUS_IO, "%s: cannot lock: %s", lock_path, strerror(reason));
    }
    *fd = lock;
    return STATUS_OK;
}

static void random_bytes(void *out, size_t bytes)
{
    /* Up to 256 bytes of getrandom are whole or a bug (getrandom(2)). */
    CHECK(bytes <= 256 && getrandom(out, bytes, 0) == (ssize_t)bytes);
}

/* Fills id and hash of the token and the secret's text. */
static void draw_secret(struct token *token, char text[TOKEN_SECRET_BYTES])
{
    uint8_t secret[SHA256_BYTES]; /* as long as a digest, whose digits it borrows */
    uint8_t id[SHA256_BYTES] = {0};
    char digits[SHA256_HEX_BYTES];
    random_bytes(secret, sizeof secret);
    sha256_to_hex(secret, digits);
    snprintf(text, TOKEN_SECRET_BYTES, "%s%s", secret_prefix, digits);
    sha256_hex(text, TOKEN_SECRET_BYTES - 1, token->sha256);
    random_bytes(id, (TOKEN_ID_BYTES - 1) / 2);
    sha256_to_hex(id, digits);
    memcpy(token->id, digits, TOKEN_ID_BYTES - 1);
    token->id[TOKEN_ID_BYTES - 1] = '\0';
    explicit_bzero(secret, sizeof secret);
}

static enum status check_new(const struct token_list *list, const struct token *token,
                             struct error *error)
{
    uint32_t live = 0;
    if (token->name[0] == '\0') {
        return error_set(error, STATUS_USAGE, "a token needs the name of whom it is for");
    }
    TRY(text_name_check("token", token->name, sizeof token->name, error));
    TRY(token->pool[0] != '\0' ? text_name_check("pool", token->pool, sizeof token->pool, error)
                               : STATUS_OK);
    TRY(token->tenant[0] != '\0'
            ? text_name_check("tenant", token->tenant, sizeof token->tenant, error)
            : STATUS_OK);
    if ((token->role == TOKEN_ROLE_WORKER) != (token->pool[0] != '\0')) {
        return error_set(error, STATUS_USAGE,
                         token->role == TOKEN_ROLE_WORKER
                             ? "a worker's token needs the pool that it works for"
                             : "only a worker's token belongs to a pool");
    }
    if (!has_tenant(token->role) && token->tenant[0] != '\0') {
        return error_set(error, STATUS_USAGE,
                         "only a submitter's, driver's or worker's token is of a tenant");
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const struct token *other = &list->tokens[i];
        if (strcmp(other->name, token->name) != 0) {
            continue;
        }
        if (other->role != token->role || strcmp(other->pool, token->pool) != 0 ||
            strcmp(other->tenant, token->tenant) != 0) {
            return error_set(error, STATUS_CONFLICT,
                             "\"%s\" has a token of the role %s%s%s%s%s; another one of that name "
                             "must be the same (or revoke it first)",
                             token->name, token_role_names[other->role],
                             other->pool[0] != '\0' ? " for the pool " : "", other->pool,
                             other->tenant[0] != '\0' ? " for the tenant " : "", other->tenant);
        }
        live++;
    }
    if (live >= TOKENS_PER_NAME_MAX) {
        return error_set(error, STATUS_CONFLICT,
                         "\"%s\" has %u live tokens; revoke the older one first", token->name,
                         live);
    }
    if (list->count == TOKENS_MAX) {
        return error_set(error, STATUS_LIMIT, "expected at most %d tokens", TOKENS_MAX);
    }
    return STATUS_OK;
}

static void drop_expired(struct token_list *list, int64_t now_s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (is_live(&list->tokens[i], now_s)) {
            list->tokens[kept++] = list->tokens[i];
        }
    }
    list->count = kept;
}

/* The list of the file, empty when there is none yet. */
static enum status read_or_begin(const char *path, struct token_list **out, struct error *error)
{
    struct token_list *list = calloc(1, sizeof *list);
    TRY(memory_check(list, error, "%s: out of memory", path));
    enum status status = tokens_read(path, list, error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        free(list);
        return status;
    }
    *out = list;
    return STATUS_OK;
}

enum status tokens_add(const char *path, struct token *token, char text[TOKEN_SECRET_BYTES],
                       struct error *error)
{
    struct token_list *list = NULL;
    int lock = -1;
    TRY(lock_file(path, &lock, error));
    enum status status = read_or_begin(path, &list, error);
    if (status == STATUS_OK) {
        drop_expired(list, token->created_s);
        status = check_new(list, token, error);
    }
    if (status == STATUS_OK) {
        const struct token *first = first_named(list, token->name);
        draw_secret(token, text);
        memcpy(token->principal, first != NULL ? first->principal : token->id,
               sizeof token->principal);
        list->tokens[list->count++] = *token;
        status = write_list(path, list, error);
    }
    free(list);
    close(lock);
    return status;
}

static bool is_named(const struct token *token, const char *which)
{
    return strcmp(token->id, which) == 0 || strcmp(token->name, which) == 0;
}

enum status tokens_revoke(const char *path, const char *which, uint32_t *count, struct error *error)
{
    struct token_list *list = NULL;
    uint32_t kept = 0;
    int lock = -1;
    TRY(lock_file(path, &lock, error));
    enum status status = read_or_begin(path, &list, error);
    bool named = false;
    for (uint32_t i = 0; status == STATUS_OK && i < list->count; i++) {
        named |= is_named(&list->tokens[i], which);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < list->count; i++) {
        const struct token *token = &list->tokens[i];
        if (named ? !is_named(token, which) : strcmp(token->principal, which) != 0) {
            list->tokens[kept++] = *token;
        }
    }
    if (status == STATUS_OK && kept == list->count) {
        /* Whoever pastes a token here by mistake shall not find it in a log. */
        status = error_set(error, STATUS_NOT_FOUND, "%s: no token has that id or name", path);
    }
    if (status == STATUS_OK) {
        *count = list->count - kept;
        list->count = kept;
        status = write_list(path, list, error);
    }
    free(list);
    close(lock);
    return status;
}

/* ---- the guard ---- */

struct token_guard {
    char path[LIMIT_PATH_BYTES];
    const struct clock *clock;
    const struct logger *logger;
    pthread_mutex_t mutex;   /* guards everything below */
    struct file_stamp stamp; /* of the file that was last looked into, good or bad */
    bool missing;            /* it was not there when last looked for */
    struct token_list *list; /* in force */
    struct token_list *next; /* room to read into */
};

enum status token_guard_create(const char *path, const struct clock *clock,
                               const struct logger *logger, struct token_guard **out,
                               struct error *error)
{
    struct token_guard *guard = calloc(1, sizeof *guard);
    struct token_list *list = calloc(1, sizeof *list);
    struct token_list *next = calloc(1, sizeof *next);
    enum status status = STATUS_OK;
    if (guard == NULL || list == NULL || next == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    } else if (strlen(path) >= sizeof guard->path) {
        status = error_set(error, STATUS_LIMIT, "tokens file: expected a path of at most %d bytes",
                           LIMIT_PATH_BYTES - 1);
    } else {
        status = read_stamped(path, list, &guard->stamp, error);
    }
    if (status != STATUS_OK) {
        free(next);
        free(list);
        free(guard);
        return status;
    }
    strcpy(guard->path, path);
    guard->clock = clock;
    guard->logger = logger;
    guard->list = list;
    guard->next = next;
    pthread_mutex_init(&guard->mutex, NULL);
    *out = guard;
    return STATUS_OK;
}

void token_guard_destroy(struct token_guard *guard)
{
    if (guard != NULL) {
        pthread_mutex_destroy(&guard->mutex);
        free(guard->next);
        free(guard->list);
        free(guard);
    }
}

/* With the mutex held: takes a changed file; says once what is wrong with a bad one. */
static void refresh(struct token_guard *guard)
{
    struct error error;
    struct stat info;
    struct file_stamp stamp;
    if (stat(guard->path, &info) != 0) {
        if (!guard->missing) {
            log_event(guard->logger, LOG_ERROR,
                      "%s: %s; the tokens that it had stay in force (revoke them instead)",
                      guard->path, strerror(errno));
        }
        guard->missing = true;
        return;
    }
    stamp = stamp_of(&info);
    if (!guard->missing && same_stamp(&stamp, &guard->stamp)) {
        return;
    }
    guard->missing = false;
    guard->stamp = stamp;
    if (read_stamped(guard->path, guard->next, &stamp, &error) != STATUS_OK) {
        log_event(guard->logger, LOG_ERROR, "%s; the tokens read before stay in force", error.text);
        return;
    }
    guard->stamp = stamp;
    struct token_list *old = guard->list;
    guard->list = guard->next;
    guard->next = old;
    log_event(guard->logger, LOG_INFO, "%s: %u tokens are in force", guard->path,
              guard->list->count);
}

static bool equal_hash(const char a[SHA256_HEX_BYTES], const char b[SHA256_HEX_BYTES])
{
    volatile uint8_t difference = 0;
    for (size_t i = 0; i < SHA256_HEX_BYTES; i++) {
        difference = (uint8_t)(difference | (a[i] ^ b[i]));
    }
    return difference == 0;
}

bool token_guard_admit(struct token_guard *guard, const char *authorization, struct token *out)
{
    static const char scheme[] = "Bearer ";
    char digest[SHA256_HEX_BYTES];
    bool found = false;
    size_t skip = sizeof scheme - 1;
    /* The scheme's name is case-insensitive (RFC 9110, section 11.1). */
    if (authorization == NULL || strncasecmp(authorization, scheme, skip) != 0) {
        return false;
    }
    while (authorization[skip] == ' ') {
        skip++;
    }
    sha256_hex(authorization + skip, strlen(authorization + skip), digest);
    int64_t now_s = clock_wall_ns(guard->clock) / NS_PER_S;
    pthread_mutex_lock(&guard->mutex);
    refresh(guard);
    for (uint32_t i = 0; i < guard->list->count; i++) {
        const struct token *token = &guard->list->tokens[i];
        if (equal_hash(token->sha256, digest) && is_live(token, now_s)) {
            *out = *token;
            found = true;
        }
    }
    pthread_mutex_unlock(&guard->mutex);
    return found;
}

bool token_guard_holds(struct token_guard *guard, const char *id)
{
    bool live = false;
    int64_t now_s = clock_wall_ns(guard->clock) / NS_PER_S;
    pthread_mutex_lock(&guard->mutex);
    refresh(guard);
    for (uint32_t i = 0; i < guard->list->count; i++) {
        const struct token *token = &guard->list->tokens[i];
        live |= strcmp(token->id, id) == 0 && is_live(token, now_s);
    }
    pthread_mutex_unlock(&guard->mutex);
    return live;
}
