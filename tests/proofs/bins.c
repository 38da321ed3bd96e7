/* SPDX-License-Identifier: MIT */
/* Bins and free sets: keys, slots, bitmaps; the table of addresses. */
#include "alloc/pool/bin.h"
#include "alloc/pool/block.h"
#include "alloc/pool/free_set.h"
#include "alloc/pool/ptr_map.h"

/*@ assigns \nothing;
  @ ensures \result <==> size < TN_BIN_SIZE_END && place < TN_BIN_PLACE_END; */
static inline bool tn_bin_can_hold(uint64_t size, uint64_t place);

/*@ assigns \nothing;
  @ ensures 0 <= \result < TN_LEAF_SLOTS;
  @ ensures \result == key % TN_LEAF_SLOTS; */
static inline unsigned tn_bin_key_slot(uint64_t key);

/*@ requires \valid_read(leaf);
  @ assigns \nothing;
  @ ensures \result <==> leaf->holes == leaf->slots; */
static inline bool tn_leaf_is_empty(const struct tn_leaf *leaf);

/*@ requires \valid(leaf);
  @ requires slot < TN_LEAF_SLOTS;
  @ requires \valid(leaf->keys + (0 .. TN_LEAF_SLOTS - 1));
  @ requires \separated(leaf, leaf->keys + (0 .. TN_LEAF_SLOTS - 1));
  @ assigns leaf->keys[slot], leaf->holes;
  @ ensures leaf->keys[slot] == TN_BIN_KEY_NONE;
  @ ensures leaf->holes == (\old(leaf->holes) | ((uint64_t)1 << slot)); */
static inline void tn_leaf_remove(struct tn_leaf *leaf, unsigned slot);

/*@ requires \valid_read(bin);
  @ requires bin->directory == \null;
  @ assigns \nothing;
  @ ensures \result <==> bin->leaf.capacity > 0; */
static inline bool tn_bin_has_leaf(const struct tn_bin *bin);

/*@ requires \valid(set);
  @ requires class < TN_CHUNKS * TN_CHUNK_BINS;
  @ assigns set->bin_bits[class / TN_CHUNK_BINS], set->chunk_bits;
  @ ensures set->bin_bits[class / TN_CHUNK_BINS] ==
  @     (\old(set->bin_bits[class / TN_CHUNK_BINS]) | ((uint64_t)1 << (class % TN_CHUNK_BINS)));
  @ ensures set->chunk_bits ==
  @     (\old(set->chunk_bits) | ((uint64_t)1 << (class / TN_CHUNK_BINS))); */
static inline void tn_free_set_mark(struct tn_free_set *set, unsigned class);

/*@ requires \valid(set);
  @ requires class < TN_CHUNKS * TN_CHUNK_BINS;
  @ assigns set->bin_bits[class / TN_CHUNK_BINS], set->chunk_bits; */
static inline void tn_free_set_unmark(struct tn_free_set *set, unsigned class);

/*@ requires \valid_read(set);
  @ requires class < TN_CHUNKS * TN_CHUNK_BINS;
  @ assigns \nothing; */
static inline bool tn_free_set_has_class(const struct tn_free_set *set, unsigned class);

/*@ requires capacity <= (1 << 40);
  @ assigns \nothing;
  @ ensures \result == 16 * capacity; */
static size_t leaf_bytes(uint64_t capacity);

/*@ requires 0 < capacity <= TN_LEAF_SLOTS;
  @ assigns \nothing;
  @ ensures \result == (UINT64_MAX >> (TN_LEAF_SLOTS - capacity)); */
static uint64_t slots_below(uint64_t capacity);

/*@ requires capacity <= (1 << 40);
  @ assigns \nothing;
  @ ensures \result == 32 + 40 * capacity; */
static size_t directory_bytes(uint64_t capacity);

/*@ assigns \nothing;
  @ ensures 0 <= \result < (1 << 16); */
static inline uint64_t tn_ptr_tag(uint64_t hash);

/*@ requires \valid_read(map);
  @ requires map->shift < 64;
  @ assigns \nothing;
  @ ensures \result == (hash >> map->shift); */
static inline uint64_t tn_ptr_bucket(const struct tn_ptr_map *map, uint64_t hash);

#include "alloc/pool/bin.c"
