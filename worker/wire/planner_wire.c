/*
 * Codec of the exec planner protocol. Frames are built and read with memcpy, so alignment and
 * aliasing of the byte buffers never matter.
 */
#include "worker/wire/planner_wire.h"

#include "base/check.h"
#include "schemas/limits.h"
#include "schemas/observation.h"

#include <string.h>

/* ---- encode ---- */

static uint8_t *put(uint8_t *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return to + bytes;
}

static uint8_t *put_header(uint8_t *to, uint32_t type, size_t payload_bytes, uint32_t sequence)
{
    struct wire_header header = {PLANNER_WIRE_MAGIC, type, (uint32_t)payload_bytes, sequence};
    CHECK(payload_bytes <= UINT32_MAX);
    return put(to, &header, sizeof header);
}

size_t wire_hello_bytes(const char *rig)
{
    return sizeof(struct wire_header) + sizeof(struct wire_hello) + (rig != NULL ? strlen(rig) : 0);
}

void wire_hello_encode(uint8_t *out, uint32_t sequence, uint32_t session_count,
                       uint32_t tick_deadline_ms, uint32_t features, const char *rig)
{
    const size_t rig_bytes = rig != NULL ? strlen(rig) : 0;
    _Static_assert(BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES <= WIRE_SLOT_BYTES, "slot too small");
    struct wire_hello hello = {
        .version = PLANNER_WIRE_VERSION,
        .session_count = session_count,
        .slot_bytes = WIRE_SLOT_BYTES,
        .bev_offset = 0,
        .camera_offset = {BEV_BYTES, BEV_BYTES + CAMERA_BYTES, BEV_BYTES + 2 * CAMERA_BYTES},
        .bev_channels = BEV_CHANNELS,
        .bev_rows = BEV_ROWS,
        .bev_cols = BEV_COLS,
        .camera_rows = CAMERA_ROWS,
        .camera_cols = CAMERA_COLS,
        .tick_deadline_ms = tick_deadline_ms,
        .route_points_max = SWERVE_ROUTE_POINTS,
        .features = features | (rig != NULL ? WIRE_RIG : 0),
        .version_newest = PLANNER_WIRE_VERSION_NEWEST,
        .route_step_m = SWERVE_ROUTE_STEP_M,
        .bev_cell_m = BEV_CELL_M,
        .bev_x_min_m = BEV_X_MIN_M,
        .bev_y_min_m = BEV_Y_MIN_M,
    };
    for (int i = 0; i < CAMERA_COUNT; i++) {
        const struct camera_calibration *camera = &camera_calibrations[i];
        hello.cameras[i] = (struct wire_camera){camera->x_m, camera->y_m, camera->z_m,
                                                camera->yaw_rad, camera->hfov_rad};
    }
    uint8_t *to = put_header(out, WIRE_HELLO, sizeof hello + rig_bytes, sequence);
    put(put(to, &hello, sizeof hello), rig, rig_bytes);
}

static size_t text_bytes_of(const char *text, size_t limit)
{
    return text != NULL ? strnlen(text, limit) : 0;
}

/* Of a reset's payload but its controls. */
static size_t reset_payload_bytes(const struct swerve_episode *episode)
{
    return sizeof(struct wire_reset) +
           (size_t)episode->log_count * sizeof(struct swerve_log_point) +
           (episode->map != NULL ? wire_map_bytes(episode->map) : 0) +
           text_bytes_of(episode->scenario_id, LIMIT_TEXT_BYTES) +
           text_bytes_of(episode->prompt, LIMIT_PROMPT_BYTES);
}

size_t wire_controls_offset(size_t payload_bytes)
{
    return (payload_bytes + 7) / 8 * 8;
}

size_t wire_reset_bytes(const struct swerve_episode *episode)
{
    const size_t bytes = reset_payload_bytes(episode);
    const size_t rows = (size_t)episode->controls_count * sizeof(struct swerve_controls_row);
    return sizeof(struct wire_header) + (rows > 0 ? wire_controls_offset(bytes) + rows : bytes);
}

