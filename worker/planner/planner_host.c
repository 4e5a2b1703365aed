/*
 * A plugin in a process of its own. See planner_host.h.
 *
 * The worker is trusted to send whole frames, but a plain mistake is said and not read out of
 * bounds: every length is checked against the payload.
 */
#include "worker/planner/planner_host.h"

#include "base/check.h"
#include "schemas/limits.h"
#include "schemas/observation.h"
#include "schemas/rig/rig_choice.h"
#include "worker/planner/planner_history.h"
#include "worker/planner/planner_plugin.h"
#include "worker/wire/planner_wire.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The longest reset: a log of a million points is no scenario of ours. */
enum { PAYLOAD_BYTES_MAX = 64 << 20, ERROR_BYTES = 512 };

struct host {
    int in;
    int out;
    struct planner_plugin plugin;
    const char *config;
    void *instance; /* NULL: no hello yet */
    uint32_t session_count;
    struct wire_hello hello;
    const uint8_t *shm;
    size_t shm_bytes;
    struct wire_header header; /* of the question */
    uint8_t *payload;          /* its payload; malloc'ed, so aligned for every record */
    size_t payload_capacity;
    struct swerve_observation *observations; /* [session_count] */
    struct swerve_action *actions;           /* [session_count] */
    uint8_t *failed;                         /* [session_count] */
    /* of a plugin of version 3, else NULL */
    struct swerve_surroundings *around; /* [session_count] */
    struct swerve_answer *answers;      /* [session_count] */
    struct planner_history *history;
    /* of one of version 4, else NULL */
    struct swerve_sensors *sensors; /* [session_count], with room for RIG_SENSORS_MAX each */
    struct swerve_sensor *frames;   /* [session_count][RIG_SENSORS_MAX] */
    char text[ERROR_BYTES];
};

/* ---- frames ---- */

