/* A program that no preload reaches. */
#include <stdio.h>

int main(void)
{
    puts("static program");
    return 0;
}
