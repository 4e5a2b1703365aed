/*
 * Certificates made up by tests, and a TLS client that says what a server offers it.
 */
#ifndef SWERVE_TESTS_STORE_HTTP_TLS_KIT_H
#define SWERVE_TESTS_STORE_HTTP_TLS_KIT_H

#include <stdint.h>

/* A self-signed certificate for localhost and 127.0.0.1, valid from .. until (seconds since 1970),
 * and its key, each into a file; the serial number tells one from another. Aborts on failure. */
void tls_kit_make(const char *cert_path, const char *key_path, int64_t from_s, int64_t until_s,
                  int serial);
/* The same with an RSA key, which static key exchange needs; valid today. */
void tls_kit_make_rsa(const char *cert_path, const char *key_path, int serial);

/* Shakes hands with 127.0.0.1:port under these priorities (GnuTLS's words). Returns the serial
 * number of the certificate that the server showed; -1: no handshake. */
int tls_kit_shake(int port, const char *priorities);

#endif
