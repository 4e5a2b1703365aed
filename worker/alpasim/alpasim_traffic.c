/*
 * TrafficService: the object world's agents around an ego that somebody else drives. See alpasim.h.
 *
 * A session is a drive of its scene from tick 0 on, in which ego is put where the caller's poses
 * have it. Time begins with ego's first pose. Until the handover everybody is where the caller's
 * log has him; then agents of the scene are where they drove, and objects that the scene does not
 * know stay with their log.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "engine/worlds/drive.h"
#include "engine/worlds/world.h"
#include "worker/alpasim/alpasim_internal.h"

#include "schemas/proto/sensorsim.pb-c.h"
#include "schemas/proto/traffic.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OBJECTS_MAX = 4 * LIMIT_AGENTS,
    PLACES_MAX = 16 * LIMIT_HORIZON_TICKS, /* of a path */
    TICK_US = TICK_NS / 1000
};

static const char ego_name[] = "EGO";

struct place {
    uint64_t time_us;
    double x_m, y_m, z_m, yaw_rad;
};

/* Places in the order of time. */
struct path {
    uint32_t count;
    struct place *places;
};

struct object {
    char id[LIMIT_ID_BYTES];
    uint32_t agent; /* of the scenario; UINT32_MAX: it has none such */
    bool is_static;
    struct path log;
};

struct alpasim_traffic {
    char id[LIMIT_ID_BYTES];
    uint64_t used, begin_us, handover_us;
    struct path ego;
    uint32_t object_count; /* without ego, in the order of the question */
    struct object *objects;
    struct drive drive;
    struct agent_state before[LIMIT_AGENTS]; /* a tick ago; at tick 0 those of then */
};

void alpasim_traffic_end(struct alpasim_traffic *session)
{
    if (session == NULL) {
        return;
    }
    for (uint32_t i = 0; i < session->object_count; i++) {
        free(session->objects[i].log.places);
    }
    if (session->drive.prepared != NULL) {
        drive_release(&session->drive);
    }
    free(session->objects);
    free(session->ego.places);
    free(session);
}

/* ---- paths ---- */

/* Adds poses; places that are not before the first of them make way, and those that no time from
 * since_us on needs. False: *answer says what is wrong with them, and the path is as it was. */
static bool path_take(struct path *path, uint64_t since_us, const char *id,
                      const Ego__Trajectory *from, struct grpc_answer *answer)
{
    const size_t count = from != NULL ? from->n_poses : 0;
    uint32_t first = 0, end = path->count;
    while (count > 0 && end > 0 && path->places[end - 1].time_us >= from->poses[0]->timestamp_us) {
        end--;
    }
    while (first + 1 < end && path->places[first + 1].time_us <= since_us) {
        first++;
    }
    uint32_t kept = end - first;
    if (count > PLACES_MAX - kept) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "object %.60s: expected at most %u poses more, found %zu", id,
                       PLACES_MAX - kept, count);
        return false;
    }
    struct place *places = malloc((kept + count + 1) * sizeof *places);
    if (places == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
        return false;
    }
    if (kept > 0) {
        memcpy(places, path->places + first, kept * sizeof *places);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t time_us = from->poses[i]->timestamp_us;
        const char *reason = "is not later than the one before";
        struct rig_pose pose;
        if ((kept > 0 && places[kept - 1].time_us >= time_us) ||
            !contract_pose_read(from->poses[i]->pose, false, &pose, &reason)) {
            alpasim_refuse(answer, GRPC_INVALID_ARGUMENT, "object %.60s: pose %zu %s", id, i,
                           reason);
            free(places);
            return false;
        }
        places[kept++] = (struct place){time_us, pose.x_m, pose.y_m, pose.z_m, pose.yaw_rad};
    }
    free(path->places);
    *path = (struct path){kept, places};
    return true;
}

static struct place place_between(const struct place *a, const struct place *b, uint64_t time_us)
{
    const double share = (double)(time_us - a->time_us) / (double)(b->time_us - a->time_us);
    return (struct place){time_us, a->x_m + share * (b->x_m - a->x_m),
                          a->y_m + share * (b->y_m - a->y_m), a->z_m + share * (b->z_m - a->z_m),
                          a->yaw_rad + share * dmath_wrap_angle(b->yaw_rad - a->yaw_rad)};
}