/* False: the end of input, or an error with errno. */
static bool read_all(int fd, void *to, size_t bytes)
{
    uint8_t *at = to;
    errno = 0;
    while (bytes > 0) {
        ssize_t got = read(fd, at, bytes);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        bytes -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static enum status write_all(int fd, const void *from, size_t bytes, struct error *error)
{
    const uint8_t *at = from;
    while (bytes > 0) {
        ssize_t wrote = write(fd, at, bytes);
        if (wrote < 0 && errno != EINTR) {
            return error_set(error, STATUS_PLANNER, "answer: %s", strerror(errno));
        }
        at += wrote > 0 ? wrote : 0;
        bytes -= wrote > 0 ? (size_t)wrote : 0;
    }
    return STATUS_OK;
}

/* One answer to the current question, in two parts. */
static enum status answer(struct host *host, enum planner_wire_type type, const void *head,
                          size_t head_bytes, const void *rest, size_t rest_bytes,
                          struct error *error)
{
    struct wire_header header = {PLANNER_WIRE_MAGIC, (uint32_t)type,
                                 (uint32_t)(head_bytes + rest_bytes), host->header.sequence};
    enum status status = write_all(host->out, &header, sizeof header, error);
    THEN(status, write_all(host->out, head, head_bytes, error));
    return status == STATUS_OK ? write_all(host->out, rest, rest_bytes, error) : status;
}

/* Passes on what the plugin said of its failure. */
static enum status answer_error(struct host *host, struct error *error)
{
    host->text[sizeof host->text - 1] = '\0';
    const char *text = host->text[0] != '\0' ? host->text : "failed and gave no reason";
    return answer(host, WIRE_ERROR, text, strlen(text), NULL, 0, error);
}

static enum status wrong_frame(const struct host *host, struct error *error)
{
    return error_set(error, STATUS_PLANNER,
                     "frame %u: type %u with a payload of %u bytes makes no sense here",
                     host->header.sequence, host->header.type, host->header.payload_bytes);
}

/* ---- questions ---- */

static bool plans(const struct host *host)
{
    return planner_ops_plans(host->plugin.ops);
}

static bool drives(const struct host *host)
{
    return planner_ops_drives(host->plugin.ops);
}

/* Room for a batch of every session. */
static enum status allocate(struct host *host, struct error *error)
{
    uint32_t n = host->session_count;
    host->observations = calloc(n, sizeof *host->observations);
    host->actions = calloc(n, sizeof *host->actions);
    host->failed = calloc(n, sizeof *host->failed);
    bool enough = host->observations != NULL && host->actions != NULL && host->failed != NULL;
    if (plans(host)) {
        host->around = calloc(n, sizeof *host->around);
        host->answers = calloc(n, sizeof *host->answers);
        enough = enough && host->around != NULL && host->answers != NULL;
    }
    if (drives(host)) {
        host->sensors = calloc(n, sizeof *host->sensors);
        host->frames = calloc((size_t)n * RIG_SENSORS_MAX, sizeof *host->frames);
        enough = enough && host->sensors != NULL && host->frames != NULL;
    }
    if (!enough) {
        return error_set(error, STATUS_NO_MEMORY, "plugin: out of memory");
    }
    uint32_t ticks = plans(host) ? host->plugin.ops->history_ticks : 0;
    return ticks == 0 ? STATUS_OK : planner_history_create(n, ticks, &host->history, error);
}

/* The welcome of an open plugin. */
static enum status greet(struct host *host, uint32_t wants, const struct swerve_offer *offer,
                         struct error *error)
{
    const struct swerve_planner_ops *ops = host->plugin.ops;
    const char *name = ops->name != NULL ? ops->name : "";
    char text[WIRE_NAME_BYTES_MAX + 1] = "";
    const struct wire_welcome welcome = {
        .version = drives(host)  ? PLANNER_WIRE_VERSION_NEWEST
                   : plans(host) ? PLANNER_WIRE_VERSION_PLANS
                                 : PLANNER_WIRE_VERSION,
        .wants = wants,
        .name_bytes = (uint32_t)strnlen(name, WIRE_NAME_BYTES_MAX),
        .tracker = (uint16_t)(plans(host) ? ops->tracker : 0),
    };
    uint8_t head[sizeof welcome + sizeof text];
    memcpy(head, &welcome, sizeof welcome);
    memcpy(head + sizeof welcome, name, welcome.name_bytes);
    return answer(host, WIRE_WELCOME, head, sizeof welcome + welcome.name_bytes, offer->choice,
                  drives(host) ? strnlen(offer->choice, offer->choice_bytes) : 0, error);
}

/* Opens the plugin and greets. */
static enum status open_plugin(struct host *host, struct swerve_offer *offer, struct error *error)
{
    const struct swerve_planner_ops *ops = host->plugin.ops;
    uint32_t wants = 0;
    struct error refused;
    if (planner_ops_settle(ops, &planner_place_host,
                           "here it has a process of its own, where they mean nothing (expected "
                           "a worker with --planner-sandbox off)",
                           &wants, &refused) != STATUS_OK) {
        snprintf(host->text, sizeof host->text, "%.*s", (int)sizeof host->text - 1, refused.text);
        return answer_error(host, error);
    }
    int failure = planner_ops_open(ops, wants, &planner_place_host, &host->instance, offer,
                                   host->text, sizeof host->text);
    planner_plugin_end_copy(&host->plugin);
    if (failure != 0) {
        host->instance = NULL;
        return answer_error(host, error);
    }
    return greet(host, wants, offer, error);
}

/* The rig of a hello as text, to be freed: what stands behind it, or the built-in one. */
static enum status offered_rig(const struct host *host, char **out, struct error *error)
{
    const size_t bytes = host->header.payload_bytes - sizeof host->hello;
    if ((host->hello.features & WIRE_RIG) != 0) {
        *out = strndup((const char *)host->payload + sizeof host->hello, bytes);
        return memory_check(*out, error, "plugin: out of memory for a rig");
    }
    struct rig *rig = malloc(sizeof *rig);
    TRY(memory_check(rig, error, "plugin: out of memory for a rig"));
    rig_swerve(rig);
    enum status status = rig_text(rig, out, error);
    free(rig);
    return status;
}

static enum status offer_plugin(struct host *host, struct error *error)
{
    char *rig = NULL;
    struct swerve_offer offer = {
        .config = host->config,
        .session_count = host->session_count,
        .choice_bytes = PLANNER_CHOICE_BYTES,
        .choice = calloc(1, PLANNER_CHOICE_BYTES),
    };
    enum status status = memory_check(offer.choice, error, "plugin: out of memory for a choice");
    THEN(status, offered_rig(host, &rig, error));
    offer.rig = rig;
    THEN(status, open_plugin(host, &offer, error));
    free(rig);
    free(offer.choice);
    return status;
}

static enum status take_hello(struct host *host, struct error *error)
{
    const char *shm_fd = getenv("SWERVE_SHM_FD");
    const char *shm_bytes = getenv("SWERVE_SHM_BYTES");
    if (host->header.payload_bytes < sizeof host->hello || host->instance != NULL) {
        return wrong_frame(host, error);
    }
    memcpy(&host->hello, host->payload, sizeof host->hello);
    host->session_count = host->hello.session_count;
    host->shm_bytes = shm_bytes != NULL ? strtoull(shm_bytes, NULL, 10) : 0;
    if (shm_fd == NULL || host->session_count == 0 || host->hello.version != PLANNER_WIRE_VERSION ||
        host->hello.slot_bytes != WIRE_SLOT_BYTES ||
        host->shm_bytes / WIRE_SLOT_BYTES < host->session_count) {
        return error_set(error, STATUS_PLANNER,
                         "hello: expected version %u and %d bytes of shared "
                         "memory per session",
                         PLANNER_WIRE_VERSION, WIRE_SLOT_BYTES);
    }
    void *mapped = mmap(NULL, host->shm_bytes, PROT_READ, MAP_SHARED, atoi(shm_fd), 0);
    if (mapped == MAP_FAILED) {
        return error_set(error, STATUS_PLANNER, "shared memory: %s", strerror(errno));
    }
    host->shm = mapped;
    TRY(allocate(host, error));
    return offer_plugin(host, error);
}

/* Rows behind the rest of a reset; false: sizes lie. */
static bool find_controls(const struct host *host, const struct wire_reset *reset,
                          const struct swerve_controls_row **rows, uint32_t *count)
{
    const size_t bytes = host->header.payload_bytes;
    const size_t others = sizeof *reset +
                          (size_t)reset->log_count * sizeof(struct swerve_log_point) +
                          reset->map_bytes + reset->scenario_id_bytes + reset->prompt_bytes;
    const size_t at = wire_controls_offset(others);
    *rows = NULL;
    *count = 0;
    if (bytes == others) {
        return true;
    }
    if (bytes <= at || (bytes - at) % sizeof **rows != 0) {
        return false;
    }
    *rows = (const struct swerve_controls_row *)(const void *)(host->payload + at);
    *count = (uint32_t)((bytes - at) / sizeof **rows);
    return true;
}

static enum status take_reset(struct host *host, struct error *error)
{
    struct wire_reset reset;
    char scenario_id[LIMIT_TEXT_BYTES + 1] = "";
    char prompt[LIMIT_PROMPT_BYTES + 1] = "";
    const struct swerve_controls_row *controls = NULL;
    uint32_t controls_count = 0;
    static const size_t point_bytes = sizeof(struct swerve_log_point);
    size_t bytes = host->header.payload_bytes;
    if (bytes < sizeof reset) {
        return wrong_frame(host, error);
    }
    memcpy(&reset, host->payload, sizeof reset);
    size_t rest = bytes - sizeof reset;
    if (reset.log_count > rest / point_bytes || reset.session >= host->session_count ||
        reset.scenario_id_bytes > LIMIT_TEXT_BYTES || reset.prompt_bytes > LIMIT_PROMPT_BYTES ||
        reset.map_bytes > rest || !find_controls(host, &reset, &controls, &controls_count)) {
        return wrong_frame(host, error);
    }
    const uint8_t *log = host->payload + sizeof reset;
    const uint8_t *map_at = log + reset.log_count * point_bytes;
    const uint8_t *texts = map_at + reset.map_bytes;
    struct swerve_map map;
    uint32_t objects_source = SWERVE_OBJECTS_NONE;
    if (reset.map_bytes > 0 && !wire_map_decode(map_at, reset.map_bytes, &map, &objects_source)) {
        return wrong_frame(host, error);
    }
    memcpy(scenario_id, texts, reset.scenario_id_bytes);
    memcpy(prompt, texts + reset.scenario_id_bytes, reset.prompt_bytes);
    const struct swerve_episode episode = {
        .session = reset.session,
        .horizon_ticks = reset.horizon_ticks,
        .seed = reset.seed,
        .tick_s = reset.tick_s,
        .scenario_id = scenario_id,
        .prompt = prompt,
        .ego_length_m = reset.ego_length_m,
        .ego_width_m = reset.ego_width_m,
        .ego_wheelbase_m = reset.ego_wheelbase_m,
        .log_count = reset.log_count,
        .log = (const struct swerve_log_point *)(const void *)log,
        .map = reset.map_bytes > 0 ? &map : NULL,
        .objects_source = objects_source,
        .controls_count = controls_count,
        .controls = controls,
    };
    if (host->history != NULL) {
        planner_history_clear(host->history, reset.session);
    }
    int failure = host->plugin.ops->reset(host->instance, &episode, host->text, sizeof host->text);
    planner_plugin_end_copy(&host->plugin);
    if (failure != 0) {
        return answer_error(host, error);
    }
    return answer(host, WIRE_DONE, NULL, 0, NULL, 0, error);
}

/* Sensors of query i, in its session's slot. False: nonsense. */
static bool read_sensors(struct host *host, uint32_t i, uint32_t session)
{
    const size_t slot_bytes = host->shm_bytes / host->session_count;
    struct swerve_sensor *frames = host->frames + (size_t)i * RIG_SENSORS_MAX;
    host->sensors[i].sensors = frames;
    return wire_slot_read(host->shm + session * slot_bytes, slot_bytes, frames, RIG_SENSORS_MAX,
                          &host->sensors[i].count);
}

static void fill_observation(const struct host *host, const struct wire_query *query,
                             struct swerve_observation *out)
{
    const uint8_t *slot = host->shm + (size_t)query->session * WIRE_SLOT_BYTES;
    *out = (struct swerve_observation){
        .session = query->session,
        .tick = query->tick,
        .time_ns = query->time_ns,
        .bev_time_ns = query->bev_time_ns,
        .x_m = query->x_m,
        .y_m = query->y_m,
        .heading_rad = query->heading_rad,
        .speed_mps = query->speed_mps,
        .accel_mps2 = query->accel_mps2,
        .lat_accel_mps2 = query->lat_accel_mps2,
        .yaw_rate_rps = query->yaw_rate_rps,
        .steer_rad = query->steer_rad,
        .route_count = query->route_count,
        .route = (const struct swerve_route_point *)(const void *)query->route,
        .bev = (query->present & WIRE_PRESENT_BEV) != 0 ? slot + host->hello.bev_offset : NULL,
    };
    for (int i = 0; i < CAMERA_COUNT; i++) {
        out->camera_time_ns[i] = query->camera_time_ns[i];
        if ((query->present & (uint32_t)WIRE_PRESENT_CAMERA_LEFT << i) != 0) {
            out->camera[i] = slot + host->hello.camera_offset[i];
        }
    }
}

/* The queries of a frame into observations, and what is around each. False: nonsense. */
static bool take_queries(struct host *host, const struct wire_act *act)
{
    const struct wire_query *queries =
        (const struct wire_query *)(const void *)(host->payload + sizeof *act);
    size_t left = host->header.payload_bytes - sizeof *act;
    if (act->count > host->session_count || act->record_bytes != sizeof *queries ||
        left / sizeof *queries < act->count) {
        return false;
    }
    const uint8_t *at = (const uint8_t *)&queries[act->count];
    const uint8_t *end = host->payload + host->header.payload_bytes;
    for (uint32_t i = 0; i < act->count; i++) {
        if (queries[i].session >= host->session_count ||
            queries[i].route_count > WIRE_ROUTE_POINTS ||
            (plans(host) && !wire_around_decode(&at, end, &host->around[i])) ||
            (drives(host) && !read_sensors(host, i, queries[i].session))) {
            return false;
        }
        fill_observation(host, &queries[i], &host->observations[i]);
        host->actions[i] = (struct swerve_action){(double)NAN, (double)NAN};
        host->failed[i] = 0;
    }
    return at == end;
}

/* The answers of act. */
static enum status answer_actions(struct host *host, uint32_t count, struct error *error)
{
    /* The questions are answered: their memory serves for the answers, which are shorter. */
    _Static_assert(sizeof(struct wire_answer) <= sizeof(struct wire_query), "answers fit");
    const struct wire_act head = {count, sizeof(struct wire_answer)};
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_answer record = {host->observations[i].session,
                                           host->failed[i] != 0 ? 1 : 0,
                                           host->actions[i].accel_mps2, host->actions[i].steer_rad};
        memcpy(host->payload + i * sizeof record, &record, sizeof record);
    }
    return answer(host, WIRE_ACTIONS, &head, sizeof head, host->payload,
                  count * sizeof(struct wire_answer), error);
}

/* The answers of plan: records, then points. Written to memory of their own, since they may be
 * longer than the questions. */
static enum status answer_plans(struct host *host, uint32_t count, struct error *error)
{
    const struct wire_act head = {count, sizeof(struct wire_plan)};
    size_t bytes = count * sizeof(struct wire_plan);
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_answer *plan = &host->answers[i];
        /* More than there is room for is passed on as a count alone, which the worker refuses. */
        bytes += plan->point_count <= SWERVE_TRAJECTORY_POINTS
                     ? plan->point_count * sizeof plan->points[0]
                     : 0;
    }
    uint8_t *frame = malloc(bytes + 1);
    TRY(memory_check(frame, error, "plugin: out of memory for an answer"));
    uint8_t *points = frame + count * sizeof(struct wire_plan);
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_answer *plan = &host->answers[i];
        const struct wire_plan record = {
            .session = host->observations[i].session,
            .failed = host->failed[i] != 0 ? 1 : 0,
            .accel_mps2 = plan->action.accel_mps2,
            .steer_rad = plan->action.steer_rad,
            .point_count = plan->point_count,
        };
        memcpy(frame + i * sizeof record, &record, sizeof record);
        if (plan->point_count <= SWERVE_TRAJECTORY_POINTS) {
            memcpy(points, plan->points, plan->point_count * sizeof plan->points[0]);
            points += plan->point_count * sizeof plan->points[0];
        }
    }
    enum status status = answer(host, WIRE_ACTIONS, &head, sizeof head, frame, bytes, error);
    free(frame);
    return status;
}

