/*
 * Files of planners that a store keeps with a suite, so that an outcome can be driven again by the
 * code that drove it. A pack is one artifact, named by what is in it; a label of the suite says of
 * which planner it is. What comes out of a store is run in the sandbox alone.
 */
#ifndef SWERVE_CLI_KEPT_KEPT_H
#define SWERVE_CLI_KEPT_KEPT_H

#include "store/api/store.h"
#include "worker/planner/planner.h"

enum { KEPT_BYTES_MAX = 8 << 20, KEPT_FILES_MAX = 1000, KEPT_PLANNERS_MAX = 2 * LIMIT_PLANNERS };

/* Packs that are to be kept, one a planner. */
struct kept_list {
    uint32_t count;
    struct kept {
        char planner_hash[SHA256_HEX_BYTES];
        char *data; /* owned; NULL: a planner without files, built in or behind a service */
        size_t bytes;
    } list[KEPT_PLANNERS_MAX];
};

/* Whether a store may keep files: on a shared one others could read them. USAGE. */
enum status kept_check_store(const char *store_url, struct error *error);

/* Packs, of each planner of these jobs, the files that its command line or plugin names, and of a
 * Python file those beside and below it, all within this folder, and starts the planner from a copy
 * to see that it is the same one. BAD_INPUT: it names no file here, or the copy is another planner;
 * LIMIT: files beyond KEPT_BYTES_MAX or KEPT_FILES_MAX. To be called before there are threads;
 * kept_finish after failures too. */
enum status kept_pack(const struct job_spec *specs, uint32_t count,
                      const struct planner_confinement *confinement, struct kept_list *out,
                      struct error *error);
void kept_finish(struct kept_list *kept);

/* Keeps the packs with a suite. */
enum status kept_send(const struct kept_list *kept, struct store *store, const char *suite_id,
                      struct error *error);

/* Unpacks the files of the planner with that hash into a new folder, the caller's to remove.
 * *found false: the store has none. BAD_INPUT: the pack is damaged. */
enum status kept_unpack(struct store *store, const char *planner_hash,
                        char folder[LIMIT_PATH_BYTES], bool *found, struct error *error);

/* Removes a folder that kept_unpack made, with what is in it; "" is none. */
void kept_remove(const char *folder);

/* Makes the folder the one that the process stands in. *back is for kept_leave, which follows after
 * failures too. IO. */
enum status kept_enter(const char *folder, int *back, struct error *error);

/* Goes back, and returns `status`, or IO where that was OK and the way is gone. back -1: nothing
 * was entered. */
enum status kept_leave(int back, enum status status, struct error *error);

#endif
