/*
 * A batch script for Slurm: an array job of workers, each with its share of a machine.
 *
 * Slurm says beforehand that a time limit comes (--signal, USR1): the worker then hands back what
 * it has, and the element queues itself again. Preemption, and a person, send TERM: the worker does
 * the same, and Slurm alone decides whether the element comes back.
 */
#include "cli/fleet/fleet.h"

#include "base/units.h"
#include "schemas/outcome.h"

#include <string.h>

enum { WORKERS_UNKNOWN = 8, HOUR_S = 3600, WORKERS_MAX = 100000 };

int64_t fleet_workers_for(const struct store_demand *rows, uint32_t count, const char *pool)
{
    int64_t jobs = 0;
    double device_s = 0.0;
    bool known = true;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(rows[i].pool, pool) == 0) {
            jobs += rows[i].jobs_queued;
            known = known && (rows[i].jobs_queued == 0 || rows[i].tick_ns > 0);
            device_s += (double)rows[i].ticks_queued * (double)rows[i].tick_ns / (double)NS_PER_S;
        }
    }
    double hours = device_s / HOUR_S;
    int64_t wanted =
        known ? (hours < WORKERS_MAX ? (int64_t)hours + 1 : WORKERS_MAX) : WORKERS_UNKNOWN;
    wanted = wanted < jobs ? wanted : jobs;
    return wanted > 0 ? wanted : 1;
}

/* A word of a #SBATCH line, which no quotes protect. */
static bool is_word(const char *text)
{
    return text[0] != '\0' && text[0] != '-' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/+@") ==
               strlen(text);
}

static bool has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

enum status slurm_check(const struct slurm_script *script, struct error *error)
{
    const struct {
        const char *option;
        const char *text;
    } words[] = {{"--partition", script->partition},
                 {"--time", script->time},
                 {"--log-dir", script->log_dir}};
    const struct {
        const char *option;
        const char *text;
    } texts[] = {{"--store", script->store_url},
                 {"--pool", script->pool},
                 {"--command", script->swerve},
                 {"SWERVE_TOKEN_FILE", script->token_file},
                 {"SWERVE_CA_FILE", script->ca_file}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].text != NULL && !is_word(words[i].text)) {
            return error_set(error, STATUS_USAGE,
                             "%s: expected letters, digits and _-.,:/+@ alone, found \"%.80s\"",
                             words[i].option, words[i].text);
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].text != NULL && (texts[i].text[0] == '\0' || has_control(texts[i].text))) {
            return error_set(error, STATUS_USAGE,
                             "%s: expected a text in one line, found \"%.80s\"", texts[i].option,
                             texts[i].text);
        }
    }
    return STATUS_OK;
}

/* NAME='text', as a shell reads it. */
static void put_variable(FILE *file, const char *name, const char *text)
{
    fprintf(file, "%s='", name);
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", file);
        } else {
            fputc(*text, file);
        }
    }
    fputs("'\n", file);
}

static void put_head(const struct slurm_script *script, FILE *file)
{
    fprintf(file,
            "#!/bin/bash\n"
            "#SBATCH --job-name=swerve-%s\n"
            "#SBATCH --array=1-%lld\n"
            "#SBATCH --ntasks=1\n"
            "#SBATCH --cpus-per-task=%lld\n",
            is_word(script->pool) ? script->pool : "workers", (long long)script->workers,
            (long long)script->cpus);
    if (script->gpus > 0) {
        fprintf(file, "#SBATCH --gpus-per-task=%lld\n", (long long)script->gpus);
    }
    if (script->partition != NULL) {
        fprintf(file, "#SBATCH --partition=%s\n", script->partition);
    }
    if (script->time != NULL) {
        fprintf(file, "#SBATCH --time=%s\n", script->time);
    }
    fprintf(file,
            "#SBATCH --signal=B:USR1@%lld\n"
            "#SBATCH --requeue\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --output=%s/swerve-%%A_%%a.log\n",
            (long long)(script->grace_s + 30), script->log_dir);
}

static void put_facts(const struct slurm_script *script, const struct store_demand *rows,
                      uint32_t count, FILE *file)
{
    fputs("#\n# Workers of Swerve: each takes jobs from the store until none are left.\n", file);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(rows[i].pool, script->pool) == 0) {
            fprintf(file,
                    "# When this was written, the tier %s had %lld jobs queued, of %lld ticks",
                    tier_names[rows[i].tier], (long long)rows[i].jobs_queued,
                    (long long)rows[i].ticks_queued);
            if (rows[i].tick_ns > 0) {
                fprintf(file, "; a tick took %.3f ms.\n",
                        (double)rows[i].tick_ns / (double)NS_PER_MS);
            } else {
                fputs(".\n", file);
            }
        }
    }
}

bool slurm_write(const struct slurm_script *script, const struct store_demand *rows, uint32_t count,
                 FILE *file)
{
    put_head(script, file);
    put_facts(script, rows, count, file);
    fputs("set -u\n", file);
    put_variable(file, "swerve", script->swerve);
    put_variable(file, "export SWERVE_STORE", script->store_url);
    if (script->token_file != NULL) {
        put_variable(file, "export SWERVE_TOKEN_FILE", script->token_file);
    }
    if (script->ca_file != NULL) {
        put_variable(file, "export SWERVE_CA_FILE", script->ca_file);
    }
    put_variable(file, "pool", script->pool);
    fprintf(
        file,
        "worker= again= stopped=\n"
        "stop() { stopped=1; [ -z \"$worker\" ] || kill -TERM \"$worker\" 2>/dev/null; }\n"
        "trap stop TERM INT             # preempted or cancelled: hand back, and end\n"
        "trap 'again=1; stop' USR1      # the time limit comes: hand back, and queue again\n"
        "[ -z \"$stopped\" ] || exit 0\n"
        "\"$swerve\" worker --pool \"$pool\" --drain --grace-ms %lld ${SWERVE_WORKER_OPTIONS:-} &\n"
        "worker=$!\n"
        "code=143\n"
        "while kill -0 \"$worker\" 2>/dev/null; do\n"
        "    wait \"$worker\"             # which a signal interrupts\n"
        "    code=$?\n"
        "done\n"
        "wait \"$worker\" 2>/dev/null; late=$?\n"
        "[ \"$late\" -eq 127 ] || code=$late\n"
        "if [ -n \"$again\" ] && [ \"$code\" -eq 0 ] && [ -n \"${SLURM_JOB_ID:-}\" ]; then\n"
        "    scontrol requeue \"$SLURM_JOB_ID\"\n"
        "fi\n"
        "exit \"$code\"\n",
        (long long)(script->grace_s * 1000));
    return fflush(file) == 0 && ferror(file) == 0;
}
