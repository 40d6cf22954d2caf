/* Prints the name of every row of the API table, one a line. */
#include <stdio.h>

int main(void)
{
#define TN_DRIVER(klass, variant, name, ...) puts(#name);
#define TN_RUNTIME TN_DRIVER
#define TN_NVML(klass, name, ...) puts(#name);
#include "shim/api_all.def"
    return 0;
}
