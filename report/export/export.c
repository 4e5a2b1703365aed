/*
 * Streams of exports: files that take their name when they are whole, and failures. What formats of
 * one drive share: its recording, borders of lanes.
 */
#include "report/export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status export_to_file(struct export_request *request, const char *path, export_writer *write,
                           const void *context, struct error *error)
{
    char part[LIMIT_PATH_BYTES];
    int bytes = snprintf(part, sizeof part, "%s.%d.part", path, (int)getpid());
    if (bytes < 0 || (size_t)bytes >= sizeof part) {
        return error_set(error, STATUS_USAGE, "%s: the path is too long", path);
    }
    request->place = path;
    /* The name can be foretold, so in a folder that others write to it may be a link of theirs. */
    unlink(part);
    request->out = fopen(part, "wbx");
    if (request->out == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", path, strerror(errno));
    }
    enum status status = write(context, request, part, error);
    if (fclose(request->out) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
    }
    if (status == STATUS_OK && rename(part, path) != 0) {
        status = error_set(error, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
    }
    if (status != STATUS_OK) {
        unlink(part);
    }
    return status;
}

enum status export_stream_check(const struct export_request *request, struct error *error)
{
    errno = 0;
    if (fflush(request->out) != 0 || ferror(request->out)) {
        return error_set(error, STATUS_IO, "%s: cannot write: %s", request->place,
                         errno != 0 ? strerror(errno) : "the stream has failed");
    }
    return STATUS_OK;
}

enum status export_drive_open(struct report_drive *drive, struct store *store,
                              const struct outcome *outcome, int32_t *rollout, struct error *error)
{
    TRY(report_drive_open(drive, store, outcome->scenario_hash, outcome->artifact_hash, error));
    return report_drive_recorded(drive, outcome, rollout, error);
}
