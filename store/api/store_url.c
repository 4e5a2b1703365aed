/*
 * Kinds of store URLs. See store_url.h.
 */
#include "store/api/store_url.h"

#include "base/check.h"

#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *begin;
    enum store_url_kind kind;
} schemes[] = {
    {"http://", STORE_URL_HTTP},         {"https://", STORE_URL_HTTP},
    {"unix:", STORE_URL_UNIX},           {"postgresql://", STORE_URL_POSTGRES},
    {"postgres://", STORE_URL_POSTGRES},
};

/* "HOST:PORT", perhaps with a path behind; a directory may be called so, too. */
static bool looks_like_address(const char *url)
{
    size_t host = url[0] == '[' ? strcspn(url, "]/") + 1 : strcspn(url, ":/");
    if (host == 0 || strlen(url) <= host || url[host] != ':') {
        return false;
    }
    const char *port = url + host + 1;
    size_t digits = strspn(port, "0123456789");
    return digits > 0 && (port[digits] == '\0' || port[digits] == '/');
}

static bool is_there(const char *url)
{
    struct stat info;
    return lstat(url, &info) == 0;
}

/* A known scheme whose slashes were forgotten. */
static const char *slip_of(const char *url)
{
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        size_t bytes = strcspn(schemes[i].begin, ":") + 1;
        if (strncmp(url, schemes[i].begin, bytes) == 0) {
            return schemes[i].begin;
        }
    }
    return NULL;
}

static enum status judge_path(const char *url, struct error *error)
{
    const char *slip = slip_of(url);
    if (slip != NULL && !is_there(url)) {
        const char *rest = url + strcspn(url, ":") + 1;
        return error_set(
            error, STATUS_USAGE,
            "store %.300s: expected a path or a URL; %s%.300s is a URL, ./%.300s would "
            "be a path",
            url, slip, rest + strspn(rest, "/"), url);
    }
    if (looks_like_address(url) && !is_there(url)) {
        return error_set(error, STATUS_USAGE,
                         "store %.300s: expected a path or a URL, found an address without a "
                         "scheme; http://%.300s is the server there, ./%.300s would be a path",
                         url, url, url);
    }
    return STATUS_OK;
}

enum status store_url_kind(const char *url, enum store_url_kind *out, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        if (strncmp(url, schemes[i].begin, strlen(schemes[i].begin)) == 0) {
            *out = schemes[i].kind;
            return STATUS_OK;
        }
    }
    if (strstr(url, "://") != NULL && strcspn(url, ":") < strcspn(url, "/")) {
        return error_set(error, STATUS_USAGE,
                         "store: expected a path, an http(s):// or a postgresql:// URL, found the "
                         "scheme \"%.*s\"",
                         (int)strcspn(url, ":"), url);
    }
    TRY(judge_path(url, error));
    *out = STORE_URL_PATH;
    return STATUS_OK;
}

static bool is_of(const char *url, enum store_url_kind kind)
{
    struct error ignored;
    enum store_url_kind found;
    return store_url_kind(url, &found, &ignored) == STATUS_OK && found == kind;
}

bool store_url_is_path(const char *url)
{
    return is_of(url, STORE_URL_PATH);
}

bool store_url_is_http(const char *url)
{
    return is_of(url, STORE_URL_HTTP);
}
