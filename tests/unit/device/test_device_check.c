/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/sim.h"

#include "support/device_check.h"

#include <string.h>

#define PAGE (2 * MIB)

static struct tarn_findings findings;
static struct tarn_device *checked; /* by the device opened last; goes with it */

static struct tarn_device *checked_open(void)
{
    struct tarn_device *device = NULL;

    findings = (struct tarn_findings)TARN_FINDINGS_INIT;
    checked = sim_open(GIB);
    assert_int_equal(tn_device_check_create(checked, &findings, &device), TARN_OK);
    return device;
}

static void expect_finding(enum tarn_status st, const char *text)
{
    assert_int_equal(st, TARN_ERR_DEVICE);
    assert_int_equal(findings.count, 1);
    if (!strstr(findings.text[0], text)) {
        fail_msg("\"%s\" does not contain \"%s\"", findings.text[0], text);
    }
    findings = (struct tarn_findings)TARN_FINDINGS_INIT;
}

static void right_use_finds_nothing(void **state)
{
    struct tarn_device *device = checked_open();
    const struct tn_device_ops *ops = device->ops;
    tarn_ptr plain = 0;
    tarn_ptr pooled = 0;
    tarn_ptr range = 0;
    tn_page_handle page = 0;
    tn_event_handle event = 0;
    tarn_stream stream = 0;
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t capture = 1;
    uint32_t count = 1;
    tn_graph_node node = 0;

    (void)state;
    assert_int_equal(ops->alloc(device, MIB, &plain), TARN_OK);
    assert_int_equal(ops->pool_alloc(device, MIB, 1, &pooled), TARN_OK);
    assert_int_equal(ops->va_reserve(device, 4 * PAGE, &range), TARN_OK);
    assert_int_equal(ops->page_create(device, PAGE, &page), TARN_OK);
    assert_int_equal(ops->map(device, range, PAGE, page), TARN_OK);
    assert_int_equal(ops->map(device, range + PAGE, PAGE, page), TARN_OK);
    assert_int_equal(ops->va_grant(device, range, 2 * PAGE, 1), TARN_OK);
    assert_int_equal(ops->event_create(device, &event), TARN_OK);
    assert_int_equal(ops->event_record(device, event, 1), TARN_OK);
    assert_int_equal(ops->event_query(device, event), TARN_OK);
    assert_int_equal(ops->event_wait(device, event), TARN_OK);
    assert_int_equal(ops->stream_wait(device, 1), TARN_OK);
    assert_int_equal(ops->stream_create(device, &stream), TARN_OK);
    assert_int_equal(ops->stream_wait_event(device, stream, event), TARN_OK);
    assert_int_equal(ops->stream_destroy(device, stream), TARN_OK);
    assert_int_equal(ops->device_wait(device), TARN_OK);
    assert_int_equal(ops->pool_peaks(device, &a, &b), TARN_OK);
    assert_int_equal(ops->pool_reset_peaks(device), TARN_OK);
    assert_int_equal(ops->capture_info(device, 1, &capture, NULL, 0, &count), TARN_OK);
    assert_int_equal(capture, 0);
    assert_int_equal(count, 0);
    assert_int_equal(tarn_sim_set_capturing(checked, 1, true), TARN_OK);
    assert_int_equal(tarn_sim_enqueue_ns(checked, 1, 1), TARN_OK);
    assert_int_equal(ops->capture_info(device, 1, &capture, &node, 1, &count), TARN_OK);
    assert_int_equal(count, 1);
    assert_int_equal(ops->graph_node_parents(device, node, NULL, 0, &count), TARN_OK);
    assert_int_equal(tarn_sim_set_capturing(checked, 1, false), TARN_OK);
    assert_int_equal(ops->memory_info(device, &a, &b), TARN_OK);
    assert_int_equal(ops->pool_info(device, &a, &b), TARN_OK);
    assert_int_equal(ops->now_ns(device), 0);
    assert_int_equal(ops->event_destroy(device, event), TARN_OK);
    assert_int_equal(ops->unmap(device, range, 2 * PAGE), TARN_OK);
    assert_int_equal(ops->page_release(device, page), TARN_OK);
    assert_int_equal(ops->va_release(device, range, 4 * PAGE), TARN_OK);
    assert_int_equal(ops->pool_free(device, pooled, 1), TARN_OK);
    assert_int_equal(ops->pool_trim(device, 0), TARN_OK);
    assert_int_equal(ops->free(device, plain), TARN_OK);
    tarn_device_close(device);
    assert_int_equal(findings.count, 0);
}

