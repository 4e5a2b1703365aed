/*
 * The environment of an exec planner. See planner_environment.h.
 */
#include "worker/planner_environment.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ADDED_MAX = 4, ADDED_BYTES = 64 };

/* Names that programs need to find themselves, and settings of numerical libraries. A final "*"
 * stands for any ending. */
static const char *const listed[] = {
    "PATH",  "LANG",     "LANGUAGE",        "LC_*",        "TZ",           "LD_LIBRARY_PATH",
    "USER",  "LOGNAME",  "PYTHON*",         "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_*",
    "OMP_*", "NVIDIA_*", "OPENBLAS_*",      "MKL_*",       "NUMEXPR_*",    "TORCH_*",
    "HOME",  "TMPDIR",   "SWERVE_PLANNER_*"};

static bool matches(const char *entry, const char *name)
{
    size_t bytes = strlen(name);
    if (bytes > 0 && name[bytes - 1] == '*') {
        return strncmp(entry, name, bytes - 1) == 0;
    }
    return strncmp(entry, name, bytes) == 0 && entry[bytes] == '=';
}

static bool is_listed(const struct planner_confinement *confinement, const char *entry)
{
    for (size_t i = 0; i < COUNT_OF(listed); i++) {
        if (matches(entry, listed[i])) {
            return true;
        }
    }
    for (uint32_t i = 0; i < confinement->environment_count; i++) {
        /* Names from the command line stand for themselves. */
        size_t bytes = strlen(confinement->environment[i]);
        if (strncmp(entry, confinement->environment[i], bytes) == 0 && entry[bytes] == '=') {
            return true;
        }
    }
    return false;
}

static bool passes(const struct planner_confinement *confinement, const char *entry)
{
    bool sandbox = confinement != NULL && confinement->sandbox;
    if (matches(entry, "SWERVE_TOKEN*") || matches(entry, "SWERVE_SHM_*") ||
        (sandbox && (matches(entry, "HOME") || matches(entry, "TMPDIR")))) {
        return false;
    }
    return confinement == NULL || !confinement->environment_listed || is_listed(confinement, entry);
}

enum status planner_environment_make(const struct planner_confinement *confinement, int shm_fd,
                                     size_t shm_bytes, char ***out, struct error *error)
{
    size_t count = 0;
    size_t kept = 0;
    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    char **list = malloc((count + ADDED_MAX + 1) * sizeof *list + ADDED_MAX * ADDED_BYTES);
    if (list == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "planner environment: out of memory");
    }
    char *texts = (char *)(list + count + ADDED_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        if (passes(confinement, environ[i])) {
            list[kept++] = environ[i];
        }
    }
    snprintf(texts, ADDED_BYTES, "SWERVE_SHM_FD=%d", shm_fd);
    snprintf(texts + ADDED_BYTES, ADDED_BYTES, "SWERVE_SHM_BYTES=%zu", shm_bytes);
    snprintf(texts + 2 * ADDED_BYTES, ADDED_BYTES, "HOME=/tmp");
    snprintf(texts + 3 * ADDED_BYTES, ADDED_BYTES, "TMPDIR=/tmp");
    bool sandbox = confinement != NULL && confinement->sandbox;
    for (size_t i = 0; i < (sandbox ? ADDED_MAX : 2); i++) {
        list[kept++] = texts + i * ADDED_BYTES;
    }
    list[kept] = NULL;
    *out = list;
    return STATUS_OK;
}
