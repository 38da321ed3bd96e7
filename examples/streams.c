/* SPDX-License-Identifier: MIT */
/*
 * streams [DEVICE]: memory used on a second stream. A block belongs to the stream it was allocated
 * for. Once freed, it can be reused on that stream immediately, in stream order; uses on other
 * streams must be recorded.
 */
#include "example.h"

#include <tarn/allocator.h>
#include <tarn/copy.h>
#include <tarn/stream.h>

enum {
    SIZE = 8 << 20
};

int main(int argc, char **argv)
{
    struct tarn_allocator *allocator;
    struct tarn_error error;
    tarn_stream main_stream;
    tarn_stream side_stream;
    tarn_ptr shared;
    tarn_ptr kept;
    tarn_ptr next;

    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : NULL, NULL, &allocator, &error));
    struct tarn_device *device = tarn_allocator_get_device(allocator);

    CHECK(tarn_stream_create(device, &main_stream, &error));
    CHECK(tarn_stream_create(device, &side_stream, &error));

    CHECK(tarn_allocator_alloc(allocator, SIZE, main_stream, &shared, &error));
    CHECK(tarn_allocator_alloc(allocator, SIZE, side_stream, &kept, &error));

    /* The side stream reads memory of the main stream. */
    CHECK(tarn_copy(allocator, kept, allocator, shared, SIZE, side_stream, &error));
    CHECK(tarn_allocator_record_stream(allocator, shared, side_stream, &error));

    /* It may be freed now: the block is reused only after the copy is done. */
    CHECK(tarn_allocator_free(allocator, shared, &error));
    CHECK(tarn_stream_wait(device, side_stream, &error));
    CHECK(tarn_allocator_alloc(allocator, SIZE, main_stream, &next, &error));
    EXPECT(next == shared);
    (void)printf("the block came back when the other stream was done with it\n");

    CHECK(tarn_allocator_free(allocator, next, &error));
    CHECK(tarn_allocator_free(allocator, kept, &error));
    CHECK(tarn_stream_destroy(device, main_stream, &error));
    CHECK(tarn_stream_destroy(device, side_stream, &error));
    tarn_allocator_destroy(allocator);
    return 0;
}
