/*
 * Artifacts against the rows that refer to them: each file is unpacked and hashed, each reference
 * is looked for among the files. References are taken from the database first, so an artifact of a
 * worker that is at work meanwhile is at most an orphan, which is no fault.
 */
#include "store/api/store_path.h"
#include "store/artifacts/artifacts_internal.h"
#include "store/check/check_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int compare_references(const void *a, const void *b)
{
    const struct check_reference *left = a;
    const struct check_reference *right = b;
    return memcmp(left->hash, right->hash, sizeof left->hash);
}

/* One of each hash stays, in ascending order. */
static void sort(struct check_references *references)
{
    size_t kept = 0;

    if (references->count == 0) {
        return;
    }
    qsort(references->rows, references->count, sizeof *references->rows, compare_references);
    for (size_t i = 1; i < references->count; i++) {
        if (compare_references(&references->rows[kept], &references->rows[i]) != 0) {
            references->rows[++kept] = references->rows[i];
        }
    }
    references->count = kept + 1;
}

static struct check_reference reference_of(const char *hash, int64_t outcome)
{
    struct check_reference row = {.outcome = outcome};

    artifacts_hash_bytes(hash, row.hash);
    return row;
}

static enum status add(struct check *check, struct check_references *references, const char *hash,
                       int64_t outcome, struct error *error)
{
    struct check_reference row = reference_of(hash, outcome);

    if (references->count > 0 &&
        compare_references(&references->rows[references->count - 1], &row) == 0) {
        return STATUS_OK; /* the usual case: a job's outcomes share one */
    }
    if (references->count == references->capacity) {
        sort(references);
    }
    if (references->count * 2 >= references->capacity) {
        size_t capacity = references->capacity == 0 ? 1024 : references->capacity * 2;
        struct check_reference *grown =
            realloc(references->rows, capacity * sizeof *references->rows);
        TRY(memory_check(grown, error, "%s: out of memory", check->path));
        references->rows = grown;
        references->capacity = capacity;
    }
    references->rows[references->count++] = row;
    return STATUS_OK;
}

enum status check_references_read(struct check *check, struct check_references *out,
                                  struct error *error)
{
    struct error why;
    enum status status = STATUS_OK;
    struct query query = query_begin(check->db, STATEMENT_CHECK_ARTIFACTS);

    while (status == STATUS_OK && query_row(&query)) {
        char hash[SHA256_HEX_BYTES];
        char place[64];
        int64_t outcome = query_column_int(&query, 1);
        query_column_text(&query, 0, hash, sizeof hash);
        bool overflow = query_column_overflow(&query);
        if (overflow || artifacts_check_hash(hash, &why) != STATUS_OK) {
            snprintf(place, sizeof place, outcome != 0 ? "outcome %" PRId64 : "an attempt",
                     outcome);
            check_fault(check, "artifact", place,
                        "names an artifact by what is no artifact's name: \"%.64s\"",
                        overflow ? "a longer text" : hash);
            continue;
        }
        status = add(check, out, hash, outcome, error);
    }
    enum status ended = query_end(&query, &why);
    sort(out);
    return status != STATUS_OK
               ? status
               : check_statement(check, "references to artifacts", ended, &why, error);
}

void check_references_finish(struct check_references *references)
{
    free(references->rows);
    references->rows = NULL;
}

struct check_reference *check_references_find(const struct check_references *references,
                                              const char *hash)
{
    const struct check_reference key = reference_of(hash, 0);

    return references->count == 0 ? NULL
                                  : bsearch(&key, references->rows, references->count,
                                            sizeof *references->rows, compare_references);
}

static void name_place(const char *hash, const struct check_reference *reference, char *place,
                       size_t bytes)
{
    if (reference == NULL) {
        snprintf(place, bytes, "artifact %.16s (nothing refers to it)", hash);
    } else if (reference->outcome != 0) {
        snprintf(place, bytes, "artifact %.16s of outcome %" PRId64, hash, reference->outcome);
    } else {
        snprintf(place, bytes, "artifact %.16s of an attempt", hash);
    }
}

/* One file: is it what its name says, and who wants it? */
static enum status check_file(struct check *check, const struct artifacts *artifacts,
                              struct check_references *references, const char *hash,
                              const struct stat *info, int64_t begun_s, struct error *error)
{
    char place[128];
    struct error why;
    struct artifact_reader *reader = NULL;
    bool packed = false;
    size_t bytes = 0;
    struct check_reference *reference = check_references_find(references, hash);

    if (reference != NULL) {
        reference->met = true;
    } else if ((int64_t)info->st_mtime < begun_s) {
        check->summary->orphans++;
    }
    check->summary->artifacts++;
    check->summary->artifact_bytes += info->st_size;
    name_place(hash, reference, place, sizeof place);
    enum status status = artifact_reader_open(artifacts, hash, &packed, &reader, &bytes, &why);
    if (status == STATUS_OK) {
        artifact_reader_close(reader);
        return STATUS_OK;
    }
    if (status == STATUS_NO_MEMORY) {
        *error = why;
        return status;
    }
    if (status != STATUS_NOT_FOUND) { /* a file that went away meanwhile is missed below */
        check_fault(check, "artifact", place, "%s", why.text);
    }
    return STATUS_OK;
}

