/*
 * World models behind AlpaSim's WorldModelService. See omnidreams.h.
 *
 * An instance is a connection, and the one session that its server keeps.
 */
#include "base/check.h"
#include "base/jpeg/jpeg_encode.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/units.h"
#include "worker/contract/contract_call.h"
#include "worker/omnidreams/omnidreams_internal.h"
#include "worker/omnidreams/omnidreams_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RATE_HZ = 30,
    CHUNK_FRAMES = 8,
    HORIZON_S = 60,
    FIRST_FEWER = 3, /* frames of a first chunk: by how many there are fewer */
    FIRST_QUALITY = 95,
    CLOSE_MS = 2000,
    STATE = 0, /* the only one */
};

#define SERVICE "/omnidreams.video_model.WorldModelService/"

/* In the place of seed 0, which lets the server choose. */
#define SEED_OF_0 UINT64_C(0x9E3779B97F4A7C15)

const struct contract_kind omnidreams_kind = {"--omnidreams", 1};

struct omnidreams {
    const struct omnidreams_host *host;
    struct grpc_client *client;
    struct rig *rig; /* NULL: it is only asked what it declares */
    uint8_t *memory;
    struct prepared *prepared; /* of the next reset; a reference */
    double rear_m;             /* of the session */
    bool open;                 /* there is a session */
    char session[OMNIDREAMS_SESSION_BYTES];
    bool broken; /* the connection failed */
};

/* ---- specs ---- */

static bool option_is(const char *at, const char *name, const char **value)
{
    const size_t bytes = strlen(name);
    if (strncmp(at, name, bytes) != 0 || at[bytes] != '=') {
        return false;
    }
    *value = at + bytes + 1;
    return true;
}

/* A whole number from 1 to `most` in value[0 .. bytes). */
static bool number_read(const char *value, size_t bytes, uint32_t most, uint32_t *out)
{
    uint32_t number = 0;
    if (bytes == 0 || bytes > 6 || strspn(value, "0123456789") < bytes) {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        number = 10 * number + (uint32_t)(value[i] - '0');
    }
    *out = number;
    return number >= 1 && number <= most;
}

static enum status rig_load(const char *value, size_t bytes, struct omnidreams_spec *out,
                            struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    struct rig *rig = malloc(sizeof *rig);
    TRY(memory_check(rig, error, "out of memory"));
    snprintf(path, sizeof path, "%.*s", (int)bytes, value);
    free(out->rig);
    out->rig = NULL;
    enum status status = rig_read(path, rig, NULL, error);
    THEN(status, rig_text(rig, &out->rig, error));
    free(rig);
    return status;
}

/* One option, at[0 .. bytes). */
static enum status option_read(const char *at, size_t bytes, struct omnidreams_spec *out,
                               struct error *error)
{
    const char *value = NULL;
    uint32_t seconds = 0;
    bool good = false;
    if (option_is(at, "fps", &value)) {
        good = number_read(value, bytes - (size_t)(value - at), 1000, &out->rate_hz);
    } else if (option_is(at, "chunk", &value)) {
        good = number_read(value, bytes - (size_t)(value - at), SWERVE_WORLD_FRAMES,
                           &out->chunk_frames) &&
               (out->chunk_frames == 8 || out->chunk_frames == 12 || out->chunk_frames == 16);
    } else if (option_is(at, "horizon", &value)) {
        good = number_read(value, bytes - (size_t)(value - at), LIMIT_HORIZON_TICKS / TICK_HZ,
                           &seconds);
        out->horizon_ticks = seconds * TICK_HZ;
    } else if (option_is(at, "prompt", &value)) {
        good = bytes - (size_t)(value - at) < sizeof out->prompt;
        snprintf(out->prompt, sizeof out->prompt, "%.*s", (int)(bytes - (size_t)(value - at)),
                 value);
    } else if (option_is(at, "rig", &value)) {
        return rig_load(value, bytes - (size_t)(value - at), out, error);
    }
    return good ? STATUS_OK
                : error_set(error, STATUS_USAGE,
                            "option \"%.*s\": expected fps=N (a multiple of 10), chunk=8, 12 or "
                            "16, horizon=SECONDS, prompt=TEXT or rig=FILE",
                            (int)bytes, at);
}