/* One call of plan, with the history of each session. */
static int ask_plan(struct host *host, uint32_t count)
{
    struct error fault;
    for (uint32_t i = 0; i < count; i++) {
        host->answers[i].action = host->actions[i];
        host->answers[i].point_count = 0;
        if (host->history != NULL) {
            planner_history_show(host->history, host->observations[i].session, &host->around[i]);
        }
    }
    int failure =
        planner_ops_plan(host->plugin.ops, host->instance, count, host->observations, host->around,
                         host->sensors, host->answers, host->failed, host->text, sizeof host->text);
    for (uint32_t i = 0; i < count && failure == 0 && host->history != NULL; i++) {
        if (planner_history_add(host->history, &host->observations[i], &host->around[i], &fault) !=
            STATUS_OK) {
            snprintf(host->text, sizeof host->text, "%s", "out of memory");
            failure = 1;
        }
    }
    return failure;
}

static enum status take_act(struct host *host, struct error *error)
{
    struct wire_act act;
    if (host->header.payload_bytes < sizeof act) {
        return wrong_frame(host, error);
    }
    memcpy(&act, host->payload, sizeof act);
    if (!take_queries(host, &act)) {
        return wrong_frame(host, error);
    }
    int failure = plans(host) ? ask_plan(host, act.count)
                              : host->plugin.ops->act(host->instance, act.count, host->observations,
                                                      host->actions, host->failed, host->text,
                                                      sizeof host->text);
    planner_plugin_end_copy(&host->plugin);
    if (failure != 0) {
        return answer_error(host, error);
    }
    return plans(host) ? answer_plans(host, act.count, error)
                       : answer_actions(host, act.count, error);
}

