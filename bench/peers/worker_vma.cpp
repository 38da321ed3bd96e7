/* SPDX-License-Identifier: MIT */
/* The virtual allocator of VulkanMemoryAllocator with its default strategy, two-level segregated
 * fit. It never calls Vulkan. */
#include "range.hpp"

#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS  0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <vk_mem_alloc.h>

namespace
{

class VmaRange
{
  public:
    VmaRange()
    {
        VmaVirtualBlockCreateInfo info = {};

        info.size = peer::RANGE;
        if (vmaCreateVirtualBlock(&info, &block_) != VK_SUCCESS) {
            peer::fail("vma: no virtual block");
        }
    }
    ~VmaRange()
    {
        vmaDestroyVirtualBlock(block_);
    }
    VmaRange(const VmaRange &) = delete;
    VmaRange &operator=(const VmaRange &) = delete;

    std::uint64_t alloc(std::uint64_t size)
    {
        VmaVirtualAllocationCreateInfo info = {};
        VmaVirtualAllocation allocation = VK_NULL_HANDLE;
        VkDeviceSize offset = 0;

        info.size = size;
        if (vmaVirtualAllocate(block_, &info, &allocation, &offset) != VK_SUCCESS) {
            peer::fail("vma: the range is full");
        }
        return reinterpret_cast<std::uint64_t>(allocation);
    }
    void free(std::uint64_t handle)
    {
        vmaVirtualFree(block_, reinterpret_cast<VmaVirtualAllocation>(handle));
    }

  private:
    VmaVirtualBlock block_ = VK_NULL_HANDLE;
};

} // namespace

int main()
{
    return peer::serve<VmaRange>("vma", PEER_VERSION);
}
