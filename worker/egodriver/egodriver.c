/*
 * Driving policies behind AlpaSim's EgodriverService. See egodriver.h.
 */
#include "worker/egodriver/egodriver_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { CLOSE_DEADLINE_MS = 2000, REVISION_OLDEST = 1, REVISION_NEWEST = 2 };

#define SERVICE "/egodriver.EgodriverService/"

const struct contract_kind egodriver_kind = {"--egodriver", CONTRACT_SERVERS_MAX};

static const char *const methods[EGO_CALL_COUNT] = {
    [EGO_VERSION] = SERVICE "get_version", [EGO_START] = SERVICE "start_session",
    [EGO_CLOSE] = SERVICE "close_session", [EGO_MOTION] = SERVICE "submit_egomotion_observation",
    [EGO_ROUTE] = SERVICE "submit_route",  [EGO_IMAGE] = SERVICE "submit_image_observation",
    [EGO_DRIVE] = SERVICE "drive",         [EGO_FORK] = SERVICE "fork_session",
};

/* Messages of one session in one tick: motion, route, images of each camera; or drive. */
enum { TICK_CALLS = 2 + RIG_CAMERAS_MAX * SWERVE_SENSOR_FRAMES, JPEG_QUALITY = 90 };

struct options {
    const char *cameras; /* ids joined by ","; NULL: all of the rig */
    size_t cameras_bytes;
    bool carla; /* renderer_data as CARLA's runtime has it */
    bool tell_scene;
};

struct session {
    bool open, forkable;
    uint32_t server;
    char uuid[EGODRIVER_UUID_BYTES];
    struct ego_frame frame;
    struct ego_block *block;   /* its messages are made in it */
    struct ego_message *start; /* kept for forks */
    struct ego_log log;
    char reason[EGODRIVER_REASON_BYTES];
    bool varies; /* sent the same again, its driver answered otherwise */
    struct ego_told told;
    int64_t sent_ns[RIG_CAMERAS_MAX]; /* the newest image of each camera */
    /* of the tick that is being asked */
    uint32_t call_count;
    struct grpc_call *calls[TICK_CALLS];
};

struct egodriver {
    bool carla, tell_scene;
    struct ego_cameras cameras;
    int64_t tick_deadline_ms, open_deadline_ms;
    uint32_t server_count, session_count;
    struct grpc_client *servers[CONTRACT_SERVERS_MAX];
    int revision;             /* of the contract; all servers speak the same */
    struct session *sessions; /* [session_count] */
    char loaded[SHA256_HEX_BYTES];
    bool broken;   /* a connection failed: nothing is asked any more */
    bool cut_off;  /* it ended, or a call on it did, without an answer */
    bool forkless; /* a server was asked for a fork, and has none */
};

/* ---- options ---- */

static bool is_word(const char *text, size_t bytes, const char *word)
{
    return bytes == strlen(word) && strncmp(text, word, bytes) == 0;
}

/* `out` points into the text. */
static enum status options_parse(const char *text, struct options *out, struct error *error)
{
    *out = (struct options){.cameras = NULL};
    for (const char *at = text; *at != '\0';) {
        static const char cameras[] = "cameras=";
        size_t bytes = strcspn(at, "&");
        if (strncmp(at, cameras, strlen(cameras)) == 0) {
            out->cameras = at + strlen(cameras);
            out->cameras_bytes = bytes - strlen(cameras);
        } else if (is_word(at, bytes, "renderer_data=carla")) {
            out->carla = true;
        } else if (is_word(at, bytes, "tell_scene=yes")) {
            out->tell_scene = true;
        } else {
            return error_set(error, STATUS_BAD_INPUT,
                             "option \"%.*s\": expected cameras=.., renderer_data=carla or "
                             "tell_scene=yes",
                             (int)bytes, at);
        }
        at += bytes + (at[bytes] == '&');
    }
    return STATUS_OK;
}

enum status egodriver_check(const char *name, const char *options, struct error *error)
{
    struct options parsed;
    if (!contract_is_name(name, strlen(name))) {
        return error_set(error, STATUS_BAD_INPUT,
                         "planner spec egodriver:%s: expected a name of letters, digits, \".\", "
                         "\"_\" and \"-\"; addresses are given by --egodriver NAME=HOST:PORT",
                         name);
    }
    return options_parse(options, &parsed, error) == STATUS_OK
               ? STATUS_OK
               : error_prefix(error, "planner spec egodriver:%s", name);
}