enum status omnidreams_parse(const char *spec, struct omnidreams_spec *out, struct error *error)
{
    const char *name = spec + strlen(OMNIDREAMS_PREFIX);
    const size_t name_bytes = strcspn(name, "?");
    *out = (struct omnidreams_spec){
        .rate_hz = RATE_HZ, .chunk_frames = CHUNK_FRAMES, .horizon_ticks = HORIZON_S * TICK_HZ};
    if (!contract_is_name(name, name_bytes) || name_bytes >= sizeof out->name) {
        return error_set(error, STATUS_USAGE,
                         "world %.200s: expected omnidreams:NAME[?options] with a name of at most "
                         "%zu letters, digits, \".\", \"_\" and \"-\"; its address is given by "
                         "--omnidreams NAME=HOST:PORT",
                         spec, sizeof out->name - 1);
    }
    memcpy(out->name, name, name_bytes);
    const char *at = name + name_bytes;
    at += *at == '?';
    while (*at != '\0') {
        const size_t bytes = strcspn(at, "&");
        if (option_read(at, bytes, out, error) != STATUS_OK) {
            omnidreams_spec_finish(out);
            return error_prefix(error, "world %.200s", spec);
        }
        at += bytes + (at[bytes] == '&');
    }
    return STATUS_OK;
}

void omnidreams_spec_finish(struct omnidreams_spec *spec)
{
    free(spec->rig);
    spec->rig = NULL;
}

/* ---- calls ---- */

static int tell(const struct error *error, char *text, uint32_t text_bytes)
{
    snprintf(text, text_bytes, "%s", error->text);
    return 1;
}

/* Puts a call and waits for its answer. STATUS_DEVICE: the server refuses; else the connection
 * failed. *call is the caller's where it is OK. */
static enum status put_call(struct omnidreams *self, const char *method,
                            const struct omnidreams_message *message, int64_t deadline_ms,
                            struct grpc_call **call, struct error *error)
{
    if (self->broken) {
        return error_set(error, STATUS_IO, "%s: the connection failed before",
                         grpc_address(self->client));
    }
    enum status status =
        grpc_begin(self->client, method, message->data, message->bytes, NULL, call, error);
    THEN(status, grpc_wait(&self->client, 1, deadline_ms, error));
    self->broken = status != STATUS_OK;
    if (status != STATUS_OK || grpc_call_code(*call) == GRPC_OK) {
        return status;
    }
    const char *sentence = grpc_call_sentence(*call);
    error_set(error, STATUS_DEVICE, "the server answers %s with %s%s%s", grpc_call_method(*call),
              grpc_call_code_name(*call), sentence[0] != '\0' ? ": " : "", sentence);
    grpc_call_free(self->client, *call);
    return STATUS_DEVICE;
}

/* Ends the session, if there is one. A server that does not answer shows at its next call. */
static void end_session(struct omnidreams *self)
{
    struct omnidreams_message message = {NULL, 0};
    struct grpc_call *call = NULL;
    struct error ignored;
    if (self->open && !self->broken &&
        omnidreams_message_close(self->session, &message, &ignored) == STATUS_OK &&
        put_call(self, SERVICE "close_session", &message, CLOSE_MS, &call, &ignored) == STATUS_OK) {
        grpc_call_free(self->client, call);
    }
    free(message.data);
    self->open = false;
}

/* ---- open and close ---- */

static void omnidreams_close(void *world)
{
    struct omnidreams *self = world;
    if (self->client != NULL) {
        end_session(self);
    }
    grpc_close(self->client);
    prepared_unref(self->prepared);
    free(self->rig);
    free(self);
}

/* The version as a world has it: without blanks and slashes, and with the first of a hash of all
 * that the server says, so that another build is another world. */
static void version_make(const struct contract_version *said, char out[SWERVE_WORLD_NAME_BYTES])
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    sha256_init(&hash);
    sha256_update(&hash, said->line, strlen(said->line));
    sha256_final(&hash, digest);
    sha256_to_hex(digest, hex);
    snprintf(out, SWERVE_WORLD_NAME_BYTES, "%.20s+%.8s",
             said->version[0] != '\0' ? said->version : "0", hex);
    for (char *at = out; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~' || *at == '/') {
            *at = '_';
        }
    }
}

