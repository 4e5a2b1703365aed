/*
 * Packing of planners' files, before a suite is driven. Each planner is started from a copy of what
 * was packed and drives a little, as a replay would: what needs more than that is refused.
 */
#ifndef SWERVE_CLI_KEPT_KEPT_PACK_H
#define SWERVE_CLI_KEPT_KEPT_PACK_H

#include "cli/kept/kept.h"
#include "worker/submission/submission.h"

enum { KEPT_TRIAL_TICKS = 10 };

/* Packs that are to be kept, one a planner. */
struct kept_list {
    uint32_t count;
    struct kept {
        char planner_hash[SHA256_HEX_BYTES];
        char *data; /* owned; NULL: a planner without files, built in or behind a service */
        size_t bytes;
    } list[KEPT_PLANNERS_MAX];
};

/* Whether a store may keep files: in PostgreSQL others could read them. USAGE. */
enum status kept_check_store(const char *store_url, struct error *error);

/* Whether the server of an open store takes them: one that does not says so, before a suite is
 * sent. */
enum status kept_ask(struct store *store, struct error *error);

/* Packs, of each planner of these jobs, the files that its command line or plugin names, and of a
 * Python file those beside and below it, all within this folder. A copy of them drives the first
 * KEPT_TRIAL_TICKS of a scenario of its own in the object world, in the sandbox where there is one.
 * BAD_INPUT: it names no file here, the copy is another planner, or fails where the files
 * themselves do not; LIMIT: files beyond KEPT_BYTES_MAX or KEPT_FILES_MAX. To be called before
 * there are threads; kept_finish after failures too. */
enum status kept_pack(const struct submission *submission,
                      const struct planner_confinement *confinement, struct kept_list *out,
                      struct error *error);
void kept_finish(struct kept_list *kept);

/* Keeps the packs with a suite. */
enum status kept_send(const struct kept_list *kept, struct store *store, const char *suite_id,
                      struct error *error);

#endif