static void wrong_frees_are_found(void **state)
{
    struct tarn_device *device = checked_open();
    const struct tn_device_ops *ops = device->ops;
    tarn_ptr plain = 0;
    tarn_ptr pooled = 0;
    tn_event_handle event = 0;

    (void)state;
    assert_int_equal(ops->alloc(device, MIB, &plain), TARN_OK);
    assert_int_equal(ops->pool_alloc(device, MIB, 1, &pooled), TARN_OK);
    assert_int_equal(ops->event_create(device, &event), TARN_OK);
    expect_finding(ops->free(device, plain + 1), "free: not allocated");
    expect_finding(ops->free(device, pooled), "free: not allocated");
    assert_int_equal(ops->free(device, plain), TARN_OK);
    expect_finding(ops->free(device, plain), "free: not allocated");
    assert_int_equal(ops->pool_free(device, pooled, 1), TARN_OK);
    expect_finding(ops->pool_free(device, pooled, 1), "pool_free: not allocated");
    assert_int_equal(ops->event_destroy(device, event), TARN_OK);
    expect_finding(ops->event_destroy(device, event), "event_destroy: no such event");
    expect_finding(ops->event_record(device, event, 1), "event_record: no such event");
    expect_finding(ops->event_query(device, event), "event_query: no such event");
    expect_finding(ops->event_wait(device, event), "event_wait: no such event");
    expect_finding(ops->stream_wait_event(device, 1, event), "stream_wait_event: no such event");
    expect_finding(ops->stream_destroy(device, 1), "stream_destroy: no such stream");
    tarn_device_close(device);
    assert_int_equal(findings.count, 0);
}

static void wrong_questions_about_graphs_are_found(void **state)
{
    struct tarn_device *device = checked_open();
    const struct tn_device_ops *ops = device->ops;
    uint64_t capture = 0;
    uint32_t count = 0;

    (void)state;
    expect_finding(ops->capture_info(device, 1, NULL, NULL, 0, &count),
                   "capture_info: nowhere to put the capture");
    expect_finding(ops->capture_info(device, 1, &capture, NULL, 0, NULL),
                   "capture_info: nowhere to put the count");
    expect_finding(ops->capture_info(device, 1, &capture, NULL, 1, &count),
                   "capture_info: room for nodes that is not there");
    expect_finding(ops->graph_node_parents(device, 0, NULL, 0, &count),
                   "graph_node_parents: no node");
    expect_finding(ops->graph_node_parents(device, 1, NULL, 0, NULL),
                   "graph_node_parents: nowhere to put the count");
    tarn_device_close(device);
    assert_int_equal(findings.count, 0);
}

static void wrong_virtual_memory_use_is_found(void **state)
{
    struct tarn_device *device = checked_open();
    const struct tn_device_ops *ops = device->ops;
    tarn_ptr range = 0;
    tn_page_handle page = 0;

    (void)state;
    assert_int_equal(ops->va_reserve(device, 2 * PAGE, &range), TARN_OK);
    assert_int_equal(ops->page_create(device, PAGE, &page), TARN_OK);
    expect_finding(ops->map(device, range, PAGE, page + 1), "map: no page of that size");
    expect_finding(ops->map(device, range, 2 * PAGE, page), "map: no page of that size");
    expect_finding(ops->map(device, range + 2 * PAGE, PAGE, page), "map: outside a reservation");
    expect_finding(ops->map(device, range + 512, PAGE, page), "map: not aligned");
    assert_int_equal(ops->map(device, range, PAGE, page), TARN_OK);
    expect_finding(ops->map(device, range, PAGE, page), "map: over a mapping");
    expect_finding(ops->page_release(device, page), "page_release: it is mapped");
    expect_finding(ops->va_release(device, range, 2 * PAGE), "va_release: something is mapped");
    expect_finding(ops->va_release(device, range, PAGE), "va_release: no such reservation");
    expect_finding(ops->unmap(device, range, 2 * PAGE), "unmap: not whole mappings");
    assert_int_equal(ops->unmap(device, range, PAGE), TARN_OK);
    expect_finding(ops->unmap(device, range, PAGE), "unmap: not whole mappings");
    expect_finding(ops->va_grant(device, range, PAGE, 0), "va_grant: not whole mappings");
    assert_int_equal(ops->page_release(device, page), TARN_OK);
    expect_finding(ops->page_release(device, page), "page_release: no such page");
    assert_int_equal(ops->va_release(device, range, 2 * PAGE), TARN_OK);
    tarn_device_close(device);
    assert_int_equal(findings.count, 0);
}

