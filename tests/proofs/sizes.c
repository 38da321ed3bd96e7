/* SPDX-License-Identifier: MIT */
/* Powers of two, checked arithmetic, block sizes and size classes. */
#include "alloc/config/size_class.h"
#include "analysis/split_rule.h"
#include "base/bits.h"
#include "base/order.h"
#include "base/sized.h"

/*@ assigns \nothing;
  @ ensures \result == (x != 0 && (x & (x - 1)) == 0); */
static inline bool tn_is_pow2(uint64_t x);

/*@ requires x != 0;
  @ assigns \nothing;
  @ ensures 0 <= \result <= 63;
  @ ensures 0 < (1 << \result) <= x;
  @ ensures (1 << (\result + 1)) == 2 * (1 << \result);
  @ ensures \result == 63 || x < (1 << (\result + 1)); */
static inline unsigned tn_log2_floor(uint64_t x);

/*@ requires x > 0;
  @ assigns \nothing;
  @ ensures 0 < \result <= x;
  @ ensures \result > x / 2; */
static inline uint64_t tn_pow2_floor(uint64_t x);

/*@ requires 0 < x <= (1 << 63);
  @ assigns \nothing;
  @ ensures x <= \result;
  @ ensures x == 1 || \result < 2 * x; */
static inline uint64_t tn_pow2_ceil(uint64_t x);

/*@ requires x > 0;
  @ assigns \nothing;
  @ ensures 0 <= \result <= 63;
  @ ensures x % (1 << \result) == 0; */
static inline unsigned tn_lowest_bit(uint64_t x);

/*@ assigns \nothing;
  @ ensures 0 <= \result < TN_BLOCK_INTERVALS; */
static inline unsigned tn_block_interval(uint64_t size);

/*@ requires request < (1 << 62);
  @ assigns \nothing;
  @ ensures \result % 512 == 0;
  @ ensures \result >= 512 && \result >= request;
  @ ensures request > 0 ==> \result < request + 512; */
static inline uint64_t tn_block_round_to_unit(uint64_t request);

/*@ assigns \nothing;
  @ ensures any ==> (\result <==> remainder >= 512 && rounded < UINT64_MAX);
  @ ensures !any ==> (\result <==> remainder > (1 << 20) && rounded < max_split); */
static inline bool tn_block_splits(uint64_t remainder, uint64_t rounded, bool any,
                                   uint64_t max_split);

/*@ assigns \nothing;
  @ ensures \result <==> rounded <= (1 << 20); */
static inline bool tn_size_is_small(uint64_t rounded);

/*@ requires \valid_read(config);
  @ requires rounded < (1 << 60);
  @ assigns \nothing;
  @ ensures rounded <= (1 << 20) ==> \result == (2 << 20);
  @ ensures (1 << 20) < rounded < (10 << 20) ==> \result == config->large_segment_size;
  @ ensures rounded >= (10 << 20) ==>
  @     \result % (2 << 20) == 0 && rounded <= \result < rounded + (2 << 20); */
static inline uint64_t tn_segment_size(uint64_t rounded, const struct tarn_config *config);

/*@ requires \valid_read(config);
  @ requires rounded <= block_size;
  @ assigns \nothing;
  @ ensures \result ==> block_size - rounded >= 512;
  @ ensures \result && !small_pool && !expandable ==> block_size - rounded > (1 << 20); */
static inline bool tn_should_split(uint64_t block_size, uint64_t rounded, bool small_pool,
                                   bool expandable, const struct tarn_config *config);

/*@ assigns \nothing;
  @ ensures \result == (a > b ? 1 : a < b ? -1 : 0); */
static inline int tn_order(uint64_t a, uint64_t b);

/*@ assigns \nothing;
  @ ensures \result == (a < b ? a : b); */
static inline size_t tn_sized_common(uint32_t a, size_t b);

/*@ requires \valid_read(rule);
  @ assigns \nothing;
  @ ensures \result <==> rounded > (1 << 20) && !rule->expandable && !is_expandable; */
static inline bool tn_split_leaves_slack(const struct tn_split_rule *rule, uint64_t rounded,
                                         bool is_expandable);

/*@ requires \valid_read(rule);
  @ assigns \nothing;
  @ ensures \result == rounded || \result == room;
  @ ensures \result <= room;
  @ ensures \result == rounded || room <= rounded ||
  @     room - rounded <= (1 << 20) || rounded >= rule->max_split || rounded == UINT64_MAX; */
static inline uint64_t tn_split_block(const struct tn_split_rule *rule, uint64_t room,
                                      uint64_t rounded, bool is_expandable);
