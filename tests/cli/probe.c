/* Stands in for libtenure.so where only the command is tested: a library that can be preloaded and does nothing. */
int tenure_test_probe(void);
int tenure_test_probe(void)
{
    return 1;
}
