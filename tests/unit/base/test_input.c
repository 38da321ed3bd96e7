/* SPDX-License-Identifier: MIT */
/* The window over plain, gzip and zstd input: also tests source and unpack, which it stands on. */
#define _GNU_SOURCE    /* RTLD_NEXT */
#undef _FORTIFY_SOURCE /* whose functions are inline */
#include "support/failing.h"
#include "support/temp.h"
#include "support/test.h"

#include "base/host_mem.h"
#include "base/input.h"
#include "tarn/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum {
    PLAIN_SIZE = 700001
}; /* several windows */

struct bytes {
    uint8_t *data; /* free with free() */
    size_t size;
};

FAILING(int, -1, fstat, (int file, struct stat *out), (file, out))
FAILING(ZSTD_DStream *, NULL, ZSTD_createDStream, (void), ())
FAILING(size_t, (size_t)-64, ZSTD_DCtx_setParameter,
        (ZSTD_DCtx * context, ZSTD_dParameter parameter, int value), (context, parameter, value))

static uint8_t plain_byte(size_t i)
{
    return (uint8_t)(i * 7 + i / 1000);
}

static struct bytes make_plain(void)
{
    struct bytes bytes = {malloc(PLAIN_SIZE), PLAIN_SIZE};

    for (size_t i = 0; i < PLAIN_SIZE; i++) {
        bytes.data[i] = plain_byte(i);
    }
    return bytes;
}

static struct bytes pack_gzip(const uint8_t *data, size_t size)
{
    z_stream stream = {0};

    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t bound = deflateBound(&stream, size);
    struct bytes packed = {malloc(bound), 0};
    uint8_t *copy = malloc(size + 1);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    stream.next_in = copy;
    stream.avail_in = (uInt)size;
    stream.next_out = packed.data;
    stream.avail_out = (uInt)bound;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.size = bound - stream.avail_out;
    (void)deflateEnd(&stream);
    free(copy);
    return packed;
}

static struct bytes pack_zstd(const uint8_t *data, size_t size)
{
    const size_t bound = ZSTD_compressBound(size);
    struct bytes packed = {malloc(bound), 0};

    packed.size = ZSTD_compress(packed.data, bound, data, size, 3);
    assert_false(ZSTD_isError(packed.size));
    return packed;
}

static struct bytes joined(struct bytes a, struct bytes b)
{
    struct bytes both = {malloc(a.size + b.size), a.size + b.size};

    memcpy(both.data, a.data, a.size);
    memcpy(both.data + a.size, b.data, b.size);
    free(a.data);
    free(b.data);
    return both;
}

/* Reads all in steps of `step` and compares with the plain bytes, which begin again every
 * PLAIN_SIZE. Returns how it ended. */
static enum tarn_status read_all(struct tn_input *input, size_t step, size_t *read_out)
{
    enum tarn_status status;
    size_t at = 0;

    while ((status = tn_input_need(input, step, NULL)) == TARN_OK) {
        assert_int_equal(tn_input_offset(input), at);
        for (size_t i = 0; i < step; i++, at++) {
            assert_int_equal(input->at[i], plain_byte(at % PLAIN_SIZE));
        }
        input->at += step;
    }
    for (; input->at < input->end; input->at++, at++) {
        assert_int_equal(*input->at, plain_byte(at % PLAIN_SIZE));
    }
    *read_out = at;
    return status;
}

static void expect_read(struct bytes bytes, enum tarn_status wanted, size_t wanted_size)
{
    static const size_t steps[] = {1, 997, 300000};
    const struct tn_unpack_limits limits = {0, 0};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct tn_input input;
        size_t size;

        assert_int_equal(tn_input_open_memory(&input, bytes.data, bytes.size, &limits, NULL),
                         TARN_OK);
        assert_int_equal(read_all(&input, steps[i], &size), wanted);
        assert_int_equal(size, wanted_size);
        tn_input_close(&input);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    free(bytes.data);
}

static void every_packing_is_undone(void **state)
{
    struct bytes plain = make_plain();

    (void)state;
    expect_read(pack_gzip(plain.data, plain.size), TARN_ERR_TRUNCATED, PLAIN_SIZE);
    expect_read(pack_zstd(plain.data, plain.size), TARN_ERR_TRUNCATED, PLAIN_SIZE);
    expect_read(plain, TARN_ERR_TRUNCATED, PLAIN_SIZE);
}

static void several_members_are_one(void **state)
{
    struct bytes plain = make_plain();

    (void)state;
    expect_read(joined(pack_gzip(NULL, 0), joined(pack_gzip(plain.data, plain.size),
                                                  pack_gzip(plain.data, plain.size))),
                TARN_ERR_TRUNCATED, (size_t)2 * PLAIN_SIZE);
    expect_read(joined(pack_zstd(plain.data, plain.size), pack_zstd(plain.data, plain.size)),
                TARN_ERR_TRUNCATED, (size_t)2 * PLAIN_SIZE);
    free(plain.data);
}

