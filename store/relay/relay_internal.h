/*
 * Parts that the files of the relay share: who there is. See relay.h.
 *
 * One lock guards it; it is never held while somebody waits for bytes. A client or worker is on its
 * list from before its wire runs until after it ran, so whoever is found there has a wire. All
 * functions here want the lock held, but for those that fill a life.
 */
#ifndef SWERVE_STORE_RELAY_RELAY_INTERNAL_H
#define SWERVE_STORE_RELAY_RELAY_INTERNAL_H

#include "schemas/json_read.h"
#include "store/relay/carried.h"
#include "store/relay/relay.h"
#include "store/relay/ticks.h"

enum {
    RELAY_TRIES_MAX = 4, /* workers that are asked to take a session up */
    RELAY_KIN_BYTES = 80,
};

/* A token that was shown, which the wire's thread alone asks for again while that runs. */
struct shown {
    bool limited;
    char id[RELAY_TOKEN_BYTES];
    int64_t looked_ns;
};

/* Passed on for a worker's sessions. */
struct relayed_passed {
    uint64_t messages;               /* of clients */
    uint64_t answers, frames, bytes; /* of the worker: texts, frames, bytes of both */
};

struct relayed_worker {
    struct relay *relay;
    struct wire *wire;
    struct shown token;
    char name[LIMIT_ID_BYTES];
    char kin[RELAY_KIN_BYTES];   /* whose sessions it takes up: theirs who say the same; "": none */
    char tenant[LIMIT_ID_BYTES]; /* whose clients alone it is given; "": anybody's */
    json_t *attached;            /* what it said of itself; NULL: nothing yet */
    uint64_t number;             /* given once */
    uint32_t places, taken;
    uint32_t room; /* sessions that it has time for in all, at most its places */
    struct relayed_passed passed;
    struct relayed_worker *next;
};

struct relayed_client {
    struct relay *relay;
    struct wire *wire;
    struct shown token;
    char tenant[LIMIT_ID_BYTES];
    uint32_t sessions_most; /* of the tenant */
    char wanted[LIMIT_ID_BYTES];
    uint64_t session;
    struct relayed_worker *worker; /* NULL: it has none, or it has gone */
    struct lane *lane;             /* of the worker's wire */
    struct carried carried;
    char kin[RELAY_KIN_BYTES]; /* of the worker at which it began; "": it is not moved */
    /* While it moves, until something comes of who takes it up. */
    int64_t gone_ns;                 /* moment at which its worker had gone; 0: it does not move */
    uint64_t tried[RELAY_TRIES_MAX]; /* numbers of workers that were asked */
    uint32_t tries;
    struct relayed_client *next;
};

/* Somebody who waits for a document. */
struct question {
    uint64_t session;
    const struct relayed_worker *worker; /* NULL: it has gone */
    bool done, refused;
    char *text; /* NULL: out of memory */
    struct question *next;
};

/* Counts since the start, of clients unless others are named. */
struct relay_counts {
    uint64_t begun;   /* let in */
    uint64_t refused; /* by this relay or a worker: no place, no worker, too many of the tenant */
    uint64_t workers, workers_gone;
    uint64_t moved;  /* sessions that another worker took up */
    uint64_t ended;  /* sessions that ended with their worker */
    uint64_t gap_ns; /* of those that moved, from the worker's end to the next that came */
    struct relayed_passed passed; /* by workers that have gone */
};

struct relay {
    struct relay_options options;
    struct http_sockets sockets;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t sessions; /* numbers given */
    struct relayed_worker *workers;
    uint32_t worker_count;
    struct relayed_client *clients;
    struct question *questions;
    struct relay_counts counts;
    struct ticks ticks; /* of all workers' sessions */
    bool stopping;
};

/* ---- relay_seats.c ---- */

/* Whether the token is live still; one that is not is asked for again at once. Without the lock. */
bool relay_holds(const struct relay *relay, struct shown *token);
extern const char relay_gone_token[];

/* Whether a worker is given a tenant's clients, and tells them what it has. */
bool relay_serves(const struct relayed_worker *worker, const char *tenant);
/* Worker that is looked for. */
struct relayed_wish {
    const char *tenant; /* that it serves */
    const char *name;   /* "": any */
    const char *kin;    /* NULL: any */
    const uint64_t *but;
    uint32_t but_count; /* numbers that it has not */
};
/* The attached worker with a free place that has room for the most, or for none: who goes slowly
 * may be let in there too. NULL: none has a place. *known: there is one. */
struct relayed_worker *relay_choose(const struct relay *relay, const struct relayed_wish *wish,
                                    bool *known);
/* Gives a client its place at a worker, under a number of its own; what the worker is told of it
 * first is to be put into its lane. */
enum status relay_seat(struct relayed_client *client, struct relayed_worker *worker,
                       struct error *error);
void relay_say(const struct relayed_client *client, const char *type, const char *sentence);

/* ---- relay_workers.c ---- */

/* Life of a worker's connection; takes `worker`, which has its relay and token. */
void relay_worker_life(struct relayed_worker *worker, struct http_socket_life *out);

/* ---- relay_moves.c ---- */

/* The worker of a client has gone, which is off the list: the session goes on at another, or ends;
 * the client is told either. */
void relay_worker_gone(struct relayed_client *client);
/* The worker has no room for a session, after all: another one takes it up where it moves, else it
 * ends with that sentence. */
void relay_worker_refuses(struct relayed_client *client, const struct envelope *envelope);
/* Something came of the client's worker. */
void relay_worker_answers(struct relayed_client *client);

#endif
