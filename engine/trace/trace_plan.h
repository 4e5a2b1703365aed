/*
 * The section of a trace artifact that holds planners' trajectories and perceived objects, tick by
 * tick (schemas/trace.h). For people: no verdict and no hash depends on it, and of planners that
 * answer with actions and perceive nothing there is none. Used by trace.c alone.
 */
#ifndef SWERVE_ENGINE_TRACE_TRACE_PLAN_H
#define SWERVE_ENGINE_TRACE_TRACE_PLAN_H

#include "engine/trace/trace.h"

/* Size of the section, 0 when there is nothing to keep, or it would exceed `room` bytes. */
size_t trace_plan_bytes(const struct trace *const *traces, uint32_t count, size_t room);
/* Writes the section of that size. */
void trace_plan_pack(const struct trace *const *traces, uint32_t count, size_t bytes, uint8_t *out);

/* Checks the section in an untrusted artifact, if it begins here. *used grows by its bytes. */
enum status trace_plan_read(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                            size_t *used, struct error *error);

#endif
