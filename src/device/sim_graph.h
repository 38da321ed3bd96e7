/* SPDX-License-Identifier: MIT */
/*
 * Graphs captured on the simulated device: only the dependencies of work. Graphs are never run.
 *
 * A capture starts on one stream, its origin; other streams join it by waiting for work in it. Work
 * queued on a capturing stream becomes a node of the graph that depends on the stream's terminals.
 *
 * A mark is a position in a graph: a capture and some of its nodes. A capturing stream has one, its
 * terminals; an event recorded on such a stream has a copy. Joining adds the nodes of one mark to
 * another.
 *
 * The nodes live until the capture ends. Marks hold only ids, so that an event may outlive the
 * capture; if a mark's capture has no graph, it has ended. A node's id is its capture's number in
 * the upper bits and its own number in the lower ones, so ids are never reused.
 *
 * Invariants: a node's parents are older nodes of the same graph; a mark contains no node twice.
 * Locks: the device's. Cost: finding a graph is linear in the active captures, joining in the
 * product of both marks' nodes.
 */
#ifndef TN_DEVICE_SIM_GRAPH_H
#define TN_DEVICE_SIM_GRAPH_H

#include "base/attr.h"
#include "base/vec.h"
#include "device/device_ops.h"
#include "tarn/findings.h"

/* All zero: in no capture. */
struct tn_sim_mark {
    uint64_t capture;    /* number of the capture, 0 = none */
    struct tn_vec nodes; /* tn_graph_node */
};

struct tn_sim_graph_node {
    uint32_t first_parent; /* in the graph's edges */
    uint32_t parent_count;
};

/* One active capture. */
struct tn_sim_graph {
    struct tn_sim_graph *next;
    uint64_t capture;
    tarn_stream origin;
    struct tn_vec nodes; /* struct tn_sim_graph_node; node number n is at n - 1 */
    struct tn_vec edges; /* tn_graph_node: the parents, node after node */
};

/* All zero: nothing is being captured. */
struct tn_sim_graphs {
    struct tn_sim_graph *first;
    uint64_t captures_begun;
};

void tn_sim_graphs_fini(struct tn_sim_graphs *graphs);

/* Starts a capture on a stream that is not in one; `mark` is the stream's. TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_sim_graph_begin(struct tn_sim_graphs *graphs, tarn_stream origin,
                                    struct tn_sim_mark *mark) TN_MUST_CHECK;

/* Ends an active capture and frees its nodes. The caller clears the marks of its streams. */
void tn_sim_graph_end(struct tn_sim_graphs *graphs, uint64_t capture);

/* NULL when there is no such active capture. */
struct tn_sim_graph *tn_sim_graph_find(const struct tn_sim_graphs *graphs, uint64_t capture);

/* Adds a node that depends on those of the mark, which then contains only the new node. Its capture
 * must be active. TARN_ERR_HOST_MEMORY; TARN_ERR_LIMIT beyond 2^32 - 1 nodes or edges. */
enum tarn_status tn_sim_graph_add(const struct tn_sim_graphs *graphs,
                                  struct tn_sim_mark *mark) TN_MUST_CHECK;

/* The nodes directly before a node, borrowed until the graph grows; false when there is no such
 * node. */
bool tn_sim_graph_parents(const struct tn_sim_graphs *graphs, tn_graph_node node,
                          const tn_graph_node **parents_out, uint32_t *count_out);

/* Copies `from` to `to`. TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_sim_mark_copy(struct tn_sim_mark *to,
                                  const struct tn_sim_mark *from) TN_MUST_CHECK;

/* Makes later work at `to` depend on `from` as well; a mark in no capture joins that of `from`.
 * TARN_ERR_STATE when the two are in different captures or only `to` is in one;
 * TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_sim_mark_join(struct tn_sim_mark *to,
                                  const struct tn_sim_mark *from) TN_MUST_CHECK;

/* Removes the mark from its capture and frees its memory. */
void tn_sim_mark_clear(struct tn_sim_mark *mark);

/* Adds every violated invariant of the graphs, or of the mark of a stream, to `findings`. */
void tn_sim_graphs_check(const struct tn_sim_graphs *graphs, struct tarn_findings *findings);
void tn_sim_mark_check(const struct tn_sim_graphs *graphs, const struct tn_sim_mark *mark,
                       struct tarn_findings *findings);

#endif
