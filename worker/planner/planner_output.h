/*
 * Output of the process of an exec planner on stderr: the end of all of it, and what each session
 * said, so that it can be kept with that session's outcome.
 *
 * A line that begins with PLANNER_OUTPUT_MARK, a session's number and a blank belongs to that
 * session (schemas/planner.md); the label is taken off. Other lines belong to the session that is
 * asked alone, if there is one. Bytes are untrusted: a label that names no session is text. Memory
 * is bounded: the last PLANNER_OUTPUT_BYTES of each session, the last PLANNER_OUTPUT_TAIL_BYTES of
 * all.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_OUTPUT_H
#define SWERVE_WORKER_PLANNER_PLANNER_OUTPUT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLANNER_OUTPUT_BYTES = 4096,
    PLANNER_OUTPUT_TAIL_BYTES = 8192,
    PLANNER_OUTPUT_MARK = 0x1e, /* record separator */
    PLANNER_OUTPUT_NOBODY = -1,
};

/* Told of each whole line of a session, without its end. */
typedef void planner_output_line(void *context, uint32_t session, const char *line, size_t bytes);

struct planner_output;

enum status planner_output_create(uint32_t session_count, struct planner_output **out,
                                  struct error *error);
void planner_output_destroy(struct planner_output *output); /* accepts NULL */

/* Lines without a label that come from now on are this session's, or NOBODY's. */
void planner_output_speaker(struct planner_output *output, int32_t session);

/* Whom to tell of lines; NULL: nobody. */
void planner_output_listen(struct planner_output *output, planner_output_line *told, void *context);

void planner_output_put(struct planner_output *output, const char *bytes, size_t count);

/* The end of everything, labels taken off. text has PLANNER_OUTPUT_TAIL_BYTES + 1 bytes. */
void planner_output_tail(const struct planner_output *output, char *text);

/* The end of what one session said; where some was dropped, a line says so. text has
 * PLANNER_OUTPUT_BYTES + 1 bytes. Returns its length, 0 for nothing. */
size_t planner_output_session(const struct planner_output *output, uint32_t session, char *text);

/* A new rollout begins in the session, or one that goes on from `from`'s present. */
void planner_output_clear(struct planner_output *output, uint32_t session);

/* The last line of a text that says something, for the error sentence. Of a long one the end is
 * kept: it is what says why. */
void planner_output_last_line(const char *text, char *line, size_t bytes);

#endif
