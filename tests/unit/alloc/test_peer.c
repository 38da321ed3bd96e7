/* SPDX-License-Identifier: MIT */
/* Devices that reach each other's memory: what is granted, what is refused, and failures. */
#include "support/test.h"

#include "support/child.h"
#include "support/rig.h"
#include "tarn/copy.h"
#include "tarn/peer.h"

#include <stdio.h>

enum {
    PEER = 1, /* ordinal of the other device */
    PEERS_MAX = 64
};

/* Two devices of 1 GiB whose segments grow. */
struct pair {
    struct rig own;
    struct rig peer;
};

static void pair_open(struct pair *pair, const char *conf)
{
    rig_open(&pair->own, GIB, conf);
    rig_open_with(&pair->peer,
                  (struct tarn_sim_options){
                      .capacity = GIB, .ordinal = PEER, .base_address = SIM_BASE + 1024 * GIB},
                  conf);
}

static void pair_close(struct pair *pair)
{
    pair->peer.host_bytes = pair->own.host_bytes;
    tarn_allocator_destroy(pair->own.allocator);
    sim_close(pair->own.device);
    rig_close(&pair->peer);
}

static enum tarn_status reach(struct pair *pair, bool *reaches_out)
{
    return tarn_allocator_reach_peer(pair->own.allocator, pair->peer.allocator, reaches_out,
                                     &pair->own.error);
}

static uint64_t grants(const struct rig *rig)
{
    return sim_counters(rig->device).calls[TARN_SIM_VA_GRANT];
}

static void what_is_mapped_is_granted_once(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    const tarn_ptr before = rig_alloc(&rig, 50 * MIB, 0);
    const uint64_t pages = sim_counters(rig.device).live_pages;

    assert_true(pages > 1);
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER, &rig.error), TARN_OK);
    assert_int_equal(grants(&rig), pages);
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, 0, &rig.error), TARN_OK); /* itself */
    assert_int_equal(grants(&rig), pages);
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER + 1, &rig.error), TARN_OK);
    assert_int_equal(grants(&rig), 2 * pages);
    const tarn_ptr after = rig_alloc(&rig, 90 * MIB, 0); /* for both */

    assert_int_equal(grants(&rig), 2 * sim_counters(rig.device).live_pages);
    rig_free(&rig, before);
    rig_free(&rig, after);
    rig_close(&rig);
}

/* Also where they go to; if that fails they are back, and the next try needs no other pages. */
static void pages_that_move_are_granted(void **state)
{
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr hole = rig_alloc(&rig, 30 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER, &rig.error), TARN_OK);
    assert_int_equal(grants(&rig), 16);
    rig_free(&rig, hole);
    tarn_sim_fail_nth(rig.device, TARN_SIM_VA_GRANT, 9, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, 0, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    rig_check(&rig);
    const uint64_t before = grants(&rig);

    (void)rig_alloc(&rig, 40 * MIB, 0);
    assert_int_equal(grants(&rig), before + 20);
    assert_int_equal(sim_counters(rig.device).live_pages, 21);
    rig_close(&rig);
}

static void one_expandable_segment_is_enough(void **state)
{
    static const char *const settings[] = {"", "expandable_segments:True", "policy:compact"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        assert_false(tarn_allocator_has_expandable_segments(rig.allocator));
        (void)rig_alloc(&rig, 100, 0); /* a segment of the small pool, and one of the large */
        (void)rig_alloc(&rig, 30 * MIB, 0);
        assert_int_equal(tarn_allocator_has_expandable_segments(rig.allocator), i > 0);
        rig_close(&rig);
    }
}

static void there_is_a_most(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    for (int i = 1; i <= PEERS_MAX; i++) {
        assert_int_equal(tarn_allocator_add_peer(rig.allocator, i, &rig.error), TARN_OK);
    }
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEERS_MAX + 1, &rig.error),
                     TARN_ERR_LIMIT);
    assert_non_null(strstr(rig.error.text, "at most 64 peers"));
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEERS_MAX, &rig.error), TARN_OK);
    rig_close(&rig);
}

