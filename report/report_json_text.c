/* Any bytes as a JSON string. */
#define _GNU_SOURCE
#include "report/report_json_text.h"

#include <stdlib.h>
#include <string.h>

json_t *tn_json_text(const char *text)
{
    if (!text)
        return json_null();
    json_t *string = json_string(text);
    if (string)
        return string;
    /* jansson takes valid UTF-8 only. Byte by byte: every sequence that it takes alone stays. */
    size_t length = strlen(text);
    char *clean = malloc(length * 3 + 1), *to = clean;
    if (!clean)
        return NULL;
    for (size_t i = 0; i < length;) {
        size_t width = 1;
        for (; width <= 4 && i + width <= length; width++) {
            json_t *one = json_stringn(text + i, width);
            json_decref(one);
            if (one)
                break;
        }
        if (width <= 4 && i + width <= length) {
            to = mempcpy(to, text + i, width);
            i += width;
        } else {
            to = mempcpy(to, "\xef\xbf\xbd", 3);
            i++;
        }
    }
    *to = 0;
    string = json_string(clean);
    free(clean);
    return string;
}
