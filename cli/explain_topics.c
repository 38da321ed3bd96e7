/* SPDX-License-Identifier: MIT */
#include "explain_topics.h"

#include <ctype.h>
#include <stddef.h>

#define FRAGMENTATION                                                                              \
    "The allocator gets memory from the device in segments and cuts blocks from them.\n"           \
    "A segment returns to the device only when all of it is free, and a request needs\n"           \
    "a single free block in its own pool and stream. So gigabytes may be free while\n"             \
    "no free block is large enough: external fragmentation.\n"                                     \
    "\n"                                                                                           \
    "Internal fragmentation is the difference between the requested size and the size\n"           \
    "of the block: rounding, by roundup_power2_divisions as well, and remainders\n"                \
    "that are not split off.\n"                                                                    \
    "\n"                                                                                           \
    "Look at:  tarn oom SNAPSHOT     the largest free block when a request failed\n"               \
    "          tarn frag SNAPSHOT    internal and external fragmentation over time\n"              \
    "          tarn stats SNAPSHOT   the free pages of each segment\n"                             \
    "Try:      expandable_segments:True, which lets segments grow in place;\n"                     \
    "          max_split_size_mb, which keeps small requests out of large blocks.\n"               \
    "          tarn replay SNAPSHOT --conf '' --conf expandable_segments:True\n"                   \
    "          shows in advance what each would have cost.\n"

#define EXPANDABLE_SEGMENTS                                                                        \
    "With expandable_segments:True each pool of each stream reserves one address\n"                \
    "range as large as the device and maps physical memory into it, 2 MiB (small\n"                \
    "pool) or 20 MiB (large pool) at a time. A segment then grows at its end, instead\n"           \
    "of a new one being allocated, so the free space before the end stays contiguous\n"            \
    "and usable.\n"                                                                                \
    "\n"                                                                                           \
    "This helps when sizes vary from step to step: variable sequence lengths,\n"                   \
    "changing batch sizes. A trace shows such segments as segment_map and\n"                       \
    "segment_unmap, and a snapshot has one entry for each mapped range.\n"                         \
    "\n"                                                                                           \
    "The price is mapping calls to the driver, and a different way of sharing memory\n"            \
    "between processes, which not every library supports.\n"

#define PRIVATE_POOLS                                                                              \
    "A CUDA graph replays with the addresses that it was captured with. Allocations\n"             \
    "during capture therefore come from a private pool, whose segments live as long\n"             \
    "as the graph: free memory in it cannot serve other requests. torch.cuda.MemPool\n"            \
    "creates such pools explicitly.\n"                                                             \
    "\n"                                                                                           \
    "Snapshots store the pool of a segment in segment_pool_id; (0, 0) is the default\n"            \
    "pool. If graphs hold much memory, let them share a pool (pool=graph.pool()).\n"               \
    "That is safe if they replay in the order of their capture and never\n"                        \
    "concurrently.\n"

#define ROUNDING                                                                                   \
    "Every request is rounded up to a multiple of 512 bytes. Requests of up to 1 MiB\n"            \
    "come from segments of 2 MiB (small pool), below 10 MiB from segments of 20 MiB,\n"            \
    "larger ones from segments of their own size rounded up to 2 MiB (large pool).\n"              \
    "\n"                                                                                           \
    "A free block that is larger than the request is split if the remainder is at\n"               \
    "least 512 bytes (small pool) or more than 1 MiB (large pool). Otherwise the\n"                \
    "remainder stays in the block: it is allocated, but was not requested.\n"                      \
    "\n"                                                                                           \
    "roundup_power2_divisions:N instead rounds up to one of N steps between powers of\n"           \
    "two. This wastes a little memory, and freed blocks fit later requests more\n"                 \
    "often.\n"

#define NVIDIA_SMI                                                                                 \
    "nvidia-smi shows all device memory of the process, which is more than its\n"                  \
    "tensors need:\n"                                                                              \
    "\n"                                                                                           \
    "  allocated    bytes in allocated blocks\n"                                                   \
    "  + cached     free blocks that the allocator keeps for later requests\n"                     \
    "  = reserved   memory allocated on the device (torch.cuda.memory_reserved)\n"                 \
    "  + outside    the CUDA context and its kernels (some hundred MiB), cuBLAS\n"                 \
    "               workspaces, NCCL buffers, other libraries, other processes\n"                  \
    "  = nvidia-smi\n"                                                                             \
    "\n"                                                                                           \
    "Cached memory is not a leak: torch.cuda.empty_cache() returns every segment that\n"           \
    "is completely free. A snapshot contains nothing about memory outside the\n"                   \
    "allocator; `tarn oom` infers it from the size of the device (--device-total).\n"

