/*
 * The section of a trace artifact that holds pictures of cameras as a world made them
 * (schemas/trace.h): what cannot be drawn again, at its own size, as JPEG. For people: no verdict
 * and no hash depends on it. They stay as long as the artifact does.
 */
#ifndef SWERVE_ENGINE_TRACE_TRACE_PICTURES_H
#define SWERVE_ENGINE_TRACE_TRACE_PICTURES_H

#include "engine/trace/trace.h"

/* Of all rollouts of a job together. */
enum { TRACE_PICTURES_JOB_BYTES_MAX = 64 << 20 };

/* Size of the section, 0 when there is nothing to keep, or it would exceed `room` bytes. */
size_t trace_pictures_bytes(const struct trace *const *traces, uint32_t count, size_t room);
/* Writes the section of that size. */
void trace_pictures_pack(const struct trace *const *traces, uint32_t count, size_t bytes,
                         uint8_t *out);

/* Checks the section in an untrusted artifact, if it begins here. *used grows by its bytes. */
enum status trace_pictures_read(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                                size_t *used, struct error *error);

#endif