/* In a segment that is there, and in one that grows. */
static void a_grant_that_fails_is_reported(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);
    const tarn_ptr second = rig_alloc(&rig, 100, 0); /* in another segment */
    const uint64_t pages = sim_counters(rig.device).live_pages;

    tarn_sim_fail_nth(rig.device, TARN_SIM_VA_GRANT, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER, &rig.error), TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "granting a peer access"));
    assert_int_equal(grants(&rig), 1); /* no further page, no further segment */
    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER, &rig.error), TARN_OK);
    assert_int_equal(grants(&rig), 1 + pages);
    const uint64_t mappings = sim_counters(rig.device).live_mappings;
    tarn_ptr more = 0;

    tarn_sim_fail_nth(rig.device, TARN_SIM_VA_GRANT, 3, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 60 * MIB, 0, &more, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(sim_counters(rig.device).live_mappings, mappings);
    assert_int_equal(sim_counters(rig.device).live_pages, pages);
    rig_check(&rig);
    rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
    rig_free(&rig, ptr);
    rig_free(&rig, second);
    rig_close(&rig);
}

/* Whichever of two peers does not get access, none has memory that the other lacks. */
static void a_grant_that_fails_for_one_peer_fails_for_all(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 5; n++) {
        struct rig rig;
        tarn_ptr ptr = 0;

        rig_open(&rig, GIB, "expandable_segments:True");
        assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER, &rig.error), TARN_OK);
        assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER + 1, &rig.error), TARN_OK);
        tarn_sim_fail_nth(rig.device, TARN_SIM_VA_GRANT, n, TARN_ERR_DEVICE);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 40 * MIB, 0, &ptr, &rig.error),
                         TARN_ERR_DEVICE);
        rig_check(&rig);
        assert_int_equal(grants(&rig), n);
        assert_int_equal(sim_counters(rig.device).live_mappings, 0);
        assert_int_equal(sim_counters(rig.device).live_pages, 0);
        rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0));
        rig_close(&rig);
    }
}

static struct {
    const struct tn_device_ops *ops;
    struct tn_device_ops hooked;
    tarn_ptr next; /* where the next grant should be */
} granting;

static enum tarn_status grant_in_order(struct tarn_device *device, uint64_t address, uint64_t size,
                                       int peer)
{
    enum tarn_status st;

    assert_int_equal(address, granting.next);
    granting.next += size;
    device->ops = granting.ops; /* by which it is known */
    st = device->ops->va_grant(device, address, size, peer);
    device->ops = &granting.hooked;
    return st;
}

static void every_page_is_granted_where_it_is(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    const tarn_ptr ptr = rig_alloc(&rig, 60 * MIB, 0);

    granting.ops = rig.device->ops;
    granting.hooked = *granting.ops;
    granting.hooked.va_grant = grant_in_order;
    granting.next = ptr;
    rig.device->ops = &granting.hooked;
    const enum tarn_status st = tarn_allocator_add_peer(rig.allocator, PEER, &rig.error);

    rig.device->ops = granting.ops;
    assert_int_equal(st, TARN_OK);
    assert_int_equal(granting.next, ptr + 60 * MIB);
    rig_close(&rig);
}

static void an_allocator_without_segments_needs_no_grant(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    assert_int_equal(tarn_allocator_add_peer(rig.allocator, PEER, &rig.error), TARN_OK);
    assert_int_equal(grants(&rig), 0);
    assert_false(tarn_allocator_has_expandable_segments(rig.allocator));
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void both_ask_once(void **state)
{
    struct pair pair;
    bool reaches = false;

    (void)state;
    pair_open(&pair, "expandable_segments:True");
    const tarn_ptr ptr = rig_alloc(&pair.peer, 30 * MIB, 0);

    for (int i = 0; i < 3; i++) {
        reaches = false;
        assert_int_equal(reach(&pair, &reaches), TARN_OK);
        assert_true(reaches);
    }
    assert_int_equal(sim_counters(pair.own.device).calls[TARN_SIM_PEER_REACHES], 1);
    assert_int_equal(sim_counters(pair.own.device).calls[TARN_SIM_PEER_ENABLE], 1);
    assert_int_equal(grants(&pair.peer), sim_counters(pair.peer.device).live_pages);
    assert_int_equal(grants(&pair.own), 0);
    rig_free(&pair.peer, ptr);
    pair_close(&pair);
}

static void a_device_reaches_itself(void **state)
{
    struct rig rig;
    bool reaches = false;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    assert_int_equal(tarn_allocator_reach_peer(rig.allocator, rig.allocator, &reaches, &rig.error),
                     TARN_OK);
    assert_true(reaches);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_PEER_REACHES], 0);
    rig_close(&rig);
}

