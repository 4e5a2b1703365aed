/*
 * The section of a trace artifact that holds what planners wrote to stderr, rollout by rollout
 * (schemas/trace.h). For people: no verdict and no hash depends on it, and of silent planners there
 * is none. Used by trace.c alone.
 */
#ifndef SWERVE_ENGINE_TRACE_TRACE_OUTPUT_H
#define SWERVE_ENGINE_TRACE_TRACE_OUTPUT_H

#include "engine/trace/trace.h"

/* Size of the section, 0 when nobody wrote anything, or it would exceed `room` bytes. */
size_t trace_output_bytes(const struct trace *const *traces, uint32_t count, size_t room);
/* Writes the section of that size. */
void trace_output_pack(const struct trace *const *traces, uint32_t count, size_t bytes,
                       uint8_t *out);

/* Checks the untrusted rest of an artifact, which is this section or nothing. */
enum status trace_output_read(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                              struct error *error);

#endif
