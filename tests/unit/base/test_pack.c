/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/failing.h"
#include "support/test.h"

#include "base/input.h"
#include "base/pack.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    SIZE = 300000, /* more than one window of output */
    PART = 7919
};

FAILING(ZSTD_CStream *, NULL, ZSTD_createCStream, (void), ())
FAILING(size_t, (size_t)-64, ZSTD_initCStream, (ZSTD_CStream * stream, int level), (stream, level))
FAILING(size_t, (size_t)-64, ZSTD_compressStream2,
        (ZSTD_CCtx * context, ZSTD_outBuffer *out, ZSTD_inBuffer *in, ZSTD_EndDirective end),
        (context, out, in, end))

/* What a pack gives on. */
struct sink {
    char bytes[2 * SIZE];
    size_t used;
    int left; /* writes until one fails */
};

static struct sink sink;
static char plain[SIZE];

static enum tarn_status sink_write(void *context, const char *bytes, size_t size)
{
    struct sink *into = context;

    if (into->left-- == 0 || into->used + size > sizeof into->bytes) {
        return TARN_ERR_IO;
    }
    memcpy(into->bytes + into->used, bytes, size);
    into->used += size;
    return TARN_OK;
}

/* Half of it compresses. */
static void plain_fill(void)
{
    uint32_t state = 1;

    for (size_t i = 0; i < SIZE; i++) {
        state = state * 1664525 + 1013904223;
        plain[i] = (char)(i % 2 ? 'x' : state >> 24);
    }
}

static enum tarn_status pack_all(enum tn_packing packing, int writes)
{
    const struct tarn_writer writer = {.write = sink_write, .context = &sink};
    struct tn_pack *pack = tn_pack_create(packing, &writer);
    enum tarn_status status = TARN_OK;

    sink.used = 0;
    sink.left = writes;
    assert_non_null(pack);
    for (size_t at = 0; at < SIZE && status == TARN_OK; at += PART) {
        status = tn_pack_write(pack, plain + at, SIZE - at < PART ? SIZE - at : PART);
    }
    status = status ? status : tn_pack_end(pack);
    tn_pack_destroy(pack);
    return status;
}

