/* SPDX-License-Identifier: MIT */
#include "device/sim_graph.h"

#include "base/assertion.h"
#include "base/finding.h"
#include "base/host_mem.h"

#include <inttypes.h>
#include <string.h>

/* ---- marks ---- */

static tn_graph_node *mark_nodes(const struct tn_sim_mark *mark)
{
    return mark->nodes.items;
}

/* Room for `more` nodes; a mark that is all zero does not know their size yet. */
static bool mark_reserve(struct tn_sim_mark *mark, size_t more)
{
    mark->nodes.item_size = sizeof(tn_graph_node);
    return tn_vec_reserve(&mark->nodes, more);
}

static bool mark_has(const struct tn_sim_mark *mark, tn_graph_node node)
{
    for (size_t i = 0; i < mark->nodes.count; i++) {
        if (mark_nodes(mark)[i] == node) {
            return true;
        }
    }
    return false;
}

enum tarn_status tn_sim_mark_join(struct tn_sim_mark *to, const struct tn_sim_mark *from)
{
    if (from->capture == 0 || (to->capture != 0 && to->capture != from->capture)) {
        return TARN_ERR_STATE;
    }
    if (!mark_reserve(to, from->nodes.count)) {
        return TARN_ERR_HOST_MEMORY;
    }
    to->capture = from->capture;
    for (size_t i = 0; i < from->nodes.count; i++) {
        if (!mark_has(to, mark_nodes(from)[i])) {
            mark_nodes(to)[to->nodes.count++] = mark_nodes(from)[i];
        }
    }
    return TARN_OK;
}

enum tarn_status tn_sim_mark_copy(struct tn_sim_mark *to, const struct tn_sim_mark *from)
{
    if (!mark_reserve(to, from->nodes.count)) {
        return TARN_ERR_HOST_MEMORY;
    }
    to->capture = 0;
    to->nodes.count = 0;
    /* Joining a mark that has the room cannot fail. */
    return from->capture ? tn_sim_mark_join(to, from) : TARN_OK;
}

void tn_sim_mark_clear(struct tn_sim_mark *mark)
{
    tn_vec_fini(&mark->nodes);
    mark->capture = 0;
}

/* ---- graphs ---- */

enum {
    NUMBER_BITS = 32
};

static void graph_destroy(struct tn_sim_graph *graph)
{
    tn_vec_fini(&graph->nodes);
    tn_vec_fini(&graph->edges);
    tn_host_free(graph, sizeof *graph);
}

void tn_sim_graphs_fini(struct tn_sim_graphs *graphs)
{
    while (graphs->first) {
        struct tn_sim_graph *graph = graphs->first;

        graphs->first = graph->next;
        graph_destroy(graph);
    }
}

struct tn_sim_graph *tn_sim_graph_find(const struct tn_sim_graphs *graphs, uint64_t capture)
{
    struct tn_sim_graph *graph = graphs->first;

    while (graph && graph->capture != capture) {
        graph = graph->next;
    }
    return graph;
}

enum tarn_status tn_sim_graph_begin(struct tn_sim_graphs *graphs, tarn_stream origin,
                                    struct tn_sim_mark *mark)
{
    struct tn_sim_graph *graph = tn_host_alloc_zero(sizeof *graph);

    tn_assert(mark->capture == 0);
    if (!graph) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_vec_init(&graph->nodes, sizeof(struct tn_sim_graph_node));
    tn_vec_init(&graph->edges, sizeof(tn_graph_node));
    graph->origin = origin;
    graph->capture = ++graphs->captures_begun;
    graph->next = graphs->first;
    graphs->first = graph;
    mark->capture = graph->capture;
    mark->nodes.count = 0;
    return TARN_OK;
}

void tn_sim_graph_end(struct tn_sim_graphs *graphs, uint64_t capture)
{
    struct tn_sim_graph **link = &graphs->first;

    while (tn_always(*link) && (*link)->capture != capture) { /* it is active */
        link = &(*link)->next;
    }
    struct tn_sim_graph *graph = *link;

    if (tn_always(graph)) {
        *link = graph->next;
        graph_destroy(graph);
    }
}

