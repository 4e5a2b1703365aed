/*
 * Parts that the files of a session share. See session.h.
 */
#ifndef SWERVE_WORKER_INTERACTIVE_SESSION_INTERNAL_H
#define SWERVE_WORKER_INTERACTIVE_SESSION_INTERNAL_H

#include "engine/trace/drive_log.h"
#include "worker/env/env_scene.h"
#include "worker/interactive/session.h"

/* Deeds of a tick. */
struct driven {
    struct action action;
    uint8_t skipped; /* steps of the sampler that were left out */
};

struct past; /* of a log: session_past.c */

struct line {
    uint32_t ticks;
    struct driven *driven; /* [ticks], owned */
};

struct session {
    struct swerve_env *env;
    struct swerve_env_rows rows;
    uint32_t index;
    uint32_t scenario;
    uint32_t horizon_ticks;
    uint32_t target; /* tick to return to, where it is after this one */
    uint32_t turns;  /* ways back so far */
    bool touched;
    struct driven *driven; /* [horizon_ticks], of the line that goes on */
    /* States at ticks 0, SESSION_KEEP_TICKS, .. of the line that goes on. */
    struct swerve_env_state **states;
    bool *touches; /* [states], whether something had been touched by then */
    uint32_t state_count;
    uint32_t left_count;
    struct line left[SESSION_LINES_MAX]; /* lines that were left, in that order */
    struct past *past;                   /* that it goes through, owned; NULL: none */
    struct drive_log *log;               /* NULL: nothing is kept */
    struct error unkept;                 /* why not, where it is to be told */
    bool unkept_told;
};

/* ---- session_line.c ---- */

/* Answer of the environments as a status. */
enum status session_answer(int number, const char *text, struct error *error);

/* Keeps the state of this tick where one is due and not kept. */
enum status session_keep_state(struct session *session, struct error *error);
/* Leaves the line that goes on, of so many ticks. LIMIT. */
enum status session_leave_line(struct session *session, uint32_t ticks, struct error *error);
/* A tick: its row of actions and what it leaves out. */
enum status session_set(struct session *session, const struct driven *driven, struct error *error);

/* ---- session_past.c ---- */

/* The next tick of the past; behind its last one the session keeps the log, and has no past. */
enum status session_retrace(struct session *session, struct error *error);
void past_destroy(struct past *past); /* accepts NULL; closes the log */

/* ---- session_kept.c: nothing without a log ---- */

void session_log_step(struct session *session, const struct driven *driven);
void session_log_state(struct session *session);
void session_log_turn(struct session *session, uint32_t target, bool keep);

#endif
