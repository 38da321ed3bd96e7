/* SPDX-License-Identifier: MIT */
/* The tree against a plain presence table, with a cached sum a subtree as the refreshed value. */
#include "support/test.h"

#include "base/tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEYS = 256,
    STEPS = 20000
};

struct item {
    struct tn_tree_node node;
    uint64_t key;
    uint64_t weight;
    uint64_t sum; /* of weight over the subtree */
};

static int item_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(TN_TREE_ENTRY(a, struct item, node)->key,
                             TN_TREE_ENTRY(b, struct item, node)->key);
}

static uint64_t item_sum(const struct tn_tree_node *node)
{
    return node ? TN_TREE_ENTRY(node, struct item, node)->sum : 0;
}

static void item_refresh(struct tn_tree_node *node)
{
    struct item *item = TN_TREE_ENTRY(node, struct item, node);

    item->sum = item->weight + item_sum(node->child[0]) + item_sum(node->child[1]);
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void expect_near(const struct tn_tree *tree, const bool *present, unsigned key)
{
    const struct item wanted = {.key = key};
    unsigned up = key;
    unsigned down = key + 1; /* one too high, so that 0 can mean none */

    while (up < KEYS && !present[up]) {
        up++;
    }
    while (down > 0 && !present[down - 1]) {
        down--;
    }
    const struct tn_tree_node *at_least = tn_tree_find_at_least(tree, &wanted.node);
    const struct tn_tree_node *at_most = tn_tree_find_at_most(tree, &wanted.node);
    const struct tn_tree_node *exact = tn_tree_find(tree, &wanted.node);
    assert_int_equal(at_least ? TN_TREE_ENTRY(at_least, struct item, node)->key : KEYS, up);
    assert_int_equal(at_most ? TN_TREE_ENTRY(at_most, struct item, node)->key + 1 : 0, down);
    assert_int_equal(exact != NULL, present[key]);
}

static void random_changes_agree_with_a_table(bool refreshed)
{
    static struct item items[KEYS];
    bool present[KEYS] = {false};
    uint64_t sum = 0;
    uint64_t seed = 7;
    struct tn_tree tree;

    tn_tree_init(&tree, item_compare, refreshed ? item_refresh : NULL);
    for (int step = 0; step < STEPS; step++) {
        const unsigned key = (unsigned)(random_next(&seed) % KEYS);
        struct item *item = &items[key];

        if (present[key]) {
            tn_tree_remove(&tree, &item->node);
            sum -= item->weight;
        } else {
            *item = (struct item){.key = key, .weight = random_next(&seed) % 100};
            tn_tree_insert(&tree, &item->node);
            sum += item->weight;
        }
        present[key] = !present[key];
        expect_near(&tree, present, (unsigned)(random_next(&seed) % KEYS));
        if (refreshed) {
            assert_int_equal(item_sum(tree.root), sum);
        }
        struct tarn_findings findings = TARN_FINDINGS_INIT;
        if (tn_tree_check(&tree, &findings) != 0) {
            fail_msg("%s", findings.text[0]);
        }
    }
}

static void changes_without_refresh(void **state)
{
    (void)state;
    random_changes_agree_with_a_table(false);
}

static void changes_with_refresh(void **state)
{
    (void)state;
    random_changes_agree_with_a_table(true);
}

static void stepping_visits_all_in_order(void **state)
{
    struct item items[100];
    struct tn_tree tree;
    struct tn_tree_node *last = NULL;
    unsigned seen = 0;

    (void)state;
    tn_tree_init(&tree, item_compare, NULL);
    assert_null(tn_tree_first(&tree));
    for (unsigned i = 0; i < 100; i++) {
        items[i].key = i * 37 % 100;
        tn_tree_insert(&tree, &items[i].node);
    }
    for (struct tn_tree_node *node = tn_tree_first(&tree); node; node = tn_tree_next(node)) {
        assert_int_equal(TN_TREE_ENTRY(node, struct item, node)->key, seen++);
        last = node;
    }
    assert_int_equal(seen, 100);
    for (struct tn_tree_node *node = last; node; node = tn_tree_prev(node)) {
        assert_int_equal(TN_TREE_ENTRY(node, struct item, node)->key, --seen);
    }
    assert_int_equal(seen, 0);
}

static void check_sees_damage(void **state)
{
    struct item items[3] = {{.key = 1}, {.key = 2}, {.key = 3}};
    struct tn_tree tree;
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)state;
    tn_tree_init(&tree, item_compare, NULL);
    for (int i = 0; i < 3; i++) {
        tn_tree_insert(&tree, &items[i].node);
    }
    assert_int_equal(tn_tree_check(&tree, &findings), 0);
    tree.count = 4;
    assert_int_equal(tn_tree_check(&tree, &findings), 1);
    tree.count = 3;
    items[0].key = 9;
    assert_true(tn_tree_check(&tree, &findings) > 0);
    items[0].key = 1;
    items[0].node.height = 5;
    assert_true(tn_tree_check(&tree, &findings) > 0);
    items[0].node.height = 1;
    items[2].node.parent = &items[0].node;
    findings.count = 0;
    assert_int_equal(tn_tree_check(&tree, &findings), 1);
    assert_non_null(strstr(findings.text[0], "parent link"));
}

/* Three in a row, on either side. */
static void check_sees_imbalance(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        struct item items[3] = {{.key = 1}, {.key = 2}, {.key = 3}};
        struct tarn_findings findings = TARN_FINDINGS_INIT;
        struct tn_tree tree;

        tn_tree_init(&tree, item_compare, NULL);
        for (int i = 0; i < 3; i++) {
            struct item *item = &items[side ? i : 2 - i];

            item->node.height = 3 - i;
            if (i > 0) {
                item->node.parent = &items[side ? i - 1 : 3 - i].node;
                item->node.parent->child[side] = &item->node;
            }
        }
        tree.root = &items[side ? 0 : 2].node;
        tree.count = 3;
        assert_int_equal(tn_tree_check(&tree, &findings), 1);
        assert_non_null(strstr(findings.text[0], "sibling heights"));
    }
}

static void refresh_carries_a_changed_record_upward(void **state)
{
    struct item items[7];
    struct tn_tree tree;

    (void)state;
    tn_tree_init(&tree, item_compare, item_refresh);
    for (unsigned i = 0; i < 7; i++) {
        items[i] = (struct item){.key = i, .weight = 1};
        tn_tree_insert(&tree, &items[i].node);
    }
    items[0].weight = 10;
    tn_tree_refresh(&tree, &items[0].node);
    assert_int_equal(item_sum(tree.root), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_without_refresh),
        cmocka_unit_test(changes_with_refresh),
        cmocka_unit_test(stepping_visits_all_in_order),
        cmocka_unit_test(check_sees_damage),
        cmocka_unit_test(check_sees_imbalance),
        cmocka_unit_test(refresh_carries_a_changed_record_upward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
