/* SPDX-License-Identifier: MIT */
/* Keys of `tarn tree` against a tree that is made by hand. */
#include "support/test.h"

#include "cli/tree_keys.h"

#include <stdio.h>
#include <string.h>

static struct cli_tree tree;
static struct cli_tree_view view;

/*
 * total 100
 *   train 70
 *     forward 60
 *       Linear 40
 *       attention 20
 *     step 10
 *   load 30, lazy
 */
static void tree_make(struct cli_tree *made)
{
    cli_tree_init(made);
    assert_int_equal(cli_tree_add(made, CLI_TREE_NONE, "total", 100, 10), 0);
    assert_int_equal(cli_tree_add(made, 0, "load", 30, 7), 1);
    assert_int_equal(cli_tree_add(made, 0, "train", 70, 3), 2);
    assert_int_equal(cli_tree_add(made, 2, "step", 10, 1), 3);
    assert_int_equal(cli_tree_add(made, 2, "forward", 60, 2), 4);
    assert_int_equal(cli_tree_add(made, 4, "attention", 20, 1), 5);
    assert_int_equal(cli_tree_add(made, 4, "Linear", 40, 1), 6);
    made->nodes[1].is_lazy = true;
    cli_tree_sort(made, CLI_TREE_BY_SIZE);
}

