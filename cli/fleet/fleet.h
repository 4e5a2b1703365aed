/*
 * Scripts that `swerve fleet` writes for a site's scheduler, which starts workers by them.
 *
 * Invariant: a script holds no secret, only the names of files that do, and every word of the
 * user's in it is quoted or has been refused.
 */
#ifndef SWERVE_CLI_FLEET_FLEET_H
#define SWERVE_CLI_FLEET_FLEET_H

#include "store/api/store.h"

#include <stdint.h>
#include <stdio.h>

struct slurm_script {
    const char *store_url; /* as workers name it */
    const char *pool;
    const char *swerve;    /* the program */
    const char *partition; /* NULL: the site's default */
    const char *time;      /* "HH:MM:SS"; NULL: the partition's limit */
    const char *log_dir;
    const char *token_file; /* NULL: none */
    const char *ca_file;    /* likewise */
    int64_t workers;
    int64_t cpus; /* of a worker */
    int64_t gpus; /* likewise; 0: none */
    int64_t grace_s;
};

/* Workers that a queue is worth: no more than its jobs, and so many that it takes an hour; of
 * unknown length 8. At least 1. */
int64_t fleet_workers_for(const struct store_demand *rows, uint32_t count, const char *pool);

/* USAGE names the option whose value cannot stand in a script. */
enum status slurm_check(const struct slurm_script *script, struct error *error);
/* The whole script. `rows`: what waits, for its comment. False: errno says why. */
bool slurm_write(const struct slurm_script *script, const struct store_demand *rows, uint32_t count,
                 FILE *stream);

#endif
