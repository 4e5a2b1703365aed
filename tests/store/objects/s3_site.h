/*
 * Object storage of a test's own: s3_server.py, whose buckets are folders of a directory.
 */
#ifndef SWERVE_TESTS_STORE_OBJECTS_S3_SITE_H
#define SWERVE_TESTS_STORE_OBJECTS_S3_SITE_H

#include <stdbool.h>

/* Starts it and says in the environment where it is; it ends with this process. */
bool s3_site_start(const char *script, const char *directory);
void s3_site_stop(void);
/* Puts the keys that it accepts into the environment. */
void s3_site_keys(void);

#endif