static int setup(void **state)
{
    (void)state;
    tree_make(&tree);
    cli_tree_open(&tree, 100, 9);
    cli_tree_view_init(&view, &tree, CLI_TREE_CALLS, "peak");
    cli_tree_view_resize(&view, 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cli_tree_fini(&tree);
    return 0;
}

/* The labels of the visible rows, the one at the cursor in brackets. */
static void expect_rows(const char *rows)
{
    char text[500] = "";
    size_t length = 0;

    for (uint32_t i = 0; i < tree.row_count; i++) {
        const char *label = tree.nodes[tree.rows[i]].label;

        length += (size_t)snprintf(text + length, sizeof text - length,
                                   i == view.cursor ? "%s[%s]" : "%s%s", i ? " " : "", label);
    }
    assert_string_equal(text, rows);
}

static enum cli_tree_wish press(int key)
{
    return cli_tree_view_key(&view, key);
}

static void type(const char *text)
{
    for (; *text; text++) {
        assert_int_equal(press((unsigned char)*text), CLI_TREE_NO_WISH);
    }
}

static void arrows_move_and_fold(void **state)
{
    (void)state;
    expect_rows("[total] train load");
    assert_int_equal(press(CLI_KEY_UP), CLI_TREE_NO_WISH);
    expect_rows("[total] train load");
    assert_int_equal(press(CLI_KEY_DOWN), CLI_TREE_NO_WISH);
    assert_int_equal(press(CLI_KEY_RIGHT), CLI_TREE_NO_WISH);
    expect_rows("total [train] forward step load");
    assert_int_equal(press('l'), CLI_TREE_NO_WISH); /* goes in */
    expect_rows("total train [forward] step load");
    assert_int_equal(press(' '), CLI_TREE_NO_WISH);
    expect_rows("total train [forward] Linear attention step load");
    assert_int_equal(press(CLI_KEY_ENTER), CLI_TREE_NO_WISH);
    expect_rows("total train [forward] step load");
    assert_int_equal(press('h'), CLI_TREE_NO_WISH); /* is folded: to the caller */
    expect_rows("total [train] forward step load");
    assert_int_equal(press(CLI_KEY_LEFT), CLI_TREE_NO_WISH);
    expect_rows("total [train] load");
    assert_int_equal(press(CLI_KEY_END), CLI_TREE_NO_WISH);
    expect_rows("total train [load]");
    assert_int_equal(press(CLI_KEY_HOME), CLI_TREE_NO_WISH);
    expect_rows("[total] train load");
}

static void all_below_folds_and_unfolds(void **state)
{
    (void)state;
    type("*");
    expect_rows("[total] train forward Linear attention step load");
    type("j-");
    expect_rows("total [train] load");
    type("l");
    expect_rows("total [train] forward step load"); /* forward was folded as well */
}

static void siblings_are_sorted_and_the_cursor_stays(void **state)
{
    (void)state;
    type("*jj");
    expect_rows("total train [forward] Linear attention step load");
    type("s");
    assert_int_equal(tree.order, CLI_TREE_BY_COUNT);
    assert_string_equal(view.message, "sorted by count");
    expect_rows("total load train [forward] Linear attention step");
    type("s");
    expect_rows("total load train [forward] Linear attention step");
    type("s");
    assert_int_equal(tree.order, CLI_TREE_BY_SIZE);
    expect_rows("total train [forward] Linear attention step load");
}

static void search_finds_what_is_folded_as_one_types(void **state)
{
    (void)state;
    type("/");
    assert_int_equal(view.prompt, CLI_TREE_SEARCH);
    type("LIN");
    expect_rows("total train forward [Linear] attention step load");
    type("x");
    assert_string_equal(view.message, "nothing here contains \"LINx\"");
    assert_int_equal(press(CLI_KEY_BACKSPACE), CLI_TREE_NO_WISH);
    assert_int_equal(press(CLI_KEY_ENTER), CLI_TREE_NO_WISH);
    assert_int_equal(view.prompt, CLI_TREE_NO_PROMPT);
    type("n"); /* the only one */
    expect_rows("total train forward [Linear] attention step load");
    type("/t");
    expect_rows("total train forward Linear [attention] step load");
    assert_int_equal(press(CLI_KEY_ESCAPE), CLI_TREE_NO_WISH);
    expect_rows("total train forward [Linear] attention step load");
    type("/t");
    assert_int_equal(press(CLI_KEY_ENTER), CLI_TREE_NO_WISH);
    type("n");
    expect_rows("total train forward Linear attention [step] load");
    type("n"); /* around the end */
    expect_rows("[total] train forward Linear attention step load");
    type("N");
    expect_rows("total train forward Linear attention [step] load");
    type("N");
    expect_rows("total train forward Linear [attention] step load");
}

static void keys_are_text_while_one_types(void **state)
{
    (void)state;
    type("/q\xC3\xA4");
    assert_string_equal(view.input, "q\xC3\xA4");
    assert_int_equal(press(CLI_KEY_BACKSPACE), CLI_TREE_NO_WISH); /* a whole character */
    assert_string_equal(view.input, "q");
    for (int i = 0; i < 200; i++) {
        assert_int_equal(press('z'), CLI_TREE_NO_WISH);
    }
    assert_int_equal(strlen(view.input), CLI_TREE_INPUT_MAX - 1);
}

static void time_and_groups_are_wishes(void **state)
{
    (void)state;
    assert_int_equal(press('e'), CLI_TREE_LOAD);
    assert_string_equal(view.when, "end");
    cli_tree_view_refused(&view, "no");
    assert_string_equal(view.when, "peak");
    assert_string_equal(view.message, "no");
    type("tstep:2");
    assert_string_equal(view.message, ""); /* until the next key */
    assert_int_equal(press(CLI_KEY_ENTER), CLI_TREE_LOAD);
    assert_string_equal(view.when, "step:2");
    cli_tree_view_loaded(&view, 0);
    assert_int_equal(press('o'), CLI_TREE_LOAD);
    cli_tree_view_loaded(&view, 0);
    assert_string_equal(view.when, "oom:1");
    assert_int_equal(press('o'), CLI_TREE_LOAD);
    assert_string_equal(view.when, "oom:2");
    cli_tree_view_refused(&view, "only one");
    assert_string_equal(view.when, "oom:1");
    assert_int_equal(press('o'), CLI_TREE_LOAD);
    assert_string_equal(view.when, "oom:2");
    assert_int_equal(press('['), CLI_TREE_STEP_BACK);
    assert_int_equal(press(']'), CLI_TREE_STEP_ON);
    assert_int_equal(press('3'), CLI_TREE_LOAD);
    assert_int_equal(view.group, CLI_TREE_CATEGORIES);
    cli_tree_view_loaded(&view, 0);
    assert_int_equal(press('g'), CLI_TREE_LOAD);
    assert_int_equal(view.group, CLI_TREE_STREAMS);
    cli_tree_view_refused(&view, "no");
    assert_int_equal(view.group, CLI_TREE_CATEGORIES);
    type("t");
    assert_int_equal(press(CLI_KEY_ENTER), CLI_TREE_NO_WISH); /* nothing typed */
    assert_int_equal(press('q'), CLI_TREE_QUIT);
}

static void lazy_nodes_are_wishes(void **state)
{
    (void)state;
    assert_int_equal(press(CLI_KEY_END), CLI_TREE_NO_WISH);
    assert_int_equal(press(CLI_KEY_RIGHT), CLI_TREE_LOAD_BELOW);
    assert_int_equal(press(' '), CLI_TREE_LOAD_BELOW);
    assert_int_equal(cli_tree_view_node(&view), 1);
    tree.nodes[1].is_lazy = false;
    assert_int_equal(press(CLI_KEY_RIGHT), CLI_TREE_NO_WISH);
}

static void help_goes_with_any_key(void **state)
{
    (void)state;
    type("?");
    assert_true(view.shows_help);
    assert_int_equal(press('q'), CLI_TREE_NO_WISH);
    assert_false(view.shows_help);
}

static void a_small_screen_scrolls(void **state)
{
    (void)state;
    type("*");
    cli_tree_view_resize(&view, 3);
    type("jjj");
    assert_int_equal(view.top, 1);
    assert_int_equal(press(CLI_KEY_PAGE_DOWN), CLI_TREE_NO_WISH);
    assert_int_equal(view.cursor, 6);
    assert_int_equal(view.top, 4);
    cli_tree_view_resize(&view, 5); /* no empty lines below */
    assert_int_equal(view.top, 2);
    assert_int_equal(press(CLI_KEY_PAGE_UP), CLI_TREE_NO_WISH);
    assert_int_equal(view.cursor, 1);
    assert_int_equal(view.top, 1);
    cli_tree_view_resize(&view, 0);
    assert_int_equal(view.height, 1);
}

static void another_tree_stays_unfolded(void **state)
{
    struct cli_tree other;

    (void)state;
    type("jl");
    tree_make(&other);
    cli_tree_open(&other, 0, 9);
    assert_int_equal(other.row_count, 7);
    assert_true(cli_tree_adopt(&other, &tree));
    assert_int_equal(other.row_count, 5);
    assert_true(other.nodes[2].is_open);
    assert_false(other.nodes[4].is_open);
    assert_int_equal(cli_tree_find_path(&other, tree.nodes[4].path), 4);
    assert_int_equal(cli_tree_find_path(&other, 1), CLI_TREE_NONE);
    cli_tree_fini(&other);
}

static void small_siblings_become_one(void **state)
{
    (void)state;
    assert_true(cli_tree_leave_out(&tree, 35));
    cli_tree_open(&tree, 0, 9);
    expect_rows("[total] train forward Linear attention step load"); /* one each: not summed */
    assert_true(cli_tree_leave_out(&tree, 65));
    cli_tree_open(&tree, 0, 9);
    expect_rows("[total] train others (2) load");
    assert_int_equal(tree.nodes[tree.rows[2]].bytes, 70);
    assert_int_equal(tree.nodes[tree.rows[2]].blocks, 3);
}

static void an_empty_total_has_no_shares(void **state)
{
    struct cli_tree empty;

    (void)state;
    cli_tree_init(&empty);
    assert_int_equal(cli_tree_add(&empty, CLI_TREE_NONE, "total", 0, 0), 0);
    cli_tree_sort(&empty, CLI_TREE_BY_NAME);
    assert_true(cli_tree_share(&empty, 0) == 0.0);
    assert_int_equal(empty.row_count, 1);
    cli_tree_fini(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TREE_TEST(arrows_move_and_fold),
        TREE_TEST(all_below_folds_and_unfolds),
        TREE_TEST(siblings_are_sorted_and_the_cursor_stays),
        TREE_TEST(search_finds_what_is_folded_as_one_types),
        TREE_TEST(keys_are_text_while_one_types),
        TREE_TEST(time_and_groups_are_wishes),
        TREE_TEST(lazy_nodes_are_wishes),
        TREE_TEST(help_goes_with_any_key),
        TREE_TEST(a_small_screen_scrolls),
        TREE_TEST(another_tree_stays_unfolded),
        TREE_TEST(small_siblings_become_one),
        TREE_TEST(an_empty_total_has_no_shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
