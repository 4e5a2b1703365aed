/*
 * Posting by libcurl, a handle for each: there are few.
 */
#include "store/curl/curl_post.h"

#include "store/curl/curl_call.h"

#include <string.h>
#include <strings.h>

enum { HOST_BYTES = 256 };

/* Scheme and host, up to the path. */
static void name_host(const char *url, char out[HOST_BYTES])
{
    const char *host = strstr(url, "://");
    size_t bytes = host != NULL ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : strlen(url);
    const char *at = host != NULL ? memchr(host + 3, '@', bytes - (size_t)(host + 3 - url)) : NULL;
    size_t from = at != NULL ? (size_t)(at + 1 - url) : 0; /* no password is told */
    snprintf(out, HOST_BYTES, "%.*s", (int)(bytes - from < HOST_BYTES ? bytes - from : 0),
             url + from);
}

enum status curl_post_check(const char *url, struct error *error)
{
    bool http = strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
    return http && strstr(url, "://")[3] != '\0'
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "expected an address, http://.. or https://..");
}

static size_t pass_over(const char *data, size_t size, size_t count, void *context)
{
    (void)data;
    (void)context;
    return size * count;
}

enum status curl_post_json(const char *url, const char *text, long deadline_ms, struct error *error)
{
    char host[HOST_BYTES];
    long code = 0;
    name_host(url, host);
    curl_call_init();
    CURL *handle = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURLcode result = handle == NULL || headers == NULL ? CURLE_OUT_OF_MEMORY : CURLE_OK;
    if (result == CURLE_OK) {
        curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, deadline_ms);
        curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, pass_over);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, text);
        result = curl_easy_setopt(handle, CURLOPT_URL, url);
    }
    if (result == CURLE_OK) {
        result = curl_call_trust(handle, curl_call_host_is_here(url), "");
    }
    if (result == CURLE_OK) {
        result = curl_call_perform(handle);
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(handle);
    if (result != CURLE_OK) {
        return error_set(error, STATUS_IO, "%s: %s", host, curl_easy_strerror(result));
    }
    return code >= 200 && code < 300
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%s: expected an answer of 2xx, found %ld", host,
                           code);
}