static void what_is_packed_is_read_again(void **state)
{
    const struct tn_unpack_limits limits = {0};

    (void)state;
    plain_fill();
    for (int packing = TN_PACKING_GZIP; packing <= TN_PACKING_ZSTD; packing++) {
        struct tn_input input;

        assert_int_equal(pack_all((enum tn_packing)packing, -1), TARN_OK);
        assert_true(sink.used < SIZE * 3 / 4);
        assert_int_equal(tn_input_open_memory(&input, sink.bytes, sink.used, &limits, NULL),
                         TARN_OK);
        assert_int_equal(input.unpack.packing, packing);
        assert_int_equal(tn_input_fill(&input, SIZE, NULL), TARN_OK);
        assert_memory_equal(input.at, plain, SIZE);
        assert_int_equal(tn_input_fill(&input, SIZE + 1, NULL), TARN_ERR_TRUNCATED);
        tn_input_close(&input);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void read_again(enum tn_packing packing, const char *bytes, size_t size)
{
    const struct tn_unpack_limits limits = {0};
    struct tn_input input;

    assert_int_equal(tn_input_open_memory(&input, sink.bytes, sink.used, &limits, NULL), TARN_OK);
    assert_int_equal(input.unpack.packing, packing);
    assert_int_equal(tn_input_fill(&input, size, NULL), TARN_OK);
    assert_memory_equal(input.at, bytes, size);
    assert_int_equal(tn_input_fill(&input, size + 1, NULL), TARN_ERR_TRUNCATED);
    tn_input_close(&input);
}

/* All in one write: what does not compress fills the room several times, also when it ends, and a
 * library takes so many bytes in several calls. */
static void one_write_may_have_any_size(void **state)
{
    static const size_t sizes[] = {100, 70000, 130000, SIZE};
    const struct tarn_writer writer = {.write = sink_write, .context = &sink};
    const size_t large = (size_t)3 << 20;
    char *zeros = calloc(1, large);
    uint32_t random = 1;

    (void)state;
    assert_non_null(zeros);
    for (size_t i = 0; i < SIZE; i++) {
        random = random * 1664525 + 1013904223;
        plain[i] = (char)(random >> 24);
    }
    for (int packing = TN_PACKING_GZIP; packing <= TN_PACKING_ZSTD; packing++) {
        for (size_t i = 0; i <= sizeof sizes / sizeof *sizes; i++) {
            const bool is_large = i == sizeof sizes / sizeof *sizes;
            struct tn_pack *pack = tn_pack_create((enum tn_packing)packing, &writer);

            sink.used = 0;
            sink.left = -1;
            assert_non_null(pack);
            assert_int_equal(
                tn_pack_write(pack, is_large ? zeros : plain, is_large ? large : sizes[i]),
                TARN_OK);
            assert_int_equal(tn_pack_end(pack), TARN_OK);
            tn_pack_destroy(pack);
            read_again((enum tn_packing)packing, is_large ? zeros : plain,
                       is_large ? large : sizes[i]);
        }
    }
    free(zeros);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

enum {
    ZEROS = 5000
};

static const char zeros[ZEROS];

/* The sink has them then. */
static void pack_zeros(enum tn_packing packing)
{
    const struct tarn_writer writer = {.write = sink_write, .context = &sink};
    struct tn_pack *pack = tn_pack_create(packing, &writer);

    sink.used = 0;
    sink.left = -1;
    assert_non_null(pack);
    assert_int_equal(tn_pack_write(pack, zeros, ZEROS), TARN_OK);
    assert_int_equal(tn_pack_end(pack), TARN_OK);
    tn_pack_destroy(pack);
}

/* What a library has unpacked comes also after its last byte was taken: readers may have little
 * room at a time. */
static void readers_take_pieces_of_any_size(void **state)
{
    const struct tn_unpack_limits limits = {0};

    (void)state;
    for (int packing = TN_PACKING_GZIP; packing <= TN_PACKING_ZSTD; packing++) {
        pack_zeros((enum tn_packing)packing);
        for (size_t room = 1; room < (size_t)2 * ZEROS; room *= 3) {
            struct tn_source source;
            struct tn_unpack unpack;
            size_t taken = 0;
            size_t got = 1;

            tn_source_init_memory(&source, sink.bytes, sink.used);
            assert_int_equal(tn_unpack_init(&unpack, &source, &limits, NULL), TARN_OK);
            while (got > 0) {
                char bytes[2 * ZEROS];

                memset(bytes, 1, room);
                assert_int_equal(tn_unpack_read(&unpack, bytes, room, &got, NULL), TARN_OK);
                assert_true(got <= room && taken + got <= ZEROS);
                assert_memory_equal(bytes, zeros, got);
                taken += got;
            }
            assert_int_equal(taken, ZEROS);
            tn_unpack_fini(&unpack);
            tn_source_close(&source);
        }
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ... and what was unpacked of data that ends early comes before that is said. */
static void cut_data_gives_what_it_has(void **state)
{
    const struct tn_unpack_limits limits = {0};
    size_t most = 0;

    (void)state;
    for (int packing = TN_PACKING_GZIP; packing <= TN_PACKING_ZSTD; packing++) {
        pack_zeros((enum tn_packing)packing);
        for (size_t size = 5; size < sink.used; size++) {
            struct tn_source source;
            struct tn_unpack unpack;
            struct tarn_error error = {.text = ""};
            enum tarn_status st = TARN_OK;
            size_t taken = 0;

            tn_source_init_memory(&source, sink.bytes, size);
            assert_int_equal(tn_unpack_init(&unpack, &source, &limits, NULL), TARN_OK);
            while (st == TARN_OK) {
                char bytes[7];
                size_t got = 0;

                st = tn_unpack_read(&unpack, bytes, sizeof bytes, &got, &error);
                assert_true(got > 0 || st != TARN_OK);
                assert_memory_equal(bytes, zeros, got);
                taken += got;
            }
            assert_int_equal(st, TARN_ERR_TRUNCATED);
            assert_int_equal(error.status, st);
            assert_true(taken <= ZEROS);
            most = taken > most ? taken : most;
            tn_unpack_fini(&unpack);
            tn_source_close(&source);
        }
    }
    assert_int_equal(most, ZEROS); /* all but the end of the file */
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void a_library_without_memory_is_reported(void **state)
{
    static const char *const opening[] = {"ZSTD_createCStream", "ZSTD_initCStream"};
    const struct tarn_writer writer = {.write = sink_write, .context = &sink};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fail_calls(opening[i], 0, 1, ENOMEM);
        assert_null(tn_pack_create(TN_PACKING_ZSTD, &writer));
        assert_true(fail_none());
    }
    fail_calls("ZSTD_compressStream2", 1, 1, ENOMEM);
    assert_int_equal(pack_all(TN_PACKING_ZSTD, -1), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void packings_have_names(void **state)
{
    (void)state;
    assert_string_equal(tn_packing_name(TN_PACKING_GZIP), "gzip");
    assert_string_equal(tn_packing_library(TN_PACKING_GZIP), "zlib");
    assert_string_equal(tn_packing_name(TN_PACKING_ZSTD), "zstd");
    assert_string_equal(tn_packing_library(TN_PACKING_ZSTD), "libzstd");
}

static void nothing_is_a_file_too(void **state)
{
    const struct tarn_writer writer = {.write = sink_write, .context = &sink};
    const struct tn_unpack_limits limits = {0};

    (void)state;
    for (int packing = TN_PACKING_GZIP; packing <= TN_PACKING_ZSTD; packing++) {
        struct tn_pack *pack = tn_pack_create((enum tn_packing)packing, &writer);
        struct tn_input input;

        sink.used = 0;
        sink.left = -1;
        assert_non_null(pack);
        assert_int_equal(tn_pack_end(pack), TARN_OK);
        tn_pack_destroy(pack);
        assert_true(sink.used > 0);
        assert_int_equal(tn_input_open_memory(&input, sink.bytes, sink.used, &limits, NULL),
                         TARN_OK);
        assert_int_equal(input.unpack.packing, packing);
        assert_int_equal(tn_input_fill(&input, 1, NULL), TARN_ERR_TRUNCATED);
        tn_input_close(&input);
    }
}

static void a_writer_that_fails_ends_it(void **state)
{
    (void)state;
    plain_fill();
    for (int packing = TN_PACKING_GZIP; packing <= TN_PACKING_ZSTD; packing++) {
        assert_int_equal(pack_all((enum tn_packing)packing, 0), TARN_ERR_IO);
        assert_int_equal(pack_all((enum tn_packing)packing, 1), TARN_ERR_IO);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void no_memory_is_no_pack(void **state)
{
    const struct tarn_writer writer = {.write = sink_write, .context = &sink};

    (void)state;
    for (uint64_t nth = 1; nth <= 2; nth++) { /* its own, and zlib's */
        tarn_host_fail_nth(nth);
        assert_null(tn_pack_create(TN_PACKING_GZIP, &writer));
        tarn_host_fail_nth(0);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void the_name_tells(void **state)
{
    (void)state;
    assert_int_equal(tn_packing_of("a.pickle.gz"), TN_PACKING_GZIP);
    assert_int_equal(tn_packing_of("a.zst"), TN_PACKING_ZSTD);
    assert_int_equal(tn_packing_of("a.zstd"), TN_PACKING_ZSTD);
    assert_int_equal(tn_packing_of("a.gz.pickle"), TN_PACKING_NONE);
    assert_int_equal(tn_packing_of(".gz"), TN_PACKING_NONE);
    assert_int_equal(tn_packing_name_length("a.json.gz"), 6);
    assert_int_equal(tn_packing_name_length("a.json"), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_is_read_again),
        cmocka_unit_test(one_write_may_have_any_size),
        cmocka_unit_test(readers_take_pieces_of_any_size),
        cmocka_unit_test(cut_data_gives_what_it_has),
        cmocka_unit_test(a_library_without_memory_is_reported),
        cmocka_unit_test(packings_have_names),
        cmocka_unit_test(nothing_is_a_file_too),
        cmocka_unit_test(a_writer_that_fails_ends_it),
        cmocka_unit_test(no_memory_is_no_pack),
        cmocka_unit_test(the_name_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