#define PEAKS                                                                                      \
    "allocated   bytes in allocated blocks, rounded\n"                                             \
    "requested   the same before rounding\n"                                                       \
    "active      allocated, plus freed blocks that wait for other streams\n"                       \
    "reserved    bytes allocated on the device, free blocks included\n"                            \
    "\n"                                                                                           \
    "The allocated peak shows what the model needs; the reserved peak decides whether\n"           \
    "it fits. They often occur at different times: reserved memory falls only when\n"              \
    "segments are released, so it peaks when a request found no free block, not when\n"            \
    "the most memory was allocated. The difference is caching and fragmentation.\n"                \
    "\n"                                                                                           \
    "Look at:  tarn peak SNAPSHOT, which shows memory by stack at both peaks.\n"

#define OOM_VERDICTS                                                                               \
    "Before PyTorch gives up it waits for pending frees and releases every segment\n"              \
    "that is completely free. `tarn oom` classifies what was left:\n"                              \
    "\n"                                                                                           \
    "fragmented             that pool and stream have enough free memory, but in\n"                \
    "                       pieces that are too small. Try expandable_segments:True.\n"            \
    "wrong pool or stream   enough memory is free, but for another stream, in a\n"                 \
    "                       graph's pool or in the other size class. Free it there,\n"             \
    "                       or share the pool.\n"                                                  \
    "rounded by settings    what roundup_power2_divisions adds would be enough.\n"                 \
    "                       Remove it, or set more divisions.\n"                                   \
    "really full            all free memory would not be enough, even in one piece.\n"             \
    "                       Something must become smaller; the table shows who holds\n"            \
    "                       the memory.\n"                                                         \
    "outside the allocator  the CUDA context, other libraries or other processes use\n"            \
    "                       the missing memory. Needs --device-total.\n"

#define RECORD_STREAM                                                                              \
    "A block belongs to the stream that it was allocated on. Once freed it can be\n"               \
    "reused there immediately, because a stream executes its work in order. Another\n"             \
    "stream may still be using the block: tensor.record_stream(s) tells the\n"                     \
    "allocator, which then records an event on s at the free and keeps the block\n"                \
    "until the event completes.\n"                                                                 \
    "\n"                                                                                           \
    "Such blocks have the state active_pending_free, and in a trace a free_requested\n"            \
    "whose free_completed comes later. Much memory in that state means that the side\n"            \
    "stream lags behind: allocations need new memory although old memory is about to\n"            \
    "become free.\n"

#define HISTORY                                                                                    \
    "torch.cuda.memory._record_memory_history(max_entries=100000) starts recording;\n"             \
    "torch.cuda.memory._dump_snapshot(\"dump.pickle\") writes the recording and the\n"             \
    "current state. Without recording, a snapshot has segments and blocks, but no\n"               \
    "trace and no stacks.\n"                                                                       \
    "\n"                                                                                           \
    "The trace is a ring buffer: of a longer run only the last max_entries events\n"               \
    "remain, and the file starts mid-run. Older blocks have an address and a size if\n"            \
    "they are freed later or still allocated, but usually no stack: these are the\n"               \
    "rows \"(not recorded)\".\n"                                                                   \
    "\n"                                                                                           \
    "stacks=\"python\" is cheap and usually sufficient; stacks=\"all\" adds C++ frames.\n"         \
    "To dump when memory runs out, use torch._C._cuda_attach_out_of_memory_observer,\n"            \
    "or run PyTorch on tarn with TARN_DUMP_ON_OOM=FILE.\n"

#define SNAPSHOTS                                                                                  \
    "A snapshot is one dict: segments with their blocks, device_traces with an event\n"            \
    "for each allocation, free and device call, allocator_settings, and annotations.\n"            \
    "PyTorch writes it with pickle, which can run code when Python loads it. tarn\n"               \
    "reads only the data and rejects files that import or call anything (exit code\n"              \
    "4).\n"                                                                                        \
    "\n"                                                                                           \
    "To share one:  tarn trim --anonymize --drop-cpp dump.pickle public.pickle\n"                  \
    "To query it:   tarn export --to sqlite dump.pickle -o dump.db\n"

