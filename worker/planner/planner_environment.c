/*
 * The environment of an exec planner. See planner_environment.h.
 */
#include "worker/planner/planner_environment.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ADDED_MAX = 4, ADDED_BYTES = 64 };

/* Names that programs need to find themselves, and settings of numerical libraries: each by itself,
 * because credentials begin as settings do (NVIDIA_API_KEY). worker/FLEET.md lists them too. */
static const char *const listed[] = {
    "PATH",
    "LD_LIBRARY_PATH",
    "HOME",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONHASHSEED",
    "PYTHONHOME",
    "PYTHONIOENCODING",
    "PYTHONNOUSERSITE",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONSAFEPATH",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "PYTHONWARNINGS",
    "PYENV_VERSION",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "OMP_NUM_THREADS",
    "OMP_DYNAMIC",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_STACKSIZE",
    "OMP_WAIT_POLICY",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
    "MKL_CBWR",
    "MKL_DYNAMIC",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_NUM_THREADS",
    "MKL_THREADING_LAYER",
    "NUMEXPR_MAX_THREADS",
    "NUMEXPR_NUM_THREADS",
    "CUDA_CACHE_DISABLE",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_CUDA_ARCH_LIST",
};

/* Whether an entry "NAME=value" of the environment has this name. */
static bool is_named(const char *entry, const char *name)
{
    size_t bytes = strlen(name);
    return strncmp(entry, name, bytes) == 0 && entry[bytes] == '=';
}

static bool begins(const char *entry, const char *begin)
{
    return strncmp(entry, begin, strlen(begin)) == 0;
}

static bool is_listed(const struct planner_confinement *confinement, const char *entry)
{
    for (size_t i = 0; i < COUNT_OF(listed); i++) {
        if (is_named(entry, listed[i])) {
            return true;
        }
    }
    for (uint32_t i = 0; i < confinement->environment_count; i++) {
        if (is_named(entry, confinement->environment[i])) {
            return true;
        }
    }
    return false;
}

static bool passes(const struct planner_confinement *confinement, const char *entry)
{
    bool sandbox = confinement != NULL && confinement->sandbox;
    if (begins(entry, "SWERVE_TOKEN") || begins(entry, "SWERVE_SHM_") ||
        (sandbox && (is_named(entry, "HOME") || is_named(entry, "TMPDIR")))) {
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
    TRY(memory_check(list, error, "planner environment: out of memory"));
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
