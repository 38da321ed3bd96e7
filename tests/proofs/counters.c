/* SPDX-License-Identifier: MIT */
/* Counters and their peaks, the undo log's cursors, backoff, the size classes of requests. */
#include "alloc/pool/counters.h"
#include "alloc/fast/backoff.h"
#include "alloc/fast/quota.h"
#include "alloc/fast/undo_log.h"

/*@ predicate is_max(integer x, integer a, integer b) = x == (a > b ? a : b);
  @ predicate is_small_enough(integer x) = -(1 << 61) < x < (1 << 61); */

/*@ requires \valid_read(counter);
  @ requires is_small_enough(counter->current[0]) && is_small_enough(counter->current[1]);
  @ assigns \nothing;
  @ ensures \result == counter->current[0] + counter->current[1]; */
static inline int64_t tn_counter_all(const struct tn_counter *counter);

/*@ assigns \nothing;
  @ ensures \result == (small ? 0 : 1); */
static inline unsigned tn_counter_pool(bool small);

/*@ requires \valid(counter);
  @ requires pool == 0;
  @ requires is_small_enough(counter->current[0]) && is_small_enough(counter->current[1]);
  @ requires is_small_enough(amount);
  @ assigns counter->current[pool], counter->peak[0 .. 2];
  @ ensures counter->current[pool] == \old(counter->current[pool]) + amount;
  @ ensures is_max(counter->peak[1 + pool], \old(counter->peak[1 + pool]),
  @     counter->current[pool]);
  @ ensures is_max(counter->peak[0], \old(counter->peak[0]),
  @     counter->current[0] + counter->current[1]);
  @ ensures counter->peak[2 - pool] == \old(counter->peak[2 - pool]); */
static TN_INLINE void tn_counter_move(struct tn_counter *counter, unsigned pool, int64_t amount);

/*@ requires \valid(counter);
  @ requires pool < 2;
  @ requires is_small_enough(counter->current[pool]) && amount < (1 << 61);
  @ assigns counter->current[pool];
  @ ensures counter->current[pool] == \old(counter->current[pool]) - amount; */
static inline void tn_counter_decrease(struct tn_counter *counter, unsigned pool, uint64_t amount);

/*@ requires \valid(stat);
  @ requires is_small_enough(stat->current) && is_small_enough(stat->allocated);
  @ requires amount < (1 << 61);
  @ assigns stat->current, stat->peak, stat->allocated;
  @ ensures stat->current == \old(stat->current) + amount;
  @ ensures stat->allocated == \old(stat->allocated) + amount;
  @ ensures is_max(stat->peak, \old(stat->peak), stat->current); */
static inline void tn_stat_increase(struct tarn_stat *stat, uint64_t amount);

/*@ requires \valid(stat);
  @ requires is_small_enough(stat->current) && is_small_enough(stat->freed);
  @ requires amount < (1 << 61);
  @ assigns stat->current, stat->freed;
  @ ensures stat->current == \old(stat->current) - amount;
  @ ensures stat->freed == \old(stat->freed) + amount; */
static inline void tn_stat_decrease(struct tarn_stat *stat, uint64_t amount);

/*@ requires \valid(backoff);
  @ requires backoff->length <= TN_BACKOFF_MAX;
  @ assigns backoff->length, backoff->left;
  @ ensures pays ==> backoff->length == 0;
  @ ensures !pays && \old(backoff->length) == 0 ==> backoff->length == TN_BACKOFF_MIN;
  @ ensures !pays && \old(backoff->length) > 0 ==> backoff->length ==
  @     (2 * \old(backoff->length) < TN_BACKOFF_MAX ? 2 * \old(backoff->length) : TN_BACKOFF_MAX);
  @ ensures backoff->left == backoff->length; */
static inline void tn_backoff_update(struct tn_backoff *backoff, bool pays);

/*@ requires pool < 2;
  @ assigns \nothing;
  @ ensures \result == 1 + pool; */
static inline unsigned tn_quota_stat(unsigned pool);

/*@ requires \valid_read(log);
  @ assigns \nothing;
  @ ensures \result <==> log->end == 0; */
static inline bool tn_undo_log_is_empty(const struct tn_undo_log *log);

/*@ requires \valid_read(log);
  @ assigns \nothing;
  @ ensures \result <==> log->cursor == log->end; */
static inline bool tn_undo_log_is_flushed(const struct tn_undo_log *log);

/*@ requires \valid(log);
  @ requires log->cursor <= TN_UNDO_ENTRIES;
  @ assigns log->cursor, log->low;
  @ ensures \result == \null <==> \old(log->cursor) <= log->floor ||
  @     log->entries[\old(log->cursor) - 1].address != ptr;
  @ ensures \result == \null ==> log->cursor == \old(log->cursor) && log->low == \old(log->low);
  @ ensures \result != \null ==> log->cursor == \old(log->cursor) - 1 &&
  @     \result == &log->entries[log->cursor] &&
  @     log->low == (log->cursor < \old(log->low) ? log->cursor : \old(log->low)); */
static inline struct tn_undo_entry *tn_undo_log_undo(struct tn_undo_log *log, tarn_ptr ptr);