/* ---- cameras ---- */

/* A camera that was not added yet, so there is room. */
static void camera_add(struct egodriver *ego, const struct rig *rig, uint32_t camera,
                       struct rig_choice *choice)
{
    choice->sensors[choice->count++] =
        (struct rig_chosen){.kind = RIG_CAMERA, .index = camera, .jpeg_quality = JPEG_QUALITY};
    ego->cameras.cameras[ego->cameras.count++] = rig->cameras[camera];
}

/* The cameras that the options name, as JPEG, in their order. */
static enum status cameras_choose(struct egodriver *ego, const struct options *options,
                                  const struct rig *rig, struct rig_choice *choice,
                                  struct error *error)
{
    *choice = (struct rig_choice){.count = 0};
    for (uint32_t i = 0; options->cameras == NULL && i < rig->camera_count; i++) {
        camera_add(ego, rig, i, choice);
    }
    if (options->cameras == NULL || is_word(options->cameras, options->cameras_bytes, "none")) {
        return STATUS_OK;
    }
    for (size_t at = 0; at < options->cameras_bytes || at == 0;) {
        const char *word = options->cameras + at;
        size_t bytes = strcspn(word, ",&");
        uint32_t camera = 0;
        while (camera < rig->camera_count && !is_word(word, bytes, rig->cameras[camera].id)) {
            camera++;
        }
        bool twice = false;
        for (uint32_t i = 0; i < choice->count; i++) {
            twice = twice || choice->sensors[i].index == camera;
        }
        if (camera == rig->camera_count || twice) {
            return error_set(error, STATUS_BAD_INPUT,
                             "cameras: expected none, or once each some cameras of rig %s, found "
                             "\"%.*s\"",
                             rig->id, (int)bytes, word);
        }
        camera_add(ego, rig, camera, choice);
        at += bytes + 1;
    }
    return STATUS_OK;
}

/* ---- calls ---- */

/* Waits for what was begun on some servers. Not OK: the instance is of no more use. */
static enum status wait_on(struct egodriver *ego, struct grpc_client *const *servers,
                           uint32_t count, int64_t deadline_ms, struct error *error)
{
    enum status status = grpc_wait(servers, count, deadline_ms, error);
    ego->broken = ego->broken || status != STATUS_OK;
    ego->cut_off = ego->cut_off || status == STATUS_IO;
    return status;
}

/* ---- open ---- */

/* Asks a server who it is, and which revision of the contract it speaks: 1 where it says none. Both
 * go into its digest. */
static enum status ask_version(struct egodriver *ego, struct grpc_client *server,
                               char hex[SHA256_HEX_BYTES], struct error *error)
{
    struct contract_version said;
    char end = '\0';
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    TRY(contract_ask_version(server, methods[EGO_VERSION], ego->open_deadline_ms, &said, error));
    ego->revision = REVISION_OLDEST;
    if (said.revision[0] != '\0' &&
        (sscanf(said.revision, "%d%c", &ego->revision, &end) != 1 ||
         ego->revision < REVISION_OLDEST || ego->revision > REVISION_NEWEST)) {
        return error_set(error, STATUS_PLANNER,
                         "%s speaks revision %s of the egodriver contract (expected %d or %d)",
                         grpc_address(server), said.revision, REVISION_OLDEST, REVISION_NEWEST);
    }
    sha256_init(&hash);
    sha256_update(&hash, said.line, strlen(said.line) + 1);
    sha256_update(&hash, &ego->revision, sizeof ego->revision);
    sha256_final(&hash, digest);
    sha256_to_hex(digest, hex);
    return STATUS_OK;
}

/* Servers of one name are one planner: they must all say that they are the same. */
static enum status connect_all(struct egodriver *ego, const char *name,
                               const struct contract_places *places, bool patient,
                               const atomic_bool *abandoned, struct error *error)
{
    char addresses[CONTRACT_SERVERS_MAX][GRPC_ADDRESS_BYTES];
    uint32_t count = 0;
    TRY(contract_addresses(&egodriver_kind, places, name, addresses, &count, error));
    for (uint32_t i = 0; i < count; i++) {
        char hex[SHA256_HEX_BYTES];
        TRY(contract_connect(addresses[i], ego->open_deadline_ms, patient, abandoned,
                             &ego->servers[i], error));
        ego->server_count = i + 1;
        TRY(ask_version(ego, ego->servers[i], hex, error));
        if (i > 0 && strcmp(hex, ego->loaded) != 0) {
            return error_set(error, STATUS_PLANNER,
                             "%s and %s serve different policies: get_version differs",
                             addresses[0], addresses[i]);
        }
        memcpy(ego->loaded, hex, sizeof ego->loaded);
        grpc_keep(ego->servers[i]);
    }
    return STATUS_OK;
}

