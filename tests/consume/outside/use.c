/* SPDX-License-Identifier: MIT */
/* A program of somebody else, in C and in C++: allocates and frees. */
#include <stdio.h>
#include <tarn/allocator.h>

int main(void)
{
    struct tarn_allocator *allocator;
    static struct tarn_error error;
    tarn_ptr ptr;

    if (tarn_allocator_create_on("sim:1GiB", NULL, &allocator, &error) != TARN_OK ||
        tarn_allocator_alloc(allocator, 100 << 20, 0, &ptr, &error) != TARN_OK ||
        tarn_allocator_free(allocator, ptr, &error) != TARN_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    tarn_allocator_destroy(allocator);
    (void)printf("tarn %s\n", tarn_version());
    return 0;
}
