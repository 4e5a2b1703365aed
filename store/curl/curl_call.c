/*
 * Shared parts of calls by libcurl. See curl_call.h.
 */
#include "store/curl/curl_call.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

void curl_call_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
}

bool curl_call_host_is_here(const char *url)
{
    static const char *const here[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    size_t bytes = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    for (size_t i = 0; i < COUNT_OF(here); i++) {
        if (bytes == strlen(here[i]) && strncasecmp(host, here[i], bytes) == 0) {
            return true;
        }
    }
    return false;
}

CURLcode curl_call_trust(CURL *handle, bool here, const char *ca_file)
{
    CURLcode code = here ? curl_easy_setopt(handle, CURLOPT_PROXY, "") : CURLE_OK;
    if (code == CURLE_OK && ca_file[0] != '\0') {
        code = curl_easy_setopt(handle, CURLOPT_CAINFO, ca_file);
        code = code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_CAPATH, NULL) : code;
    }
    return code;
}

CURLcode curl_call_perform(CURL *handle)
{
    sigset_t pipe_set;
    sigset_t pending;
    sigset_t before;
    struct timespec now = {0};
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    CURLcode result = curl_easy_perform(handle);
    if (!was_pending) {
        while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* ---- handles ---- */

void curl_pool_init(struct curl_pool *pool)
{
    pool->count = 0;
    pthread_mutex_init(&pool->mutex, NULL);
}

void curl_pool_finish(struct curl_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++) {
        curl_easy_cleanup(pool->idle[i]);
    }
    pthread_mutex_destroy(&pool->mutex);
}

CURL *curl_pool_take(struct curl_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    CURL *handle = pool->count > 0 ? pool->idle[--pool->count] : NULL;
    pthread_mutex_unlock(&pool->mutex);
    return handle != NULL ? handle : curl_easy_init();
}

void curl_pool_give(struct curl_pool *pool, CURL *handle)
{
    pthread_mutex_lock(&pool->mutex);
    bool kept = pool->count < CURL_POOL_MAX;
    if (kept) {
        pool->idle[pool->count++] = handle;
    }
    pthread_mutex_unlock(&pool->mutex);
    if (!kept) {
        curl_easy_cleanup(handle);
    }
}
