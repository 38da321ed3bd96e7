/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over the files of a corpus without a fuzzing engine: plain_driver DIR ... Each file
 * is given whole and, to see reads past the end, in memory of exactly its size.
 */
#include "fuzz_target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static int run_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    uint8_t *bytes;
    long size;

    if (!in || fseek(in, 0, SEEK_END) != 0 || (size = ftell(in)) < 0 ||
        fseek(in, 0, SEEK_SET) != 0) {
        fprintf(stderr, "cannot read %s\n", path);
        return 1;
    }
    bytes = malloc(size > 0 ? (size_t)size : 1);
    if (!bytes || fread(bytes, 1, (size_t)size, in) != (size_t)size) {
        fprintf(stderr, "cannot read %s\n", path);
        abort();
    }
    (void)fclose(in);
    (void)LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
    return 0;
}

static int run_directory(const char *directory, unsigned *count)
{
    DIR *list = opendir(directory);
    const struct dirent *entry;
    int failed = 0;

    if (!list) {
        fprintf(stderr, "cannot list %s\n", directory);
        return 1;
    }
    while ((entry = readdir(list))) {
        char path[4096];

        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        failed |= run_file(path);
        (*count)++;
    }
    (void)closedir(list);
    return failed;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    int failed = 0;

    for (int i = 1; i < argc; i++) {
        failed |= run_directory(argv[i], &count);
    }
    printf("%u files\n", count);
    return failed || count == 0;
}