#define WHERE                                                                                      \
    "--where EXPR selects the blocks for which the expression is true, in every\n"                 \
    "report that has the option:\n"                                                                \
    "\n"                                                                                           \
    "  --where 'size >= 64MiB && (frame ~ \"attention\" || lifetime > 2s)'\n"                      \
    "\n"                                                                                           \
    "Combine comparisons with && (binds tighter), ||, ! and parentheses.\n"                        \
    "\n"                                                                                           \
    "  size                   requested bytes: 512, 64MiB, 1.5GB\n"                                \
    "  lifetime (or age)      from the allocation to the free, as far as recorded:\n"              \
    "                         events (100), or a time (2s, 300ms, 5us, 1.5min, 1h)\n"              \
    "  start, end             of the lifetime: an event, or a time since the first\n"              \
    "  address, segment       addresses, such as 0x7f0000000000\n"                                 \
    "  stream, device         numbers\n"                                                           \
    "  pool                   default, private, or A,B; only == and !=\n"                          \
    "  category               as in --by category, with --rules\n"                                 \
    "  annotation             the innermost one open at the allocation\n"                          \
    "  metadata, compile      the block's user_metadata and compile_context\n"                     \
    "  frame, function, file  some frame of the stack; a frame is file:line:function\n"            \
    "  freed, before          alone: freed in the trace; allocated before it\n"                    \
    "\n"                                                                                           \
    "Numbers have == != < <= > >=. Texts have == and != (the whole text, or all of it\n"           \
    "before a #; for a file also the part after a /), and ~ and !~ for POSIX extended\n"           \
    "regular expressions. Put texts in single or double quotes unless they are one\n"              \
    "word; \\\" is a quote within quotes. Quote the whole expression for the shell.\n"             \
    "\n"                                                                                           \
    "Some properties may be unknown, such as the pool of a segment that was freed. An\n"           \
    "unknown value makes == ~ < <= > >= false; != and !~ negate == and ~, so they are\n"           \
    "true.\n"

#define TOPICS(X)                                                                                  \
    X("fragmentation", "a request fails although memory is free", FRAGMENTATION)                   \
    X("expandable-segments", "segments that grow in place", EXPANDABLE_SEGMENTS)                   \
    X("private-pools", "memory of CUDA graphs and MemPool", PRIVATE_POOLS)                         \
    X("rounding", "why a block is larger than the request", ROUNDING)                              \
    X("nvidia-smi", "why nvidia-smi shows another number", NVIDIA_SMI)                             \
    X("peaks", "allocated, requested, active and reserved, and their peaks", PEAKS)                \
    X("oom-verdicts", "the verdicts of `tarn oom`, and what helps", OOM_VERDICTS)                  \
    X("record-stream", "blocks used on several streams", RECORD_STREAM)                            \
    X("history", "how to record, and what a trace that starts mid-run lacks", HISTORY)             \
    X("snapshots", "what is in the file, and how to share it", SNAPSHOTS)                          \
    X("where", "expressions that select blocks, for --where", WHERE)

const struct cli_topic cli_topics[] = {
#define TOPIC_ROW(name, about, text) {name, about, text},
    TOPICS(TOPIC_ROW)
#undef TOPIC_ROW
        {NULL, NULL, NULL}};

const char *const cli_topic_names[] = {
#define TOPIC_NAME(name, about, text) name,
    TOPICS(TOPIC_NAME)
#undef TOPIC_NAME
        NULL};

/* Spells a character as topic names do. */
static char letter_normalize(char c)
{
    if (c == '_' || c == ' ') {
        return '-';
    }
    return (char)tolower((unsigned char)c);
}

const struct cli_topic *cli_topic_find(const char *name)
{
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++) {
        size_t i = 0;

        while (topic->name[i] && topic->name[i] == letter_normalize(name[i])) {
            i++;
        }
        if (topic->name[i] == '\0' && name[i] == '\0') {
            return topic;
        }
    }
    return NULL;
}
