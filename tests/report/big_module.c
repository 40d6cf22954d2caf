/* A library with some hundred functions, each with one inlined into it, from which make_big makes modules that have
 * symbols and debug information. */
static inline __attribute__((always_inline)) int mix(int x, int y)
{
    for (int i = 0; i < y; i++)
        x = x * 31 + (x >> 3) + i;
    return x;
}

#define ONE(n)                                  \
    int big_function_##n(int x);                \
    int big_function_##n(int x)                 \
    {                                           \
        int y = mix(x, 17 + n);                 \
        return mix(y, x & 7) + big_table[x & 7]; \
    }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)

static volatile int big_table[8];
HUNDRED(1)
HUNDRED(2)
HUNDRED(3)
HUNDRED(4)
