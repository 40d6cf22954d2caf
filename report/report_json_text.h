/* Any bytes as a JSON string. The caller owns what is returned; any thread may use it. */
#ifndef TENURE_REPORT_REPORT_JSON_TEXT_H
#define TENURE_REPORT_REPORT_JSON_TEXT_H

#include <jansson.h>

/* What is no UTF-8 becomes U+FFFD, byte by byte. JSON null for NULL; NULL when no memory is left. */
json_t *tn_json_text(const char *text);

#endif
