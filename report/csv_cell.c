/*
 * Cells of CSV. See csv_cell.h.
 */
#include "report/csv_cell.h"

#include "base/check.h"
#include "base/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SPELLED_BYTES_MAX = 6 }; /* of one byte, "\\u001b" */

bool csv_cell_is_formula(const char *text)
{
    static const char *const wide[] = {"\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d",
                                       "\xef\xbc\xa0"};
    text += strspn(text, "'");
    if (text[0] != '\0' && strchr("=+-@\t\r\n", text[0]) != NULL) {
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(wide) && text[0] == wide[0][0]; i++) {
        if (strncmp(text, wide[i], strlen(wide[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Bytes of a text of letters, digits and the like, as most are; SIZE_MAX: it holds something else.
 */
static size_t plain_bytes(const char *text)
{
    size_t bytes = 0;
    while (text[bytes] >= ' ' && text[bytes] <= '~' && text[bytes] != ',' && text[bytes] != '"') {
        bytes++;
    }
    return text[bytes] == '\0' ? bytes : SIZE_MAX;
}

bool csv_cell_put(const char *text, FILE *out)
{
    size_t bytes = plain_bytes(text);
    const char *guard = csv_cell_is_formula(text) ? "'" : "";
    if (bytes != SIZE_MAX) {
        fputs(guard, out);
        fwrite_unlocked(text, 1, bytes, out);
        return true;
    }
    size_t capacity = strlen(text) * SPELLED_BYTES_MAX + 1;
    char *spelled = malloc(capacity);
    if (spelled == NULL) {
        return false;
    }
    text_escape(text, TEXT_LINES, spelled, capacity);
    const char *quote = strpbrk(spelled, ",\"\n") != NULL ? "\"" : "";
    fprintf(out, "%s%s", quote, guard);
    for (const char *at = spelled; *at != '\0'; at++) {
        if (*at == '"') {
            fputc('"', out);
        }
        fputc(*at, out);
    }
    fputs(quote, out);
    free(spelled);
    return true;
}