/* Reads the rig that it is to make; one that another is expected for is refused. */
static enum status take_rig(struct omnidreams *self, const char *text, struct error *error)
{
    json_error_t where;
    const char *only = self->host->spec->rig;
    if (only != NULL && strcmp(only, text) != 0) {
        return error_set(error, STATUS_DEVICE,
                         "it makes the rig of its option rig= alone, found another one");
    }
    json_t *document = json_loads(text, 0, &where);
    self->rig = malloc(sizeof *self->rig);
    enum status status = memory_check(document != NULL ? self->rig : NULL, error, "out of memory");
    THEN(status, rig_decode("rig", document, self->rig, error));
    json_decref(document);
    return status;
}

static enum status connect_to(struct omnidreams *self, struct contract_version *said,
                              struct error *error)
{
    char addresses[CONTRACT_SERVERS_MAX][GRPC_ADDRESS_BYTES];
    const struct omnidreams_host *host = self->host;
    uint32_t count = 0;
    TRY(contract_addresses(&omnidreams_kind, host->places, host->spec->name, addresses, &count,
                           error));
    TRY(contract_connect(addresses[0], host->start_ms, host->patient, NULL, &self->client, error));
    grpc_limit(self->client, OMNIDREAMS_REPLY_BYTES_MAX);
    return contract_ask_version(self->client, SERVICE "get_version", host->start_ms, said, error);
}

static int omnidreams_open(void **world, const struct swerve_world_setup *setup,
                           struct swerve_world_declared *declared, char *text, uint32_t text_bytes)
{
    const struct omnidreams_host *host = setup->host;
    const struct omnidreams_spec *spec = host->spec;
    struct contract_version said = {.line = ""};
    struct error error;
    struct omnidreams *self = calloc(1, sizeof *self);
    if (self == NULL) {
        snprintf(text, text_bytes, "out of memory");
        return 1;
    }
    self->host = host;
    self->memory = setup->memory;
    enum status status = connect_to(self, &said, &error);
    if (status == STATUS_OK && setup->rig != NULL) {
        status = take_rig(self, setup->rig, &error);
    }
    if (status != STATUS_OK) {
        omnidreams_close(self);
        return tell(&error, text, text_bytes);
    }
    *declared = (struct swerve_world_declared){
        .form = SWERVE_WORLD_FORM_RIG,
        .flags = SWERVE_WORLD_DETERMINISTIC | SWERVE_WORLD_CAMERAS,
        .horizon_ticks = spec->horizon_ticks,
        .tick_s = TICK_S,
        .rate_hz = spec->rate_hz,
        .chunk_frames = spec->chunk_frames,
        .first_frames = spec->chunk_frames - FIRST_FEWER,
        .states_max = 1,
    };
    memcpy(declared->name, spec->name, sizeof declared->name);
    version_make(&said, declared->version);
    *world = self;
    return 0;
}

bool omnidreams_ended(const void *world)
{
    return ((const struct omnidreams *)world)->broken;
}

void omnidreams_meet(void *world, const struct prepared *prepared)
{
    struct omnidreams *self = world;
    prepared_unref(self->prepared);
    self->prepared = prepared_ref((struct prepared *)(uintptr_t)prepared);
}

/* ---- a session ---- */

/* The first picture of a camera: the seed, which goes into its frame 0 as well, or frame 0 as our
 * sensors drew it. */
static enum status first_picture(const struct omnidreams *self,
                                 const struct omnidreams_start *start, uint32_t camera,
                                 const struct swerve_world_chunk *chunk,
                                 struct omnidreams_picture *out, struct error *error)
{
    const struct rig_camera *as = &self->rig->cameras[camera];
    uint8_t *frame = self->memory + chunk->frames[camera];
    if (self->host->seeds != NULL) {
        TRY(omnidreams_seed(self->host->seeds, start->scenario, &start->conditions, as->id, out,
                            error));
        return omnidreams_picture_read(out->data, out->bytes, out->format, as, frame, error) ==
                       STATUS_OK
                   ? STATUS_OK
                   : error_prefix(error, "the first frame of camera %s", as->id);
    }
    const size_t room = (size_t)as->width * (size_t)as->height * 3 + 65536;
    out->data = malloc(room);
    TRY(memory_check(out->data, error, "no memory for a picture"));
    out->format = OMNIDREAMS_JPEG;
    return jpeg_encode(frame, (uint32_t)as->width, (uint32_t)as->height, FIRST_QUALITY, out->data,
                       room, &out->bytes, error);
}

