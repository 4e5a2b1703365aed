/*
 * Mutation of JSON texts for the fuzz targets: a value replaced by another of the same document or
 * by an awkward one, removed, or doubled, because few changed bytes leave JSON behind.
 */
#ifndef SWERVE_TESTS_FUZZ_JSON_MUTATOR_H
#define SWERVE_TESTS_FUZZ_JSON_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's own mutator of bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max);

/* Changes data[0, bytes) in place, at most to `max` bytes; returns the new size. Half of the
 * changes act on the parsed text, the others, and those of texts that are no JSON, on its bytes.
 * `texts` are awkward values of the field. */
size_t json_mutate(uint8_t *data, size_t bytes, size_t max, unsigned seed, const char *const *texts,
                   size_t text_count);

#endif
