/* SPDX-License-Identifier: MIT */
/*
 * The tree of modules: bytes of each module including submodules and on its own, and a bar whose
 * letters show the categories. Names are sorted so that submodules directly follow their module;
 * sums over a subtree are then sums over a range.
 */
#include "base/assertion.h"
#include "base/escaped.h"
#include "base/host_mem.h"
#include "tracker/track_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    BAR_MAX = 120
};

struct tree {
    const struct tn_track_unit *unit;
    enum tarn_track_point point;
    uint32_t depth; /* 0 = no limit */
    uint32_t bar_width;
};

/* Bytes of the modules of one name, by category over all devices. */
struct tree_node {
    const char *name;
    size_t length;
    int64_t bytes[TARN_TRACK_CATEGORIES_MAX];
};

static int64_t sum_of(const int64_t *bytes)
{
    int64_t sum = 0;

    for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
        sum += bytes[c];
    }
    return sum;
}

/* Whether `node` is `top` or below it. */
static bool is_within(const struct tree_node *node, const struct tree_node *top)
{
    return node->length >= top->length && memcmp(node->name, top->name, top->length) == 0 &&
           (node->name[top->length] == '\0' || node->name[top->length] == '.');
}

/* Compares one part of a name between dots in natural order. */
static int compare_parts(const char *a, size_t a_length, const char *b, size_t b_length)
{
    char a_part[TARN_TRACK_NAME_MAX];
    char b_part[TARN_TRACK_NAME_MAX];

    memcpy(a_part, a, a_length);
    a_part[a_length] = '\0';
    memcpy(b_part, b, b_length);
    b_part[b_length] = '\0';
    const int order = tn_natural_compare(a_part, b_part);

    return order ? order : strcmp(a_part, b_part); /* 0 only for identical parts */
}

static int compare_nodes(const void *left, const void *right)
{
    const char *a = ((const struct tree_node *)left)->name;
    const char *b = ((const struct tree_node *)right)->name;

    for (;;) {
        const size_t a_length = strcspn(a, ".");
        const size_t b_length = strcspn(b, ".");
        const int order = compare_parts(a, a_length, b, b_length);

        if (order) {
            return order;
        }
        a += a_length;
        b += b_length;
        if (*a == '\0' || *b == '\0') {
            return (*a != '\0') - (*b != '\0');
        }
        a++;
        b++;
    }
}

static void fill_nodes(const struct tarn_tracker *t, enum tarn_track_point point,
                       struct tree_node *nodes, size_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        nodes[i] = (struct tree_node){.name = tn_track_name(t, TARN_TRACK_MODULE, i)};
        nodes[i].length = strlen(nodes[i].name);
    }
    for (size_t i = 0; i < t->owners.owners.count; i++) {
        const struct tn_owner *owner = tn_owner_at(&t->owners, i);
        const int64_t *bytes = tn_owner_bytes(&t->owners, owner, point);

        for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
            nodes[owner->module].bytes[c] += bytes[c];
        }
    }
}

/* One letter per category: its first, in lower case for the user's own. */
static char category_letter(const struct tarn_tracker *t, uint32_t category)
{
    const char first = tn_track_name(t, TARN_TRACK_CATEGORY, category)[0];

    if (category == TARN_TRACK_OTHER) {
        return '-'; /* O means Optstate */
    }
    return (char)(category >= TARN_TRACK_CATEGORY_COUNT && first >= 'A' && first <= 'Z'
                      ? first + ('a' - 'A')
                      : first);
}

/* Characters of the bar for `bytes` of `whole`, rounded so that every bar is within its
 * parent's. */
static void put_bar(struct tn_text_out *out, const struct tarn_tracker *t, const int64_t *bytes,
                    int64_t whole, uint32_t width)
{
    double seen = 0;
    uint32_t put = 0;

    for (uint32_t c = 0; c < tn_name_list_count(&t->names[TARN_TRACK_CATEGORY]); c++) {
        seen += (double)bytes[c];
        const uint32_t until = (uint32_t)(seen * width / (double)whole + 0.5);

        tn_assert(until <= width); /* no part is more than the whole */
        for (; put < until; put++) {
            tn_text_putc(out, category_letter(t, c));
        }
    }
    for (; put < width; put++) {
        tn_text_putc(out, ' ');
    }
}

