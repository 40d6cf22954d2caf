/* Runs a fuzz target over files, without a fuzzer: the seeds in CI, or one finding under a debugger.
 * usage: TARGET FILE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILE = 1 << 24 };

int main(int argc, char **argv)
{
    for (int k = 1; k < argc; k++) {
        FILE *file = fopen(argv[k], "rb");
        uint8_t *bytes = malloc(MAX_FILE), *exact;
        if (!file || !bytes) {
            fprintf(stderr, "%s: cannot be read\n", argv[k]);
            return 2;
        }
        size_t size = fread(bytes, 1, MAX_FILE, file);
        fclose(file);
        exact = malloc(size ? size : 1); /* so that a sanitizer sees one byte too far */
        if (!exact)
            return 2;
        for (size_t i = 0; i < size; i++)
            exact[i] = bytes[i];
        free(bytes);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        const char *name = argv[k];
        for (const char *c = argv[k]; *c; c++)
            if (*c == '/')
                name = c + 1;
        printf("ok %s\n", name);
    }
    return argc > 1 ? 0 : 2;
}
