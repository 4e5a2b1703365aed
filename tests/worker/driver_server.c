/*
 * A driver behind the egodriver contract for tests. See driver_server.h.
 */
#include "tests/worker/driver_server.h"

#include "base/check.h"
#include "schemas/proto/egodriver.pb-c.h"

#include <errno.h>
#include <math.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct driver_stream {
    struct driver_stream *next;
    struct driver_server *server;
    char path[96];
    uint8_t in[1 << 16], out[1 << 14];
    uint8_t *long_out; /* instead of out; freed with the stream */
    size_t in_bytes, out_bytes, sent;
    const char *status, *sentence;
    bool odd; /* its session's seed */
};

static struct driver_session *driver_find(struct driver_server *server, const char *uuid)
{
    for (uint32_t i = 0; i < server->session_count; i++) {
        if (strcmp(server->sessions[i].uuid, uuid) == 0) {
            return &server->sessions[i];
        }
    }
    CHECK(server->session_count < DRIVER_SESSIONS);
    struct driver_session *made = &server->sessions[server->session_count++];
    snprintf(made->uuid, sizeof made->uuid, "%s", uuid);
    return made;
}

static void driver_put(struct driver_stream *stream, const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    CHECK(5 + bytes <= sizeof stream->out);
    memset(stream->out, 0, 5);
    stream->out[3] = (uint8_t)(bytes >> 8);
    stream->out[4] = (uint8_t)bytes;
    protobuf_c_message_pack(message, stream->out + 5);
    stream->out_bytes = 5 + bytes;
}

/* An answer with one trajectory of many poses and then many of one each: a reader joins each to
 * what it has. Or one of poses with nothing in them, which take more memory than bytes. */
static void driver_put_parts(struct driver_stream *stream, size_t poses, size_t more)
{
    const uint8_t one[] = {0x12, 0x02, 0x0a, 0x00}; /* a trajectory of one pose, empty */
    const size_t first = 2 * poses;
    const size_t bytes = 1 + 4 + first + more * sizeof one;
    uint8_t *to = malloc(5 + bytes);
    CHECK(to != NULL && first < 1 << 28);
    to[0] = 0;
    for (int i = 0; i < 4; i++) {
        to[1 + i] = (uint8_t)(bytes >> (24 - 8 * i));
        to[6 + i] = (uint8_t)(first >> (7 * i) | (i < 3 ? 0x80 : 0));
    }
    to[5] = 0x12;
    for (size_t i = 0; i < first; i++) {
        to[10 + i] = i % 2 == 0 ? 0x0a : 0x00;
    }
    for (size_t i = 0; i < more; i++) {
        memcpy(to + 10 + first + i * sizeof one, one, sizeof one);
    }
    stream->long_out = to;
    stream->out_bytes = 5 + bytes;
}

/* Twenty poses, a tenth of a second apart. */
static void driver_plan(struct driver_stream *stream, const Ego__Drive *drive)
{
    enum { POSES = 20 };
    struct driver_server *server = stream->server;
    const struct driver_session *session = driver_find(server, drive->session_uuid);
    int manner = server->manner;
    stream->odd = session->seed % 2 == 1;
    Ego__PoseAtTime at[POSES];
    Ego__Pose poses[POSES];
    Ego__Vec3 vecs[POSES];
    Ego__Quat turn = EGO__QUAT__INIT;
    Ego__PoseAtTime *list[POSES];
    Ego__Trajectory trajectory = EGO__TRAJECTORY__INIT;
    Ego__DriveAnswer answer = EGO__DRIVE_ANSWER__INIT;
    Ego__DebugInfo debug = EGO__DEBUG_INFO__INIT;
    uint8_t told[] = {'\x80', 'c', '\\', 'o', 's'};
    debug.unstructured_debug_info = (ProtobufCBinaryData){sizeof told, told};
    double heading_rad = 2 * atan2((double)session->turn_z, (double)session->turn_w);
    double extra_m = manner == DRIVER_VARIES ? 0.01 * server->drives : 0;
    turn.w = session->turn_w;
    turn.z = session->turn_z;
    for (int i = 0; i < POSES; i++) {
        double ahead_m = 0.8 * i + extra_m;
        ego__pose_at_time__init(&at[i]);
        ego__pose__init(&poses[i]);
        ego__vec3__init(&vecs[i]);
        vecs[i].x = session->x_m + (float)(ahead_m * cos(heading_rad));
        vecs[i].y = session->y_m + (float)(ahead_m * sin(heading_rad));
        vecs[i].x = manner == DRIVER_NAN && i == 3 ? NAN : vecs[i].x;
        poses[i].vec = &vecs[i];
        poses[i].quat = &turn;
        at[i].pose = &poses[i];
        at[i].timestamp_us = drive->time_now_us + 100000u * (uint32_t)i;
        at[i].timestamp_us -= manner == DRIVER_PAST ? 10000000u : 0u;
        list[i] = &at[i];
    }
    trajectory.poses = list;
    trajectory.n_poses = manner == DRIVER_HOLDS ? 0 : POSES;
    answer.trajectory = &trajectory;
    answer.debug_info = &debug;
    answer.terminate_session = manner == DRIVER_ENDS;
    if (manner == DRIVER_REPEATS) {
        driver_put_parts(stream, 250000, 200000);
    } else if (manner == DRIVER_SWELLS) {
        driver_put_parts(stream, 1500000, 0);
    } else if (manner == DRIVER_FAILS && stream->odd) {
        stream->status = "13";
        stream->sentence = "the network has no answer%3A out of memory";
    } else {
        driver_put(stream, &answer.base);
    }
    if (manner == DRIVER_BABBLES) {
        memset(stream->out + 5, 0xff, stream->out_bytes - 5);
    }
}

