/* SPDX-License-Identifier: MIT */
/* Block sizes, segments and splits. */
#include "bits.h"
#include "division.h"

#include "alloc/config/size_class.h"
#include "analysis/split_rule.h"
#include "base/order.h"
#include "base/sized.h"

/*@ assigns \nothing;
  @ ensures 0 <= \result < TN_BLOCK_INTERVALS;
  @ ensures \result > 0 ==> (1 << \result) <= (size >> 20);
  @ ensures \result < TN_BLOCK_INTERVALS - 1 ==> (size >> 20) < (1 << (\result + 1)); */
static inline unsigned tn_block_interval(uint64_t size);

/*@ requires request < (1 << 62);
  @ assigns \nothing;
  @ ensures \result % 512 == 0;
  @ ensures \result >= 512 && \result >= request;
  @ ensures request == 0 ==> \result == 512;
  @ ensures request > 0 ==> \result < request + 512; */
static inline uint64_t tn_block_round_to_unit(uint64_t request);

/*@ requires request < (1 << 62) && divisions <= (1 << 32);
  @ assigns \nothing;
  @ ensures \result % 512 == 0;
  @ ensures \result >= 512 && \result >= request;
  @ ensures request > 0 && (divisions <= 1 || request <= 512 * divisions) ==>
  @     \result < request + 512;
  @ ensures request <= 512 ==> \result == 512;
  @ ensures request >= 512 ==> \result < 2 * request; */
static inline uint64_t tn_block_round(uint64_t request, uint64_t divisions);

/*@ requires \valid_read(config);
  @ requires request < TN_MAX_REQUEST;
  @ assigns \nothing;
  @ ensures \result % 512 == 0;
  @ ensures \result >= 512 && \result >= request;
  @ ensures request <= 512 ==> \result == 512;
  @ ensures request >= 512 ==> \result < 2 * request;
  @ ensures (\forall integer i; 0 <= i < TN_BLOCK_INTERVALS ==>
  @     config->roundup_power2_divisions[i] <= 1) ==> request == 0 || \result < request + 512; */
static inline uint64_t tn_round_size(uint64_t request, const struct tarn_config *config);

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
  @ ensures small_pool || expandable ==>
  @     (\result <==> block_size - rounded >= 512 && rounded < UINT64_MAX);
  @ ensures !small_pool && !expandable ==>
  @     (\result <==> block_size - rounded > (1 << 20) && rounded < config->max_split_size); */
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
