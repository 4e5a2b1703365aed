/*
 * The answer by which a server shows that it speaks WebSocket (RFC 6455, section 1.3).
 */
#ifndef SWERVE_BASE_WEBSOCKET_HANDSHAKE_H
#define SWERVE_BASE_WEBSOCKET_HANDSHAKE_H

#include <stdbool.h>

enum {
    HANDSHAKE_KEY_BYTES = 25,    /* of a client, terminated: 16 bytes in base64 */
    HANDSHAKE_ACCEPT_BYTES = 29, /* terminated */
};

/* A key of a client's own, of random bytes. */
void handshake_key(char key[HANDSHAKE_KEY_BYTES]);
/* False: it is no key, or there is no SHA-1. */
bool handshake_accept(const char *key, char accept[HANDSHAKE_ACCEPT_BYTES]);

#endif
