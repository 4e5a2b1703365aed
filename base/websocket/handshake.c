/*
 * Keys of handshakes and answers to them. See handshake.h.
 */
#include "base/websocket/handshake.h"

#include "base/base64.h"
#include "base/check.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Hashed behind the client's key. */
#define HANDSHAKE "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

enum { SHA1_BYTES = 20 };

void handshake_key(char key[HANDSHAKE_KEY_BYTES])
{
    unsigned char random[16];
    CHECK(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    base64_encode(random, sizeof random, key);
}

bool handshake_accept(const char *key, char accept[HANDSHAKE_ACCEPT_BYTES])
{
    char text[128];
    unsigned char digest[SHA1_BYTES];
    int bytes = snprintf(text, sizeof text, "%.64s%s", key, HANDSHAKE);
    if (strlen(key) > 64 || gnutls_hash_fast(GNUTLS_DIG_SHA1, text, (size_t)bytes, digest) != 0) {
        return false;
    }
    base64_encode(digest, sizeof digest, accept);
    return true;
}
