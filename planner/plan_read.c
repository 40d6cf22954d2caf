/* What the command does with plans by malloc's memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_check.h"
#include "planner/plan_json.h"
#include "planner/plan_load.h"
#include "planner/text_file.h"

static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    (void)old_bytes;
    if (new_bytes)
        return realloc(block, new_bytes);
    free(block);
    return NULL;
}

static const tn_metadata by_malloc = {.resize = resize};

tn_plan *tn_plan_new(void)
{
    return tn_plan_new_in(&by_malloc);
}

tn_error tn_plan_check(const tn_plan *plan, char message[TN_PLAN_CHECK_MESSAGE])
{
    return tn_plan_check_in(plan, &by_malloc, message);
}

tn_error tn_plan_parse(const char *text, size_t bytes, const char *name, tn_plan **out, char message[TN_PLAN_MESSAGE])
{
    return tn_plan_load_text(text, bytes, name, 0, &by_malloc, out, message);
}

tn_error tn_plan_read(const char *path, tn_plan **out, char message[TN_PLAN_MESSAGE])
{
    char *text = NULL;
    size_t bytes = 0;
    int code = tn_text_file_read(path, TN_PLAN_FILE_MAX, &text, &bytes);
    *out = NULL;
    if (code) {
        snprintf(message, TN_PLAN_MESSAGE, "%s: %s", path, code == ENOMEM ? "it does not fit into memory" : strerror(code));
        return code == ENOMEM ? TN_E_NOMEM : TN_E_OPEN;
    }
    tn_error error = tn_plan_parse(text, bytes, path, out, message);
    free(text);
    return error;
}
