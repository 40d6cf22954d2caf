/* Prints every name of a source file as the census's lexer sees it, one a line: line number, name. What the differential test
 * compares with a compiler's own lexer. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "census/census_lex.h"

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    tn_lexer lexer;
    if (fd < 0 || tn_lexer_open(&lexer, fd) != 0) {
        fprintf(stderr, "usage: dump_names FILE\n");
        return 2;
    }
    tn_token token;
    for (tn_lexer_next(&lexer, &token); token.kind != TN_TOK_END; tn_lexer_next(&lexer, &token))
        if (token.kind == TN_TOK_NAME && token.length)
            printf("%" PRIu64 " %s\n", token.line, token.text);
    int failed = lexer.error;
    tn_lexer_close(&lexer);
    close(fd);
    return failed != 0;
}
