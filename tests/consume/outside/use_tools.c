/* SPDX-License-Identifier: MIT */
/* A program of somebody else, in C and in C++: reads a snapshot, and takes one of an allocator. */
#include <stdio.h>
#include <tarn/allocator.h>
#include <tarn/capture.h>
#include <tarn/snapshot.h>

static enum tarn_status take(struct tarn_error *error)
{
    struct tarn_capture_source source = {NULL, NULL};
    struct tarn_snapshot *snapshot = NULL;
    enum tarn_status status = tarn_allocator_create_on("sim:1GiB", NULL, &source.allocator, error);

    if (status == TARN_OK) {
        status = tarn_snapshot_capture(&source, 1, NULL, &snapshot, error);
        tarn_snapshot_destroy(snapshot);
        tarn_allocator_destroy(source.allocator);
    }
    return status;
}

int main(int argc, char **argv)
{
    static struct tarn_error error;
    struct tarn_snapshot *snapshot = NULL;

    if (argc != 2 || take(&error) != TARN_OK ||
        tarn_snapshot_load(argv[1], NULL, &snapshot, &error) != TARN_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    tarn_snapshot_destroy(snapshot);
    (void)printf("tarn %s\n", tarn_version());
    return 0;
}
