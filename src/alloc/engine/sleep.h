/* SPDX-License-Identifier: MIT */
/* Private pools that sleep and wake: the steps of tarn/sleep.h, over pool/asleep.h. */
#ifndef TN_ALLOC_ENGINE_SLEEP_H
#define TN_ALLOC_ENGINE_SLEEP_H

#include "alloc/engine/engine.h"
#include "tarn/sleep.h"

/* As the public functions. These take the engine's lock themselves. */
enum tarn_status tn_sleep_begin(struct tn_engine *engine, struct tarn_pool_id id,
                                const struct tarn_sleep_options *options,
                                struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_sleep_end(struct tn_engine *engine, struct tarn_pool_id id,
                              struct tarn_error *error) TN_MUST_CHECK;

/* Under the lock. */
void tn_sleep_read(const struct tn_engine *engine, struct tarn_sleep_stats *stats_out);

#endif