/* The place at a time; false: it is before the first, or after the last. */
static bool path_at(const struct path *path, uint64_t time_us, struct place *out)
{
    uint32_t first = 0, end = path->count; /* the last place not after the time lies in between */
    if (path->count == 0 || time_us < path->places[0].time_us ||
        time_us > path->places[path->count - 1].time_us) {
        return false;
    }
    while (end - first > 1) {
        const uint32_t middle = first + (end - first) / 2;
        *(path->places[middle].time_us <= time_us ? &first : &end) = middle;
    }
    *out = end < path->count ? place_between(&path->places[first], &path->places[end], time_us)
                             : path->places[first];
    return true;
}

/* ---- a session begins ---- */

static struct alpasim_traffic **find(struct alpasim *alpasim, const char *id)
{
    for (int i = 0; i < ALPASIM_SESSIONS; i++) {
        if (alpasim->traffic[i] != NULL && strcmp(alpasim->traffic[i]->id, id) == 0) {
            return &alpasim->traffic[i];
        }
    }
    return NULL;
}

/* Takes one object over: ego, an agent of the scenario or somebody else. */
static bool object_take(struct alpasim_traffic *session, const Traf__Logged *from,
                        const struct scenario *scenario, struct grpc_answer *answer)
{
    if (strcmp(from->object_id, ego_name) == 0) {
        return path_take(&session->ego, 0, ego_name, from->trajectory, answer);
    }
    struct object *object = &session->objects[session->object_count];
    if (strlen(from->object_id) >= sizeof object->id) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "object %.60s..: expected an object_id of at most %zu bytes, found %zu",
                       from->object_id, sizeof object->id - 1, strlen(from->object_id));
        return false;
    }
    *object = (struct object){.agent = UINT32_MAX, .is_static = from->is_static};
    snprintf(object->id, sizeof object->id, "%s", from->object_id);
    session->object_count++;
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        if (strcmp(scenario->agents[i].id, object->id) == 0) {
            object->agent = i;
        }
    }
    return path_take(&object->log, 0, object->id, from->trajectory, answer);
}

/* Fills a session whose memory is zeroed. False: *answer says why not. */
static bool session_fill(struct alpasim *alpasim, struct alpasim_traffic *session,
                         struct alpasim_scene *scene, const Traf__Start *ask,
                         struct grpc_answer *answer)
{
    const struct scenario *scenario = scene->scenario;
    struct error error;
    snprintf(session->id, sizeof session->id, "%s", ask->session_uuid);
    session->objects = calloc(ask->n_objects + 1, sizeof *session->objects);
    if (session->objects == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
        return false;
    }
    for (size_t i = 0; i < ask->n_objects; i++) {
        if (!object_take(session, ask->objects[i], scenario, answer)) {
            return false;
        }
    }
    if (session->ego.count == 0) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "expected poses of EGO: time begins with the first of them");
        return false;
    }
    enum status status = world_object_ops.accepts(scenario, &error);
    THEN(status, alpasim_prepare(alpasim, scene, &error));
    if (status != STATUS_OK) {
        alpasim_refuse(answer, alpasim_code(status), "%s", error.text);
        return false;
    }
    session->handover_us = ask->handover_time_us;
    session->begin_us = session->ego.places[0].time_us;
    drive_reset(&session->drive, scene->prepared, ask->random_seed, false);
    memcpy(session->before, session->drive.scene.agents, sizeof session->before);
    return true;
}