static void ego_close(void *planner);

enum status egodriver_open(const char *spec, const char *name, const char *options,
                           const struct contract_places *places, const struct rig *rig,
                           struct rig_choice *choice, uint32_t session_count,
                           int64_t tick_deadline_ms, int64_t open_deadline_ms, bool patient,
                           const atomic_bool *abandoned, struct egodriver **out,
                           struct error *error)
{
    struct options parsed = {.cameras = NULL};
    struct egodriver *ego = calloc(1, sizeof *ego);
    TRY(memory_check(ego, error, "planner %s: out of memory", spec));
    ego->tick_deadline_ms = tick_deadline_ms;
    ego->open_deadline_ms = open_deadline_ms;
    ego->session_count = session_count;
    ego->sessions = calloc(session_count, sizeof *ego->sessions);
    enum status status = memory_check(ego->sessions, error, "out of memory");
    THEN(status, options_parse(options, &parsed, error));
    THEN(status, cameras_choose(ego, &parsed, rig, choice, error));
    THEN(status, connect_all(ego, name, places, patient, abandoned, error));
    ego->carla = parsed.carla;
    ego->tell_scene = parsed.tell_scene;
    if (status != STATUS_OK) {
        ego_close(ego);
        /* Whatever stands in the way of a connection is about this planner, not about a file. */
        error->status = status == STATUS_IO || status == STATUS_TIMEOUT ? STATUS_PLANNER : status;
        return error_prefix(error, "planner %s", spec);
    }
    *out = ego;
    return STATUS_OK;
}

bool egodriver_alive(const struct egodriver *ego)
{
    return !ego->broken;
}

bool egodriver_cut_off(const struct egodriver *ego)
{
    return ego->cut_off;
}

uint32_t egodriver_wants(const struct egodriver *ego)
{
    return ego->carla ? SWERVE_WANTS_SIGNALS : 0;
}

const char *egodriver_loaded(const struct egodriver *ego)
{
    return ego->loaded;
}

const char *egodriver_reason(const struct egodriver *ego, uint32_t session)
{
    return ego->sessions[session].reason;
}

void egodriver_end_forks(struct egodriver *ego, uint32_t session)
{
    ego->sessions[session].forkable = false;
}

bool egodriver_varies(const struct egodriver *ego, uint32_t session)
{
    return ego->sessions[session].varies;
}

const char *egodriver_told(const struct egodriver *ego, uint32_t session, size_t *bytes)
{
    *bytes = ego->sessions[session].told.bytes;
    return ego->sessions[session].told.text;
}

/* ---- sessions ---- */

static int tell(const struct error *error, char *text, uint32_t text_bytes)
{
    snprintf(text, text_bytes, "%s", error->text);
    return 1;
}

