/* SPDX-License-Identifier: MIT */
/* Best fit as a textbook has it: free blocks in a std::set by size and offset, every block linked to
 * its neighbours, split when it is larger than the request, coalesced when it is freed. */
#include "range.hpp"

#include <set>
#include <string>

namespace
{

struct Block {
    std::uint64_t offset;
    std::uint64_t size;
    Block *previous;
    Block *next;
    bool is_free;
};

struct BySize {
    bool operator()(const Block *a, const Block *b) const
    {
        return a->size != b->size ? a->size < b->size : a->offset < b->offset;
    }
};

class SetRange
{
  public:
    SetRange()
    {
        free_.insert(new Block{0, peer::RANGE, nullptr, nullptr, true});
    }
    SetRange(const SetRange &) = delete;
    SetRange &operator=(const SetRange &) = delete;

    std::uint64_t alloc(std::uint64_t size)
    {
        Block wanted = {0, size, nullptr, nullptr, false};
        const auto found = free_.lower_bound(&wanted);

        if (found == free_.end()) {
            peer::fail("std::set: the range is full");
        }
        Block *block = *found;

        free_.erase(found);
        block->is_free = false;
        if (block->size > size) {
            split(block, size);
        }
        return reinterpret_cast<std::uint64_t>(block);
    }
    void free(std::uint64_t handle)
    {
        Block *block = reinterpret_cast<Block *>(handle);

        block->is_free = true;
        if (block->next && block->next->is_free) {
            free_.erase(block->next);
            absorb_next(block);
        }
        if (block->previous && block->previous->is_free) {
            block = block->previous;
            free_.erase(block);
            absorb_next(block);
        }
        free_.insert(block);
    }

  private:
    void split(Block *block, std::uint64_t size)
    {
        Block *rest = new Block{block->offset + size, block->size - size, block, block->next, true};

        block->size = size;
        block->next = rest;
        if (rest->next) {
            rest->next->previous = rest;
        }
        free_.insert(rest);
    }
    static void absorb_next(Block *block)
    {
        Block *next = block->next;

        block->size += next->size;
        block->next = next->next;
        if (block->next) {
            block->next->previous = block;
        }
        delete next;
    }

    std::set<Block *, BySize> free_; /* blocks live until the process ends */
};

} // namespace

int main()
{
    const std::string version = "libstdc++-" + std::to_string(_GLIBCXX_RELEASE);

    return peer::serve<SetRange>("std::set", version.c_str());
}
