/*
 * The bearer token that a client shows to a server, read from a file.
 *
 * The file is the only place that the token comes from: an argument or an environment variable
 * would be seen by every process of the user. It is looked at before each request and read again
 * when it has changed, so that rotating a token is replacing a file. Thread-safe. Private to the
 * store room.
 *
 * Invariant: the token is in no message that this file makes.
 */
#ifndef SWERVE_STORE_CLIENT_TOKEN_FILE_H
#define SWERVE_STORE_CLIENT_TOKEN_FILE_H

#include "base/status.h"

#include <stdint.h>

enum { TOKEN_TEXT_BYTES = 512 }; /* with the terminator */

struct token_file;

/* Reads the token for the first time. The file: regular, the user's own (or root's), with no rights
 * for group and others; its first line is the token, 16 to 511 visible ASCII characters. Otherwise
 * STATUS_BAD_INPUT, or STATUS_IO when it cannot be read. */
enum status token_file_open(const char *path, struct token_file **out, struct error *error);
void token_file_close(struct token_file *file); /* accepts NULL; wipes the token */

/* Copies the current token to `text` and the number of its reading (1, 2, ..) to *version. A file
 * that cannot be read any more, or is half replaced, leaves the last good token in force. */
void token_file_get(struct token_file *file, char text[TOKEN_TEXT_BYTES], uint32_t *version);

const char *token_file_path(const struct token_file *file);

#endif
