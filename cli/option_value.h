/* The values of options as every command reads them: one sentence for what is wrong, with the option's name. No state; one thread. */
#ifndef TENURE_CLI_OPTION_VALUE_H
#define TENURE_CLI_OPTION_VALUE_H

#include <stdint.h>

/* A whole number from `least` to `most` (UINT64_MAX: no end is named). -1 with it in *out; else the exit code, after a line to standard error. */
int cli_number(const char *command, const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out);
/* A size such as 32607MiB, in bytes, likewise. */
int cli_size(const char *command, const char *option, const char *text, uint64_t *out);

#endif