static enum status take_fork(struct host *host, struct error *error)
{
    struct wire_fork fork_frame;
    if (host->header.payload_bytes != sizeof fork_frame) {
        return wrong_frame(host, error);
    }
    memcpy(&fork_frame, host->payload, sizeof fork_frame);
    if (fork_frame.from >= host->session_count || fork_frame.to >= host->session_count ||
        fork_frame.from == fork_frame.to) {
        return wrong_frame(host, error);
    }
    int failure = 0;
    if (host->history != NULL) {
        TRY(planner_history_fork(host->history, fork_frame.from, fork_frame.to, error));
    }
    if (host->plugin.ops->fork != NULL) {
        failure = host->plugin.ops->fork(host->instance, fork_frame.from, fork_frame.to, host->text,
                                         sizeof host->text);
    }
    planner_plugin_end_copy(&host->plugin);
    if (failure != 0) {
        return answer_error(host, error);
    }
    return answer(host, WIRE_DONE, NULL, 0, NULL, 0, error);
}

static enum status take_end(struct host *host, struct error *error)
{
    struct wire_end end;
    if (host->header.payload_bytes != sizeof end) {
        return wrong_frame(host, error);
    }
    memcpy(&end, host->payload, sizeof end);
    if (end.session >= host->session_count) {
        return wrong_frame(host, error);
    }
    if (host->plugin.ops->end != NULL) {
        host->plugin.ops->end(host->instance, end.session);
        planner_plugin_end_copy(&host->plugin);
    }
    return STATUS_OK;
}

