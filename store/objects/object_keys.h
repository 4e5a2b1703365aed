/*
 * Keys to object storage, where AWS's own tools look for them: AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment, else the profile AWS_PROFILE
 * ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Nothing else is asked: no
 * metadata service, no command.
 */
#ifndef SWERVE_STORE_OBJECTS_OBJECT_KEYS_H
#define SWERVE_STORE_OBJECTS_OBJECT_KEYS_H

#include "base/status.h"

enum { OBJECT_KEY_BYTES = 256, OBJECT_SESSION_BYTES = 4096 };

struct object_keys {
    char id[OBJECT_KEY_BYTES];
    char secret[OBJECT_KEY_BYTES];
    char session[OBJECT_SESSION_BYTES]; /* "": none */
};

/* Read anew, since keys of a session are replaced in their file. IO: there are none. */
enum status object_keys_read(struct object_keys *out, struct error *error);

#endif
