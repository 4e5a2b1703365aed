/*
 * Turns of a host's processes at what hurts when all do it at once, as where an array of workers
 * starts: bringing weights from the store, which one does for all, and reading them.
 *
 * A turn is a lock on a file, so it ends with its process. It is a courtesy: who cannot lock, or
 * has waited long, goes on without, and what is read is compared with its hash either way.
 */
#ifndef SWERVE_WORKER_MODELS_MODEL_TURNS_H
#define SWERVE_WORKER_MODELS_MODEL_TURNS_H

#include <stdint.h>

enum { MODEL_TURNS_OPEN = 5, MODEL_TURNS_WAIT_MS = 60000 };

/* Waits until fewer than `places` others hold this turn in the directory. The descriptor ends the
 * turn when it is closed; -1: the caller goes on without one. */
int model_turns_take(const char *directory, const char *name, int places, int64_t wait_ms);
void model_turns_end(int turn); /* accepts -1 */

#endif
