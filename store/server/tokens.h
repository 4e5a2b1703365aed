/*
 * Bearer tokens: who may do what on a server, kept in a file beside the database.
 *
 * A token is "swt_" and 64 hexadecimal digits: 256 bits from getrandom, shown once, when it is
 * made. The file keeps its SHA-256. A slow password hash would add nothing: those slow down the
 * guessing of secrets that people choose, and 2^256 equally likely ones cannot be guessed at any
 * speed.
 *
 * The file is JSON, mode 0600, replaced as a whole under a lock (FILE.lock), so readers see the old
 * or the new one. A guard watches it while a server runs: tokens come and go without a restart, and
 * a file that cannot be read or understood leaves the last good tokens in force.
 *
 * Invariant: no function here puts a token's text into a message, a log or the file.
 */
#ifndef SWERVE_STORE_SERVER_TOKENS_H
#define SWERVE_STORE_SERVER_TOKENS_H

#include "base/clock.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/status.h"
#include "schemas/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TOKENS_MAX = 1024,
    TOKENS_PER_NAME_MAX = 2, /* live ones: the old and the new, while clients change over */
    TOKEN_ID_BYTES = 13,     /* 12 digits that name a token in lists; no part of the secret */
    TOKEN_SECRET_BYTES = 4 + 64 + 1,
};

enum token_role {
    TOKEN_ROLE_READ = 0, /* looks at everything */
    TOKEN_ROLE_SUBMIT,   /* and submits and cancels */
    TOKEN_ROLE_WORKER,   /* does the work of one pool, and looks at nothing else */
    TOKEN_ROLE_ADMIN,    /* everything */
    TOKEN_ROLE_DRIVER,   /* steers sessions that this server relays, and nothing else */
    TOKEN_ROLE_COUNT
};

extern const char *const token_role_names[TOKEN_ROLE_COUNT];

struct token {
    char id[TOKEN_ID_BYTES];
    /* The party that it speaks for: id of the first token of its rotation. One that is made while
     * another of its name is live takes over from that one, with all that is that one's; one that
     * is made later is another party. */
    char principal[TOKEN_ID_BYTES];
    char name[LIMIT_ID_BYTES]; /* whom it was given to */
    enum token_role role;
    char pool[LIMIT_ID_BYTES]; /* of a worker token; else "" */
    /* Of a submitter or driver: for whom; "": nobody. Of a worker: whose sessions alone it serves,
     * and it takes no jobs; "": anybody's, and jobs. */
    char tenant[LIMIT_ID_BYTES];
    int64_t created_s;             /* wall clock: seconds since 1970 */
    int64_t expires_s;             /* 0: never */
    char sha256[SHA256_HEX_BYTES]; /* of the secret */
};

struct token_list {
    uint32_t count;
    struct token tokens[TOKENS_MAX];
};

/* Reads a file into the caller's list. NOT_FOUND when there is none; BAD_INPUT when others may read
 * it or it is damaged. */
enum status tokens_read(const char *path, struct token_list *out, struct error *error);

/* Makes a token and adds it. Takes name, role, pool, tenant, created_s and expires_s from *token
 * and fills the rest; `text` is the secret, for the caller to show once. CONFLICT when the name has
 * two live tokens or one of another role, pool or tenant. Expired tokens are removed from the file
 * on the way. */
enum status tokens_add(const char *path, struct token *token, char text[TOKEN_SECRET_BYTES],
                       struct error *error);

/* Removes the token with this id, or all with this name; where there is none, all that go back to a
 * first token with this id, by which stores know them; *count of them. NOT_FOUND for none. */
enum status tokens_revoke(const char *path, const char *which, uint32_t *count,
                          struct error *error);

/* ---- watching a file ---- */

struct token_guard;

/* Reads the file, which must be there and good. clock: for expiry (its wall clock). Thread-safe. */
enum status token_guard_create(const char *path, const struct clock *clock,
                               const struct logger *logger, struct token_guard **out,
                               struct error *error);
void token_guard_destroy(struct token_guard *guard); /* accepts NULL */

/* Whether the value of an Authorization header ("Bearer ..", NULL: none was sent) names a live
 * token. Looks at every token, whichever fits, so that time tells nothing. */
bool token_guard_admit(struct token_guard *guard, const char *authorization, struct token *out);

/* Whether the token of that id, which was admitted before, is live still: what takes long asks
 * again. */
bool token_guard_holds(struct token_guard *guard, const char *id);

#endif