static void put_node(struct tn_text_out *out, const struct tarn_tracker *t, const struct tree *tree,
                     const struct tree_node *node, const int64_t *below, int64_t whole)
{
    const uint32_t indent = 2 * (tn_track_depth(node->name) - 1);
    const int64_t with_below = sum_of(below);
    const int64_t itself = sum_of(node->bytes);

    tn_text_printf(out, "%13s  %13s  %5.1f%%  ", tn_amount_format(with_below, tree->unit).text,
                   itself > 0 ? tn_amount_format(itself, tree->unit).text : "-",
                   100.0 * (double)with_below / (double)whole);
    put_bar(out, t, below, whole, tree->bar_width);
    tn_text_printf(out, "%s%*s", tree->bar_width > 0 ? "  " : "", (int)indent, "");
    if (strcmp(node->name, tn_track_name(t, TARN_TRACK_MODULE, TN_MODULE_GLOBAL)) == 0) {
        tn_text_puts(out, "(outside of all modules)");
    } else {
        tn_text_put_escaped(out, node->name, node->length, TN_ESCAPED_PLAIN);
    }
    tn_text_putc(out, '\n');
}

static void put_legend(struct tn_text_out *out, const struct tarn_tracker *t,
                       const struct tree *tree, const int64_t *whole)
{
    const char *between = "";

    tn_text_printf(out, "%s %s: ", tn_amount_format(sum_of(whole), tree->unit).text,
                   tree->point == TARN_TRACK_NOW ? "now" : "at the peak");
    for (uint32_t c = 0; c < tn_name_list_count(&t->names[TARN_TRACK_CATEGORY]); c++) {
        if (whole[c] > 0) {
            tn_text_printf(out, "%s%s ", between, tn_amount_format(whole[c], tree->unit).text);
            tn_track_put_name(out, t, TARN_TRACK_CATEGORY, c);
            if (tree->bar_width > 0) {
                tn_text_printf(out, " (%c)", category_letter(t, c));
            }
            between = ", ";
        }
    }
    tn_text_printf(out, "\n\n%13s  %13s\n", "with children", "own");
}

static void put_tree(struct tn_text_out *out, const struct tarn_tracker *t, const struct tree *tree,
                     const struct tree_node *nodes, size_t count)
{
    int64_t whole[TARN_TRACK_CATEGORIES_MAX] = {0};

    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
            whole[c] += nodes[i].bytes[c];
        }
    }
    if (sum_of(whole) == 0) {
        tn_text_puts(out, "No memory tracked.\n");
        return;
    }
    put_legend(out, t, tree, whole);
    for (size_t i = 0; i < count; i++) {
        int64_t below[TARN_TRACK_CATEGORIES_MAX] = {0};

        if (tree->depth > 0 && tn_track_depth(nodes[i].name) > tree->depth) {
            continue;
        }
        for (size_t k = i; k < count && is_within(&nodes[k], &nodes[i]); k++) {
            for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
                below[c] += nodes[k].bytes[c];
            }
        }
        if (sum_of(below) > 0) {
            put_node(out, t, tree, &nodes[i], below, sum_of(whole));
        }
    }
}

static enum tarn_status print_tree(struct tn_text_out *out, const struct tarn_tracker *t,
                                   const void *how)
{
    const struct tree *tree = how;
    const size_t count = tn_name_list_count(&t->names[TARN_TRACK_MODULE]);
    struct tree_node *nodes = tn_host_alloc(count * sizeof *nodes);

    if (!nodes) {
        return TARN_ERR_HOST_MEMORY;
    }
    fill_nodes(t, tree->point, nodes, count);
    qsort(nodes, count, sizeof *nodes, compare_nodes);
    put_tree(out, t, tree, nodes, count);
    tn_host_free(nodes, count * sizeof *nodes);
    return TARN_OK;
}

enum tarn_status tarn_tracker_write_tree(struct tarn_tracker *t, enum tarn_track_point point,
                                         uint32_t depth, enum tarn_units unit, uint32_t bar_width,
                                         const struct tarn_writer *writer, struct tarn_error *error)
{
    struct tree tree = {
        .point = point == TARN_TRACK_PEAKS ? TARN_TRACK_TOTAL_PEAK : point,
        .depth = depth,
        .bar_width = bar_width < BAR_MAX ? bar_width : BAR_MAX,
    };
    const enum tarn_status st = tn_track_unit_find(unit, &tree.unit, error);

    return st ? st : tn_track_write(t, print_tree, &tree, writer, error);
}
