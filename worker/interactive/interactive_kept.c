/*
 * Sessions of a pool that are kept in a folder, NAME.session each, and taken up again; those of a
 * tenant in a folder of its own, so that others find none of that name. See interactive.h.
 */
#include "worker/interactive/interactive_internal.h"

#include "base/text.h"
#include "worker/models/sampler.h"
#include "worker/run/revision.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define LET_GO_NS NS_PER_S
#define LET_GO_PAUSE_NS (20 * NS_PER_MS)

const char *interactive_name(const struct seat *seat)
{
    return seat->name;
}

uint32_t interactive_scenario_of(const struct seat *seat)
{
    return seat->scenario;
}

uint64_t interactive_seed_of(const struct seat *seat)
{
    return seat->seed;
}

/* Of the numbers by which frames of the models are judged. */
static void hash_bounds(const struct models_model *const models[2], char out[SHA256_HEX_BYTES])
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&hash);
    for (int i = 0; i < 2; i++) {
        const struct health_bounds *bounds = models[i] != NULL ? &models[i]->bounds : NULL;
        if (bounds != NULL) {
            sha256_update(&hash, bounds->bound, sizeof bounds->bound);
            sha256_update(&hash, bounds->pictures, sizeof bounds->pictures);
        }
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, out);
}

/* Identity of all sessions of this pool. */
static void describe_pool(const struct interactive *pool, struct drive_log_head *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->revision, sizeof out->revision, "%s", revision_hash);
    int bytes = snprintf(out->world, sizeof out->world, "%s", pool->world);
    if (pool->backend[0] != '\0' && bytes < (int)sizeof out->world) {
        snprintf(out->world + bytes, sizeof out->world - (size_t)bytes, " on %s", pool->backend);
    }
    if (pool->model != NULL) {
        snprintf(out->model_hash, sizeof out->model_hash, "%s", pool->model->hash);
        model_sampler(pool->model->model, pool->conditioning, out->sampler);
        hash_bounds((const struct models_model *const[]){pool->model, pool->previous},
                    out->bounds_hash);
    }
    if (pool->previous != NULL) {
        sampler_add_previous(out->sampler, pool->previous->hash);
    }
}

void interactive_kin(const struct interactive *pool, char out[SHA256_HEX_BYTES])
{
    struct drive_log_head head;
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    out[0] = '\0';
    if (pool->keep[0] != '\0') {
        describe_pool(pool, &head);
        sha256_init(&hash);
        sha256_update(&hash, &head, sizeof head);
        sha256_final(&hash, digest);
        sha256_to_hex(digest, out);
    }
}

/* Identity of a session of this pool. */
static void describe(const struct interactive *pool, const struct seat *seat,
                     struct drive_log_head *out)
{
    const struct scenario_document *document = env_document(pool->env, seat->scenario);
    describe_pool(pool, out);
    snprintf(out->scenario, sizeof out->scenario, "%s", document->scenario.id);
    snprintf(out->scenario_hash, sizeof out->scenario_hash, "%s", document->hash);
    out->seed = seat->seed;
}

/* Folder of a tenant's sessions: one step below the pool's, whatever characters its name has. */
static enum status folder_of(const struct interactive *pool, const char *tenant,
                             char folder[LIMIT_PATH_BYTES], struct error *error)
{
    int bytes = snprintf(folder, LIMIT_PATH_BYTES, "%s", pool->keep);
    if (tenant == NULL || tenant[0] == '\0') {
        return STATUS_OK;
    }
    TRY(text_name_check("tenant", tenant, LIMIT_ID_BYTES, error));
    bytes += snprintf(folder + bytes, (size_t)(LIMIT_PATH_BYTES - bytes), "/");
    for (const char *at = tenant; *at != '\0' && bytes < LIMIT_PATH_BYTES; at++) {
        const char *form = *at == '/' || *at == '%' ? "%%%02x" : "%c";
        bytes +=
            snprintf(folder + bytes, (size_t)(LIMIT_PATH_BYTES - bytes), form, (unsigned char)*at);
    }
    return bytes < LIMIT_PATH_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT, "session: the path of its log is too long");
}

static enum status path_of(const struct interactive *pool, const char *tenant, const char *name,
                           char path[LIMIT_PATH_BYTES], struct error *error)
{
    char folder[LIMIT_PATH_BYTES];
    static const char digits[] = "0123456789abcdef";
    if (pool->keep[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "session: expected a server that keeps sessions, found one without a "
                         "folder for them");
    }
    if (strlen(name) != INTERACTIVE_NAME_BYTES - 1 || strspn(name, digits) != strlen(name)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "session: expected the name of a kept session, %d digits 0-9 and a-f, "
                         "found \"%.40s\"",
                         INTERACTIVE_NAME_BYTES - 1, name);
    }
    TRY(folder_of(pool, tenant, folder, error));
    int bytes = snprintf(path, LIMIT_PATH_BYTES, "%s/%s" DRIVE_LOG_SUFFIX, folder, name);
    return bytes < LIMIT_PATH_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT, "session: the path of its log is too long");
}

static enum status compare(const char *what, const char *expected, const char *found,
                           struct error *error)
{
    return strcmp(expected, found) == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "session: expected one of %s %.64s, as this server has, found %.64s",
                           what, expected, found);
}

/* Which of the suite's scenarios a log is of, where everything else that its bits depend on is what
 * this pool has. */