static void driver_start(struct driver_stream *stream)
{
    struct driver_server *server = stream->server;
    Ego__StartSession *start =
        ego__start_session__unpack(NULL, stream->in_bytes - 5, stream->in + 5);
    CHECK(start != NULL);
    driver_find(server, start->session_uuid)->seed = start->random_seed;
    if (start->rollout_spec->vehicle->n_available_cameras > 0) {
        server->camera_x_m =
            start->rollout_spec->vehicle->available_cameras[0]->rig_to_camera->vec->x;
    }
    server->starts++;
    if (server->manner == DRIVER_REFUSES) {
        stream->status = "9";
        stream->sentence = "needs a lidar";
    }
    ego__start_session__free_unpacked(start, NULL);
}

static void driver_route(struct driver_stream *stream)
{
    Ego__SubmitRoute *submit =
        ego__submit_route__unpack(NULL, stream->in_bytes - 5, stream->in + 5);
    CHECK(submit != NULL && submit->route != NULL);
    stream->server->route_points = (int)submit->route->n_waypoints;
    if (submit->route->n_waypoints > 0) {
        stream->server->route_x_m = submit->route->waypoints[0]->x;
    }
    ego__submit_route__free_unpacked(submit, NULL);
}

/* A copy of a session; a server that has no such call says so. */
static void driver_fork(struct driver_stream *stream)
{
    struct driver_server *server = stream->server;
    server->forks++;
    if (server->manner != DRIVER_FORKS) {
        stream->status = "12";
        stream->sentence = "Method not found!";
        return;
    }
    Ego__ForkSession *fork = ego__fork_session__unpack(NULL, stream->in_bytes - 5, stream->in + 5);
    CHECK(fork != NULL);
    struct driver_session from = *driver_find(server, fork->session_uuid);
    struct driver_session *to = driver_find(server, fork->fork_uuid);
    memcpy(from.uuid, to->uuid, sizeof from.uuid);
    *to = from;
    ego__fork_session__free_unpacked(fork, NULL);
}

static void driver_motion(struct driver_stream *stream)
{
    Ego__SubmitEgomotion *motion =
        ego__submit_egomotion__unpack(NULL, stream->in_bytes - 5, stream->in + 5);
    CHECK(motion != NULL);
    struct driver_session *session = driver_find(stream->server, motion->session_uuid);
    const Ego__Pose *pose = motion->trajectory->poses[0]->pose;
    session->x_m = pose->vec->x;
    session->y_m = pose->vec->y;
    session->turn_w = pose->quat->w;
    session->turn_z = pose->quat->z;
    ego__submit_egomotion__free_unpacked(motion, NULL);
}

static void driver_drive(struct driver_stream *stream)
{
    struct driver_server *server = stream->server;
    Ego__Drive *drive = ego__drive__unpack(NULL, stream->in_bytes - 5, stream->in + 5);
    CHECK(drive != NULL);
    server->drives++;
    server->dead = server->manner == DRIVER_DIES;
    server->floods = server->manner == DRIVER_RAW;
    driver_plan(stream, drive);
    ego__drive__free_unpacked(drive, NULL);
}

