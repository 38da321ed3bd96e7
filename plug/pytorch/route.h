/* SPDX-License-Identifier: MIT */
/* Routing of requests to pools: torch's filters, kept while they are active. Any thread. */
#ifndef PLUG_PYTORCH_ROUTE_H
#define PLUG_PYTORCH_ROUTE_H

#include "tarn/allocator.h"

/* As tarn_torch_begin_pool and tarn_torch_end_pool, with a status. TARN_ERR_LIMIT when too many are
 * active. */
enum tarn_status tn_torch_begin_route(int device, struct tarn_pool_id id, const void *filter,
                                      struct tarn_error *error);
enum tarn_status tn_torch_end_route(int device, struct tarn_pool_id id, struct tarn_error *error);

#endif