static void start_session(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    const Traf__Start *ask = question;
    struct alpasim_traffic **place = &alpasim->traffic[0];
    struct alpasim_scene *scene = alpasim_find(alpasim, ask->scene_id, answer);
    if (scene == NULL) {
        return;
    }
    const size_t id_bytes = strlen(ask->session_uuid);
    if (id_bytes < 1 || id_bytes >= LIMIT_ID_BYTES || ask->n_objects < 1 ||
        ask->n_objects > OBJECTS_MAX) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "expected a session_uuid of 1 to %d bytes and 1 to %d objects, found "
                       "\"%.40s\" of %zu and %zu",
                       LIMIT_ID_BYTES - 1, OBJECTS_MAX, ask->session_uuid, id_bytes,
                       ask->n_objects);
        return;
    }
    if (find(alpasim, ask->session_uuid) != NULL) {
        alpasim_refuse(answer, GRPC_ALREADY_EXISTS, "there is a session %.40s", ask->session_uuid);
        return;
    }
    struct alpasim_traffic *session = calloc(1, sizeof *session);
    if (session == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
        return;
    }
    if (!session_fill(alpasim, session, scene, ask, answer)) {
        alpasim_traffic_end(session);
        return;
    }
    for (int i = 1; i < ALPASIM_SESSIONS && *place != NULL; i++) { /* free, or used longest ago */
        struct alpasim_traffic **other = &alpasim->traffic[i];
        place = *other == NULL || (*other)->used < (*place)->used ? other : place;
    }
    alpasim_traffic_end(*place);
    session->used = ++alpasim->uses;
    *place = session;
}

/* ---- a step ---- */

static uint64_t tick_us(const struct alpasim_traffic *session, uint32_t tick)
{
    return session->begin_us + (uint64_t)tick * TICK_US;
}

/* Puts ego where it was at the present tick, with its speed since the one before. */
static void ego_put(struct alpasim_traffic *session)
{
    struct ego_state *ego = &session->drive.scene.ego;
    struct place now, before;
    const uint64_t now_us = tick_us(session, session->drive.scene.tick);
    if (!path_at(&session->ego, now_us, &now)) {
        return; /* where the scenario has it */
    }
    if (now_us >= TICK_US && path_at(&session->ego, now_us - TICK_US, &before)) {
        const double dx_m = now.x_m - before.x_m, dy_m = now.y_m - before.y_m;
        const double speed_mps =
            (dx_m * dmath_cos(now.yaw_rad) + dy_m * dmath_sin(now.yaw_rad)) / TICK_S;
        ego->speed_mps = speed_mps < 0                   ? 0
                         : speed_mps < EGO_SPEED_MAX_MPS ? speed_mps
                                                         : EGO_SPEED_MAX_MPS;
        ego->yaw_rate_rps = dmath_wrap_angle(now.yaw_rad - before.yaw_rad) / TICK_S;
    }
    ego->pose = (struct pose){now.x_m, now.y_m, now.yaw_rad};
}

/* Drives on until a time is not after the present tick; a tick reads ego of the one before. False:
 * nobody waits any more. */
static bool drive_until(struct alpasim_traffic *session, uint64_t time_us,
                        struct grpc_answer *answer)
{
    static const struct action hold = {0, 0};
    struct drive *drive = &session->drive;
    while (tick_us(session, drive->scene.tick) < time_us) {
        if (alpasim_late(answer)) {
            return false;
        }
        memcpy(session->before, drive->scene.agents, sizeof session->before);
        ego_put(session);
        drive_step(drive, &hold, true);
    }
    return true;
}

/* Place of an agent between the last tick and the present one. */
static bool agent_at(const struct alpasim_traffic *session, uint32_t agent, uint64_t time_us,
                     struct place *out)
{
    const struct scene *scene = &session->drive.scene;
    const struct agent_state *now = &scene->agents[agent];
    const struct agent_state *before = &session->before[agent];
    const uint64_t now_us = tick_us(session, scene->tick);
    const double z_m = session->drive.prepared->scenario->agents[agent].height_m / 2;
    const struct pose *a = &before->pose, *b = &now->pose;
    const struct place at = {now_us, b->x_m, b->y_m, z_m, b->heading_rad};
    const struct place past = {now_us - TICK_US, a->x_m, a->y_m, z_m, a->heading_rad};
    *out = before->present && time_us < now_us ? place_between(&past, &at, time_us) : at;
    return now->present;
}

static bool object_at(const struct alpasim_traffic *session, const struct object *object,
                      uint64_t time_us, struct place *out)
{
    const bool driven = object->agent != UINT32_MAX;
    const struct path *log = &object->log;
    if (time_us <= session->handover_us || !driven) {
        if (path_at(log, time_us, out)) {
            return true;
        }
        if (object->is_static && log->count > 0) {
            *out = log->places[time_us < log->places[0].time_us ? 0 : log->count - 1];
            return true;
        }
    }
    return driven && agent_at(session, object->agent, time_us, out);
}

