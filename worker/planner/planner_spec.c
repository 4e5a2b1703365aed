/*
 * Planner specs: parsing, the check before submission, and the identity that results are filed
 * under.
 *
 * Identity is by content: a result may be reused only if the planner that would produce it again is
 * the same one, so files are hashed, not named. Each part is preceded by its kind and length, so no
 * two different specs can feed the hash the same bytes.
 */
#include "worker/planner/planner_spec.h"

#include "worker/egodriver/egodriver.h"
#include "worker/planner/builtin/planner_builtin.h"
#include "worker/planner/planner.h"

#include "base/check.h"
#include "base/file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of all files that a planner names: whoever submits chooses the names, and hashing has no
 * deadline. */
#define PLANNER_FILES_BYTES_MAX (UINT64_C(16) << 30)

#define GUARDED "guarded+"
#define SEEN "seen+"

/* The text behind a prefix, or the text where it has another beginning. */
static const char *behind(const char *text, const char *prefix)
{
    size_t bytes = strlen(prefix);
    return strncmp(text, prefix, bytes) == 0 ? text + bytes : text;
}

const char *planner_spec_bare(const char *text)
{
    return behind(behind(text, GUARDED), SEEN);
}

bool planner_spec_guarded(const char *text)
{
    return behind(text, GUARDED) != text;
}

bool planner_spec_seen(const char *text)
{
    const char *inner = behind(text, GUARDED);
    return behind(inner, SEEN) != inner;
}

bool planner_spec_is_apart(const char *text)
{
    const char *bare = planner_spec_bare(text);
    return behind(bare, "exec:") != bare || behind(bare, "egodriver:") != bare;
}

enum status planner_spec_parse(const char *text, struct planner_spec *spec, struct error *error)
{
    static const struct {
        const char *prefix;
        const char *target; /* for messages */
    } kinds[PLANNER_SPEC_COUNT] = {
        [PLANNER_SPEC_BUILTIN] = {"builtin:", "a name"},
        [PLANNER_SPEC_PLUGIN] = {"plugin:", "a file"},
        [PLANNER_SPEC_EXEC] = {"exec:", "a command line"},
        [PLANNER_SPEC_EGODRIVER] = {"egodriver:", "a name"},
    };
    size_t bytes = strlen(text);
    if (bytes >= LIMIT_SPEC_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "planner spec: %zu bytes, at most %d are allowed (LIMIT_SPEC_BYTES)",
                         bytes, LIMIT_SPEC_BYTES - 1);
    }
    const char *bare = planner_spec_bare(text);
    for (int kind = 0; kind < PLANNER_SPEC_COUNT; kind++) {
        const char *prefix = kinds[kind].prefix;
        size_t prefix_bytes = strlen(prefix);
        if (strncmp(bare, prefix, prefix_bytes) != 0) {
            continue;
        }
        const char *target = bare + prefix_bytes;
        const char *mark = kind == PLANNER_SPEC_EXEC ? NULL : strchr(target, '?');
        size_t target_bytes = mark != NULL ? (size_t)(mark - target) : strlen(target);
        if (target_bytes == 0) {
            return error_set(error, STATUS_BAD_INPUT,
                             "planner spec \"%s\": expected %s after \"%s\"", text,
                             kinds[kind].target, prefix);
        }
        memset(spec, 0, sizeof *spec);
        spec->kind = (enum planner_spec_kind)kind;
        memcpy(spec->target, target, target_bytes);
        if (mark != NULL) {
            memcpy(spec->config, mark + 1, strlen(mark + 1));
        }
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "planner spec \"%s\": expected builtin:NAME, plugin:FILE.so, exec:COMMAND or "
                     "egodriver:NAME",
                     text);
}

