/*
 * Labels of what a command sends. See label_options.h.
 */
#include "cli/label/label_options.h"

#include <stdio.h>

enum status label_send(struct store *store, const char *suite_id, enum label_kind kind,
                       const char *text, struct error *error)
{
    struct label label = {.kind = kind};
    snprintf(label.suite, sizeof label.suite, "%s", suite_id);
    snprintf(label.text, sizeof label.text, "%s", text);
    return store->ops->label_add(store, &label, error);
}

enum status label_options_check(const struct label_options *options, struct error *error)
{
    struct label note = {.kind = LABEL_NOTE};
    for (uint32_t i = 0; i < options->tags.count; i++) {
        TRY(label_name_check("--tag", options->tags.values[i], error));
    }
    if (options->note == NULL) {
        return STATUS_OK;
    }
    if ((size_t)snprintf(note.text, sizeof note.text, "%s", options->note) >= sizeof note.text ||
        label_check(&note, error) != STATUS_OK) {
        return error_set(error, STATUS_USAGE, "--note: expected 1 to %d bytes of UTF-8 in one line",
                         LABEL_BYTES - 1);
    }
    return STATUS_OK;
}

enum status label_options_send(const struct label_options *options, struct store *store,
                               const char *suite_id, struct error *error)
{
    char commit[LABEL_BYTES];
    git_commit(commit);
    if (commit[0] != '\0') {
        TRY(label_send(store, suite_id, LABEL_COMMIT, commit, error));
    }
    if (options->note != NULL) {
        TRY(label_send(store, suite_id, LABEL_NOTE, options->note, error));
    }
    for (uint32_t i = 0; i < options->tags.count; i++) {
        TRY(label_send(store, suite_id, LABEL_TAG, options->tags.values[i], error));
    }
    return STATUS_OK;
}
