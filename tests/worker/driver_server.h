/*
 * A driver behind the egodriver contract for tests: a thread that serves one connection after the
 * other on a Unix socket, and does one thing wrong if told to. Its plan goes straight ahead at 8
 * m/s from the last pose that it was sent.
 */
#ifndef SWERVE_TESTS_DRIVER_SERVER_H
#define SWERVE_TESTS_DRIVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum driver_manner {
    DRIVER_GOOD = 0,
    DRIVER_NAN,     /* answers with a place that is not a number */
    DRIVER_PAST,    /* with poses of the past alone */
    DRIVER_ENDS,    /* ends the session */
    DRIVER_HOLDS,   /* answers without poses */
    DRIVER_VARIES,  /* answers otherwise each time */
    DRIVER_FAILS,   /* refuses drive of sessions with an odd seed */
    DRIVER_BLIND,   /* refuses images */
    DRIVER_REFUSES, /* refuses start_session */
    DRIVER_FOREIGN, /* speaks another revision */
    DRIVER_MUTE,    /* never answers drive */
    DRIVER_DIES,    /* closes the connection at drive */
    DRIVER_BABBLES, /* answers drive with bytes that are no message */
    DRIVER_FORKS,   /* has a call fork_session */
    DRIVER_REPEATS, /* with one message of many parts, each of which is joined to those before */
    DRIVER_SWELLS,  /* with a small message that takes much memory when read */
    DRIVER_RAW,     /* sends frames of the test's own at drive */
    DRIVER_SHUT,    /* opens no window: nothing can be asked */
    DRIVER_RESETS,  /* resets drive of sessions with an odd seed */
};

enum { DRIVER_SESSIONS = 16, DRIVER_RAW_BYTES = 1 << 16, DRIVER_RAW_STREAM = 0x77 };

/* Frames as they are sent; the stream DRIVER_RAW_STREAM becomes that of drive. */
struct driver_raw {
    size_t bytes, again; /* what is from `again` on is sent without end */
    uint8_t frames[DRIVER_RAW_BYTES];
};

struct driver_session {
    char uuid[40];
    uint64_t seed;
    float x_m, y_m, turn_w, turn_z;
};

struct driver_server {
    char address[128]; /* unix:PATH */
    _Atomic(const char *) version;
    atomic_int manner;
    atomic_int starts, images, drives, closes, forks;
    _Atomic float camera_x_m; /* of the first camera that was declared */
    _Atomic float route_x_m;  /* of the newest route's first point */
    atomic_int route_points;
    int listen_fd, quit_fds[2];
    pthread_t thread;
    struct driver_session sessions[DRIVER_SESSIONS];
    uint32_t session_count;
    struct nghttp2_session *session;
    struct driver_stream *streams; /* of the connection, that are open */
    struct driver_raw raw;
    bool dead, floods; /* the connection is to be closed; filled by raw frames */
};

void driver_server_start(struct driver_server *server, enum driver_manner manner);
void driver_server_stop(struct driver_server *server);

#endif