static void every_question_may_fail(void **state)
{
    static const enum tarn_sim_call calls[] = {TARN_SIM_PEER_REACHES, TARN_SIM_PEER_ENABLE,
                                               TARN_SIM_VA_GRANT};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct pair pair;
        bool reaches = false;

        pair_open(&pair, "expandable_segments:True");
        const tarn_ptr ptr = rig_alloc(&pair.peer, 30 * MIB, 0);

        tarn_sim_fail_nth(calls[i] == TARN_SIM_VA_GRANT ? pair.peer.device : pair.own.device,
                          calls[i], 1, TARN_ERR_DEVICE);
        assert_int_equal(reach(&pair, &reaches), TARN_ERR_DEVICE);
        assert_false(reaches);
        assert_int_equal(reach(&pair, &reaches), TARN_OK); /* it is asked again */
        assert_true(reaches);
        assert_int_equal(grants(&pair.peer), sim_counters(pair.peer.device).live_pages +
                                                 (calls[i] == TARN_SIM_VA_GRANT ? 1 : 0));
        rig_free(&pair.peer, ptr);
        pair_close(&pair);
    }
}

/* A peer whose operations are its own: the simulated device does not reach it. */
static void what_cannot_be_reached(void **state)
{
    struct pair pair;
    bool reaches = true;

    (void)state;
    pair_open(&pair, "expandable_segments:True");
    const tarn_ptr ptr = rig_alloc(&pair.peer, 30 * MIB, 0);
    const struct tn_device_ops *ops = pair.peer.device->ops;
    struct tn_device_ops others = *ops;

    pair.peer.device->ops = &others;
    for (int i = 0; i < 2; i++) {
        reaches = true;
        assert_int_equal(reach(&pair, &reaches), TARN_OK);
        assert_false(reaches);
    }
    assert_int_equal(sim_counters(pair.own.device).calls[TARN_SIM_PEER_REACHES], 1);
    others.name = "cuda";
    assert_int_equal(reach(&pair, &reaches), TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(
        strstr(pair.own.error.text, "a device of kind sim cannot reach one of kind cuda"));
    pair.peer.device->ops = ops;
    assert_int_equal(grants(&pair.peer), 0); /* who cannot reach it is not let in */
    rig_free(&pair.peer, ptr);
    pair_close(&pair);
}

/* Each of several peers has an answer of its own, and each is asked once. */
static void every_peer_is_asked_once(void **state)
{
    static const int ordinals[] = {1, 2, 63};
    struct rig own;
    struct rig peers[3];

    (void)state;
    rig_open(&own, GIB, "");
    for (int i = 0; i < 3; i++) {
        rig_open_with(
            &peers[i],
            (struct tarn_sim_options){.capacity = GIB,
                                      .ordinal = ordinals[i],
                                      .base_address = SIM_BASE + (uint64_t)(i + 1) * 1024 * GIB},
            "");
    }
    const struct tn_device_ops *ops = peers[1].device->ops;
    struct tn_device_ops others = *ops;

    peers[1].device->ops = &others; /* which cannot be reached */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            bool reaches = i == 1;

            assert_int_equal(
                tarn_allocator_reach_peer(own.allocator, peers[i].allocator, &reaches, &own.error),
                TARN_OK);
            assert_int_equal(reaches, i != 1);
        }
        assert_int_equal(sim_counters(own.device).calls[TARN_SIM_PEER_REACHES], 3);
    }
    peers[1].device->ops = ops;
    for (int i = 2; i >= 0; i--) {
        rig_close(&peers[i]);
    }
    rig_close(&own);
}

static struct {
    unsigned copies;
    bool by_peer; /* the last one */
} copied;

static enum tarn_status copy_of(struct tarn_device *device, const struct tn_copy *copy,
                                tarn_stream stream)
{
    (void)device;
    (void)stream;
    copied.copies++;
    copied.by_peer = copy->by_peer;
    return TARN_OK;
}

/* Pages that the devices cannot reach are copied with both devices named; what is in one piece is
 * not, and neither are pages that they can reach. */