static ssize_t driver_give(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct driver_stream *stream = source->ptr;
    size_t left = stream->out_bytes - stream->sent;
    size_t now = left < room ? left : room;
    (void)context;
    memcpy(to, (stream->long_out != NULL ? stream->long_out : stream->out) + stream->sent, now);
    stream->sent += now;
    if (stream->sent == stream->out_bytes) {
        const nghttp2_nv trailers[] = {
            {(uint8_t *)"grpc-status", (uint8_t *)(uintptr_t)stream->status, 11,
             strlen(stream->status), 0},
            {(uint8_t *)"grpc-message", (uint8_t *)(uintptr_t)stream->sentence, 12,
             strlen(stream->sentence), 0},
        };
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, trailers, stream->sentence[0] != '\0' ? 2 : 1);
    }
    return (ssize_t)now;
}

static void driver_raw_address(struct driver_raw *raw, uint8_t id)
{
    enum { HEAD_BYTES = 9 };
    for (size_t at = 0; at + HEAD_BYTES <= raw->bytes;) {
        uint8_t *head = raw->frames + at;
        head[8] = head[8] == DRIVER_RAW_STREAM ? id : head[8];
        at += HEAD_BYTES + ((size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2]);
    }
}

static void driver_answer(struct driver_stream *stream, int32_t id)
{
    struct driver_server *server = stream->server;
    Ego__Version version = EGO__VERSION__INIT;
    const char *name = strrchr(stream->path, '/') + 1;
    const char *revision = server->manner == DRIVER_FOREIGN ? "7" : "2";
    const nghttp2_nv headers[] = {
        {(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0},
        {(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, 0},
        {(uint8_t *)"carla-driver-interface-contract", (uint8_t *)(uintptr_t)revision, 31, 1, 0},
    };
    stream->out_bytes = 5; /* an empty message */
    if (strcmp(name, "get_version") == 0) {
        version.version_id = (char *)(uintptr_t)server->version;
        driver_put(stream, &version.base);
    } else if (strcmp(name, "start_session") == 0) {
        driver_start(stream);
    } else if (strcmp(name, "submit_route") == 0) {
        driver_route(stream);
    } else if (strcmp(name, "fork_session") == 0) {
        driver_fork(stream);
    } else if (strcmp(name, "submit_egomotion_observation") == 0) {
        driver_motion(stream);
    } else if (strcmp(name, "drive") == 0) {
        driver_drive(stream);
    }
    bool image = strcmp(name, "submit_image_observation") == 0;
    server->images += image;
    if (image && server->manner == DRIVER_BLIND) {
        stream->status = "3";
        stream->sentence = "Camera was not declared";
    }
    server->closes += strcmp(name, "close_session") == 0;
    if (server->manner == DRIVER_RESETS && strcmp(name, "drive") == 0 && stream->odd) {
        nghttp2_submit_rst_stream(server->session, 0, id, NGHTTP2_CANCEL);
        return;
    }
    if ((server->manner == DRIVER_MUTE || server->floods) && strcmp(name, "drive") == 0) {
        driver_raw_address(&server->raw, (uint8_t)id);
        return;
    }
    const nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = driver_give};
    nghttp2_submit_response(server->session, id, headers, COUNT_OF(headers), &provider);
}

static int driver_begins(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct driver_stream *stream = calloc(1, sizeof *stream);
    CHECK(stream != NULL);
    stream->server = context;
    stream->next = stream->server->streams;
    stream->server->streams = stream;
    stream->status = "0";
    stream->sentence = "";
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
}

static int driver_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                         void *context)
{
    struct driver_stream *stream =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    (void)context;
    if (name_bytes == 5 && memcmp(name, ":path", 5) == 0) {
        snprintf(stream->path, sizeof stream->path, "%.*s", (int)value_bytes, (const char *)value);
    }
    return 0;
}

static int driver_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                       size_t bytes, void *context)
{
    struct driver_stream *stream = nghttp2_session_get_stream_user_data(session, id);
    (void)flags;
    (void)context;
    CHECK(stream->in_bytes + bytes <= sizeof stream->in);
    memcpy(stream->in + stream->in_bytes, data, bytes);
    stream->in_bytes += bytes;
    return 0;
}

static int driver_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct driver_stream *stream =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)context;
    if (stream != NULL && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        driver_answer(stream, frame->hd.stream_id);
    }
    return 0;
}

