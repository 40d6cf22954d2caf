/* Prints the call frame rules of addresses, for cfi_test.sh to hold against readelf: cfi_rows LIBRARY reads offsets into LIBRARY, hexadecimal, one a
 * line, and prints after each what tn_cfi_rule_of() says of a return address one above: kind, CFA, where the frame pointer is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/cfi.h"

int main(int argc, char **argv)
{
    static const char *const kinds[] = { "other", "sp", "fp", "end" }, *const fps[] = { "lost", "same", "saved" };
    struct link_map *map = NULL;
    char line[64];
    void *handle = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
        fprintf(stderr, "no library\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        tn_cfi_rule rule;
        uint64_t offset = strtoull(line, NULL, 16);
        tn_cfi_rule_of(map->l_addr + offset + 1, &rule);
        printf("%" PRIx64 " %s", offset, kinds[rule.kind]);
        if (rule.kind == TN_CFI_SP || rule.kind == TN_CFI_FP) {
            printf("%+d ra%+d %s", rule.cfa, rule.ra_offset, fps[rule.fp]);
            if (rule.fp == TN_CFI_FP_SAVED)
                printf("%+d", rule.fp_offset);
        }
        puts("");
    }
    return 0;
}