static void copies_are_of_the_kind_that_is_chosen(void **state)
{
    static const struct {
        const char *conf;
        bool is_reached;
        bool by_peer;
    } rows[] = {{"expandable_segments:True", false, true},
                {"expandable_segments:True", true, false},
                {"", false, false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pair pair;

        pair_open(&pair, rows[i].conf);
        const tarn_ptr from = rig_alloc(&pair.own, 3 * MIB, 0);
        const tarn_ptr to = rig_alloc(&pair.peer, 3 * MIB, 0);
        const struct tn_device_ops *ops = pair.own.device->ops;
        struct tn_device_ops recording = *ops;
        struct tn_device_ops others = *ops;

        recording.copy = copy_of;
        copied.copies = 0;
        pair.own.device->ops = &recording;
        pair.peer.device->ops = rows[i].is_reached ? ops : &others;
        assert_int_equal(
            tarn_copy(pair.peer.allocator, to, pair.own.allocator, from, MIB, 0, &pair.own.error),
            TARN_OK);
        assert_int_equal(copied.copies, 1);
        assert_int_equal(copied.by_peer, rows[i].by_peer);
        pair.own.device->ops = ops;
        pair.peer.device->ops = ops;
        rig_free(&pair.own, from);
        rig_free(&pair.peer, to);
        pair_close(&pair);
    }
}

static void copies_name_both_devices_where_they_must(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair, "expandable_segments:True");
    struct tarn_allocator *own = pair.own.allocator;
    struct tarn_allocator *peer = pair.peer.allocator;

    assert_int_equal(tarn_allocator_choose_copy(own, peer, false), TARN_COPY_PLAIN);
    const tarn_ptr ptr = rig_alloc(&pair.peer, 30 * MIB, 0);

    assert_true(tarn_allocator_has_expandable_segments(peer));
    assert_int_equal(tarn_allocator_choose_copy(own, peer, false), TARN_COPY_PEER);
    assert_int_equal(tarn_allocator_choose_copy(peer, own, false), TARN_COPY_PEER);
    assert_int_equal(tarn_allocator_choose_copy(peer, own, true), TARN_COPY_PLAIN);
    assert_int_equal(tarn_allocator_choose_copy(peer, peer, false), TARN_COPY_PLAIN);
    assert_int_equal(tarn_allocator_choose_copy(NULL, peer, false), TARN_COPY_PLAIN);
    assert_int_equal(tarn_allocator_choose_copy(peer, NULL, false), TARN_COPY_PLAIN);
    assert_int_equal(tarn_allocator_get_ordinal(own), 0);
    assert_int_equal(tarn_allocator_get_ordinal(peer), 1);
    rig_configure(&pair.own, "expandable_segments:False");
    const tarn_ptr plain = rig_alloc(&pair.own, 30 * MIB, 0);

    assert_false(tarn_allocator_has_expandable_segments(own));
    rig_configure(&pair.own, "expandable_segments:True");
    const tarn_ptr growing = rig_alloc(&pair.own, 90 * MIB, 0);

    assert_true(tarn_allocator_has_expandable_segments(own)); /* behind one that is not */
    rig_configure(&pair.own, "expandable_segments:False");
    const tarn_ptr last = rig_alloc(&pair.own, 200 * MIB, 0);

    assert_true(last > growing);
    assert_true(tarn_allocator_has_expandable_segments(own)); /* and before one that is not */
    rig_free(&pair.own, last);
    rig_free(&pair.own, plain);
    rig_free(&pair.own, growing);
    rig_free(&pair.peer, ptr);
    pair_close(&pair);
}

static void child_tries(void *context)
{
    struct pair *pair = context;
    bool reaches = false;
    struct tarn_allocator *mine = NULL;

    CHILD_REQUIRE(tarn_allocator_add_peer(pair->own.allocator, PEER, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(reach(pair, &reaches) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_create_on("sim", "", &mine, NULL) == TARN_OK);
    CHILD_REQUIRE(tarn_allocator_reach_peer(mine, pair->peer.allocator, &reaches, NULL) ==
                  TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_reach_peer(pair->own.allocator, mine, &reaches, NULL) ==
                  TARN_ERR_STATE);
    tarn_allocator_destroy(mine);
}

static void a_forked_child_is_refused(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair, "expandable_segments:True");
    child_run(child_tries, &pair);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_mapped_is_granted_once),
        cmocka_unit_test(pages_that_move_are_granted),
        cmocka_unit_test(there_is_a_most),
        cmocka_unit_test(one_expandable_segment_is_enough),
        cmocka_unit_test(a_grant_that_fails_is_reported),
        cmocka_unit_test(a_grant_that_fails_for_one_peer_fails_for_all),
        cmocka_unit_test(every_page_is_granted_where_it_is),
        cmocka_unit_test(an_allocator_without_segments_needs_no_grant),
        cmocka_unit_test(both_ask_once),
        cmocka_unit_test(a_device_reaches_itself),
        cmocka_unit_test(every_question_may_fail),
        cmocka_unit_test(what_cannot_be_reached),
        cmocka_unit_test(copies_name_both_devices_where_they_must),
        cmocka_unit_test(every_peer_is_asked_once),
        cmocka_unit_test(copies_are_of_the_kind_that_is_chosen),
        cmocka_unit_test(a_forked_child_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
