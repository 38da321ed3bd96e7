/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target on files without a fuzzing engine: plain_driver FILE_OR_FOLDER... takes every
 * file, and every file of a folder in no order. Ends with the count of a test suite; exits with 1
 * when nothing was run or a file could not be read.
 */
#include "fuzz_target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    INPUT_MAX = 16 << 20,
    PATH_MAX_LENGTH = 4096
};

struct tally {
    unsigned passed;
    unsigned failed;
};

static void file_run(const char *path, struct tally *tally)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_MAX);
    size_t size;

    if (!file || !data) {
        (void)fprintf(stderr, "FAIL %s: cannot read\n", path);
        tally->failed++;
    } else {
        size = fread(data, 1, INPUT_MAX, file);
        uint8_t *exact = malloc(size > 0 ? size : 1); /* so that reading behind the end is seen */

        for (size_t i = 0; exact && i < size; i++) {
            exact[i] = data[i];
        }
        if (exact) {
            (void)LLVMFuzzerTestOneInput(exact, size);
            tally->passed++;
        }
        free(exact);
    }
    free(data);
    if (file) {
        (void)fclose(file);
    }
}

static void path_run(const char *path, struct tally *tally)
{
    char name[PATH_MAX_LENGTH];
    struct stat info;
    const struct dirent *entry;
    DIR *folder;

    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        file_run(path, tally);
        return;
    }
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            file_run(name, tally);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
}

int main(int argc, char **argv)
{
    struct tally tally = {0, 0};

    for (int i = 1; i < argc; i++) {
        path_run(argv[i], &tally);
    }
    (void)printf("%u passed, %u failed, 0 skipped\n", tally.passed, tally.failed);
    return tally.failed > 0 || tally.passed == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
