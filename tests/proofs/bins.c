/* SPDX-License-Identifier: MIT */
/* Bins and free sets: keys, slots, bitmaps; the table of addresses. */
#include "bits.h"

#include "alloc/pool/bin.h"
#include "alloc/pool/block.h"
#include "alloc/pool/free_set.h"
#include "alloc/pool/ptr_map.h"
#include "alloc/pool/segment_map.h"

/*@ axiomatic segments {
  @   logic struct tn_segment *segment_of{L}(struct tn_segment_map *map, integer address);
  @ } */

/* Assumed: the search in the tree is a loop. */
/*@ requires \valid_read(map);
  @ assigns \nothing;
  @ ensures \result == segment_of(map, address);
  @ ensures \result != \null ==> \valid_read(\result) &&
  @     \result->address <= address < \result->address + \result->size; */
static inline struct tn_segment *tn_segment_map_find(const struct tn_segment_map *map,
                                                     uint64_t address);

/*@ requires \valid_read(map) && segment_of(map, address) != \null;
  @ requires segment_of(map, address)->place + segment_of(map, address)->size <= UINT64_MAX;
  @ assigns \nothing;
  @ ensures \result - segment_of(map, address)->place ==
  @     address - segment_of(map, address)->address;
  @ ensures segment_of(map, address)->place <= \result <
  @     segment_of(map, address)->place + segment_of(map, address)->size; */
static inline uint64_t tn_segment_map_place(const struct tn_segment_map *map, uint64_t address);

/*@ assigns \nothing;
  @ ensures \result <==> size < TN_BIN_SIZE_END && place < TN_BIN_PLACE_END; */
static inline bool tn_bin_can_hold(uint64_t size, uint64_t place);

/*@ predicate drops(integer units, integer bits) = 0 <= bits && units < (1 << (bits + 7)) &&
  @     (bits > 0 ==> (1 << (bits + 6)) <= units); */

/* Assumed here: keys.c proves it. */
/*@ requires units < (1 << 55);
  @ assigns \nothing;
  @ ensures drops(units, \result);
  @ ensures \result <= 57;
  @ ensures units < (1 << 24) ==> \result <= 17; */
static inline unsigned tn_bin_dropped_bits(uint64_t units);

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

/*@ requires size < TN_BIN_SIZE_END;
  @ assigns \nothing;
  @ ensures \result < TN_CHUNKS * TN_CHUNK_BINS;
  @ ensures size / 512 < 128 ==> \result == size / 512;
  @ ensures size / 512 >= 128 ==> \result >= 128;
  @ ensures size / 512 >= 128 ==>
  @     (64 + \result % 64) * (1 << (\result / 64 - 1)) <= size / 512;
  @ ensures size / 512 >= 128 ==>
  @     size / 512 < (65 + \result % 64) * (1 << (\result / 64 - 1)); */
static inline unsigned tn_free_set_class(uint64_t size);

/*@ requires \valid(set);
  @ requires class < TN_CHUNKS * TN_CHUNK_BINS;
  @ assigns set->bin_bits[class / TN_CHUNK_BINS], set->chunk_bits;
  @ ensures is_with_bit(set->bin_bits[class / TN_CHUNK_BINS],
  @     \old(set->bin_bits[class / TN_CHUNK_BINS]), class % TN_CHUNK_BINS);
  @ ensures is_with_bit(set->chunk_bits, \old(set->chunk_bits), class / TN_CHUNK_BINS); */
static inline void tn_free_set_mark(struct tn_free_set *set, unsigned class);

/*@ requires \valid(set);
  @ requires class < TN_CHUNKS * TN_CHUNK_BINS;
  @ assigns set->bin_bits[class / TN_CHUNK_BINS], set->chunk_bits;
  @ ensures is_without_bit(set->bin_bits[class / TN_CHUNK_BINS],
  @     \old(set->bin_bits[class / TN_CHUNK_BINS]), class % TN_CHUNK_BINS);
  @ ensures \forall integer i; 0 <= i < 64 ==> (has_bit(set->chunk_bits, i) <==>
  @     has_bit(\old(set->chunk_bits), i) &&
  @     !(i == class / TN_CHUNK_BINS && set->bin_bits[class / TN_CHUNK_BINS] == 0)); */
static inline void tn_free_set_unmark(struct tn_free_set *set, unsigned class);

/*@ requires \valid_read(set);
  @ requires class < TN_CHUNKS * TN_CHUNK_BINS;
  @ assigns \nothing;
  @ ensures \result <==> has_bit(set->bin_bits[class / TN_CHUNK_BINS], class % TN_CHUNK_BINS); */
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
  @ ensures \result < (1 << 16);
  @ ensures \forall integer i; 0 <= i < 16 ==> (has_bit(\result, i) <==> has_bit(hash, 24 + i)); */
static inline uint64_t tn_ptr_tag(uint64_t hash);

/*@ requires \valid_read(map);
  @ requires map->shift < 64;
  @ assigns \nothing;
  @ ensures \result == (hash >> map->shift); */
static inline uint64_t tn_ptr_bucket(const struct tn_ptr_map *map, uint64_t hash);

#include "alloc/pool/bin.c"
