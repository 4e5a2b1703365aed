/*
 * The report as a whole: makes the plan, packs drives for the player, runs the sections in reading
 * order, writes the file at once. What a section shows is in report_head.c, report_slices.c,
 * report_failures.c, report_fanouts.c, report_learned.c and report_table.c; frames and charts come
 * from report_drive.c and report_chart.c.
 */
#include "report/report.h"

#include "base/file.h"
#include "report/report_internal.h"
#include "store/api/store_url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status write_sections(struct report *report, struct error *error)
{
    char title[LIMIT_ID_BYTES + 16];
    snprintf(title, sizeof title, "Swerve: %s", report->suite_id);
    html_begin(&report->html, title);
    report_head(report);
    TRY(report_notes(report, error));
    TRY(report_failures(report, error));
    report_slices(report);
    report_cost(report);
    report_audit(report);
    report_flags(report);
    TRY(report_fanouts(report, error));
    report_rollouts(report);
    report_definitions(&report->html);
    html_raw(&report->html, "</main>");
    html_raw(&report->html, report->drives.text != NULL ? report->drives.text : "");
    html_end(&report->html);
    if (report->html.failed || report->drives.failed) {
        return error_set(error, STATUS_NO_MEMORY, "report: out of memory");
    }
    return STATUS_OK;
}

enum status report_check(const char *path, struct error *error)
{
    char temporary[LIMIT_PATH_BYTES];
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return error_set(error, STATUS_BAD_INPUT, "%s: is a directory", path);
    }
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= sizeof temporary) {
        return error_set(error, STATUS_BAD_INPUT, "%s: the name is too long", path);
    }
    int fd = mkstemp(temporary);
    if (fd < 0) {
        return error_set(error, STATUS_BAD_INPUT, "%s: cannot create: %s", path, strerror(errno));
    }
    close(fd);
    unlink(temporary);
    return STATUS_OK;
}

/* A report gets around: no URL with a user's name or password in it, nor one that cannot be quoted.
 */
static const char *showable(const char *store_url)
{
    if (store_url == NULL || strchr(store_url, '\'') != NULL ||
        (!store_url_is_path(store_url) && strpbrk(store_url, "@?") != NULL)) {
        return NULL;
    }
    return store_url;
}

enum status report_write(struct store *store, const char *store_url, const char *suite_id,
                         const struct summary *summary, struct report_careful *careful,
                         report_frames *frames, const char *path, struct error *error)
{
    struct report report = {
        .store = store,
        .store_url = showable(store_url),
        .suite_id = suite_id,
        .summary = summary,
        .careful = careful,
        .frames = frames,
    };
    report.page = (struct page){.form = PAGE_HTML, .html = &report.html};
    enum status status = report_plan_make(&report, error);
    THEN(status, report_drives(&report, error));
    THEN(status, write_sections(&report, error));
    THEN(status, file_replace(path, report.html.text, report.html.bytes, 0644, error));
    report_drive_close(&report.drive);
    report_plan_finish(&report.plan);
    html_finish(&report.drives);
    html_finish(&report.html);
    return status;
}
