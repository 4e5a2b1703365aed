/*
 * Confinement of an importer. See import_confine.h. Rules hold for what a name leads to when it is
 * opened here, so an output that is a link may be written where it leads.
 */
#include "scenarios/import/program/import_confine.h"

#include "base/program/syscall_filter.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_MAKE_REG)
#define OF_FILES \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)

/* Rights that this version of Landlock takes away unless a rule gives them; 0: there is none. */
static uint64_t rights_known(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1; /* all of the first version */
    rights |= version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0;
    rights |= version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0;
    return version >= 1 ? rights : 0;
}

/* Gives rights to what is at the path, and to all below a folder. What is not there needs none, and
 * a pipe is not kept from anybody. */
static void allow(int rules, const char *path, uint64_t rights)
{
    struct stat about;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &about) == 0) {
        const struct landlock_path_beneath_attr rule = {
            .allowed_access = S_ISDIR(about.st_mode) ? rights : rights & OF_FILES,
            .parent_fd = fd,
        };
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void allow_files(int rules, const struct import_files *files, uint64_t known)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(files->output, '/');
    int bytes = snprintf(folder, sizeof folder, "%.*s",
                         slash != NULL ? (int)(slash - files->output) + 1 : 1,
                         slash != NULL ? files->output : ".");
    if (bytes > 0 && (size_t)bytes < sizeof folder) {
        allow(rules, folder, WRITE & known);
    }
    allow(rules, files->output, WRITE & known);
    for (uint32_t i = 0; i < files->input_count && !files->inputs_name_others; i++) {
        allow(rules, files->inputs[i], READ);
    }
    if (files->inputs_name_others) {
        allow(rules, "/", READ);
    }
}

static void confine_files(const struct import_files *files)
{
    const uint64_t known = rights_known();
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = known};
    long rules = known == 0 ? -1
                            : syscall(SYS_landlock_create_ruleset, &attributes,
                                      sizeof attributes.handled_access_fs, 0);
    if (rules < 0) {
        return;
    }
    allow_files((int)rules, files, known);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
        syscall(SYS_landlock_restrict_self, (int)rules, 0);
    }
    close((int)rules);
}

void import_confine(const struct import_files *files)
{
    if (SANITIZED) {
        return;
    }
    confine_files(files);
    if (syscall_filter_enter_alone() != 0) {
        text_print(stderr,
                   "note: the importers go on with their user's rights: there is no filter "
                   "of system calls here: %s\n",
                   strerror(errno));
    }
}