/* Puts the call of a session's start. */
static enum status start_session(struct omnidreams *self, const struct omnidreams_start *start,
                                 struct error *error)
{
    struct omnidreams_message message = {NULL, 0};
    struct grpc_call *call = NULL;
    size_t bytes = 0;
    enum status status = omnidreams_message_start(start, &message, error);
    THEN(status,
         put_call(self, SERVICE "start_session", &message, self->host->start_ms, &call, error));
    if (status == STATUS_OK) {
        const uint8_t *reply = grpc_call_reply(call, &bytes);
        status = omnidreams_session_read(reply, bytes, self->session, error);
        self->open = status == STATUS_OK;
        grpc_call_free(self->client, call);
    }
    free(message.data);
    return status;
}

static int omnidreams_reset(void *world, const struct swerve_world_chunk *chunk, char *text,
                            uint32_t text_bytes)
{
    struct omnidreams *self = world;
    struct omnidreams_picture first[RIG_CAMERAS_MAX] = {{NULL, 0, 0}};
    struct error error;
    uint8_t *map = NULL;
    CHECK(self->prepared != NULL && self->rig != NULL && chunk->state == STATE);
    struct omnidreams_start start = {
        .scenario = prepared_scenario(self->prepared),
        .rig = self->rig,
        .conditions = {.weather = (enum weather)chunk->weather, .light = (enum light)chunk->light},
        .first = first,
        .prompt = self->host->spec->prompt,
        .seed = chunk->seed != 0 ? chunk->seed : SEED_OF_0,
    };
    end_session(self);
    self->rear_m = start.scenario->ego.wheelbase_m / 2;
    enum status status = omnidreams_map(self->prepared, self->rig, &map, &start.map_bytes, &error);
    start.map = map;
    for (uint32_t i = 0; i < self->rig->camera_count; i++) {
        THEN(status, first_picture(self, &start, i, chunk, &first[i], &error));
    }
    THEN(status, start_session(self, &start, &error));
    for (uint32_t i = 0; i < self->rig->camera_count; i++) {
        free(first[i].data);
    }
    free(map);
    return status == STATUS_OK ? 0 : tell(&error, text, text_bytes);
}

/* One chunk of the session. */
static enum status make_chunk(struct omnidreams *self, const struct swerve_world_chunk *chunk,
                              struct error *error)
{
    struct omnidreams_message message = {NULL, 0};
    struct grpc_call *call = NULL;
    size_t bytes = 0;
    const struct swerve_world_body *bodies =
        (const struct swerve_world_body *)(const void *)(self->memory + chunk->bodies);
    if (!self->open) {
        return error_set(error, STATUS_DEVICE, "it has no session");
    }
    enum status status = omnidreams_message_chunk(self->session, self->host->spec->rate_hz,
                                                  self->rear_m, chunk, bodies, &message, error);
    THEN(status,
         put_call(self, SERVICE "render_video_chunk", &message, self->host->step_ms, &call, error));
    if (status == STATUS_OK) {
        const uint8_t *reply = grpc_call_reply(call, &bytes);
        status = omnidreams_chunk_read(reply, bytes, self->rig, chunk, self->memory, error);
        grpc_call_free(self->client, call);
    }
    free(message.data);
    return status;
}

static int omnidreams_step(void *world, uint32_t count, const struct swerve_world_chunk *chunks,
                           struct swerve_world_made *made, char *text, uint32_t text_bytes)
{
    struct omnidreams *self = world;
    struct error error;
    CHECK(count == 1 && chunks[0].state == STATE);
    if (make_chunk(self, &chunks[0], &error) != STATUS_OK) {
        return tell(&error, text, text_bytes);
    }
    made[0].result = SWERVE_WORLD_OK;
    return 0;
}

static int omnidreams_fork(void *world, uint32_t from, uint32_t to, char *text, uint32_t text_bytes)
{
    (void)world;
    (void)from;
    (void)to;
    snprintf(text, text_bytes, "the contract has no fork");
    return 1;
}

static void omnidreams_drop(void *world, uint32_t state)
{
    CHECK(state == STATE);
    end_session(world);
}

const struct swerve_world_ops omnidreams_ops = {
    .abi_version = SWERVE_WORLD_ABI_VERSION,
    .open = omnidreams_open,
    .close = omnidreams_close,
    .fork = omnidreams_fork,
    .drop = omnidreams_drop,
    .reset_rig = omnidreams_reset,
    .step_rig = omnidreams_step,
};
