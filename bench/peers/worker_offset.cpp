/* SPDX-License-Identifier: MIT */
/* OffsetAllocator: its offsets have 32 bits, so they count units of 512 bytes. */
#include "range.hpp"

#include <offsetAllocator.hpp>

namespace
{

class OffsetRange
{
  public:
    std::uint64_t alloc(std::uint64_t size)
    {
        const OffsetAllocator::Allocation allocation =
            allocator_.allocate(static_cast<std::uint32_t>(size / peer::UNIT));

        if (allocation.offset == OffsetAllocator::Allocation::NO_SPACE) {
            peer::fail("OffsetAllocator: the range is full");
        }
        return (std::uint64_t{allocation.metadata} << 32 | allocation.offset) + 1;
    }
    void free(std::uint64_t handle)
    {
        OffsetAllocator::Allocation allocation;

        allocation.offset = static_cast<std::uint32_t>(handle - 1);
        allocation.metadata = static_cast<std::uint32_t>((handle - 1) >> 32);
        allocator_.free(allocation);
    }

  private:
    static constexpr std::uint32_t BLOCKS_MAX = 1 << 18;

    OffsetAllocator::Allocator allocator_{static_cast<std::uint32_t>(peer::RANGE / peer::UNIT),
                                          BLOCKS_MAX};
};

} // namespace

int main()
{
    return peer::serve<OffsetRange>("OffsetAllocator", PEER_VERSION);
}