/* Whether it stands for an artifact that retention let go: asked for again below, by reference. */
static bool gone(const char *name, const char *hash)
{
    struct error why;
    return strcmp(name + strlen(hash), ARTIFACTS_GONE) == 0 &&
           artifacts_check_hash(hash, &why) == STATUS_OK;
}

static enum status check_directory(struct check *check, const struct artifacts *artifacts,
                                   struct check_references *references, unsigned first,
                                   int64_t begun_s, struct error *error)
{
    char path[ARTIFACT_NAME_BYTES];
    char digits[4];
    enum status status = STATUS_OK;

    snprintf(digits, sizeof digits, "%02x", first & 0xff);
    snprintf(path, sizeof path, "%s/%s", artifacts->path, digits);
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return errno == ENOENT ? STATUS_OK : artifacts_io_error(error, "read the directory", path);
    }
    for (struct dirent *entry = readdir(directory); entry != NULL && status == STATUS_OK;
         entry = readdir(directory)) {
        char hash[SHA256_HEX_BYTES];
        struct error why;
        struct stat info;
        size_t bytes = strlen(entry->d_name);
        snprintf(hash, sizeof hash, "%.64s", entry->d_name);
        if (entry->d_name[0] == '.' || gone(entry->d_name, hash)) {
            continue;
        }
        if (bytes != SHA256_HEX_BYTES - 1 + 4 || strcmp(entry->d_name + 64, ".zst") != 0 ||
            artifacts_check_hash(hash, &why) != STATUS_OK || strncmp(hash, digits, 2) != 0 ||
            fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode)) {
            check_note(check, "foreign file", path, "%s is no artifact", entry->d_name);
            continue;
        }
        status = check_file(check, artifacts, references, hash, &info, begun_s, error);
    }
    closedir(directory);
    return status;
}

enum status check_artifacts(struct check *check, struct check_references *references,
                            int64_t begun_s, struct error *error)
{
    char real[LIMIT_PATH_BYTES];
    char place[128];
    enum status status = STATUS_OK;
    struct artifacts *artifacts = calloc(1, sizeof *artifacts);

    TRY(memory_check(artifacts, error, "%s: out of memory", check->path));
    /* Not artifacts_open, which makes directories. */
    status = store_path_resolve(check->beside, real, error);
    int bytes = snprintf(artifacts->path, sizeof artifacts->path, "%s.artifacts",
                         status == STATUS_OK ? real : "");
    if (status == STATUS_OK && (bytes < 0 || (size_t)bytes >= sizeof artifacts->path)) {
        status = error_set(error, STATUS_LIMIT, "%s: the path is too long", check->path);
    }
    for (unsigned first = 0; first < 256 && status == STATUS_OK; first++) {
        status = check_directory(check, artifacts, references, first, begun_s, error);
    }
    for (size_t i = 0; i < references->count && status == STATUS_OK; i++) {
        if (!references->rows[i].met) {
            char hash[SHA256_HEX_BYTES];
            sha256_to_hex(references->rows[i].hash, hash);
            name_place(hash, &references->rows[i], place, sizeof place);
            char file[ARTIFACT_NAME_BYTES];
            int64_t at_s = 0;
            artifacts_file_path(artifacts, hash, file);
            if (artifacts_let_go(file, &at_s)) {
                check->summary->let_go++;
                continue;
            }
            check_fault(check, "artifact", place, "is not there: %.2s/%s.zst", hash, hash);
        }
    }
    if (status == STATUS_OK && check->summary->orphans > 0) {
        check_note(check, "orphan", artifacts->path,
                   "nothing refers to %" PRId64 " artifacts: workers that were killed between "
                   "uploading and completing leave such; they do no harm, and `swerve store gc` "
                   "takes them",
                   check->summary->orphans);
    }
    if (status == STATUS_OK && check->summary->let_go > 0) {
        check_note(check, "let go", artifacts->path,
                   "%" PRId64 " artifacts that rows refer to were let go by `swerve store gc "
                   "--policy`",
                   check->summary->let_go);
    }
    free(artifacts);
    return status;
}
