/*
 * Labels of a kind, page by page, whatever store they are in.
 */
#ifndef SWERVE_STORE_API_LABEL_PAGES_H
#define SWERVE_STORE_API_LABEL_PAGES_H

#include "store/api/store.h"

/* Shown each; what is not OK ends it. */
typedef enum status label_visit(void *context, const struct label *label, struct error *error);

enum status labels_each(struct store *store, enum label_kind kind, label_visit *visit,
                        void *context, struct error *error);

#endif
