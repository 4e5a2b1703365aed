/*
 * URLs of stores in PostgreSQL. See postgres_db.h.
 *
 * Invariant: no sentence quotes a URL, which may hold a password.
 */
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_wire.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

enum status postgres_url_split(const char *given, char *url, size_t url_bytes, char *artifacts,
                               size_t artifacts_bytes, struct error *error)
{
    char *why = NULL;

    if (strlen(given) >= url_bytes) {
        return error_set(error, STATUS_LIMIT, "store: a postgresql:// URL has at most %zu bytes",
                         url_bytes - 1);
    }
    snprintf(url, url_bytes, "%s", given);
    postgres_wire_cut(url, "artifacts", artifacts, artifacts_bytes);
    if (!postgres_wire_decode(artifacts)) {
        return error_set(error, STATUS_USAGE,
                         "store: artifacts=: expected %%XX with two hexadecimal digits, not 00, "
                         "behind each %% (a %% itself is %%25)");
    }
    PQconninfoOption *options = PQconninfoParse(url, &why);
    if (options == NULL) {
        /* Without the sentence of libpq, which may quote a password. */
        PQfreemem(why);
        return error_set(error, STATUS_USAGE,
                         "store: expected postgresql://[USER@]HOST[:PORT]/DATABASE[?NAME=VALUE..], "
                         "found a URL that libpq cannot read");
    }
    bool password = false;
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        password |= option->val != NULL && (strcmp(option->keyword, "password") == 0 ||
                                            strcmp(option->keyword, "sslpassword") == 0);
    }
    PQconninfoFree(options);
    return password ? error_set(error, STATUS_USAGE,
                                "store: a password on the command line is seen by every user of "
                                "this machine; put it into ~/.pgpass or a service file "
                                "(?service=NAME), and leave it out of the URL")
                    : STATUS_OK;
}