enum tarn_status tn_sim_graph_add(const struct tn_sim_graphs *graphs, struct tn_sim_mark *mark)
{
    struct tn_sim_graph *graph = tn_sim_graph_find(graphs, mark->capture);
    const size_t parents = mark->nodes.count;

    if (tn_never(!graph) || graph->nodes.count >= UINT32_MAX ||
        graph->edges.count >= UINT32_MAX - parents) {
        return TARN_ERR_LIMIT;
    }
    if (!tn_vec_reserve(&graph->nodes, 1) || !tn_vec_reserve(&graph->edges, parents) ||
        !mark_reserve(mark, 1)) {
        return TARN_ERR_HOST_MEMORY;
    }
    const struct tn_sim_graph_node node = {.first_parent = (uint32_t)graph->edges.count,
                                           .parent_count = (uint32_t)parents};

    if (parents > 0) {
        memcpy((tn_graph_node *)graph->edges.items + graph->edges.count, mark_nodes(mark),
               parents * sizeof(tn_graph_node));
    }
    graph->edges.count += parents;
    ((struct tn_sim_graph_node *)graph->nodes.items)[graph->nodes.count++] = node;
    mark_nodes(mark)[0] = graph->capture << NUMBER_BITS | graph->nodes.count;
    mark->nodes.count = 1;
    return TARN_OK;
}

bool tn_sim_graph_parents(const struct tn_sim_graphs *graphs, tn_graph_node node,
                          const tn_graph_node **parents_out, uint32_t *count_out)
{
    const struct tn_sim_graph *graph = tn_sim_graph_find(graphs, node >> NUMBER_BITS);
    const uint64_t number = node & UINT32_MAX;

    if (!graph || number == 0 || number > graph->nodes.count) {
        return false;
    }
    const struct tn_sim_graph_node *found =
        (const struct tn_sim_graph_node *)graph->nodes.items + (number - 1);

    *count_out = found->parent_count;
    *parents_out = found->parent_count > 0
                       ? (const tn_graph_node *)graph->edges.items + found->first_parent
                       : NULL;
    return true;
}

/* ---- checking ---- */

static void graph_check(const struct tn_sim_graphs *graphs, const struct tn_sim_graph *graph,
                        struct tarn_findings *findings)
{
    for (uint64_t number = 1; number <= graph->nodes.count; number++) {
        const tn_graph_node node = graph->capture << NUMBER_BITS | number;
        const tn_graph_node *parents = NULL;
        uint32_t count = 0;

        (void)tn_sim_graph_parents(graphs, node, &parents, &count);
        for (uint32_t i = 0; i < count; i++) {
            if (parents[i] >= node || parents[i] >> NUMBER_BITS != graph->capture) {
                tn_finding_add(findings, "node %#" PRIx64 " comes after %#" PRIx64, node,
                               parents[i]);
            }
        }
    }
}

void tn_sim_graphs_check(const struct tn_sim_graphs *graphs, struct tarn_findings *findings)
{
    for (const struct tn_sim_graph *graph = graphs->first; graph; graph = graph->next) {
        graph_check(graphs, graph, findings);
    }
}

void tn_sim_mark_check(const struct tn_sim_graphs *graphs, const struct tn_sim_mark *mark,
                       struct tarn_findings *findings)
{
    if (mark->capture != 0 && !tn_sim_graph_find(graphs, mark->capture)) {
        tn_finding_add(findings, "a stream is in capture %" PRIu64 ", which is over",
                       mark->capture);
    }
    for (size_t i = 0; i < mark->nodes.count; i++) {
        const tn_graph_node *parents = NULL;
        uint32_t count = 0;

        if (!tn_sim_graph_parents(graphs, mark_nodes(mark)[i], &parents, &count)) {
            tn_finding_add(findings, "a stream comes after node %#" PRIx64 ", which is none",
                           mark_nodes(mark)[i]);
        }
    }
}