enum status planner_argv_parse(const char *command, struct planner_argv *out, struct error *error)
{
    size_t bytes = strlen(command);
    if (bytes >= sizeof out->text) {
        return error_set(error, STATUS_LIMIT, "planner command line: %zu bytes, at most %zu", bytes,
                         sizeof out->text - 1);
    }
    /* Unquoting never lengthens, and each word's terminator takes the place of a blank or the end.
     */
    char *to = out->text;
    const char *from = command;
    out->count = 0;
    for (;;) {
        while (isspace((unsigned char)*from)) {
            from++;
        }
        if (*from == '\0') {
            break;
        }
        if (out->count == PLANNER_ARGV_MAX) {
            return error_set(error, STATUS_LIMIT, "planner command line: more than %d words",
                             PLANNER_ARGV_MAX);
        }
        out->argv[out->count++] = to;
        char quote = '\0';
        for (; *from != '\0' && (quote != '\0' || !isspace((unsigned char)*from)); from++) {
            if (quote == '\0' && (*from == '\'' || *from == '"')) {
                quote = *from;
            } else if (quote != '\0' && *from == quote) {
                quote = '\0';
            } else if (*from == '\\' && quote == '\0') {
                if (from[1] == '\0') {
                    return error_set(error, STATUS_BAD_INPUT,
                                     "planner command line \"%s\": ends in a backslash", command);
                }
                *to++ = *++from;
            } else if (*from == '\\' && quote == '"' && (from[1] == '"' || from[1] == '\\')) {
                *to++ = *++from;
            } else {
                *to++ = *from;
            }
        }
        if (quote != '\0') {
            return error_set(error, STATUS_BAD_INPUT,
                             "planner command line \"%s\": the %c quote is never closed", command,
                             quote);
        }
        if (*from != '\0') {
            from++;
        }
        *to++ = '\0';
    }
    out->argv[out->count] = NULL;
    if (out->count == 0 || out->argv[0][0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT, "planner command line: names no program");
    }
    return STATUS_OK;
}

static bool is_regular(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

enum status planner_program_find(const char *program, char *path, struct error *error)
{
    if (strchr(program, '/') != NULL) {
        if (strlen(program) >= LIMIT_PATH_BYTES || !is_regular(program)) {
            return error_set(error, STATUS_NOT_FOUND, "planner program %s: no such file", program);
        }
        if (access(program, X_OK) != 0) {
            return error_set(error, STATUS_NOT_FOUND, "planner program %s: not executable",
                             program);
        }
        memcpy(path, program, strlen(program) + 1);
        return STATUS_OK;
    }
    const char *search = getenv("PATH");
    search = search != NULL ? search : "/usr/local/bin:/usr/bin:/bin";
    size_t program_bytes = strlen(program);
    for (const char *at = search; *at != '\0';) {
        size_t directory_bytes = strcspn(at, ":");
        if (directory_bytes > 0 && directory_bytes + program_bytes + 2 <= LIMIT_PATH_BYTES) {
            char candidate[LIMIT_PATH_BYTES];
            memcpy(candidate, at, directory_bytes);
            candidate[directory_bytes] = '/';
            memcpy(candidate + directory_bytes + 1, program, program_bytes + 1);
            if (is_regular(candidate) && access(candidate, X_OK) == 0) {
                memcpy(path, candidate, directory_bytes + program_bytes + 2);
                return STATUS_OK;
            }
        }
        at += directory_bytes + (at[directory_bytes] == ':');
    }
    return error_set(error, STATUS_NOT_FOUND, "planner program %s: not found in PATH", program);
}

/* A builtin's config is checked by opening it: that costs nothing and asks the planner itself. */
static enum status builtin_check(const struct planner_spec *spec, struct error *error)
{
    const struct swerve_planner_ops *ops = planner_builtin_find(spec->target);
    if (ops == NULL) {
        char names[256];
        planner_builtin_names(names, sizeof names);
        return error_set(error, STATUS_NOT_FOUND,
                         "planner spec builtin:%s: no such planner; there are %s", spec->target,
                         names);
    }
    void *instance = NULL;
    char text[256] = "";
    if (ops->open(&instance, spec->config, 1, text, sizeof text) != 0) {
        return error_set(error, STATUS_BAD_INPUT, "planner spec builtin:%s?%s: %s", spec->target,
                         spec->config, text);
    }
    ops->close(instance);
    return STATUS_OK;
}

enum status planner_spec_check(const char *text, struct error *error)
{
    struct planner_spec spec;
    TRY(planner_spec_parse(text, &spec, error));
    if (spec.kind == PLANNER_SPEC_BUILTIN) {
        return builtin_check(&spec, error);
    }
    if (spec.kind == PLANNER_SPEC_PLUGIN) {
        if (!is_regular(spec.target) || access(spec.target, R_OK) != 0) {
            return error_set(error, STATUS_NOT_FOUND,
                             "planner spec plugin:%s: cannot read the file", spec.target);
        }
        return STATUS_OK;
    }
    if (spec.kind == PLANNER_SPEC_EGODRIVER) {
        return egodriver_check(spec.target, spec.config, error);
    }
    struct planner_argv words;
    char path[LIMIT_PATH_BYTES];
    enum status status = planner_argv_parse(spec.target, &words, error);
    return status != STATUS_OK ? status : planner_program_find(words.argv[0], path, error);
}

/* ---- identity ---- */

static void hash_part(struct sha256 *hash, const char *kind, const void *data, size_t bytes)
{
    uint64_t length = bytes;
    sha256_update(hash, kind, strlen(kind) + 1);
    sha256_update(hash, &length, sizeof length);
    sha256_update(hash, data, bytes);
}

/* As many bytes as the file has when it is opened: what grows while it is read, or says that it has
 * none and gives some (files of /proc), comes to an end. *left_bytes: what may still be read. */
static enum status hash_file(struct sha256 *hash, const char *path, uint64_t *left_bytes,
                             struct error *error)
{
    size_t bytes = 0;
    int fd = -1;
    if (file_open(path, &fd, &bytes, error) != STATUS_OK) {
        return error_prefix(error, "planner file");
    }
    if (bytes > *left_bytes) {
        close(fd);
        return error_set(error, STATUS_LIMIT,
                         "planner file %s: has %zu bytes; a planner may name files of %llu GiB in "
                         "all",
                         path, bytes, (unsigned long long)(PLANNER_FILES_BYTES_MAX >> 30));
    }
    *left_bytes -= bytes;
    struct sha256 content;
    sha256_init(&content);
    uint8_t block[1 << 15];
    ssize_t got;
    while (bytes > 0 && (got = read(fd, block, bytes < sizeof block ? bytes : sizeof block)) != 0) {
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            int code = errno;
            close(fd);
            return error_set(error, STATUS_IO, "planner file %s: %s", path, strerror(code));
        }
        sha256_update(&content, block, (size_t)got);
        bytes -= (size_t)got;
    }
    close(fd);
    uint8_t digest[SHA256_BYTES];
    sha256_final(&content, digest);
    hash_part(hash, "file", digest, sizeof digest);
    return STATUS_OK;
}