static void empty_packed_input_ends(void **state)
{
    (void)state;
    expect_read(joined(pack_gzip(NULL, 0), pack_gzip(NULL, 0)), TARN_ERR_TRUNCATED, 0);
    expect_read(pack_zstd((const uint8_t *)"", 0), TARN_ERR_TRUNCATED, 0);
}

/* A packed stream that is cut or damaged gives a status, never more bytes than it had. */
static void cut_and_damaged_packing(void **state)
{
    const struct tn_unpack_limits limits = {0, 0};
    struct bytes plain = make_plain();
    struct bytes packed[2] = {pack_gzip(plain.data, 5000), pack_zstd(plain.data, 5000)};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 4; i < packed[k].size; i += 3) {
            for (int cut = 0; cut < 2; cut++) {
                struct tarn_error error = {0};
                struct tn_input input;

                packed[k].data[i] ^= cut ? 0 : 0xff;
                assert_int_equal(tn_input_open_memory(&input, packed[k].data,
                                                      cut ? i : packed[k].size, &limits, NULL),
                                 TARN_OK);
                const enum tarn_status status = tn_input_need(&input, 5001, &error);
                assert_int_not_equal(status, TARN_OK);
                assert_int_equal(status, error.status);
                assert_true(!cut || status == TARN_ERR_TRUNCATED);
                packed[k].data[i] ^= cut ? 0 : 0xff;
                tn_input_close(&input);
            }
        }
        free(packed[k].data);
    }
    free(plain.data);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void growth_is_limited(void **state)
{
    const struct tn_unpack_limits by_ratio = {0, 100};
    const struct tn_unpack_limits by_size = {1000000, 0};
    const size_t size = 20u << 20;
    uint8_t *zeros = calloc(1, size);
    struct bytes packed = pack_gzip(zeros, size);
    struct tn_input input;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tn_input_open_memory(&input, packed.data, packed.size, &by_ratio, NULL),
                     TARN_OK);
    assert_int_equal(tn_input_need(&input, size, &error), TARN_ERR_LIMIT);
    assert_non_null(strstr(error.text, "100 times"));
    tn_input_close(&input);
    assert_int_equal(tn_input_open_memory(&input, packed.data, packed.size, &by_size, NULL),
                     TARN_OK);
    assert_int_equal(tn_input_need(&input, size, &error), TARN_ERR_LIMIT);
    assert_non_null(strstr(error.text, "1000000 bytes"));
    tn_input_close(&input);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    free(packed.data);
    free(zeros);
}

/* A pipe hands over what it likes: the first bytes one by one. */
static void a_pipe_is_read_bit_by_bit(void **state)
{
    static const char text[] = "\x1f";
    const struct tn_unpack_limits limits = {0, 0};
    struct tn_source source;
    struct tn_unpack unpack;
    uint8_t byte;
    size_t got;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, 1), 1);
    assert_int_equal(close(ends[1]), 0);
    source = (struct tn_source){.fd = ends[0], .owns_fd = true, .size = -1, .name = "pipe"};
    assert_int_equal(tn_unpack_init(&unpack, &source, &limits, NULL), TARN_OK);
    assert_int_equal(unpack.packing, TN_PACKING_NONE);
    assert_int_equal(tn_unpack_read(&unpack, &byte, 1, &got, NULL), TARN_OK);
    assert_int_equal(got, 1);
    assert_int_equal(byte, 0x1f);
    assert_int_equal(tn_unpack_read(&unpack, &byte, 1, &got, NULL), TARN_OK);
    assert_int_equal(got, 0);
    tn_unpack_fini(&unpack);
    tn_source_close(&source);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void every_host_failure_is_reported(void **state)
{
    const struct tn_unpack_limits limits = {0, 0};
    struct bytes plain = make_plain();
    struct bytes packed = pack_gzip(plain.data, plain.size);
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        struct tn_input input;

        tarn_host_fail_nth(n);
        status = tn_input_open_memory(&input, packed.data, packed.size, &limits, NULL);
        if (status == TARN_OK) {
            status = tn_input_need(&input, 600000, NULL);
            tn_input_close(&input);
        }
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
    free(packed.data);
    free(plain.data);
}

