/*
 * Base64 (RFC 4648, section 4): bytes as text, for pictures inside HTML and JSON.
 */
#ifndef SWERVE_BASE_BASE64_H
#define SWERVE_BASE_BASE64_H

#include <stddef.h>

/* Bytes of the text of `bytes` bytes, without a terminator. */
size_t base64_bytes(size_t bytes);

/* Writes base64_bytes(bytes) characters and a terminator. */
void base64_encode(const void *data, size_t bytes, char *out);

#endif
