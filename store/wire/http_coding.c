/*
 * Content codings. See http_coding.h.
 */
#include "store/wire/http_coding.h"

#include <string.h>
#include <strings.h>

enum http_coding http_coding_of(const char *value)
{
    if (value == NULL || strcasecmp(value, "identity") == 0) {
        return HTTP_CODING_IDENTITY;
    }
    return strcasecmp(value, "zstd") == 0 ? HTTP_CODING_ZSTD : HTTP_CODING_OTHER;
}

/* One member of the list, "zstd;q=0.5" or so: does it want zstd? A weight of nought forbids it. */
static bool member_accepts(const char *text, size_t bytes)
{
    static const char name[] = "zstd";
    size_t at = sizeof name - 1;
    if (bytes < at || strncasecmp(text, name, at) != 0) {
        return false;
    }
    at += strspn(text + at, " \t");
    if (at >= bytes) {
        return true;
    }
    if (text[at] != ';') {
        return false; /* a longer name */
    }
    at += 1 + strspn(text + at + 1, " \t");
    if (at + 2 >= bytes || (text[at] != 'q' && text[at] != 'Q') || text[at + 1] != '=') {
        return false;
    }
    /* 0, 0.000, 0.5, 1: anything but noughts and the point is more than nothing. */
    size_t noughts = strspn(text + at + 2, "0.");
    return at + 2 + noughts < bytes && strchr("123456789", text[at + 2 + noughts]) != NULL;
}

bool http_coding_accepted(const char *value)
{
    while (value != NULL && *value != '\0') {
        value += strspn(value, " \t");
        size_t bytes = strcspn(value, ",");
        if (member_accepts(value, bytes)) {
            return true;
        }
        value += bytes + (value[bytes] == ',');
    }
    return false;
}
