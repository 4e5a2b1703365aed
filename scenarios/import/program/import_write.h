/*
 * Documents of an import to files: one into OUT itself; several each into a file of its own beside
 * it, and the suite that lists them into OUT. A map, and a path of a storyboard, that several have
 * alike is written once, into a file that they refer to.
 *
 * Few documents are in memory at a time, and what they share is told by its hash.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_PROGRAM_IMPORT_WRITE_H
#define SWERVE_SCENARIOS_IMPORT_PROGRAM_IMPORT_WRITE_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

struct import_writer;

/* `out` is borrowed. */
enum status import_writer_create(const char *out, struct import_writer **writer,
                                 struct error *error);
void import_writer_destroy(struct import_writer *writer); /* accepts NULL */

/* An import_take (import.h) of a struct import_writer. A document whose id another one has gets
 * one of its own. */
enum status import_writer_take(void *writer, json_t *document, struct error *error);

/* Writes what is left; *count is that of all documents. */
enum status import_writer_end(struct import_writer *writer, size_t *count, struct error *error);

#endif
