/*
 * Text: what others wrote (ids, titles, what planners print, errors of a server, names of files) as
 * a terminal may show it. A terminal obeys control characters, and bidirectional overrides and
 * characters without width show something else than what is there, so all of these are spelled out:
 * a code point as JSON writes it (\u001b; beyond U+FFFF a pair), a byte that is not UTF-8 as \x9b.
 * Whatever a command prints goes through here.
 */
#ifndef SWERVE_BASE_TEXT_H
#define SWERVE_BASE_TEXT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Characters that are kept although they move the cursor. */
enum text_kept {
    TEXT_LINE,  /* none */
    TEXT_LINES, /* line feeds and tabs */
};

/* Bytes of the sequence at text, of which `bytes` (at least 1) may be read, when a terminal may
 * show it as it is; 0 when it must be spelled out. */
size_t text_shown_bytes(const unsigned char *text, size_t bytes, enum text_kept kept);

/* The text spelled out into out, terminated; cut before the first character that does not fit
 * whole. capacity >= 1. Returns the bytes written without the terminator. */
size_t text_escape(const char *text, enum text_kept kept, char *out, size_t capacity);

/* A name that is kept, listed, printed and put into paths and URLs: 1 to capacity - 1 bytes that a
 * terminal may show, that do not begin with "/" and have no step "." or ".." between slashes.
 * `what` it names ("suite") begins the sentence of the error. BAD_INPUT, or LIMIT: it is too long.
 */
enum status text_name_check(const char *what, const char *name, size_t capacity,
                            struct error *error);

/* Value of a hexadecimal digit of either case, -1: it is none. */
int text_hex_digit(unsigned char digit);

/* The name as a shell reads it back, for commands that people are shown: as it is, or in quotes,
 * and then cut where it does not fit whole. Returns out. */
const char *text_shell_word(const char *name, char *out, size_t capacity);

/* fprintf for one line: line feeds at the ends of `format` are written, everything between them is
 * spelled out, a line feed of an argument as well. Returns the bytes written, < 0 on failure. */
int text_print(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for text of several lines, whose line feeds and tabs are kept. */
int text_print_lines(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text that is complete, in several lines; valid JSON stays valid and keeps its meaning. */
int text_put(FILE *stream, const char *text);

enum { TEXT_REAL_BYTES = 40 };

/* The number in the fewest digits that read back as the same one, as printf's %g writes them (15,
 * 16 or 17 significant digits, none of them a zero at the end). Returns the bytes written without
 * the terminator. */
size_t text_real(double value, char out[TEXT_REAL_BYTES]);

/* Of words, which end in NULL, the one that `word` may be a slip of; NULL: it is like none. */
const char *text_nearest(const char *word, const char *const *words);

/* Hashes of texts, for look-ups in memory and for choices that depend on nothing but the text. */
#define TEXT_HASH_FIRST UINT64_C(0xcbf29ce484222325) /* of no bytes */

/* FNV-1a (Fowler, Noll, Vo) of the bytes of which `hash` is, and those of a text behind them. */
static inline uint64_t text_hash_on(uint64_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static inline uint64_t text_hash(const char *text)
{
    return text_hash_on(TEXT_HASH_FIRST, text, strlen(text));
}

#endif