/* As few bytes as one wants, of what was read ahead and of what was unpacked. */
static void pieces_of_any_size_are_read(void **state)
{
    const struct tn_unpack_limits limits = {0, 0};
    struct bytes plain = make_plain();
    struct bytes all[] = {
        pack_gzip(plain.data, 30000), pack_zstd(plain.data, 30000), {plain.data, 30000}};

    (void)state;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        struct temp_file file = temp_write(all[k].data, all[k].size);
        struct tn_source source;
        struct tn_unpack unpack;
        uint8_t byte;
        size_t got;

        assert_int_equal(tn_source_open(&source, file.path, NULL), TARN_OK);
        assert_int_equal(source.size, all[k].size);
        assert_int_equal(tn_unpack_init(&unpack, &source, &limits, NULL), TARN_OK);
        for (size_t i = 0; i < 30000; i++) {
            assert_int_equal(tn_unpack_read(&unpack, &byte, 1, &got, NULL), TARN_OK);
            assert_int_equal(got, 1);
            assert_int_equal(byte, plain_byte(i));
        }
        assert_int_equal(tn_unpack_read(&unpack, &byte, 1, &got, NULL), TARN_OK);
        assert_int_equal(got, 0);
        tn_unpack_fini(&unpack);
        tn_source_close(&source);
        tn_source_close(&source); /* does nothing */
        temp_remove(&file);
        free(all[k].data);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* What is left of a frame that is cut: all that can be unpacked comes, then that it is cut. */
static void a_cut_frame_is_read_to_its_end(void **state)
{
    const struct tn_unpack_limits limits = {0, 0};
    struct bytes plain = make_plain();
    struct bytes packed = pack_zstd(plain.data, PLAIN_SIZE); /* of blocks of 128 KiB */
    struct tn_source source;
    struct tn_unpack unpack;
    struct tarn_error error;
    enum tarn_status status = TARN_OK;
    struct temp_file file = temp_write(packed.data, packed.size - 1);
    size_t at = 0;
    size_t got = 1;

    (void)state;
    assert_int_equal(tn_source_open(&source, file.path, NULL), TARN_OK);
    assert_int_equal(tn_unpack_init(&unpack, &source, &limits, NULL), TARN_OK);
    while (status == TARN_OK && got > 0) {
        uint8_t bytes[100];

        status = tn_unpack_read(&unpack, bytes, sizeof bytes, &got, &error);
        for (size_t i = 0; status == TARN_OK && i < got; i++) {
            assert_int_equal(bytes[i], plain_byte(at++));
        }
    }
    assert_int_equal(status, TARN_ERR_TRUNCATED);
    assert_non_null(strstr(error.text, "ends early"));
    assert_true(at > 0 && at % (128 << 10) == 0);
    tn_unpack_fini(&unpack);
    tn_source_close(&source);
    temp_remove(&file);
    free(packed.data);
    free(plain.data);
}

/* Then it is read to its end. */
static void a_size_may_be_unknown(void **state)
{
    struct temp_file file = temp_write("bytes", 5);
    const struct tn_unpack_limits limits = {0, 0};
    struct tn_input input;

    (void)state;
    fail_calls("fstat", 0, 1, EIO);
    assert_int_equal(tn_input_open(&input, file.path, &limits, NULL), TARN_OK);
    assert_true(fail_none());
    assert_int_equal(input.source.size, -1);
    assert_int_equal(tn_input_need(&input, 5, NULL), TARN_OK);
    assert_memory_equal(input.at, "bytes", 5);
    assert_int_equal(tn_input_need(&input, 6, NULL), TARN_ERR_TRUNCATED);
    tn_input_close(&input);
    temp_remove(&file);
}

static void a_library_without_memory_is_reported(void **state)
{
    static const char *const calls[] = {"ZSTD_createDStream", "ZSTD_DCtx_setParameter"};
    const struct tn_unpack_limits limits = {0, 0};
    struct bytes packed = pack_zstd((const uint8_t *)"bytes", 5);
    struct tn_input input;

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fail_calls(calls[i], 0, 1, ENOMEM);
        assert_int_equal(tn_input_open_memory(&input, packed.data, packed.size, &limits, NULL),
                         TARN_ERR_HOST_MEMORY);
        assert_true(fail_none());
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
    free(packed.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_packing_is_undone),
        cmocka_unit_test(several_members_are_one),
        cmocka_unit_test(empty_packed_input_ends),
        cmocka_unit_test(cut_and_damaged_packing),
        cmocka_unit_test(growth_is_limited),
        cmocka_unit_test(a_pipe_is_read_bit_by_bit),
        cmocka_unit_test(every_host_failure_is_reported),
        cmocka_unit_test(pieces_of_any_size_are_read),
        cmocka_unit_test(a_cut_frame_is_read_to_its_end),
        cmocka_unit_test(a_size_may_be_unknown),
        cmocka_unit_test(a_library_without_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