static int driver_ended(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
    struct driver_server *server = context;
    struct driver_stream *stream = nghttp2_session_get_stream_user_data(session, id);
    struct driver_stream **at = &server->streams;
    (void)code;
    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    free(stream->long_out);
    free(stream);
    return 0;
}

/* Sends the raw frames, the last of them until nobody reads them. */
static void driver_flood(struct driver_server *server, int fd)
{
    struct driver_raw *raw = &server->raw;
    const size_t unit = raw->bytes - raw->again;
    size_t at = 0;
    while (unit > 0 && raw->bytes + unit <= sizeof raw->frames) {
        memcpy(raw->frames + raw->bytes, raw->frames + raw->again, unit);
        raw->bytes += unit;
    }
    server->floods = false;
    for (uint32_t tries = 0; !server->dead && at < raw->bytes; tries++) {
        ssize_t sent = send(fd, raw->frames + at, raw->bytes - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        at += sent > 0 ? (size_t)sent : 0;
        at = at == raw->bytes && unit > 0 ? raw->again : at;
        if (sent < 0) { /* not waiting for room: what is sent is to be there when it is read */
            struct pollfd quit = {server->quit_fds[0], POLLIN, 0};
            server->dead = errno != EAGAIN || (tries % 16 == 0 && poll(&quit, 1, 0) != 0);
        }
    }
}

/* Until the client has closed, or the server is to. */
static void driver_connection(struct driver_server *server, int fd)
{
    uint8_t in[1 << 16];
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, driver_begins);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, driver_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, driver_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, driver_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, driver_ended);
    nghttp2_session_server_new(&server->session, callbacks, server);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry shut = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    nghttp2_submit_settings(server->session, 0, &shut, server->manner == DRIVER_SHUT);
    server->dead = server->floods = false;
    for (;;) {
        const uint8_t *data = NULL;
        ssize_t bytes = 0;
        while (!server->dead && (bytes = nghttp2_session_mem_send(server->session, &data)) > 0) {
            CHECK(send(fd, data, (size_t)bytes, MSG_NOSIGNAL) == bytes || errno == EPIPE);
        }
        struct pollfd watched[2] = {{fd, POLLIN, 0}, {server->quit_fds[0], POLLIN, 0}};
        if (server->floods) {
            driver_flood(server, fd);
        }
        if (server->dead || poll(watched, 2, -1) < 0 || watched[1].revents != 0) {
            break;
        }
        ssize_t got = recv(fd, in, sizeof in, 0);
        if (got <= 0 || nghttp2_session_mem_recv(server->session, in, (size_t)got) < 0) {
            break;
        }
    }
    nghttp2_session_del(server->session);
    while (server->streams != NULL) { /* that never ended */
        struct driver_stream *stream = server->streams;
        server->streams = stream->next;
        free(stream->long_out);
        free(stream);
    }
    close(fd);
}

static void *driver_serve(void *argument)
{
    struct driver_server *server = argument;
    for (;;) {
        struct pollfd watched[2] = {{server->listen_fd, POLLIN, 0},
                                    {server->quit_fds[0], POLLIN, 0}};
        if (poll(watched, 2, -1) < 0 || watched[1].revents != 0) {
            return NULL;
        }
        int fd = accept(server->listen_fd, NULL, NULL);
        if (fd >= 0) {
            driver_connection(server, fd);
        }
    }
}

void driver_server_start(struct driver_server *server, enum driver_manner manner)
{
    static int made = 0;
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    memset(server, 0, sizeof *server);
    server->manner = (int)manner;
    server->version = "straight 1";
    snprintf(place.sun_path, sizeof place.sun_path, "/tmp/swerve-driver-%d-%d", (int)getpid(),
             made++);
    snprintf(server->address, sizeof server->address, "unix:%s", place.sun_path);
    unlink(place.sun_path);
    server->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(server->listen_fd, (const struct sockaddr *)&place, sizeof place) == 0);
    CHECK(listen(server->listen_fd, 4) == 0);
    CHECK(pipe(server->quit_fds) == 0);
    CHECK(pthread_create(&server->thread, NULL, driver_serve, server) == 0);
}

void driver_server_stop(struct driver_server *server)
{
    CHECK(write(server->quit_fds[1], "q", 1) == 1);
    pthread_join(server->thread, NULL);
    close(server->listen_fd);
    close(server->quit_fds[0]);
    close(server->quit_fds[1]);
    unlink(server->address + strlen("unix:"));
}
