/* SPDX-License-Identifier: MIT */
/*
 * Queries about graphs being captured. The driver's functions have two signatures: since 12.3 edges
 * carry data, and without an array for it the driver refuses to list edges that have any. The data
 * is ignored here.
 */
#include "device/cuda_device.h"

#include "base/host_mem.h"

#include <inttypes.h>
#include <string.h>

enum {
    EDGES_USUAL = 32 /* this many parents of a node need no host memory */
};

/* A stream's capture. `nodes` belongs to the driver and is valid until the capture continues. */
struct capture {
    int status;
    uint64_t number;
    const uint64_t *nodes;
    size_t count;
};

static bool capture_ask(struct tn_cuda_call *call, tarn_stream stream, struct capture *capture)
{
    const struct tn_cuda_driver *driver = &call->cuda->driver;
    const struct tn_cu_edge *edges = NULL;
    const int result =
        driver->cuStreamGetCaptureInfo_v3
            ? driver->cuStreamGetCaptureInfo_v3(stream, &capture->status, &capture->number, NULL,
                                                &capture->nodes, &edges, &capture->count)
            : driver->cuStreamGetCaptureInfo_v2(stream, &capture->status, &capture->number, NULL,
                                                &capture->nodes, &capture->count);

    return tn_cuda_did(call, "cuStreamGetCaptureInfo", result);
}

enum tarn_status tn_cuda_capture_info(struct tarn_device *device, tarn_stream stream,
                                      uint64_t *capture_out, tn_graph_node *nodes,
                                      uint32_t capacity, uint32_t *count_out)
{
    struct capture capture = {0};
    struct tn_cuda_call call;

    /* The default stream is never captured, and querying it would invalidate the capture of another
     * stream. */
    if (stream == 0 || stream == TN_CU_STREAM_LEGACY) {
        *capture_out = 0;
        *count_out = 0;
        return TARN_OK;
    }
    if (tn_cuda_begin(&call, device, TN_CUDA_TAKES) && capture_ask(&call, stream, &capture)) {
        if (capture.status == TN_CU_CAPTURE_INVALIDATED) {
            tn_cuda_refuse(&call, "the capture on stream %#" PRIx64 " failed before", stream);
        } else {
            const bool active = capture.status == TN_CU_CAPTURE_ACTIVE;
            const uint32_t count = active ? (uint32_t)capture.count : 0;
            const uint32_t kept = count < capacity ? count : capacity;

            if (kept > 0) {
                memcpy(nodes, capture.nodes, kept * sizeof *nodes);
            }
            *capture_out = active ? capture.number : 0;
            *count_out = count;
        }
    }
    return tn_cuda_end(&call);
}

/* `nodes` and `edges` NULL: only counts. */
static bool parents_ask(struct tn_cuda_call *call, tn_graph_node node, tn_graph_node *nodes,
                        struct tn_cu_edge *edges, size_t *count_in_out)
{
    const struct tn_cuda_driver *driver = &call->cuda->driver;

    return tn_cuda_did(call, "cuGraphNodeGetDependencies",
                       driver->cuGraphNodeGetDependencies_v2
                           ? driver->cuGraphNodeGetDependencies_v2(node, nodes, edges, count_in_out)
                           : driver->cuGraphNodeGetDependencies(node, nodes, count_in_out));
}

/* The first `kept` (at least one) parents. */
static void parents_list(struct tn_cuda_call *call, tn_graph_node node, tn_graph_node *nodes,
                         size_t kept)
{
    struct tn_cu_edge usual[EDGES_USUAL];
    struct tn_cu_edge *edges = kept <= EDGES_USUAL ? usual : tn_host_alloc(kept * sizeof *edges);
    size_t count = kept;

    if (!edges) {
        call->status = TARN_ERR_HOST_MEMORY;
        return;
    }
    (void)parents_ask(call, node, nodes, edges, &count);
    tn_host_free(edges == usual ? NULL : edges, kept * sizeof *edges);
}

void tn_cuda_op_graph_node_parents(struct tn_cuda_call *call, tn_graph_node node,
                                   tn_graph_node *nodes, uint32_t capacity, uint32_t *count_out)
{
    size_t count = 0;

    if (parents_ask(call, node, NULL, NULL, &count)) {
        if (count > 0 && capacity > 0) {
            parents_list(call, node, nodes, count < capacity ? count : capacity);
        }
        if (call->status == TARN_OK) {
            *count_out = (uint32_t)count;
        }
    }
}
