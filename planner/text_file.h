/* A whole small file into memory, and what is quoted from it in a message. Nothing is kept; any thread. */
#ifndef TENURE_PLANNER_TEXT_FILE_H
#define TENURE_PLANNER_TEXT_FILE_H

#include <stddef.h>

#include "planner/text_mask.h"

/* Reads `path` to its end. Returns 0 with *bytes to be freed by the caller, *length long and with a 0 behind it; else an errno value:
 * EFBIG where there are more than `limit` bytes, EISDIR for a folder, ENOMEM, or the system's own. A pipe or a device is read, too. */
int tn_text_file_read(const char *path, size_t limit, char **bytes, size_t *length);

#endif
