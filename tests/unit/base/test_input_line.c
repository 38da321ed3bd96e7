/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/input_line.h"
#include "tarn/host.h"

enum packing {
    PLAIN,
    GZIP,
    ZSTD,
    PACKINGS
};

struct bytes {
    uint8_t *at; /* free with free() */
    size_t size;
};

static struct bytes pack_gzip(const char *text, size_t size)
{
    z_stream stream = {0};
    struct bytes out;

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    out.size = deflateBound(&stream, (uLong)size);
    out.at = malloc(out.size);
    assert_non_null(out.at);
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)size;
    stream.next_out = out.at;
    stream.avail_out = (uInt)out.size;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.size = stream.total_out;
    (void)deflateEnd(&stream);
    return out;
}

static struct bytes pack(enum packing packing, const char *text, size_t size)
{
    struct bytes out = {.size = size + 1};

    if (packing == GZIP) {
        return pack_gzip(text, size);
    }
    if (packing == ZSTD) {
        out.size = ZSTD_compressBound(size);
        out.at = malloc(out.size);
        out.size = ZSTD_compress(out.at, out.size, text, size, 3);
        assert_false(ZSTD_isError(out.size));
        return out;
    }
    out.at = malloc(out.size);
    assert_non_null(out.at);
    memcpy(out.at, text, size);
    out.size = size;
    return out;
}

static void open_bytes(struct tn_input *input, const struct bytes *bytes)
{
    const struct tn_unpack_limits limits = {0};

    assert_int_equal(tn_input_open_memory(input, bytes->at, bytes->size, &limits, NULL), TARN_OK);
}

static void next_is(struct tn_input *input, const char *expected)
{
    const char *line = NULL;
    size_t length = 0;

    assert_int_equal(tn_input_line(input, 1 << 20, &line, &length, NULL), TARN_OK);
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(line, expected, length);
}

static void next_is_end(struct tn_input *input)
{
    const char *line = "untouched";
    size_t length = 3;

    assert_int_equal(tn_input_line(input, 1 << 20, &line, &length, NULL), TARN_ERR_NOT_FOUND);
    assert_string_equal(line, "untouched");
    assert_int_equal(length, 3);
}

static void lines_come_without_their_newlines(void **state)
{
    static const char text[] = "one\n\nthree\r\n last";

    (void)state;
    for (int packing = 0; packing < PACKINGS; packing++) {
        struct bytes bytes = pack((enum packing)packing, text, sizeof text - 1);
        struct tn_input input;

        open_bytes(&input, &bytes);
        next_is(&input, "one");
        next_is(&input, "");
        next_is(&input, "three\r");
        next_is(&input, " last");
        next_is_end(&input);
        next_is_end(&input);
        tn_input_close(&input);
        free(bytes.at);
    }
}

static void a_newline_at_the_end_gives_no_empty_line(void **state)
{
    struct bytes bytes = pack(PLAIN, "a\nb\n", 4);
    struct tn_input input;

    (void)state;
    open_bytes(&input, &bytes);
    next_is(&input, "a");
    next_is(&input, "b");
    next_is_end(&input);
    tn_input_close(&input);
    free(bytes.at);
}

static void the_end_writes_no_error(void **state)
{
    struct bytes bytes = pack(PLAIN, "a\nb", 3);
    struct tn_input input;
    struct tarn_error error = {.text = "untouched"};
    const char *line;
    size_t length;

    (void)state;
    open_bytes(&input, &bytes);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tn_input_line(&input, 9, &line, &length, &error),
                         i < 2 ? TARN_OK : TARN_ERR_NOT_FOUND);
        assert_string_equal(error.text, "untouched");
    }
    tn_input_close(&input);
    free(bytes.at);
}

static void an_empty_input_has_no_line(void **state)
{
    struct bytes bytes = pack(PLAIN, "", 0);
    struct tn_input input;

    (void)state;
    open_bytes(&input, &bytes);
    next_is_end(&input);
    tn_input_close(&input);
    free(bytes.at);
}

/* Lines of every length around the window's size, so that each boundary falls into one. */
static void lines_may_cross_the_window(void **state)
{
    enum {
        LINES = 300
    };
    const size_t step = 4099;
    const size_t size = step * LINES * (LINES + 1) / 2 / 8;
    char *text = malloc(size + LINES);
    size_t used = 0;
    int lines = 0;

    (void)state;
    assert_non_null(text);
    for (; lines < LINES && used + (size_t)lines * step / 8 + 1 < size; lines++) {
        const size_t length = (size_t)lines * step / 8;

        memset(text + used, 'a' + lines % 26, length);
        used += length;
        text[used++] = '\n';
    }
    for (int packing = 0; packing < PACKINGS; packing++) {
        struct bytes bytes = pack((enum packing)packing, text, used);
        struct tn_input input;

        open_bytes(&input, &bytes);
        for (int i = 0; i < lines; i++) {
            const char *line = NULL;
            size_t length = 0;

            assert_int_equal(tn_input_line(&input, 1 << 20, &line, &length, NULL), TARN_OK);
            assert_int_equal(length, (size_t)i * step / 8);
            assert_true(length == 0 ||
                        (line[0] == 'a' + i % 26 && line[length - 1] == 'a' + i % 26));
        }
        next_is_end(&input);
        tn_input_close(&input);
        free(bytes.at);
    }
    free(text);
}

