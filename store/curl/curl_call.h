/*
 * Parts of a call by libcurl that all its users need alike: the process's initialisation, where a
 * host is, and a call that no broken connection ends the process by. Private to the store room.
 */
#ifndef SWERVE_STORE_CURL_CURL_CALL_H
#define SWERVE_STORE_CURL_CURL_CALL_H

#include <curl/curl.h>
#include <stdbool.h>

/* Initialises libcurl, once for the process. Any thread. */
void curl_call_init(void);
/* Whether the URL's host can only be this machine. */
bool curl_call_host_is_here(const char *url);
/* curl_easy_perform. OpenSSL writes without MSG_NOSIGNAL, so a peer that is gone would raise
 * SIGPIPE; it is held back in this thread alone, because the process's signal handling is not ours.
 */
CURLcode curl_call_perform(CURL *handle);

#endif
