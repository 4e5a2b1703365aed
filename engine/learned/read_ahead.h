/*
 * Read-ahead: one thread that reads pages from a spill into a pool's buffers while the pool's owner
 * does something else (engine/learned/pages.h). Each buffer has at most one read: not begun, under
 * way, or done; reads begin in the order in which they were asked for.
 *
 * One owner calls; the thread touches nothing but spill->peek and the buffer of the read under way.
 * A read that is cancelled under way goes on into a buffer that nobody looks at, so that the owner
 * need not wait before it wants that buffer again.
 */
#ifndef SWERVE_ENGINE_LEARNED_READ_AHEAD_H
#define SWERVE_ENGINE_LEARNED_READ_AHEAD_H

#include "base/status.h"
#include "engine/learned/spill_ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Four lanes of multiply and rotate over 64-bit words: finds damage, not malice. `bytes` is a
 * multiple of 32. */
uint64_t page_digest(const uint8_t *data, size_t bytes);

struct read_ahead;

/* Starts the thread. spill (with peek) and buffers [buffer_count][buffer_bytes] are borrowed until
 * destroy. STATUS_NO_MEMORY, STATUS_IO: no thread. */
enum status read_ahead_create(const struct spill_ops *spill, uint8_t *buffers, size_t buffer_bytes,
                              uint32_t buffer_count, struct read_ahead **out, struct error *error);
/* Accepts NULL. Waits for the read under way; the others never begin. */
void read_ahead_destroy(struct read_ahead *ahead);

/* Asks for a record that has this digest (page_digest). The buffer is the thread's until finish or
 * cancel; it must not have a read, not even a cancelled one (read_ahead_wait). */
void read_ahead_start(struct read_ahead *ahead, uint32_t buffer, uint64_t handle, uint64_t digest);
/* Ends a read and gives the buffer back: waits when it is under way, takes it back when it has not
 * begun. True: the buffer holds what has the digest. */
bool read_ahead_finish(struct read_ahead *ahead, uint32_t buffer);
/* Nobody wants the read any more. */
void read_ahead_cancel(struct read_ahead *ahead, uint32_t buffer);
/* Whether no cancelled read goes on in the buffer; at most one buffer's does. */
bool read_ahead_idle(struct read_ahead *ahead, uint32_t buffer);
/* Until no cancelled read goes on in the buffer. */
void read_ahead_wait(struct read_ahead *ahead, uint32_t buffer);

#endif