static void a_line_may_have_exactly_the_limit(void **state)
{
    struct bytes bytes = pack(PLAIN, "12345\n123456\n", 13);
    struct tn_input input;
    struct tarn_error error;
    const char *line;
    size_t length;

    (void)state;
    open_bytes(&input, &bytes);
    assert_int_equal(tn_input_line(&input, 5, &line, &length, NULL), TARN_OK);
    assert_int_equal(length, 5);
    assert_int_equal(tn_input_line(&input, 5, &line, &length, &error), TARN_ERR_LIMIT);
    assert_int_equal(error.status, TARN_ERR_LIMIT);
    assert_int_equal(error.offset, 6);
    assert_string_equal(error.text, "the line at byte 6 is longer than 5 bytes");
    tn_input_close(&input);
    free(bytes.at);
}

/* Whatever is behind the limit is not read: memory stays small. */
static void an_endless_line_is_refused_early(void **state)
{
    const size_t size = (size_t)64 << 20;
    char *text = malloc(size);
    const char *line;
    size_t length;
    struct tn_input input;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', size);
    struct bytes bytes = pack(ZSTD, text, size);

    free(text);
    open_bytes(&input, &bytes);
    const uint64_t before = tarn_host_get_usage().live_bytes;

    assert_int_equal(tn_input_line(&input, 1 << 20, &line, &length, NULL), TARN_ERR_LIMIT);
    assert_true(tarn_host_get_usage().live_bytes < before + ((uint64_t)4 << 20));
    tn_input_close(&input);
    free(bytes.at);
}

static void packed_input_that_ends_early_is_not_an_end(void **state)
{
    char text[6000];
    uint32_t noise = 1;

    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        noise = noise * 1664525u + 1013904223u;
        text[i] = (char)('a' + (noise >> 24) % 26);
        if (i % 100 == 99) {
            text[i] = '\n';
        }
    }
    for (int packing = GZIP; packing < PACKINGS; packing++) {
        struct bytes bytes = pack((enum packing)packing, text, sizeof text);
        struct tn_input input;
        struct tarn_error error;
        const char *line;
        size_t length;
        enum tarn_status st;

        bytes.size /= 2;
        open_bytes(&input, &bytes);
        do {
            st = tn_input_line(&input, 1 << 20, &line, &length, &error);
        } while (st == TARN_OK);
        assert_int_equal(st, TARN_ERR_TRUNCATED);
        assert_int_equal(error.status, TARN_ERR_TRUNCATED);
        tn_input_close(&input);
        free(bytes.at);
    }
}

static void every_host_failure_is_reported(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    const size_t size = (size_t)1 << 20;
    char *text = malloc(size);
    uint64_t failures = 0;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', size);
    for (int packing = 0; packing < PACKINGS; packing++) {
        struct bytes bytes = pack((enum packing)packing, text, size);
        enum tarn_status st = TARN_ERR_HOST_MEMORY;

        for (uint64_t n = 1; st != TARN_OK; n++) {
            const struct tn_unpack_limits limits = {0};
            struct tn_input input;
            const char *line;
            size_t length = 0;

            tarn_host_fail_nth(n);
            st = tn_input_open_memory(&input, bytes.at, bytes.size, &limits, NULL);
            if (st == TARN_OK) {
                st = tn_input_line(&input, size, &line, &length, NULL);
                tn_input_close(&input);
            }
            tarn_host_fail_nth(0);
            assert_true(st == TARN_OK ? length == size : st == TARN_ERR_HOST_MEMORY);
            assert_int_equal(tarn_host_get_usage().live_bytes, live);
            failures += st != TARN_OK;
        }
        free(bytes.at);
    }
    assert_true(failures >= PACKINGS);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_without_their_newlines),
        cmocka_unit_test(a_newline_at_the_end_gives_no_empty_line),
        cmocka_unit_test(the_end_writes_no_error),
        cmocka_unit_test(an_empty_input_has_no_line),
        cmocka_unit_test(lines_may_cross_the_window),
        cmocka_unit_test(a_line_may_have_exactly_the_limit),
        cmocka_unit_test(an_endless_line_is_refused_early),
        cmocka_unit_test(packed_input_that_ends_early_is_not_an_end),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
