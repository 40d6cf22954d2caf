/* A program without a dynamic loader: no preload can reach it. */
int main(void)
{
    return 21;
}