void wire_reset_encode(uint8_t *out, uint32_t sequence, const struct swerve_episode *episode)
{
    struct wire_reset reset = {
        .session = episode->session,
        .horizon_ticks = episode->horizon_ticks,
        .seed = episode->seed,
        .tick_s = episode->tick_s,
        .ego_length_m = episode->ego_length_m,
        .ego_width_m = episode->ego_width_m,
        .ego_wheelbase_m = episode->ego_wheelbase_m,
        .log_count = episode->log_count,
        .scenario_id_bytes = (uint32_t)text_bytes_of(episode->scenario_id, LIMIT_TEXT_BYTES),
        .prompt_bytes = (uint32_t)text_bytes_of(episode->prompt, LIMIT_PROMPT_BYTES),
        .map_bytes = episode->map != NULL ? (uint32_t)wire_map_bytes(episode->map) : 0,
    };
    uint8_t *to = put_header(out, WIRE_RESET,
                             wire_reset_bytes(episode) - sizeof(struct wire_header), sequence);
    to = put(to, &reset, sizeof reset);
    to = put(to, episode->log, (size_t)episode->log_count * sizeof(struct swerve_log_point));
    if (episode->map != NULL) {
        to = wire_map_encode(to, episode->map, episode->objects_source);
    }
    to = put(to, episode->scenario_id, reset.scenario_id_bytes);
    to = put(to, episode->prompt, reset.prompt_bytes);
    if (episode->controls_count > 0) {
        static const uint8_t fill[8] = {0};
        const size_t bytes = reset_payload_bytes(episode);
        to = put(to, fill, wire_controls_offset(bytes) - bytes);
        put(to, episode->controls,
            (size_t)episode->controls_count * sizeof(struct swerve_controls_row));
    }
}

size_t wire_act_bytes(uint32_t count)
{
    return sizeof(struct wire_header) + sizeof(struct wire_act) +
           (size_t)count * sizeof(struct wire_query);
}

size_t wire_plan_bytes(uint32_t count, const struct swerve_surroundings *around)
{
    size_t bytes = wire_act_bytes(count);
    for (uint32_t i = 0; i < count; i++) {
        bytes += sizeof(struct wire_around) +
                 around[i].object_count * sizeof(struct swerve_object) +
                 around[i].signal_count * sizeof(struct swerve_signal_state);
    }
    return bytes;
}

static void fill_query(struct wire_query *query, uint32_t wants,
                       const struct swerve_observation *from)
{
    *query = (struct wire_query){
        .session = from->session,
        .tick = from->tick,
        .time_ns = from->time_ns,
        .bev_time_ns = from->bev_time_ns,
        .x_m = from->x_m,
        .y_m = from->y_m,
        .heading_rad = from->heading_rad,
        .speed_mps = from->speed_mps,
        .accel_mps2 = from->accel_mps2,
        .lat_accel_mps2 = from->lat_accel_mps2,
        .yaw_rate_rps = from->yaw_rate_rps,
        .steer_rad = from->steer_rad,
        .route_count = from->route_count,
    };
    CHECK(from->route_count <= WIRE_ROUTE_POINTS);
    if ((wants & SWERVE_WANTS_BEV) != 0 && from->bev != NULL) {
        query->present |= WIRE_PRESENT_BEV;
    }
    for (int i = 0; i < CAMERA_COUNT; i++) {
        query->camera_time_ns[i] = from->camera_time_ns[i];
        if ((wants & SWERVE_WANTS_CAMERAS) != 0 && from->camera[i] != NULL) {
            query->present |= (uint32_t)WIRE_PRESENT_CAMERA_LEFT << i;
        }
    }
    if (from->route_count > 0) {
        memcpy(query->route, from->route, from->route_count * sizeof from->route[0]);
    }
}

static uint8_t *put_queries(uint8_t *out, size_t frame_bytes, uint32_t sequence, uint32_t wants,
                            uint32_t count, const struct swerve_observation *observations)
{
    struct wire_act act = {count, sizeof(struct wire_query)};
    uint8_t *to = put_header(out, WIRE_ACT, frame_bytes - sizeof(struct wire_header), sequence);
    to = put(to, &act, sizeof act);
    for (uint32_t i = 0; i < count; i++) {
        struct wire_query query;
        fill_query(&query, wants, &observations[i]);
        to = put(to, &query, sizeof query);
    }
    return to;
}

void wire_act_encode(uint8_t *out, uint32_t sequence, uint32_t wants, uint32_t count,
                     const struct swerve_observation *observations)
{
    put_queries(out, wire_act_bytes(count), sequence, wants, count, observations);
}

void wire_plan_encode(uint8_t *out, uint32_t sequence, uint32_t wants, uint32_t count,
                      const struct swerve_observation *observations,
                      const struct swerve_surroundings *around)
{
    uint8_t *to =
        put_queries(out, wire_plan_bytes(count, around), sequence, wants, count, observations);
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_around head = {
            .objects_source = around[i].objects_source,
            .object_count = around[i].object_count,
            .signal_count = around[i].signal_count,
            .objects_time_ns = around[i].objects_time_ns,
        };
        to = put(to, &head, sizeof head);
        to = put(to, around[i].objects, head.object_count * sizeof(struct swerve_object));
        to = put(to, around[i].signals, head.signal_count * sizeof(struct swerve_signal_state));
    }
}