/* Packs where everybody is who is there. */
static void tell(const struct alpasim_traffic *session, uint64_t time_us,
                 struct grpc_answer *answer)
{
    struct record {
        Traf__Update update;
        Ego__Trajectory trajectory;
        Ego__PoseAtTime *poses[1];
        struct contract_pose pose;
    } *records = calloc(session->object_count + 1, sizeof *records);
    Traf__Update **list = calloc(session->object_count + 1, sizeof(Traf__Update *));
    Traf__Simulated said = TRAF__SIMULATED__INIT;
    if (records == NULL || list == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
    }
    for (uint32_t i = 0; i < session->object_count && answer->code == GRPC_OK; i++) {
        struct record *record = &records[said.n_updates];
        struct place at;
        if (object_at(session, &session->objects[i], time_us, &at)) {
            traf__update__init(&record->update);
            ego__trajectory__init(&record->trajectory);
            contract_pose_fill(&record->pose, time_us, at.x_m, at.y_m, at.z_m, at.yaw_rad);
            record->poses[0] = &record->pose.at;
            record->trajectory.poses = record->poses;
            record->trajectory.n_poses = 1;
            record->update.object_id = session->objects[i].id;
            record->update.trajectory = &record->trajectory;
            list[said.n_updates++] = &record->update;
        }
    }
    said.updates = list;
    if (answer->code == GRPC_OK) {
        alpasim_answer(answer, &said.base);
    }
    free(records);
    free(list);
}

static void simulate(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    const Traf__Simulate *ask = question;
    struct alpasim_traffic **place = find(alpasim, ask->session_uuid);
    if (place == NULL) {
        alpasim_refuse(answer, GRPC_NOT_FOUND, "there is no session %.40s", ask->session_uuid);
        return;
    }
    struct alpasim_traffic *session = *place;
    session->used = ++alpasim->uses;
    const uint32_t tick = session->drive.scene.tick;
    const uint64_t least_us = tick_us(session, tick > 0 ? tick - 1 : 0);
    const uint64_t most_us = tick_us(session, LIMIT_HORIZON_TICKS);
    const bool fits = ask->time_query_us >= least_us && ask->time_query_us <= most_us;
    for (size_t i = 0; i < ask->n_updates && fits; i++) {
        const Traf__Update *update = ask->updates[i];
        if (strcmp(update->object_id, ego_name) == 0 &&
            !path_take(&session->ego, least_us, ego_name, update->trajectory, answer)) {
            return;
        }
    }
    struct place ego;
    if (!fits || !path_at(&session->ego, ask->time_query_us, &ego)) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "time_query_us %llu: expected %llu to %llu, and poses of EGO until then",
                       (unsigned long long)ask->time_query_us, (unsigned long long)least_us,
                       (unsigned long long)most_us);
    } else if (drive_until(session, ask->time_query_us, answer)) {
        tell(session, ask->time_query_us, answer);
    }
}

static void close_session(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    const Traf__Close *ask = question;
    struct alpasim_traffic **place = find(alpasim, ask->session_uuid);
    if (place == NULL) {
        alpasim_refuse(answer, GRPC_NOT_FOUND, "there is no session %.40s", ask->session_uuid);
        return;
    }
    alpasim_traffic_end(*place);
    *place = NULL;
}

static void get_metadata(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    Traf__Metadata said = TRAF__METADATA__INIT;
    struct alpasim_version version;
    (void)alpasim;
    (void)question;
    alpasim_version_fill(&version);
    said.version = &version.version;
    alpasim_answer(answer, &said.base);
}

bool alpasim_traffic(struct alpasim *alpasim, const char *method, const uint8_t *message,
                     size_t bytes, struct grpc_answer *answer)
{
    static const struct alpasim_method rows[] = {
        {"start_session", &traf__start__descriptor, start_session},
        {"simulate", &traf__simulate__descriptor, simulate},
        {"close_session", &traf__close__descriptor, close_session},
        {"get_metadata", &sim__empty__descriptor, get_metadata},
        {"get_available_scenes", &sim__empty__descriptor, alpasim_tell_scenes},
        {NULL, NULL, NULL},
    };
    return alpasim_dispatch(alpasim, rows, method, message, bytes, answer);
}