static enum status find_drive(const struct interactive *pool, const struct drive_log_head *head,
                              struct seat *seat, struct error *error)
{
    struct drive_log_head ours;
    uint32_t count = swerve_env_scenarios(pool->env);
    uint32_t scenario = 0;
    while (scenario < count &&
           strcmp(env_document(pool->env, scenario)->hash, head->scenario_hash) != 0) {
        scenario++;
    }
    if (scenario == count) {
        return error_set(error, STATUS_BAD_INPUT,
                         "session: its scenario %s, hash %.12s, is not in this server's suite",
                         head->scenario, head->scenario_hash);
    }
    seat->scenario = scenario;
    seat->seed = head->seed;
    describe(pool, seat, &ours);
    TRY(compare("revision", ours.revision, head->revision, error));
    TRY(compare("world", ours.world, head->world, error));
    TRY(compare("model", ours.model_hash, head->model_hash, error));
    TRY(compare("sampler", ours.sampler, head->sampler, error));
    return compare("health bounds", ours.bounds_hash, head->bounds_hash, error);
}

enum status interactive_open_kept(const struct interactive *pool,
                                  const struct interactive_wish *wish, struct interactive_kept *out,
                                  struct error *error)
{
    const struct timespec pause = {.tv_nsec = LET_GO_PAUSE_NS};
    int64_t end_ns = clock_monotonic_ns() + (wish->behind != NULL ? LET_GO_NS : 0);
    TRY(path_of(pool, wish->tenant, wish->resume, out->path, error));
    enum status status = drive_log_open(out->path, &out->head, &out->log, error);
    while (status == STATUS_BUSY &&
           clock_monotonic_ns() < end_ns) { /* nothing is read until then */
        nanosleep(&pause, NULL);
        status = drive_log_open(out->path, &out->head, &out->log, error);
    }
    return status;
}

void interactive_close_kept(struct interactive_kept *kept)
{
    drive_log_close(kept->log);
    kept->log = NULL;
}

/* A machine that died may have lost the log's end. Lost ticks are driven again; a lost way back
 * leaves the drive on a line that is no more. */
static enum status check_turns(const struct interactive_wish *wish, const struct session *session,
                               struct error *error)
{
    uint32_t expected = wish->behind != NULL ? wish->behind->turns : 0;
    uint32_t found = session_turns(session);
    return found >= expected
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "session: expected %u ways back in its log, found %u: its end is lost, "
                           "and it would go on where its driver went back",
                           expected, found);
}

static enum status take_up(struct interactive *pool, const struct interactive_wish *wish,
                           struct interactive_kept *kept, struct seat *seat, struct error *error)
{
    enum status status = find_drive(pool, &kept->head, seat, error);
    THEN(status, interactive_check_hardware(pool, wish, seat, error));
    THEN(status,
         session_create(pool->env, seat->place, seat->scenario, seat->seed, &seat->session, error));
    TRY(status);
    struct drive_log *log = kept->log;
    kept->log = NULL;
    status = session_resume(seat->session, log, error);
    THEN(status, check_turns(wish, seat->session, error));
    THEN(status, interactive_check_driven(pool, wish, seat, error));
    if (status != STATUS_OK) {
        session_destroy(seat->session);
        seat->session = NULL;
        return error_prefix(error, "%s", kept->path);
    }
    snprintf(seat->name, sizeof seat->name, "%s", wish->resume);
    return STATUS_OK;
}

enum status interactive_make_room(const struct interactive *pool, const char *tenant,
                                  struct error *error)
{
    char folder[LIMIT_PATH_BYTES];
    if (pool->keep[0] == '\0') {
        return STATUS_OK;
    }
    TRY(folder_of(pool, tenant, folder, error));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "session: its folder %s cannot be made: %s", folder,
                         strerror(errno));
    }
    return drive_log_make_room(folder, INTERACTIVE_KEPT_MAX - 1, pool->keep_bytes, error);
}

static enum status begin_log(const struct interactive *pool, const char *tenant, struct seat *seat,
                             struct error *error)
{
    uint64_t random[2];
    char path[LIMIT_PATH_BYTES];
    struct drive_log_head head;
    struct drive_log *log = NULL;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return error_set(error, STATUS_IO, "session: no random numbers for its name");
    }
    snprintf(seat->name, sizeof seat->name, "%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    describe(pool, seat, &head);
    TRY(path_of(pool, tenant, seat->name, path, error));
    TRY(drive_log_create(path, &head, &log, error));
    session_keep(seat->session, log);
    return STATUS_OK;
}

enum status interactive_make_session(struct interactive *pool, const struct interactive_wish *wish,
                                     struct interactive_kept *kept, struct seat *seat,
                                     struct error *error)
{
    if (wish->resume != NULL) {
        return take_up(pool, wish, kept, seat, error);
    }
    seat->scenario = wish->scenario;
    seat->seed = wish->seed;
    TRY(interactive_check_hardware(pool, wish, seat, error));
    TRY(session_create(pool->env, seat->place, seat->scenario, seat->seed, &seat->session, error));
    if (pool->keep[0] == '\0') {
        return STATUS_OK;
    }
    enum status status = begin_log(pool, wish->tenant, seat, error);
    if (status != STATUS_OK) {
        session_destroy(seat->session);
        seat->session = NULL;
    }
    return status;
}
