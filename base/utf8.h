/*
 * UTF-8: what is a character and what is not.
 */
#ifndef SWERVE_BASE_UTF8_H
#define SWERVE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed sequence at text, of which `bytes` may be read, or 0: shortest forms
 * alone, no surrogates, nothing beyond U+10FFFF (Unicode 15, table 3-7). `bytes` is at least 1. */
size_t utf8_sequence_bytes(const unsigned char *text, size_t bytes);

/* The whole text, to its NUL, is made of such sequences. */
bool utf8_valid(const char *text);

/* Writes "?" over each byte that belongs to no such sequence. */
void utf8_repair(char *text);

#endif