size_t wire_fork_encode(uint8_t out[24], uint32_t sequence, uint32_t from, uint32_t to)
{
    struct wire_fork fork = {from, to};
    put(put_header(out, WIRE_FORK, sizeof fork, sequence), &fork, sizeof fork);
    return sizeof(struct wire_header) + sizeof fork;
}

size_t wire_end_encode(uint8_t out[24], uint32_t sequence, uint32_t session)
{
    struct wire_end end = {session, 0};
    put(put_header(out, WIRE_END, sizeof end, sequence), &end, sizeof end);
    return sizeof(struct wire_header) + sizeof end;
}

size_t wire_bye_encode(uint8_t out[24], uint32_t sequence)
{
    put_header(out, WIRE_BYE, 0, sequence);
    return sizeof(struct wire_header);
}

/* ---- decode ---- */

size_t wire_answer_bytes_max(uint32_t version, uint32_t count)
{
    size_t each = version < PLANNER_WIRE_VERSION_PLANS
                      ? sizeof(struct wire_answer)
                      : sizeof(struct wire_plan) +
                            SWERVE_TRAJECTORY_POINTS * sizeof(struct swerve_trajectory_point);
    size_t actions = sizeof(struct wire_act) + count * each;
    return actions > WIRE_ERROR_BYTES_MAX ? actions : WIRE_ERROR_BYTES_MAX;
}

enum status wire_header_decode(const uint8_t bytes[16], uint32_t sequence, size_t payload_bytes_max,
                               struct wire_header *out, struct error *error)
{
    struct wire_header header;
    memcpy(&header, bytes, sizeof header);
    if (header.magic != PLANNER_WIRE_MAGIC) {
        return error_set(error, STATUS_PLANNER,
                         "answer: expected a frame (magic %08x), found %08x; is something printing "
                         "to stdout?",
                         PLANNER_WIRE_MAGIC, header.magic);
    }
    if (header.type != WIRE_WELCOME && header.type != WIRE_DONE && header.type != WIRE_ACTIONS &&
        header.type != WIRE_ERROR) {
        return error_set(error, STATUS_PLANNER,
                         "answer: expected welcome, done, actions or error, found frame type %u",
                         header.type);
    }
    if (header.sequence != sequence) {
        return error_set(error, STATUS_PLANNER, "answer: expected sequence %u, found %u", sequence,
                         header.sequence);
    }
    if (header.payload_bytes > payload_bytes_max) {
        return error_set(error, STATUS_PLANNER,
                         "answer: expected at most %zu payload bytes, found %u", payload_bytes_max,
                         header.payload_bytes);
    }
    *out = header;
    return STATUS_OK;
}

static enum status welcome_check(const struct wire_welcome *welcome, struct error *error)
{
    static const uint32_t sensors = SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS;
    static const uint32_t lists = SWERVE_WANTS_OBJECTS | SWERVE_WANTS_SEEN | SWERVE_WANTS_MAP |
                                  SWERVE_WANTS_SIGNALS | SWERVE_WANTS_CONTROLS;
    bool plans = welcome->version >= PLANNER_WIRE_VERSION_PLANS;
    uint32_t known = plans ? lists : 0;
    known |= welcome->version < PLANNER_WIRE_VERSION_NEWEST ? sensors : 0;
    if (welcome->version != PLANNER_WIRE_VERSION &&
        welcome->version != PLANNER_WIRE_VERSION_PLANS &&
        welcome->version != PLANNER_WIRE_VERSION_NEWEST) {
        return error_set(error, STATUS_PLANNER,
                         "welcome: expected protocol version %u, %u or %u, found %u",
                         PLANNER_WIRE_VERSION, PLANNER_WIRE_VERSION_PLANS,
                         PLANNER_WIRE_VERSION_NEWEST, welcome->version);
    }
    if ((welcome->wants & ~known) != 0) {
        return error_set(error, STATUS_PLANNER,
                         "welcome: wants has bits that version %u does not know: 0x%x",
                         welcome->version, welcome->wants);
    }
    if ((welcome->wants & (SWERVE_WANTS_OBJECTS | SWERVE_WANTS_SEEN)) == SWERVE_WANTS_SEEN) {
        return error_set(error, STATUS_PLANNER,
                         "welcome: wants 0x%x says which objects, and not that there are to be any",
                         welcome->wants);
    }
    if (welcome->tracker >= (plans ? SWERVE_TRACKER_COUNT : 1)) {
        return error_set(error, STATUS_PLANNER,
                         "welcome: expected a tracker below %d in version %u, found %u",
                         plans ? SWERVE_TRACKER_COUNT : 1, welcome->version, welcome->tracker);
    }
    return STATUS_OK;
}

