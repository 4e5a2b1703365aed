/*
 * JUnit XML. See junit.h.
 */
#include "report/page/junit.h"

#include "report/page/html.h"

#include <math.h>
#include <string.h>

static void put(void *out, const char *text, size_t bytes)
{
    fwrite(text, 1, bytes, out);
}

/* Text from anywhere as XML: what XML cannot hold is spelled out. */
static size_t spell(const char *text, bool within, char out[FORMAT_SPELLED_BYTES])
{
    if (*text == '\n' || *text == '\'') {
        strcpy(out, *text == '\n' ? "&#10;" : "'");
        return 1;
    }
    return html_spell(text, within, out);
}

void junit_print(FILE *out, const char *format, ...)
{
    static const struct format_writer writer = {.put = put, .spell = spell};
    va_list args;
    va_start(args, format);
    format_write(format, "", &args, &writer, out);
    va_end(args);
}

void junit_begin(FILE *out, const char *name, const struct junit_counts *counts)
{
    junit_print(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    for (int i = 0; i < 2; i++) {
        junit_print(out, i == 0 ? "<testsuites name=\"%s\" " : " <testsuite name=\"%s\" ", name);
        junit_print(out, "tests=\"%llu\" failures=\"%llu\" errors=\"%llu\" skipped=\"%llu\"",
                    (unsigned long long)counts->tests, (unsigned long long)counts->failures,
                    (unsigned long long)counts->errors, (unsigned long long)counts->skipped);
        if (isfinite(counts->time_s)) {
            junit_print(out, " time=\"%.1f\"", counts->time_s);
        }
        junit_print(out, ">\n");
    }
}

void junit_end(FILE *out)
{
    junit_print(out, " </testsuite>\n</testsuites>\n");
}