static enum status take(struct host *host, struct error *error)
{
    host->text[0] = '\0';
    if (host->header.type == WIRE_HELLO) {
        return take_hello(host, error);
    }
    if (host->instance == NULL) {
        return wrong_frame(host, error);
    }
    switch (host->header.type) {
    case WIRE_RESET:
        return take_reset(host, error);
    case WIRE_ACT:
        return take_act(host, error);
    case WIRE_FORK:
        return take_fork(host, error);
    case WIRE_END:
        return take_end(host, error);
    default:
        return wrong_frame(host, error);
    }
}

/* ---- the loop ---- */

/* The next question into header and payload. *over: there is none. */
static enum status next_frame(struct host *host, bool *over, struct error *error)
{
    *over = !read_all(host->in, &host->header, sizeof host->header);
    if (*over) {
        return STATUS_OK; /* the worker is gone; nobody would hear a complaint */
    }
    size_t bytes = host->header.payload_bytes;
    if (host->header.magic != PLANNER_WIRE_MAGIC || bytes > PAYLOAD_BYTES_MAX) {
        return wrong_frame(host, error);
    }
    if (bytes + 1 > host->payload_capacity) {
        uint8_t *grown = realloc(host->payload, bytes + 1);
        TRY(memory_check(grown, error, "plugin: out of memory for a frame"));
        host->payload = grown;
        host->payload_capacity = bytes + 1;
    }
    *over = !read_all(host->in, host->payload, bytes) || host->header.type == WIRE_BYE;
    return STATUS_OK;
}

enum status planner_host_run(const char *file, const char *config, struct error *error)
{
    struct host host = {.in = STDIN_FILENO, .config = config};
    bool over = false;
    host.out = dup(STDOUT_FILENO);
    if (host.out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return error_set(error, STATUS_IO, "plugin: descriptors: %s", strerror(errno));
    }
    enum status status = planner_plugin_load(file, &host.plugin, error);
    while (status == STATUS_OK && !over) {
        status = next_frame(&host, &over, error);
        if (status == STATUS_OK && !over) {
            status = take(&host, error);
        }
    }
    if (host.instance != NULL) {
        host.plugin.ops->close(host.instance);
        planner_plugin_end_copy(&host.plugin);
    }
    planner_plugin_unload(&host.plugin);
    if (host.shm != NULL) {
        munmap((void *)(uintptr_t)host.shm, host.shm_bytes);
    }
    free(host.observations);
    free(host.actions);
    free(host.failed);
    free(host.around);
    free(host.answers);
    free(host.sensors);
    free(host.frames);
    planner_history_destroy(host.history);
    free(host.payload);
    close(host.out);
    return status;
}