enum status wire_welcome_decode(const uint8_t *payload, size_t bytes, struct wire_greeting *out,
                                struct error *error)
{
    struct wire_welcome welcome;
    if (bytes < sizeof welcome) {
        return error_set(error, STATUS_PLANNER, "welcome: expected at least %zu bytes, found %zu",
                         sizeof welcome, bytes);
    }
    memcpy(&welcome, payload, sizeof welcome);
    TRY(welcome_check(&welcome, error));
    bool chooses = welcome.version == PLANNER_WIRE_VERSION_NEWEST;
    size_t rest = bytes - sizeof welcome;
    if ((welcome.loaded_bytes != 0 && welcome.loaded_bytes != WIRE_LOADED_BYTES) ||
        welcome.name_bytes > WIRE_NAME_BYTES_MAX ||
        (chooses ? rest < welcome.name_bytes + welcome.loaded_bytes
                 : rest != welcome.name_bytes + welcome.loaded_bytes)) {
        return error_set(error, STATUS_PLANNER,
                         "welcome: expected a name of at most %d bytes, then 0 or %d bytes of a "
                         "hash, then %s, found %u and %u in a payload of %zu",
                         WIRE_NAME_BYTES_MAX, WIRE_LOADED_BYTES,
                         chooses ? "a choice of sensors" : "the end of the frame",
                         welcome.name_bytes, welcome.loaded_bytes, bytes);
    }
    const uint8_t *text = payload + sizeof welcome;
    for (uint32_t i = 0; i < welcome.name_bytes; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e) {
            return error_set(error, STATUS_PLANNER,
                             "welcome: name byte %u is not printable ASCII: %02x", i, text[i]);
        }
    }
    text += welcome.name_bytes;
    for (uint32_t i = 0; i < welcome.loaded_bytes; i++) {
        if (strchr("0123456789abcdef", text[i]) == NULL || text[i] == '\0') {
            return error_set(error, STATUS_PLANNER,
                             "welcome: byte %u of the hash is no hex digit: %02x", i, text[i]);
        }
    }
    *out = (struct wire_greeting){
        .version = welcome.version,
        .wants = welcome.wants,
        .tracker = welcome.tracker,
        .choice = (const char *)text + welcome.loaded_bytes,
        .choice_bytes = rest - welcome.name_bytes - welcome.loaded_bytes,
    };
    memcpy(out->name, payload + sizeof welcome, welcome.name_bytes);
    memcpy(out->loaded, text, welcome.loaded_bytes);
    return STATUS_OK;
}

static enum status actions_check(const uint8_t *payload, size_t bytes, uint32_t count,
                                 const struct swerve_observation *observations, struct error *error)
{
    struct wire_act act;
    if (bytes < sizeof act) {
        return error_set(error, STATUS_PLANNER, "actions: expected at least %zu bytes, found %zu",
                         sizeof act, bytes);
    }
    memcpy(&act, payload, sizeof act);
    if (act.count != count || act.record_bytes != sizeof(struct wire_answer) ||
        bytes != sizeof act + (size_t)count * sizeof(struct wire_answer)) {
        return error_set(error, STATUS_PLANNER,
                         "actions: expected %u records of %zu bytes, found %u of %u in a payload "
                         "of %zu",
                         count, sizeof(struct wire_answer), act.count, act.record_bytes, bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct wire_answer answer;
        memcpy(&answer, payload + sizeof act + i * sizeof answer, sizeof answer);
        if (answer.session != observations[i].session) {
            return error_set(error, STATUS_PLANNER,
                             "actions: record %u: expected session %u, found %u", i,
                             observations[i].session, answer.session);
        }
        if (answer.failed > 1) {
            return error_set(error, STATUS_PLANNER,
                             "actions: record %u: expected failed to be 0 or 1, found %u", i,
                             answer.failed);
        }
    }
    return STATUS_OK;
}

enum status wire_actions_decode(const uint8_t *payload, size_t bytes, uint32_t count,
                                const struct swerve_observation *observations,
                                struct swerve_answer *answers, uint8_t *failed, struct error *error)
{
    TRY(actions_check(payload, bytes, count, observations, error));
    for (uint32_t i = 0; i < count; i++) {
        struct wire_answer answer;
        memcpy(&answer, payload + sizeof(struct wire_act) + i * sizeof answer, sizeof answer);
        answers[i].action = (struct swerve_action){answer.accel_mps2, answer.steer_rad};
        answers[i].point_count = 0;
        failed[i] = (uint8_t)answer.failed;
    }
    return STATUS_OK;
}

void wire_error_text(const uint8_t *payload, size_t bytes, char *text, size_t text_bytes)
{
    size_t kept = bytes < text_bytes - 1 ? bytes : text_bytes - 1;
    for (size_t i = 0; i < kept; i++) {
        text[i] = payload[i] < 0x20 || payload[i] == 0x7f ? ' ' : (char)payload[i];
    }
    text[kept] = '\0';
}
