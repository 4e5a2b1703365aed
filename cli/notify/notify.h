/*
 * Notices to a webhook: that a suite has ended, and alarms, while a store is served. Each is a JSON
 * object with "event", a sentence "text", which chat services show as it is, and figures.
 */
#ifndef SWERVE_CLI_NOTIFY_NOTIFY_H
#define SWERVE_CLI_NOTIFY_NOTIFY_H

#include "base/log.h"
#include "store/api/store.h"

struct notify;

/* `url` and `logger` are borrowed. USAGE: no address. */
enum status notify_create(const char *url, const struct logger *logger, struct notify **out,
                          struct error *error);
void notify_destroy(struct notify *notify); /* accepts NULL */

/* Tells of suites that ended since the last look; the first look only remembers which go on. What
 * cannot be delivered is logged and tried again at the next look, NOTIFY_TRIES times in all, and
 * what else there is to tell waits until then. NULL: nothing is told. */
enum { NOTIFY_TRIES = 5 };
void notify_look(struct notify *notify, struct store *store);

/* Tells of an alarm, once. NULL: nothing is told. */
void notify_alarm(struct notify *notify, const char *text);

#endif
