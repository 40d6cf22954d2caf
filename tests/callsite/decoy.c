/* Named libunwind.so.8 by the build, but without its function. */
int decoy(void);

int decoy(void)
{
    return 8;
}
