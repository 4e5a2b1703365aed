/*
 * Signatures: Ed25519 (RFC 8032) by GnuTLS, with keys in PEM as OpenSSL writes them, so that who
 * has the public key needs nothing of ours:
 *
 *     openssl genpkey -algorithm ed25519 -out key.pem
 *     openssl pkey -in key.pem -pubout -out public.pem
 *     openssl pkeyutl -verify -rawin -pubin -inkey public.pem -in TEXT -sigfile TEXT.sig
 */
#ifndef SWERVE_STORE_KEEP_SIGNATURE_H
#define SWERVE_STORE_KEEP_SIGNATURE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { SIGNATURE_BYTES = 64 };

/* Signs text[bytes] with the private key in a PEM file, which has no password. NOT_FOUND, IO: the
 * file cannot be read; BAD_INPUT names it where it is no private key of Ed25519. */
enum status signature_make(const char *key_path, const void *text, size_t bytes,
                           uint8_t out[SIGNATURE_BYTES], struct error *error);

/* OK: it is the signature of text[bytes] by the public key in a PEM file. MISMATCH: it is not.
 * Others as above, of a public key. */
enum status signature_verify(const char *key_path, const void *text, size_t bytes,
                             const uint8_t signature[SIGNATURE_BYTES], struct error *error);

#endif
