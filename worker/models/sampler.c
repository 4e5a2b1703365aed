/*
 * Names of samplers and their parts. See sampler.h and models.h.
 */
#include "worker/models/sampler.h"

#include "base/check.h"
#include "engine/sensors/conditioning.h"
#include "worker/models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EULER "/euler"
#define PREVIOUS '+'

/* Parts of a name around its number of steps; false: it has none. */
static bool take_apart(const char *sampler, size_t *before, uint32_t *steps, const char **behind)
{
    const char *at = strstr(sampler, EULER);
    char *end;
    if (at == NULL || at[strlen(EULER)] < '0' || at[strlen(EULER)] > '9') {
        return false;
    }
    unsigned long number = strtoul(at + strlen(EULER), &end, 10);
    *before = (size_t)(at - sampler) + strlen(EULER);
    *steps = (uint32_t)number;
    *behind = end;
    return number <= LIMIT_SAMPLER_STEPS && (*end == '/' || *end == PREVIOUS);
}

enum status sampler_skip(char sampler[LIMIT_ID_BYTES], uint32_t skipped, struct error *error)
{
    size_t before;
    uint32_t steps;
    const char *behind;
    char out[LIMIT_ID_BYTES];
    if (!take_apart(sampler, &before, &steps, &behind)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "sampler %s: no steps can be left out of a world that is none of ours",
                         sampler);
    }
    size_t length = before - strlen(EULER);
    bool drawable = false;
    for (int i = 0; i < CONDITIONING_CHOICES; i++) {
        drawable =
            drawable || (conditioning_of_network((enum conditioning)i) == CONDITIONING_AGENTS &&
                         strlen(conditioning_names[i]) == length &&
                         strncmp(sampler, conditioning_names[i], length) == 0);
    }
    if (skipped > steps || (skipped == steps && !drawable)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "sampler %s: expected at most %u steps to be left out, found %u", sampler,
                         drawable ? steps : steps - 1, skipped);
    }
    snprintf(out, sizeof out, "%.*s%u%s", (int)before, sampler, steps - skipped, behind);
    memcpy(sampler, out, sizeof out);
    return STATUS_OK;
}

void sampler_add_previous(char sampler[LIMIT_ID_BYTES], const char *hash)
{
    char out[LIMIT_ID_BYTES];
    const char *last = strrchr(sampler, '/');
    CHECK(last != NULL && strlen(hash) >= SAMPLER_HASH_DIGITS);
    int bytes = snprintf(out, sizeof out, "%.*s%c%.*s%s", (int)(last - sampler), sampler, PREVIOUS,
                         SAMPLER_HASH_DIGITS, hash, last);
    CHECK(bytes < LIMIT_ID_BYTES);
    memcpy(sampler, out, sizeof out);
}

bool sampler_previous(const char *sampler, char digits[SAMPLER_HASH_DIGITS + 1])
{
    size_t before;
    uint32_t steps;
    const char *behind;
    if (!take_apart(sampler, &before, &steps, &behind) || *behind != PREVIOUS) {
        return false;
    }
    size_t count = strcspn(behind + 1, "/");
    snprintf(digits, SAMPLER_HASH_DIGITS + 1, "%s", behind + 1);
    return count == SAMPLER_HASH_DIGITS &&
           strspn(digits, "0123456789abcdef") == SAMPLER_HASH_DIGITS;
}

bool sampler_skips(const char *own, const char *asked, uint32_t *skipped)
{
    size_t before[2];
    uint32_t steps[2];
    const char *behind[2];
    *skipped = 0;
    if (strcmp(own, asked) == 0) {
        return true;
    }
    if (!take_apart(own, &before[0], &steps[0], &behind[0]) ||
        !take_apart(asked, &before[1], &steps[1], &behind[1]) || before[0] != before[1] ||
        strncmp(own, asked, before[0]) != 0 || strcmp(behind[0], behind[1]) != 0 ||
        steps[1] > steps[0]) {
        return false;
    }
    *skipped = steps[0] - steps[1];
    return true;
}

/* ---- parts ---- */

enum status models_parse_precision(const char *name, enum nn_precision *out, struct error *error)
{
    for (int i = 0; i < NN_PRECISION_COUNT; i++) {
        if (strcmp(name, nn_precision_names[i]) == 0) {
            *out = (enum nn_precision)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_USAGE, "precision: expected fp32, bf16 or int8, found \"%.60s\"",
                     name);
}

enum status models_parse_conditioning(const char *name, enum conditioning *out, struct error *error)
{
    for (int i = 0; i < CONDITIONING_CHOICES; i++) {
        if (strcmp(name, conditioning_names[i]) == 0) {
            *out = (enum conditioning)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_USAGE,
                     "layout: expected agents, map, none, foresee or tokens, found \"%.60s\"",
                     name);
}

enum status models_parse_sampler(const char *sampler, enum conditioning *conditioning,
                                 enum nn_precision *precision, struct error *error)
{
    char first[LIMIT_ID_BYTES];
    const char *slash = strchr(sampler, '/');
    const char *last = strrchr(sampler, '/');
    enum conditioning found_conditioning = CONDITIONING_AGENTS;
    enum nn_precision found_precision = NN_BF16;
    if (slash == NULL || last == slash || slash - sampler >= LIMIT_ID_BYTES) {
        return error_set(error, STATUS_BAD_INPUT,
                         "sampler \"%.60s\": expected conditioning/eulerN/precision", sampler);
    }
    snprintf(first, sizeof first, "%.*s", (int)(slash - sampler), sampler);
    bool foreign = outcome_world_option(sampler)[0] != '\0';
    if (models_parse_conditioning(first, &found_conditioning, error) != STATUS_OK ||
        (!foreign && models_parse_precision(last + 1, &found_precision, error) != STATUS_OK)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "sampler \"%.60s\": expected conditioning/eulerN/precision", sampler);
    }
    *conditioning = found_conditioning;
    *precision = found_precision;
    return STATUS_OK;
}
