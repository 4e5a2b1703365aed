/*
 * A world model behind AlpaSim's WorldModelService for tests: scenarios drawn by worker/alpasim, a
 * thread that serves them on a Unix socket, and does one thing wrong if told to. As FlashDreams it
 * keeps one session; what a picture shows follows from all that its session was asked for.
 */
#ifndef SWERVE_TESTS_DREAM_SERVER_H
#define SWERVE_TESTS_DREAM_SERVER_H

#include "worker/alpasim/alpasim.h"

#include <pthread.h>
#include <stdatomic.h>

enum dream_manner {
    DREAM_GOOD = 0,
    DREAM_NOISY,   /* never the same picture twice */
    DREAM_FADES,   /* pictures lose their contrast after a second */
    DREAM_FREEZES, /* the second chunk's last picture stays */
    DREAM_BLACK,   /* after the first chunk */
    DREAM_SMALL,   /* pictures of another size */
    DREAM_FEW,     /* a picture too few */
    DREAM_BABBLES, /* no message */
    DREAM_REFUSES, /* start_session */
};

struct dream_server {
    char address[128]; /* unix:PATH */
    atomic_int manner;
    atomic_int calls, starts, chunks;
    atomic_int dies_at; /* the call in which the connection is closed; 0: none */
    _Atomic uint64_t seed;
    struct suite suite;
    struct suite_entry entry;
    struct alpasim *alpasim;
    struct grpc_server *server;
    int quit_fds[2];
    pthread_t thread;
    char session[64];
    uint64_t past; /* hash of what the session was asked for */
    uint32_t frames;
    uint8_t *kept; /* a picture that stays, of camera 0 */
    uint32_t noise;
};

/* Serves one scenario, which outlives it. */
void dream_server_start(struct dream_server *server, const struct scenario_document *document);
void dream_server_stop(struct dream_server *server);

#endif
