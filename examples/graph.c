/* SPDX-License-Identifier: MIT */
/*
 * graph [DEVICE]: a captured graph with a private pool. A graph uses the same addresses each time
 * it runs, so memory allocated during its capture must not be reused by other code, not even after
 * it was freed there. It comes from a private pool that lives as long as the graph.
 */
#include "capture.h"

#include <tarn/copy.h>
#include <tarn/stream.h>

enum {
    SIZE = 4 << 20
};

static bool is_captured(void *context, tarn_stream stream)
{
    return stream == *(const tarn_stream *)context;
}

int main(int argc, char **argv)
{
    const struct tarn_pool_id pool = {.second = 1};
    struct tarn_allocator *allocator;
    struct tarn_error error;
    tarn_stream stream;
    tarn_ptr input;
    tarn_ptr output;
    tarn_ptr temporary;
    tarn_ptr other;
    unsigned char byte = 1;

    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : NULL, NULL, &allocator, &error));
    struct tarn_device *device = tarn_allocator_get_device(allocator);

    CHECK(tarn_stream_create(device, &stream, &error));
    CHECK(tarn_allocator_alloc(allocator, SIZE, stream, &input, &error));
    CHECK(tarn_allocator_alloc(allocator, SIZE, stream, &output, &error));
    CHECK(tarn_copy_from_host(allocator, input, &byte, 1, stream, &error));

    /* Captured: output = input, by way of a temporary. */
    CHECK(tarn_allocator_begin_pool(allocator, pool, is_captured, &stream, &error));
    capture_begin(device, stream);
    CHECK(tarn_allocator_alloc(allocator, SIZE, stream, &temporary, &error));
    CHECK(tarn_copy(allocator, temporary, allocator, input, SIZE, stream, &error));
    CHECK(tarn_copy(allocator, output, allocator, temporary, SIZE, stream, &error));
    CHECK(tarn_allocator_free(allocator, temporary, &error));
    const struct graph graph = capture_end(device, stream);

    CHECK(tarn_allocator_end_pool(allocator, pool, &error));

    /* The temporary is free, but only the graph can reuse it. */
    CHECK(tarn_allocator_alloc(allocator, SIZE, stream, &other, &error));
    EXPECT(other != temporary);

    for (int run = 0; run < 3; run++) {
        byte = (unsigned char)(10 + run);
        CHECK(tarn_copy_from_host(allocator, input, &byte, 1, stream, &error));
        graph_launch(graph, stream);
        CHECK(tarn_copy_to_host(allocator, &byte, output, 1, stream, &error));
        EXPECT(byte == (graph.executable ? 10 + run : 1)); /* simulated graphs do not run */
    }
    (void)printf(graph.executable ? "the graph ran three times in its own memory\n"
                                  : "the graph has its own memory; simulated, it does not run\n");

    /* The graph is destroyed first, then its memory. */
    graph_destroy(graph);
    CHECK(tarn_allocator_release_pool(allocator, pool, &error));
    CHECK(tarn_allocator_free(allocator, other, &error));
    CHECK(tarn_allocator_free(allocator, input, &error));
    CHECK(tarn_allocator_free(allocator, output, &error));
    CHECK(tarn_allocator_empty_cache(allocator, &error));
    CHECK(tarn_stream_destroy(device, stream, &error));
    tarn_allocator_destroy(allocator);
    return 0;
}
