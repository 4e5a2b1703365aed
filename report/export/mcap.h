/*
 * MCAP writer: timestamped messages of several channels in one file (mcap.dev/spec, version 0).
 * Messages are JSON with a JSON schema. They are gathered into chunks, compressed by zstd and
 * indexed by time; the summary at the end lets a reader seek.
 *
 * Sticky failure: after a failure every call is a no-op, and mcap_finish() says what went wrong.
 */
#ifndef SWERVE_REPORT_EXPORT_MCAP_H
#define SWERVE_REPORT_EXPORT_MCAP_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MCAP_CHANNELS_MAX = 48, MCAP_CHUNK_BYTES = 1 << 20 };

struct mcap;

/* Writes the header. The stream and its name in errors are borrowed. */
enum status mcap_create(FILE *out, const char *place, struct mcap **file, struct error *error);

/* A channel of JSON messages: topic, name of the schema and its text. Returns its number. All
 * channels come before the first message. */
uint16_t mcap_channel(struct mcap *file, const char *topic, const char *schema, const char *text);

/* Times are nanoseconds and do not fall. */
void mcap_message(struct mcap *file, uint16_t channel, uint64_t time_ns, const void *data,
                  size_t bytes);

/* Named texts about the whole file; pairs: name, value, .., NULL. */
void mcap_metadata(struct mcap *file, const char *name, const char *const *pairs);

/* Writes what is left, the summary and the footer, and frees. IO, NO_MEMORY. */
enum status mcap_finish(struct mcap *file, struct error *error);

#endif
