/*
 * Files of the dashboard by name. See web.h; scripts/embed.py makes the table.
 */
#include "store/server/web/web.h"

#include "base/embedded.h"

#include <string.h>

extern const struct embedded_text web_files[];
extern const size_t web_files_count;

static enum web_kind kind_of(const char *name)
{
    const char *end = strrchr(name, '.');
    if (end != NULL && strcmp(end, ".js") == 0) {
        return WEB_SCRIPT;
    }
    return end != NULL && strcmp(end, ".css") == 0 ? WEB_STYLE : WEB_HTML;
}

struct web_file web_file_find(const char *name)
{
    struct web_file found = {.text = NULL};
    const char *wanted = name[0] == '\0' ? "index.html" : name;
    for (size_t i = 0; i < web_files_count && found.text == NULL; i++) {
        if (strcmp(web_files[i].name, wanted) == 0) {
            found.text = web_files[i].text;
            found.bytes = strlen(found.text);
            found.kind = kind_of(wanted);
        }
    }
    return found;
}
