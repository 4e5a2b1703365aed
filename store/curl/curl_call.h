/*
 * Parts of a call by libcurl that all its users need alike: the process's initialisation, where a
 * host is, a call that no broken connection ends the process by, and handles that keep their
 * connections between calls. Private to the store room.
 */
#ifndef SWERVE_STORE_CURL_CURL_CALL_H
#define SWERVE_STORE_CURL_CURL_CALL_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Initialises libcurl, once for the process. Any thread. */
void curl_call_init(void);
/* Whether the URL's host can only be this machine. */
bool curl_call_host_is_here(const char *url);
/* Whom a call to that host asks and believes: `here`, no proxy; `ca_file`, "" or the certificates
 * that count instead of the system's. */
CURLcode curl_call_trust(CURL *handle, bool here, const char *ca_file);
/* curl_easy_perform. OpenSSL writes without MSG_NOSIGNAL, so a peer that is gone would raise
 * SIGPIPE; it is held back in this thread alone, because the process's signal handling is not ours.
 */
CURLcode curl_call_perform(CURL *handle);

enum { CURL_POOL_MAX = 64 };

/* Handles that nobody uses now, each with its connection; a handle serves one thread at a time. */
struct curl_pool {
    pthread_mutex_t mutex;
    CURL *idle[CURL_POOL_MAX];
    size_t count;
};

void curl_pool_init(struct curl_pool *pool);
/* All handles have been given back. */
void curl_pool_finish(struct curl_pool *pool);
/* NULL: out of memory. Any thread. */
CURL *curl_pool_take(struct curl_pool *pool);
/* Keeps it, with whatever options the caller has left in it, or closes it where there are enough.
 */
void curl_pool_give(struct curl_pool *pool, CURL *handle);

#endif
