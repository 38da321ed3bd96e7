/* SPDX-License-Identifier: MIT */
/* Records of a page that others write: every number is decoded to something possible. */
#include "support/test.h"

#include "alloc/watch/latch.h"
#include "watch/watch_record.h"

#include <limits.h>

static struct tn_page_slot slots[2];

static bool slots_read(void *context, uint64_t offset, void *bytes_out, size_t size)
{
    (void)context;
    if (offset < TN_PAGE_HEAD_SIZE || offset - TN_PAGE_HEAD_SIZE + size > sizeof slots) {
        return false;
    }
    memcpy(bytes_out, (const char *)slots + (offset - TN_PAGE_HEAD_SIZE), size);
    return true;
}

static enum tarn_status record_read(const struct tn_page_record *written,
                                    struct tarn_watch_record *record_out, struct tarn_error *error)
{
    tn_latch_write(&slots[0], written);
    return tn_watch_record_read(slots_read, NULL, 0, record_out, error);
}

static void devices_are_small_numbers(void **state)
{
    static const struct {
        int64_t written;
        int read;
    } cases[] = {{0, 0},          {INT_MAX, INT_MAX}, {(int64_t)INT_MAX + 1, -1},
                 {INT64_MAX, -1}, {-1, -1},           {INT64_MIN, -1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tn_page_record written = {.state = TN_SLOT_LIVE, .device = cases[i].written};
        struct tarn_watch_record record;

        assert_int_equal(record_read(&written, &record, NULL), TARN_OK);
        assert_int_equal(record.device, cases[i].read);
        assert_false(record.closed);
    }
}

static void rows_are_no_more_than_there_is_room_for(void **state)
{
    const struct tn_page_record written = {.state = TN_SLOT_LIVE, .row_count = UINT64_MAX};
    struct tarn_watch_record record;

    (void)state;
    assert_int_equal(record_read(&written, &record, NULL), TARN_OK);
    assert_int_equal(record.row_count, TARN_WATCH_ROWS_MAX);
}

/* A slot that nobody wrote to, one that says that nobody has it, and one that is not there. */
static void what_is_no_record_is_refused(void **state)
{
    const struct tn_page_record nobodys = {.state = TN_SLOT_FREE};
    struct tarn_watch_record record;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tn_watch_record_read(slots_read, NULL, 1, &record, &error),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(record_read(&nobodys, &record, &error), TARN_ERR_NOT_FOUND);
    assert_string_equal(error.text, "the process has no allocator 0");
    assert_int_equal(tn_watch_record_read(slots_read, NULL, 2, &record, &error),
                     TARN_ERR_TRUNCATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_small_numbers),
        cmocka_unit_test(rows_are_no_more_than_there_is_room_for),
        cmocka_unit_test(what_is_no_record_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
