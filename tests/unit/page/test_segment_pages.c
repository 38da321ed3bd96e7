/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "page/segment_pages.h"
#include "snapshot/snapshot.h"
#include "tarn/host.h"

#define PAGES(size, handles, times)                                                                \
    "'tarn_pages': {'page_size': " size ", 'handles': [" handles "], 'times': [" times "]}"
#define SEGMENT(device, address, size, more)                                                       \
    "{'device': " device ", 'address': " address ", 'total_size': " size                           \
    ", 'blocks': [{'size': " size ", 'state': 'inactive'}], " more "}"

#define THREE PAGES("2097152", "9, 7, 18446744073709551615", "1, 300, 2")

/* A column that is read from its beginning. */
struct reading {
    const struct tn_column *column;
    size_t at;
};

static uint64_t next_varint(struct reading *reading)
{
    const uint8_t *bytes = reading->column->bytes.items;
    uint64_t number = 0;

    for (unsigned shift = 0;; shift += 7) {
        assert_true(reading->at < reading->column->bytes.count);
        const uint8_t byte = bytes[reading->at++];

        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return number;
        }
    }
}

static uint64_t next_step(struct reading *reading, uint64_t from)
{
    const uint64_t step = next_varint(reading);

    return from + (step >> 1 ^ (step & 1 ? UINT64_MAX : 0));
}

/* The segments of device 0 in `text`, with addresses from `base` on in units of `unit`; the number
 * of their pages. */
static uint64_t pages_of(const char *text, uint64_t base, uint64_t unit, struct tn_column *column)
{
    struct tarn_snapshot *snapshot = report_parse(text);
    const struct tn_trace_source source = tn_source_of_device(tn_snapshot_model(snapshot), 0);

    tn_column_init(column);
    const uint64_t count = tn_segment_pages_put(column, &source, base, unit);

    assert_false(column->failed);
    tarn_snapshot_destroy(snapshot);
    return count;
}

static void check_list(struct reading *reading, uint32_t count, uint64_t size,
                       const uint64_t *handles, const uint64_t *times)
{
    uint64_t handle = 0;

    assert_int_equal(next_varint(reading), count);
    assert_int_equal(next_varint(reading), size);
    for (uint32_t i = 0; i < count; i++) {
        handle = next_step(reading, handle);
        assert_int_equal(handle, handles[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(next_varint(reading), times[i]);
    }
}

/* Two segments with pages, one of another device, one without pages. */
static void pages_of_a_device_are_read_back(void **state)
{
    static const char text[] = "[" SEGMENT("0", "4194304", "6291456", THREE) ", " SEGMENT(
        "1", "4194304", "2097152",
        PAGES("2097152", "5",
              "1")) ", " SEGMENT("0", "20971520", "2097152",
                                 "'is_expandable': true") ", " SEGMENT("0", "12582912", "2097152",
                                                                       PAGES("2097152", "8",
                                                                             "1")) "]";
    struct tn_column column;
    uint64_t at = 0;

    (void)state;
    assert_int_equal(pages_of(text, 2097152, 2097152, &column), 4);
    struct reading reading = {&column, 0};

    at = next_step(&reading, at);
    assert_int_equal(at, 1);
    check_list(&reading, 3, 2097152, (const uint64_t[]){9, 7, UINT64_MAX},
               (const uint64_t[]){1, 300, 2});
    at = next_step(&reading, at);
    assert_int_equal(at, 5);
    check_list(&reading, 1, 2097152, (const uint64_t[]){8}, (const uint64_t[]){1});
    assert_int_equal(reading.at, column.bytes.count);
    tn_column_fini(&column);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Pages beyond the end of their segment are left out; one that ends there is not. */
static void no_page_begins_behind_its_segment(void **state)
{
    static const char text[] =
        "[" SEGMENT("0", "0", "5", PAGES("2", "1, 2, 3, 4, 5", "1, 1, 1, 1, 1")) ", " SEGMENT(
            "0", "8", "8",
            PAGES("9223372036854775807", "6, 7",
                  "1, 1")) ", " SEGMENT("0", "16", "0",
                                        PAGES("2", "8", "1")) ", " SEGMENT("0", "32", "8",
                                                                           PAGES("2", "", "")) "]";
    struct tn_column column;

    (void)state;
    assert_int_equal(pages_of(text, 0, 1, &column), 4);
    struct reading reading = {&column, 0};

    assert_int_equal(next_step(&reading, 0), 0);
    check_list(&reading, 3, 2, (const uint64_t[]){1, 2, 3}, (const uint64_t[]){1, 1, 1});
    assert_int_equal(next_step(&reading, 0), 8);
    check_list(&reading, 1, INT64_MAX, (const uint64_t[]){6}, (const uint64_t[]){1});
    assert_int_equal(reading.at, column.bytes.count);
    tn_column_fini(&column);
}

/* What no snapshot of the compact policy has is passed over. */
static void others_have_none(void **state)
{
    static const char *const texts[] = {
        "[]",
        "[" SEGMENT("0", "0", "8", "'tarn_pages': 7") "]",
        "[" SEGMENT("0", "0", "8", PAGES("0", "1", "1")) "]",
        "[" SEGMENT("0", "0", "8", PAGES("4", "1, 2", "1")) "]",
        "[" SEGMENT("3", "0", "8", PAGES("4", "1, 2", "1, 1")) "]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tn_column column;

        assert_int_equal(pages_of(texts[i], 0, 1, &column), 0);
        assert_int_equal(column.bytes.count, 0);
        tn_column_fini(&column);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_a_device_are_read_back),
        cmocka_unit_test(no_page_begins_behind_its_segment),
        cmocka_unit_test(others_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