/* A random UUID of version 4: servers may have other clients. */
static void uuid_make(char text[EGODRIVER_UUID_BYTES])
{
    uint8_t b[16];
    CHECK(getrandom(b, sizeof b, 0) == (ssize_t)sizeof b);
    b[6] = (uint8_t)(0x40 | (b[6] & 0x0f));
    b[8] = (uint8_t)(0x80 | (b[8] & 0x3f));
    snprintf(text, EGODRIVER_UUID_BYTES,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

/* Begins a call. Its message must stay until it was waited for. */
static enum status begin(struct egodriver *ego, const struct session *session,
                         struct ego_message *message, struct grpc_call **call, struct error *error)
{
    struct grpc_client *server = ego->servers[session->server];
    char revision[12];
    TRY(memory_check(message, error, "out of memory"));
    if (ego->broken) {
        return error_set(error, STATUS_PLANNER, "%s: the connection failed before",
                         grpc_address(server));
    }
    ego_message_address(message, session->uuid);
    snprintf(revision, sizeof revision, "%d", ego->revision);
    enum status status = grpc_begin(server, methods[message->call], message->data, message->bytes,
                                    message->call == EGO_START ? revision : NULL, call, error);
    ego->broken = status != STATUS_OK; /* others that were begun with it are still on their way */
    return status;
}

/* Whether a call that ended succeeded; else the session's reason says what came. */
static bool succeeded(struct session *session, const struct grpc_call *call)
{
    if (grpc_call_code(call) == GRPC_OK) {
        return true;
    }
    const char *sentence = grpc_call_sentence(call);
    snprintf(session->reason, sizeof session->reason, "the driver answers %s with %s%s%s",
             grpc_call_method(call), grpc_call_code_name(call), sentence[0] != '\0' ? ": " : "",
             sentence);
    return false;
}

/* One call by itself. STATUS_PLANNER: the server refused, and the session's reason says it; else
 * the connection failed. */
static enum status ask(struct egodriver *ego, struct session *session, struct ego_message *message,
                       int64_t deadline_ms, struct error *error)
{
    struct grpc_call *call = NULL;
    struct grpc_client *server = ego->servers[session->server];
    TRY(begin(ego, session, message, &call, error));
    TRY(wait_on(ego, &server, 1, deadline_ms, error));
    bool good = succeeded(session, call);
    grpc_call_free(server, call);
    return good ? STATUS_OK : error_set(error, STATUS_PLANNER, "%s", session->reason);
}

/* Forgets a session; its server is told where it is open there. */
static void session_end(struct egodriver *ego, struct session *session)
{
    struct error ignored;
    if (session->open) {
        session->open = false;
        struct ego_message *message = ego_message_close(&session->block);
        /* A server that does not answer shows at its next call. */
        (void)ask(ego, session, message, CLOSE_DEADLINE_MS, &ignored);
        ego_message_free(message);
    }
    ego_message_free(session->start);
    session->start = NULL;
    ego_log_clear(&session->log);
    ego_block_leave(&session->block);
}

/* Forgets what a session was before; its server knows nothing of it yet. */
static void session_begin(struct session *session, struct ego_message *start)
{
    session->start = start;
    session->reason[0] = '\0';
    session->forkable = true;
    session->varies = false;
    session->told.bytes = 0;
    session->told.text[0] = '\0';
    memset(session->sent_ns, 0xff, sizeof session->sent_ns); /* -1: none */
    uuid_make(session->uuid);
}

static enum status session_start(struct egodriver *ego, uint32_t index, struct error *error)
{
    struct session *session = &ego->sessions[index];
    session->server = index % ego->server_count;
    TRY(ask(ego, session, session->start, ego->open_deadline_ms, error));
    session->open = true;
    return STATUS_OK;
}

static int ego_reset(void *planner, const struct swerve_episode *episode, char *text,
                     uint32_t text_bytes)
{
    struct egodriver *ego = planner;
    struct error error;
    struct session *session = &ego->sessions[episode->session];
    session_end(ego, session);
    session->frame.rear_m = episode->ego_wheelbase_m / 2;
    session_begin(session, ego_message_start(&session->block, &ego->cameras, ego->tell_scene,
                                             episode, ego->revision));
    return session_start(ego, episode->session, &error) == STATUS_OK
               ? 0
               : tell(&error, text, text_bytes);
}

static void ego_end(void *planner, uint32_t session)
{
    struct egodriver *ego = planner;
    session_end(ego, &ego->sessions[session]);
}

static void ego_close(void *planner)
{
    struct egodriver *ego = planner;
    for (uint32_t i = 0; ego->sessions != NULL && i < ego->session_count; i++) {
        session_end(ego, &ego->sessions[i]);
    }
    for (uint32_t i = 0; i < ego->server_count; i++) {
        grpc_close(ego->servers[i]);
    }
    free(ego->sessions);
    free(ego);
}

/* ---- a tick ---- */

/* Begins a call of this tick. */
static enum status begin_call(struct egodriver *ego, struct session *session,
                              struct ego_message *message, struct error *error)
{
    CHECK(session->call_count < TICK_CALLS);
    TRY(begin(ego, session, message, &session->calls[session->call_count], error));
    session->call_count++;
    return STATUS_OK;
}

/* The same; its message is kept for forks. */
static enum status begin_kept(struct egodriver *ego, struct session *session,
                              struct ego_message *message, struct error *error)
{
    TRY(memory_check(message, error, "out of memory"));
    enum status status = ego_log_add(&session->log, message, error);
    if (status != STATUS_OK) {
        ego_message_free(message);
        return status;
    }
    return begin_call(ego, session, message, error);
}

/* Begins the images of one camera that are new: one that drops out has none. */
static enum status begin_images(struct egodriver *ego, struct session *session,
                                const struct swerve_sensor *sensor, int64_t *sent_ns,
                                struct error *error)
{
    for (uint32_t i = 0; i < sensor->count; i++) {
        if (sensor->time_ns[i] > *sent_ns) {
            TRY(begin_kept(ego, session, ego_message_image(&session->block, sensor, i), error));
            *sent_ns = sensor->time_ns[i];
        }
    }
    return STATUS_OK;
}

static enum status begin_observations(struct egodriver *ego, const struct swerve_observation *seen,
                                      const struct swerve_sensors *sensors, struct error *error)
{
    struct session *session = &ego->sessions[seen->session];
    session->reason[0] = '\0';
    TRY(begin_kept(ego, session, ego_message_motion(&session->block, &session->frame, seen),
                   error));
    TRY(begin_kept(ego, session, ego_message_route(&session->block, &session->frame, seen), error));
    for (uint32_t i = 0; i < sensors->count && i < ego->cameras.count; i++) {
        TRY(begin_images(ego, session, &sensors->sensors[i], &session->sent_ns[i], error));
    }
    return STATUS_OK;
}

static void free_calls(struct egodriver *ego, struct session *session)
{
    for (uint32_t i = 0; i < session->call_count; i++) {
        grpc_call_free(ego->servers[session->server], session->calls[i]);
    }
    session->call_count = 0;
}

/* Ends what observations began; a session whose calls were refused is marked. */
static bool took_observations(struct egodriver *ego, struct session *session)
{
    bool good = true;
    for (uint32_t i = 0; i < session->call_count && good; i++) {
        good = succeeded(session, session->calls[i]);
    }
    free_calls(ego, session);
    return good;
}

static void take_answer(struct egodriver *ego, const struct swerve_observation *seen,
                        struct swerve_answer *answer, uint8_t *failed)
{
    struct session *session = &ego->sessions[seen->session];
    size_t bytes = 0;
    uint8_t digest[SHA256_BYTES];
    if (succeeded(session, session->calls[0])) {
        const uint8_t *reply = grpc_call_reply(session->calls[0], &bytes);
        *failed = !ego_answer_read(reply, bytes, &session->frame, seen, answer, digest,
                                   &session->told, session->reason);
        if (*failed == 0 && session->log.count > 0) {
            memcpy(session->log.messages[session->log.count - 1]->answer, digest, sizeof digest);
        }
    } else {
        *failed = 1;
    }
    free_calls(ego, session);
    ego_log_bound(&session->log, session->forkable ? EGODRIVER_LOG_BYTES_MAX : 0);
}

static enum status plan_all(struct egodriver *ego, uint32_t count,
                            const struct swerve_observation *seen,
                            const struct swerve_surroundings *around,
                            const struct swerve_sensors *sensors, struct swerve_answer *answers,
                            uint8_t *failed, struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        TRY(begin_observations(ego, &seen[i], &sensors[i], error));
    }
    TRY(wait_on(ego, ego->servers, ego->server_count, ego->tick_deadline_ms, error));
    for (uint32_t i = 0; i < count; i++) {
        struct session *session = &ego->sessions[seen[i].session];
        failed[i] = !took_observations(ego, session);
        if (failed[i] == 0) {
            struct ego_message *drive =
                ego_message_drive(&session->block, ego->carla, &seen[i], &around[i]);
            TRY(begin_kept(ego, session, drive, error));
        }
    }
    TRY(wait_on(ego, ego->servers, ego->server_count, ego->tick_deadline_ms, error));
    for (uint32_t i = 0; i < count; i++) {
        if (failed[i] == 0) {
            take_answer(ego, &seen[i], &answers[i], &failed[i]);
        }
    }
    return STATUS_OK;
}

static int ego_drive(void *planner, uint32_t count, const struct swerve_observation *observations,
                     const struct swerve_surroundings *surroundings,
                     const struct swerve_sensors *sensors, struct swerve_answer *answers,
                     uint8_t *failed, char *text, uint32_t text_bytes)
{
    struct error error;
    return plan_all(planner, count, observations, surroundings, sensors, answers, failed, &error) ==
                   STATUS_OK
               ? 0
               : tell(&error, text, text_bytes);
}

/* ---- forks ---- */

/* Whether drive answered as it did when the message was sent first; else the session's reason says
 * what is different. */
static bool took_same(struct egodriver *ego, struct session *session,
                      const struct ego_message *drive, uint32_t tick)
{
    uint8_t digest[SHA256_BYTES];
    size_t bytes = 0;
    bool same = false;
    if (succeeded(session, session->calls[0])) {
        const uint8_t *reply = grpc_call_reply(session->calls[0], &bytes);
        same = ego_answer_digest(reply, bytes, digest) &&
               memcmp(digest, drive->answer, sizeof digest) == 0;
        if (!same) {
            session->varies = true;
            snprintf(session->reason, sizeof session->reason,
                     "the driver varies: sent the same again, it answers drive %u otherwise", tick);
        }
    }
    free_calls(ego, session);
    return same;
}

/* Sends a session what another was sent from `at` up to its next answer, which must be the same, or
 * to the end. */
static enum status send_again(struct egodriver *ego, struct session *session, uint32_t *at,
                              uint32_t tick, struct error *error)
{
    struct grpc_client *const *server = &ego->servers[session->server];
    const struct ego_log *log = &session->log;
    for (; *at < log->count && log->messages[*at]->call != EGO_DRIVE; ++*at) {
        TRY(begin_call(ego, session, log->messages[*at], error));
    }
    TRY(wait_on(ego, server, 1, ego->tick_deadline_ms, error));
    bool good = took_observations(ego, session);
    if (good && *at < log->count) {
        struct ego_message *drive = log->messages[(*at)++];
        TRY(begin_call(ego, session, drive, error));
        TRY(wait_on(ego, server, 1, ego->tick_deadline_ms, error));
        good = took_same(ego, session, drive, tick);
    }
    return good ? STATUS_OK : error_set(error, STATUS_PLANNER, "%s", session->reason);
}

/* Starts a session and sends it all that is in its log. */
static enum status session_repeat(struct egodriver *ego, uint32_t index, struct error *error)
{
    struct session *session = &ego->sessions[index];
    uint32_t tick = 0;
    TRY(session_start(ego, index, error));
    for (uint32_t at = 0; at < session->log.count; tick++) {
        TRY(send_again(ego, session, &at, tick, error));
    }
    return STATUS_OK;
}

/* Asks a session's server to fork it, once: a server that refuses is not asked again. */
static enum status fork_by_server(struct egodriver *ego, const struct session *parent,
                                  struct session *session, struct error *error)
{
    struct grpc_client *server = ego->servers[parent->server];
    struct ego_message *message = ego_message_fork(&session->block, session->uuid);
    struct grpc_call *call = NULL;
    enum status status = begin(ego, parent, message, &call, error);
    THEN(status, wait_on(ego, &server, 1, ego->open_deadline_ms, error));
    ego_message_free(message);
    if (status == STATUS_OK) {
        session->server = parent->server;
        session->open = grpc_call_code(call) == GRPC_OK;
        ego->forkless = !session->open;
        grpc_call_free(server, call);
    }
    return status;
}

static int ego_fork(void *planner, uint32_t from, uint32_t to, char *text, uint32_t text_bytes)
{
    struct egodriver *ego = planner;
    struct error error;
    enum status status = STATUS_OK;
    const struct session *parent = &ego->sessions[from];
    struct session *session = &ego->sessions[to];
    session_end(ego, session);
    CHECK(parent->forkable);
    parent->start->references++;
    session_begin(session, parent->start);
    session->frame = parent->frame;
    if (!ego->forkless) {
        status = fork_by_server(ego, parent, session, &error);
    }
    if (!session->open && !ego_log_is_whole(&parent->log)) {
        snprintf(text, text_bytes, "more than %d MiB were sent to the session: it is not forked",
                 EGODRIVER_LOG_BYTES_MAX >> 20);
        return 1;
    }
    memcpy(session->sent_ns, parent->sent_ns, sizeof session->sent_ns);
    THEN(status, ego_log_copy(&parent->log, &session->log, &error));
    if (status == STATUS_OK && !session->open) {
        status = session_repeat(ego, to, &error);
    }
    return status == STATUS_OK ? 0 : tell(&error, text, text_bytes);
}

const struct swerve_planner_ops egodriver_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .name = "egodriver",
    .close = ego_close,
    .reset = ego_reset,
    .fork = ego_fork,
    .end = ego_end,
    .drive = ego_drive,
    .tracker = SWERVE_TRACKER_LQR,
};
