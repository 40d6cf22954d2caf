/* Prints the API table, one row a line: level, class, name. The shell tests hold it against the toolkit. */
#include <stdio.h>

#include "shim/api.h"

int main(void)
{
#define TN_DRIVER(klass, variant, name, ...) printf("driver %s %s\n", #klass, #name);
#define TN_RUNTIME(klass, variant, name, ...) printf("runtime %s %s\n", #klass, #name);
#define TN_NVML(klass, name, ...) printf("nvml %s %s\n", #klass, #name);
#include "shim/api_all.def"
    return 0;
}
