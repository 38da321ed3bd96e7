/* SPDX-License-Identifier: MIT */
/* The reader inside of empty pages, compiled as any other program: sections of a recording, and
 * refusals. In a browser it is tested by tests/viewer. */
#include "support/report.h"

#include "page/reader.h"

static int read_bytes(const char *bytes, size_t size)
{
    char *copy = tn_reader_alloc(size);

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    return tn_reader_read(copy, size);
}

static size_t section_find(const char *name)
{
    for (size_t i = 0; i < tn_reader_section_count(); i++) {
        if (strcmp(tn_reader_section_name(i), name) == 0) {
            return i;
        }
    }
    fail_msg("no section %s", name);
    return 0;
}

static void a_snapshot_becomes_sections(void **state)
{
    static const char json[] =
        "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 512, \"size\": "
        "9, \"stream\": 0}]]}";

    (void)state;
    assert_int_equal(read_bytes(json, sizeof json - 1), TARN_OK);
    const size_t head = section_find("head");

    assert_true(tn_reader_section_size(head) > 100);
    assert_memory_equal(tn_reader_section_bytes(head), "{\"format\":", 10);
    (void)section_find("d0.trace.0");
    (void)section_find("answers");
    assert_string_equal(tn_reader_message(), "");
}

static bool head_has(const char *text)
{
    const size_t head = section_find("head");
    const char *bytes = (const char *)tn_reader_section_bytes(head);
    const size_t length = strlen(text);

    for (size_t i = 0; i + length <= tn_reader_section_size(head); i++) {
        if (memcmp(bytes + i, text, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Settings are numbers and texts; of what else a file has there, a page says only that. */
static void odd_settings_are_not_shown(void **state)
{
    static const char json[] =
        "{\"segments\": [], \"device_traces\": [], \"allocator_settings\": {\"known\": 7,"
        " \"odd\": {\"a\": 1}, \"stack\": [{\"name\": \"secret\", \"filename\": \"a.py\","
        " \"line\": 1}], \"frame\": {\"name\": \"secret\", \"filename\": \"a.py\","
        " \"line\": 1}}}";

    (void)state;
    assert_int_equal(read_bytes(json, sizeof json - 1), TARN_OK);
    assert_true(head_has("[\"known\",\"7\"]"));
    assert_true(head_has("[\"odd\",\"...\"]"));
    assert_true(head_has("[\"stack\",\"...\"]"));
    assert_true(head_has("[\"frame\",\"...\"]"));
    assert_false(head_has("secret"));
}

static void refusals_are_said_and_leave_nothing(void **state)
{
    static const char bad[] = "\x80\x04"
                              "cos\nsystem\n.";

    (void)state;
    assert_int_equal(read_bytes(bad, sizeof bad - 1), TARN_ERR_UNSAFE);
    assert_non_null(strstr(tn_reader_message(), "os.system"));
    assert_string_equal(tn_reader_status_name(TARN_ERR_UNSAFE), tarn_status_name(TARN_ERR_UNSAFE));
    assert_int_equal(tn_reader_section_count(), 0);
    assert_null(tn_reader_section_bytes(0));
    assert_int_equal(tn_reader_section_size(7), 0);
    assert_string_equal(tn_reader_section_name(7), "");
    assert_int_not_equal(read_bytes("", 0), TARN_OK);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_becomes_sections),
        cmocka_unit_test(odd_settings_are_not_shown),
        cmocka_unit_test(refusals_are_said_and_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