static enum status hash_command(struct sha256 *hash, const char *command, struct error *error)
{
    struct planner_argv words;
    char path[LIMIT_PATH_BYTES];
    uint64_t left_bytes = PLANNER_FILES_BYTES_MAX;
    TRY(planner_argv_parse(command, &words, error));
    TRY(planner_program_find(words.argv[0], path, error));
    TRY(hash_file(hash, path, &left_bytes, error));
    for (uint32_t i = 0; i < words.count; i++) {
        hash_part(hash, "word", words.argv[i], strlen(words.argv[i]));
        if (i > 0 && is_regular(words.argv[i])) {
            TRY(hash_file(hash, words.argv[i], &left_bytes, error));
        }
    }
    return STATUS_OK;
}

enum status planner_identity(const char *text, char hex[SHA256_HEX_BYTES], struct error *error)
{
    struct planner_spec spec;
    TRY(planner_spec_check(text, error));
    TRY(planner_spec_parse(text, &spec, error));
    enum status status = STATUS_OK;
    uint64_t left_bytes = PLANNER_FILES_BYTES_MAX;
    struct sha256 hash;
    sha256_init(&hash);
    switch (spec.kind) {
    case PLANNER_SPEC_BUILTIN:
        hash_part(&hash, "builtin", spec.target, strlen(spec.target));
        hash_part(&hash, "version", PLANNER_BUILTIN_VERSION, strlen(PLANNER_BUILTIN_VERSION));
        break;
    case PLANNER_SPEC_PLUGIN:
        hash_part(&hash, "plugin", "", 0);
        status = hash_file(&hash, spec.target, &left_bytes, error);
        break;
    case PLANNER_SPEC_EXEC:
        hash_part(&hash, "exec", "", 0);
        status = hash_command(&hash, spec.target, error);
        break;
    case PLANNER_SPEC_EGODRIVER: /* who serves it is asked when it is opened */
        hash_part(&hash, "egodriver", spec.target, strlen(spec.target));
        break;
    case PLANNER_SPEC_COUNT:
        CHECK(false);
    }
    if (status != STATUS_OK) {
        return status;
    }
    hash_part(&hash, "config", spec.config, strlen(spec.config));
    if (planner_spec_guarded(text)) {
        hash_part(&hash, "guardian", "act", strlen("act"));
    }
    if (planner_spec_seen(text)) {
        hash_part(&hash, "objects", "seen", strlen("seen"));
    }
    uint8_t digest[SHA256_BYTES];
    sha256_final(&hash, digest);
    sha256_to_hex(digest, hex);
    return STATUS_OK;
}

void planner_identity_extend(char hex[SHA256_HEX_BYTES], const char *loaded)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    if (loaded[0] == '\0') {
        return;
    }
    sha256_init(&hash);
    hash_part(&hash, "identity", hex, strlen(hex));
    hash_part(&hash, "loaded", loaded, strlen(loaded));
    sha256_final(&hash, digest);
    sha256_to_hex(digest, hex);
}
