/* Digits alone: a sign or a blank before them, which strtoull takes, is none of a number here. */
#include "cli/option_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "planner/size_text.h"

int cli_number(const char *command, const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (!errno && !*end && text[0] >= '0' && text[0] <= '9' && n >= least && n <= most) {
        *out = n;
        return -1;
    }
    if (most == UINT64_MAX)
        return cli_fail(command, "%s needs a whole number from %" PRIu64 " on, not %s", option, least, text);
    return cli_fail(command, "%s needs a whole number from %" PRIu64 " to %" PRIu64 ", not %s", option, least, most, text);
}

int cli_size(const char *command, const char *option, const char *text, uint64_t *out)
{
    size_t at = 0, length = strlen(text);
    tn_size_error error = tn_size_read(text, length, out, &at);
    if (error == TN_SIZE_OK)
        return -1;
    char sentence[200];
    tn_size_explain(text, length, error, at, sentence, sizeof(sentence));
    return cli_fail(command, "%s: %s", option, sentence);
}
