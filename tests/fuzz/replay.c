/* replay.c - a fuzz target without a fuzzer: each of its seeds once, with any compiler. replay_NAME
 * reads the folder corpus/NAME beside it, which ninja unpacks (seeds.sh), or the files given. */
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target gets memory of exactly the input's size, so that reading behind it is noticed. */
static int replay(const char *path)
{
    static uint8_t bytes[LONGEST];
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return fprintf(stderr, "%s cannot be read\n", path), 1;
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    uint8_t *data = malloc(size);
    if (data == NULL && size > 0)
        return fprintf(stderr, "out of memory\n"), 1;
    if (size > 0)
        memcpy(data, bytes, size);
    fprintf(stderr, "%s\n", path); /* the last one that is named is the one that fails */
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

/* Replays the seeds of a program whose path is FOLDER/replay_NAME. */
static int replay_corpus(const char *program, int *n)
{
    char path[512];
    const char *name = strstr(program, "replay_");
    if (name == NULL)
        return fprintf(stderr, "%s is not named replay_NAME\n", program), 1;
    snprintf(path, sizeof path, "%.*scorpus/%s/*", (int)(name - program), program, name + 7);
    glob_t seeds;
    if (glob(path, 0, NULL, &seeds) != 0)
        return fprintf(stderr, "there is no %s\n", path), 1;
    int failed = 0;
    for (size_t i = 0; i < seeds.gl_pathc && !failed; i++, ++*n)
        failed = replay(seeds.gl_pathv[i]);
    globfree(&seeds);
    return failed;
}

int main(int argc, char **argv)
{
    int n = argc - 1, failed = 0;
    for (int i = 1; i < argc && !failed; i++)
        failed = replay(argv[i]);
    if (argc == 1)
        failed = replay_corpus(argv[0], &n);
    if (failed || n == 0)
        return EXIT_FAILURE;
    printf("%d inputs replayed\n", n);
    return EXIT_SUCCESS;
}
