/* SPDX-License-Identifier: MIT */
#include "alloc/pool/segment_map.h"

#include "base/finding.h"

static const struct tn_segment *segment_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, const struct tn_segment, node);
}

static int segment_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(segment_of(a)->address, segment_of(b)->address);
}

void tn_segment_map_init(struct tn_segment_map *map)
{
    *map = (struct tn_segment_map){0};
    tn_tree_init(&map->by_address, segment_compare, NULL);
}

static void segment_put(struct tn_segment_map *map, struct tn_segment *segment)
{
    segment->place = map->end;
    map->end += segment->size;
}

void tn_segment_map_insert(struct tn_segment_map *map, struct tn_segment *segment)
{
    segment->number = ++map->made;
    segment->older = map->newest;
    segment->newer = NULL;
    *(map->newest ? &map->newest->newer : &map->oldest) = segment;
    map->newest = segment;
    map->bytes += segment->size;
    segment_put(map, segment);
    tn_tree_insert(&map->by_address, &segment->node);
}

void tn_segment_map_remove(struct tn_segment_map *map, struct tn_segment *segment)
{
    *(segment->older ? &segment->older->newer : &map->oldest) = segment->newer;
    *(segment->newer ? &segment->newer->older : &map->newest) = segment->older;
    map->bytes -= segment->size;
    tn_tree_remove(&map->by_address, &segment->node);
}

void tn_segment_map_pack(struct tn_segment_map *map)
{
    map->end = 0;
    for (struct tn_segment *s = map->oldest; s; s = s->newer) {
        segment_put(map, s);
    }
}

void tn_segment_map_check(const struct tn_segment_map *map, struct tarn_findings *findings)
{
    const struct tn_segment *before = NULL;
    uint64_t count = 0;
    uint64_t bytes = 0;
    uint64_t end = 0;

    for (const struct tn_segment *s = map->oldest; s; s = s->newer) {
        if (s->older != before || (before && s->number <= before->number) || s->place < end) {
            tn_finding_add(findings, "segment %llu at place %llu comes after %llu, up to %llu",
                           (unsigned long long)s->number, (unsigned long long)s->place,
                           (unsigned long long)(before ? before->number : 0),
                           (unsigned long long)end);
        }
        end = s->place + s->size;
        bytes += s->size;
        count++;
        before = s;
    }
    if (map->newest != before || count != map->by_address.count || bytes != map->bytes ||
        end > map->end) {
        tn_finding_add(findings,
                       "segments by age: %llu of %llu bytes up to place %llu, not %llu of %llu up "
                       "to %llu",
                       (unsigned long long)count, (unsigned long long)bytes,
                       (unsigned long long)end, (unsigned long long)map->by_address.count,
                       (unsigned long long)map->bytes, (unsigned long long)map->end);
    }
}