static void leaks_are_reported_at_closing(void **state)
{
    struct tarn_device *device = checked_open();
    tarn_ptr plain = 0;
    tn_event_handle event = 0;
    struct tarn_findings now = TARN_FINDINGS_INIT;

    (void)state;
    assert_int_equal(device->ops->alloc(device, MIB, &plain), TARN_OK);
    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
    assert_int_equal(tn_device_check_leaks(device, &now), 2);
    tarn_device_close(device);
    assert_int_equal(findings.count, 2);
    assert_string_equal(findings.text[0], "leak: allocation 0x7f0000000000 of 1048576 bytes");
    assert_non_null(strstr(findings.text[1], "leak: event"));
}

static void failures_pass_through_without_findings(void **state)
{
    struct tarn_device *inner = sim_open(GIB);
    struct tarn_device *device = NULL;
    tarn_ptr out = 5;

    (void)state;
    findings = (struct tarn_findings)TARN_FINDINGS_INIT;
    assert_int_equal(tn_device_check_create(inner, &findings, &device), TARN_OK);
    tarn_sim_fail_nth(inner, TARN_SIM_ALLOC, 1, TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(device->ops->alloc(device, MIB, &out), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(out, 5);
    assert_non_null(strstr(device->ops->last_error(device), "planned failure of alloc"));
    tarn_device_close(device);
    assert_int_equal(findings.count, 0);
}

/* A backend that hands out one address for ever and touches outputs when it fails. */
static enum tarn_status broken_alloc(struct tarn_device *device, uint64_t size,
                                     tarn_ptr *address_out)
{
    (void)device;
    *address_out = size == 3 ? 0 : 4096;
    return size == 2 ? TARN_ERR_OUT_OF_MEMORY : TARN_OK;
}

static enum tarn_status broken_free(struct tarn_device *device, tarn_ptr address)
{
    (void)device;
    (void)address;
    return TARN_OK;
}

static void broken_destroy(struct tarn_device *device)
{
    (void)device;
}

static void broken_backends_are_found(void **state)
{
    static const struct tn_device_ops broken_ops = {
        .name = "broken", .alloc = broken_alloc, .free = broken_free, .destroy = broken_destroy};
    struct tarn_device broken = {.ops = &broken_ops, .granularity = PAGE};
    struct tarn_device *device = NULL;
    tarn_ptr out = 0;

    (void)state;
    findings = (struct tarn_findings)TARN_FINDINGS_INIT;
    assert_int_equal(tn_device_check_create(&broken, &findings, &device), TARN_OK);
    assert_int_equal(device->ops->alloc(device, 512, &out), TARN_OK);
    assert_int_equal(device->ops->alloc(device, 512, &out), TARN_OK);
    assert_int_equal(device->ops->alloc(device, 2, &out), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(device->ops->alloc(device, 3, &out), TARN_OK);
    assert_int_equal(device->ops->free(device, 4096), TARN_OK);
    tarn_device_close(device);
    assert_int_equal(findings.count, 3);
    assert_non_null(strstr(findings.text[0], "which is already allocated"));
    assert_non_null(strstr(findings.text[1], "set its output"));
    assert_non_null(strstr(findings.text[2], "succeeded with 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_use_finds_nothing),
        cmocka_unit_test(wrong_frees_are_found),
        cmocka_unit_test(wrong_questions_about_graphs_are_found),
        cmocka_unit_test(wrong_virtual_memory_use_is_found),
        cmocka_unit_test(leaks_are_reported_at_closing),
        cmocka_unit_test(failures_pass_through_without_findings),
        cmocka_unit_test(broken_backends_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
