/*
 * `swerve validate --protocols REGISTER`: scenarios that carry a protocol's name against what the
 * register says of it.
 */
#ifndef SWERVE_CLI_PROTOCOL_OPTIONS_H
#define SWERVE_CLI_PROTOCOL_OPTIONS_H

#include "scenarios/protocol/protocol.h"

#include <jansson.h>

/* One check over all files of a command. */
struct protocol_session {
    struct protocol_register *protocols; /* NULL: not asked for, then the rest does nothing */
    struct protocol_counts counts;
    json_t *findings;
    bool json; /* problems are not printed */
};

/* `path` NULL: not asked for. */
enum status protocol_session_open(const char *path, bool json, struct protocol_session *session,
                                  struct error *error);
void protocol_session_close(struct protocol_session *session);

void protocol_session_check(struct protocol_session *session, const struct suite *suite);

/* After the last suite: prints, or adds "protocols" to the object. The exit code: 0, or 3 when a
 * value deviates that no entry declares. */
int protocol_session_finish(struct protocol_session *session, json_t *result);

#endif
