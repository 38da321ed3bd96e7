/* SPDX-License-Identifier: MIT */
/* Reuse of blocks of several streams inside a capture: everything is asked for and walked anew each
 * time. */
#include "reference/model_core.h"

#include <stdlib.h>

static bool have(const struct ref_nodes *nodes, tn_graph_node node)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->item[i] == node) {
            return true;
        }
    }
    return false;
}

static void add(struct ref_nodes *nodes, tn_graph_node node)
{
    nodes->item = ref_grow(nodes->item, &nodes->capacity, nodes->count + 1, sizeof *nodes->item);
    nodes->item[nodes->count++] = node;
}

/* The capture of the stream, 0 = none, and what its next work will depend on. */
static uint64_t get_terminals(const struct ref_model *model, tarn_stream stream,
                              struct ref_nodes *terminals)
{
    struct tarn_device *device = model->device;
    uint64_t capture = 0;
    uint32_t count = 0;

    *terminals = (struct ref_nodes){0};
    ref_require(device->ops->capture_info(device, stream, &capture, NULL, 0, &count) == TARN_OK,
                "asking for a capture failed");
    terminals->item = ref_grow(NULL, &terminals->capacity, count + 1, sizeof *terminals->item);
    ref_require(device->ops->capture_info(device, stream, &capture, terminals->item, count,
                                          &count) == TARN_OK,
                "asking for a capture failed");
    terminals->count = count;
    return capture;
}

static void get_dependencies(const struct ref_model *model, tn_graph_node node,
                             struct ref_nodes *dependencies)
{
    struct tarn_device *device = model->device;
    uint32_t count = 0;

    *dependencies = (struct ref_nodes){0};
    ref_require(device->ops->graph_node_parents(device, node, NULL, 0, &count) == TARN_OK,
                "asking for dependencies failed");
    dependencies->item =
        ref_grow(NULL, &dependencies->capacity, count + 1, sizeof *dependencies->item);
    ref_require(device->ops->graph_node_parents(device, node, dependencies->item, count, &count) ==
                    TARN_OK,
                "asking for dependencies failed");
    dependencies->count = count;
}

void ref_record_free_markers(const struct ref_model *model, struct ref_block *block)
{
    free(block->free_markers.item);
    const uint64_t own = get_terminals(model, block->stream, &block->free_markers);
    bool together = own != 0;

    for (size_t i = 0; i < block->stream_uses.count && together; i++) {
        struct ref_nodes terminals;

        together = get_terminals(model, block->stream_uses.item[i], &terminals) == own;
        for (size_t k = 0; k < terminals.count; k++) {
            if (!have(&block->free_markers, terminals.item[k])) {
                add(&block->free_markers, terminals.item[k]);
            }
        }
        free(terminals.item);
    }
    if (!together) {
        block->free_markers.count = 0;
    }
}

/* Everything before the node, and the node. As deep as the graph. */
static void visit(const struct ref_model *model, tn_graph_node node, struct ref_nodes *visited)
{
    struct ref_nodes dependencies;

    if (have(visited, node)) {
        return;
    }
    add(visited, node);
    get_dependencies(model, node, &dependencies);
    for (size_t i = 0; i < dependencies.count; i++) {
        visit(model, dependencies.item[i], visited);
    }
    free(dependencies.item);
}

static bool is_reusable(const struct ref_block *block, tarn_stream stream,
                        const struct ref_nodes *visited)
{
    if (block->stream != stream || block->free_markers.count == 0) {
        return false;
    }
    for (size_t i = 0; i < block->free_markers.count; i++) {
        if (!have(visited, block->free_markers.item[i])) {
            return false;
        }
    }
    return true;
}

void ref_free_safe_blocks(struct ref_model *model, tarn_stream stream)
{
    struct ref_nodes terminals;
    struct ref_nodes visited = {0};
    struct ref_blocks left = {0};

    if (get_terminals(model, stream, &terminals) != 0) {
        for (size_t i = 0; i < terminals.count; i++) {
            visit(model, terminals.item[i], &visited);
        }
        for (size_t i = 0; i < model->deferred.count; i++) {
            struct ref_block *block = model->deferred.item[i];

            if (!is_reusable(block, stream, &visited)) {
                ref_blocks_push(&left, block);
                continue;
            }
            block->stream_uses.count = 0;
            block->graph_stream_uses.count = 0;
            block->free_markers.count = 0;
            model->reclaimed_in_capture++;
            ref_free_block(model, block);
        }
        free(model->deferred.item);
        model->deferred = left;
    }
    free(terminals.item);
    free(visited.item);
}
