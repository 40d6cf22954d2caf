/* Writes the example journal to the named file, for the command's tests; a second argument cuts it to that many bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/report/journal_maker.h"

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: make_example FILE [BYTES]\n");
        return 2;
    }
    jm *j = jm_example(4242);
    jm_write(j, argv[1], argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
    jm_free(j);
    return 0;
}
