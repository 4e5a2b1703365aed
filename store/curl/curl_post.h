/*
 * One JSON text to somebody's address: a webhook. Over http and https, without following
 * redirections; an answer's body is not looked at.
 */
#ifndef SWERVE_STORE_CURL_CURL_POST_H
#define SWERVE_STORE_CURL_CURL_POST_H

#include "base/status.h"

/* USAGE: no http(s):// address. Of this machine's own hosts too. */
enum status curl_post_check(const char *url, struct error *error);

/* IO: nobody answered within the time, or not with 2xx. The error names the host alone, for a
 * webhook's path is a secret. */
enum status curl_post_json(const char *url, const char *text, long deadline_ms,
                           struct error *error);

#endif
