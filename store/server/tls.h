/*
 * The server's TLS identity: a certificate chain and its private key, read from PEM files, checked
 * before they are used, and exchanged while the server runs. Private to the store room but for the
 * functions in server.h.
 */
#ifndef SWERVE_STORE_SERVER_TLS_H
#define SWERVE_STORE_SERVER_TLS_H

#include "store/server/server.h"

#include <gnutls/abstract.h>
#include <sys/types.h>

/* GnuTLS's words for what a server offers: TLS 1.2 and 1.3, the server's order of ciphers.
 * Under 1.2 keys are agreed on anew for each connection (a stolen key opens no recording) and
 * ciphers carry their own authentication (RFC 9325, 4.1 and 4.2), as 1.3 has it anyway. */
#define TLS_PRIORITIES                                          \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:"               \
    "-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:+DHE-RSA:"                 \
    "-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:" \
    "-MAC-ALL:+AEAD:%SERVER_PRECEDENCE"

/* The chain and key in force. They stay valid until the identity is destroyed, because a handshake
 * in progress may still use a pair that has been replaced. */
void tls_identity_current(struct tls_identity *identity, gnutls_pcert_st **chain,
                          unsigned *chain_count, gnutls_privkey_t *key);

/* As recv() and send() of a session that the HTTP library has left to the caller. */
ssize_t tls_receive(void *session, void *out, size_t capacity);
ssize_t tls_send(void *session, const void *data, size_t bytes);

#endif
