/* SPDX-License-Identifier: MIT */
/* Lists of pages: numbers of any size, and lists that are too large to be kept. */
#include "support/test.h"

#include "snapshot/keys.h"
#include "snapshot/page_list.h"
#include "snapshot/snapshot.h"
#include "tarn/host.h"

#include <stdio.h>
#include <string.h>

static void numbers_come_back(void **state)
{
    static const uint64_t numbers[] = {0, 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct tn_field item = tn_page_list_item(numbers[i]);

        assert_int_equal(item.kind, numbers[i] <= INT64_MAX ? TN_FIELD_INT : TN_FIELD_UINT);
        assert_true(tn_page_list_number(&item) == numbers[i]);
    }
}

static void a_list_fits_or_is_refused(void **state)
{
    enum {
        PAGES = 100
    };
    struct tn_field handles[PAGES];
    struct tn_field times[PAGES];
    const struct tn_page_list pages = {
        .size = 2 << 20, .handles = handles, .times = times, .count = PAGES};

    (void)state;
    for (size_t i = 0; i < PAGES; i++) {
        handles[i] = tn_page_list_item(i + 1);
        times[i] = tn_page_list_item(i);
    }
    for (uint64_t most = 0; most < 4000; most += 100) {
        struct tn_model_segment segment = {.address = 1};
        struct tn_page_list found;
        struct tn_model model;

        assert_int_equal(tn_model_init(&model, 0), TARN_OK);
        assert_int_equal(tn_keys_enter(&model), TARN_OK);
        model.written_most = most; /* 0 = no limit */
        const enum tarn_status st = tn_page_list_add(&model, &pages, &segment.rest);

        assert_int_equal(st, most == 0 || most >= 1700 ? TARN_OK : TARN_ERR_LIMIT);
        if (st == TARN_OK) {
            assert_true(tn_page_list_find(&model, &segment, &found));
            assert_int_equal(tn_model_container(&model, segment.rest).count,
                             1); /* this key alone */
            assert_int_equal(found.size, 2 << 20);
            assert_int_equal(found.count, PAGES);
            assert_int_equal(tn_page_list_number(&found.handles[PAGES - 1]), PAGES);
        }
        tn_model_fini(&model);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Other things that a file may have under that key are no list of pages. */
static void what_is_no_list_of_pages_is_not_found(void **state)
{
    static const struct {
        const char *pages;
        bool found;
    } rows[] = {
        {"{\"page_size\":4096,\"handles\":[7,8,9],\"times\":[1,2,0]}", true},
        {"{\"times\":[1,-1],\"page_size\":1,\"handles\":[9223372036854775808,8]}", true},
        {"{\"page_size\":4096,\"handles\":[],\"times\":[]}", true},
        {"{\"page_size\":0,\"handles\":[7,8,9],\"times\":[1,2,0]}", false},
        {"{\"page_size\":-1,\"handles\":[7,8,9],\"times\":[1,2,0]}", false},
        {"{\"page_size\":\"x\",\"handles\":[7,8,9],\"times\":[1,2,0]}", false},
        {"{\"handles\":[7,8,9],\"times\":[1,2,0]}", false},
        {"{\"page_size\":4096,\"handles\":[7,8,9],\"times\":[1,2]}", false},
        {"{\"page_size\":4096,\"handles\":[7,8,9],\"times\":[1,2,\"x\"]}", false},
        {"{\"page_size\":4096,\"handles\":[7,8,[]],\"times\":[1,2,3]}", false},
        {"{\"page_size\":4096,\"handles\":[],\"times\":null}", false},
        {"{\"page_size\":4096,\"handles\":[]}", false},
        {"{\"page_size\":4096,\"times\":[]}", false},
        {"[4096,[7],[1]]", false},
        {"4096", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_snapshot *snapshot = NULL;
        struct tn_page_list pages;
        char text[512];

        (void)snprintf(text, sizeof text,
                       "{\"segments\":[{\"address\":4096,\"total_size\":512,\"blocks\":[],"
                       "\"tarn_pages\":%s}]}",
                       rows[i].pages);
        assert_int_equal(tarn_snapshot_load_memory(text, strlen(text), NULL, &snapshot, NULL),
                         TARN_OK);
        const struct tn_model *model = tn_snapshot_model(snapshot);

        if (tn_page_list_find(model, model->segments, &pages) != rows[i].found) {
            fail_msg("%s is%s found", rows[i].pages, rows[i].found ? " not" : "");
        }
        tarn_snapshot_destroy(snapshot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(a_list_fits_or_is_refused),
        cmocka_unit_test(what_is_no_list_of_pages_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
