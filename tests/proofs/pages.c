/* SPDX-License-Identifier: MIT */
/* Page arithmetic of the compact policy: places, whole pages, addresses of segments. */
#include "alloc/compact/harvest.h"
#include "alloc/compact/placement.h"
#include "alloc/pool/expandable.h"

/*@ requires page_size > 0;
  @ requires bytes + page_size <= UINT64_MAX;
  @ assigns \nothing;
  @ ensures \result * page_size >= bytes;
  @ ensures \result * page_size < bytes + page_size; */
static inline uint64_t tn_pages_up(uint64_t bytes, uint64_t page_size);

/*@ requires \valid_read(block);
  @ requires block->address + block->size <= UINT64_MAX;
  @ assigns \nothing;
  @ ensures \result == block->address + block->size; */
static uint64_t block_end(const struct tn_block *block);

/*@ requires \valid_read(segment) && \valid_read(segment->expandable);
  @ requires segment->expandable->page_size > 0;
  @ requires address >= segment->address;
  @ assigns \nothing;
  @ ensures segment->address + \result * segment->expandable->page_size <= address;
  @ ensures address < segment->address + (\result + 1) * segment->expandable->page_size; */
static uint64_t page_of(const struct tn_segment *segment, uint64_t address);

/*@ requires \valid_read(a) && \valid_read(b);
  @ assigns \nothing;
  @ ensures b->block == \null ==> \result;
  @ ensures b->block != \null && a->missing < b->missing ==> \result;
  @ ensures b->block != \null && a->missing > b->missing ==> !\result; */
static bool is_better(const struct tn_placement *a, const struct tn_placement *b);

/*@ predicate is_first_page_from(integer page, struct tn_segment *segment, integer address) =
  @     address <= segment->address + page * segment->expandable->page_size &&
  @     segment->address + page * segment->expandable->page_size <
  @         address + segment->expandable->page_size; */

/*@ requires \valid_read(harvest) && \valid_read(segment) && \valid_read(block);
  @ requires \valid_read(segment->expandable);
  @ requires 0 < segment->expandable->page_size <= (1 << 40);
  @ requires segment->address <= block->address && block->address + block->size < (1 << 60);
  @ requires harvest->keep_begin <= harvest->keep_end < (1 << 60);
  @ assigns \nothing;
  @ behavior kept:
  @   assumes block->address < harvest->keep_end;
  @   assumes harvest->keep_begin < block->address + block->size;
  @   ensures is_first_page_from(\result, segment, harvest->keep_end);
  @ behavior free:
  @   assumes block->address >= harvest->keep_end ||
  @       harvest->keep_begin >= block->address + block->size;
  @   ensures is_first_page_from(\result, segment, block->address);
  @ complete behaviors; */
static uint64_t first_page(const struct tn_harvest *harvest, const struct tn_segment *segment,
                           const struct tn_block *block);

#include "alloc/compact/harvest.c"
#include "alloc/compact/placement.c"
