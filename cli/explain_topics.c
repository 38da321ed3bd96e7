/* SPDX-License-Identifier: MIT */
#include "explain_topics.h"

#include <ctype.h>
#include <stddef.h>

#define FRAGMENTATION                                                                              \
    "The allocator takes memory from the device in segments and cuts blocks from them.\n"          \
    "A segment goes back to the device only when all of it is free, and a request fits\n"          \
    "only into one free piece of its own pool and stream. So gigabytes may be free while\n"        \
    "no single piece is large enough: external fragmentation.\n"                                   \
    "\n"                                                                                           \
    "Internal fragmentation is the difference between what was asked for and the block\n"          \
    "that was handed out: rounding, and rests too small to be split off.\n"                        \
    "\n"                                                                                           \
    "Look at:  tarn oom SNAPSHOT     the largest free piece when a request failed\n"               \
    "          tarn stats SNAPSHOT   where in each segment the free pages are\n"                   \
    "Try:      expandable_segments:True, which lets a segment grow where it is;\n"                 \
    "          max_split_size_mb, which keeps small requests out of large blocks.\n"               \
    "          tarn replay SNAPSHOT --conf '' --conf expandable_segments:True\n"                   \
    "          says beforehand what either would have cost.\n"

#define EXPANDABLE_SEGMENTS                                                                        \
    "With expandable_segments:True each stream gets, for each pool, one range of\n"                \
    "addresses as large as the device, and physical memory is mapped into it 2 MiB (small\n"       \
    "pool) or 20 MiB (large pool) at a time. A segment then grows at its end instead of\n"         \
    "a new one being made, so free space in front of the end stays usable as one piece.\n"         \
    "\n"                                                                                           \
    "It helps where sizes vary from step to step: variable sequence lengths, changing\n"           \
    "batch sizes. In a trace such segments show as segment_map and segment_unmap, and in\n"        \
    "a snapshot as one entry for each mapped range.\n"                                             \
    "\n"                                                                                           \
    "It costs mapping calls to the driver, and memory of it is shared between processes\n"         \
    "in another way than other memory, which not every library supports.\n"

#define PRIVATE_POOLS                                                                              \
    "A CUDA graph replays with the addresses that it was captured with. What is\n"                 \
    "allocated during capture therefore comes from a pool of its own, whose segments stay\n"       \
    "as long as the graph does: memory that is free in it cannot serve other requests.\n"          \
    "torch.cuda.MemPool makes such pools by hand.\n"                                               \
    "\n"                                                                                           \
    "Snapshots name the pool of a segment in segment_pool_id; (0, 0) is the default one.\n"        \
    "If graphs hold much, let them share a pool (pool=graph.pool()), which is right when\n"        \
    "they replay in the order of their capture and never at the same time.\n"

#define ROUNDING                                                                                   \
    "Every request is rounded up to a multiple of 512 bytes. Requests of up to 1 MiB come\n"       \
    "from segments of 2 MiB (small pool), below 10 MiB from segments of 20 MiB, larger\n"          \
    "ones from segments of their own size rounded up to 2 MiB (large pool).\n"                     \
    "\n"                                                                                           \
    "A free block that is larger than the request is split if what remains is at least\n"          \
    "512 bytes (small pool) or more than 1 MiB (large pool). Else the rest stays with the\n"       \
    "block: it is allocated, but nobody asked for it.\n"                                           \
    "\n"                                                                                           \
    "roundup_power2_divisions:N rounds to N steps between powers of two instead, which\n"          \
    "wastes a little and makes freed blocks fit later requests more often.\n"

#define NVIDIA_SMI                                                                                 \
    "nvidia-smi shows what the process holds on the device. That is more than what\n"              \
    "tensors need:\n"                                                                              \
    "\n"                                                                                           \
    "  allocated    bytes in blocks that are handed out\n"                                         \
    "  + cached     free blocks that the allocator keeps for later requests\n"                     \
    "  = reserved   what it has taken from the device (torch.cuda.memory_reserved)\n"              \
    "  + outside    the CUDA context and its kernels (some hundred MiB), cuBLAS\n"                 \
    "               workspaces, NCCL buffers, other libraries, other processes\n"                  \
    "  = nvidia-smi\n"                                                                             \
    "\n"                                                                                           \
    "Cached memory is no leak: torch.cuda.empty_cache() gives it back where a whole\n"             \
    "segment is free. A snapshot knows nothing of what is outside; `tarn oom` infers it\n"         \
    "when told how large the device is (--device-total).\n"

#define PEAKS                                                                                      \
    "allocated   bytes in blocks that are handed out, rounded\n"                                   \
    "requested   the same as asked for, before rounding\n"                                         \
    "active      allocated, and blocks whose free waits for other streams\n"                       \
    "reserved    bytes taken from the device, free blocks among them\n"                            \
    "\n"                                                                                           \
    "The peak of allocated says what the model needs; the peak of reserved decides\n"              \
    "whether it fits. They often lie at different moments: reserved only falls when\n"             \
    "segments are given back, so its peak is reached when a request found no room, not\n"          \
    "when most was in use. Their difference is caching and fragmentation.\n"                       \
    "\n"                                                                                           \
    "Look at:  tarn peak SNAPSHOT, which shows what memory was made of at both.\n"

#define OOM_VERDICTS                                                                               \
    "When PyTorch gives up it has waited for pending frees and returned every segment\n"           \
    "that was free as a whole. `tarn oom` says what was left:\n"                                   \
    "\n"                                                                                           \
    "fragmented             enough is free for that pool and stream, in pieces that are\n"         \
    "                       too small. Try expandable_segments:True.\n"                            \
    "wrong pool or stream   enough is free, but for another stream, a graph's pool or the\n"       \
    "                       other size class. Free it there, or share the pool.\n"                 \
    "really full            all that is free would not do, even in one piece. Something\n"         \
    "                       must become smaller; the table says who holds the memory.\n"           \
    "outside the allocator  others hold what is missing: the context, other libraries or\n"        \
    "                       other processes. Needs --device-total.\n"

#define RECORD_STREAM                                                                              \
    "A block belongs to the stream that it was allocated on. Freed, it is reused there at\n"       \
    "once, because work on one stream is done in order. Another stream may still be\n"             \
    "using it: tensor.record_stream(s) tells the allocator, which then, at the free,\n"            \
    "records an event on s and keeps the block until the event is done.\n"                         \
    "\n"                                                                                           \
    "Such blocks show as active_pending_free, and in a trace as a free_requested whose\n"          \
    "free_completed comes later. Much memory in that state means that the side stream\n"           \
    "lags behind; allocations then need new memory although old memory is about to come\n"         \
    "back.\n"

#define HISTORY                                                                                    \
    "torch.cuda.memory._record_memory_history(max_entries=100000) begins recording;\n"             \
    "torch.cuda.memory._dump_snapshot(\"dump.pickle\") writes it with the state at that\n"         \
    "moment. Without recording a snapshot has segments and blocks, but no trace and no\n"          \
    "stacks.\n"                                                                                    \
    "\n"                                                                                           \
    "The trace is a ring: of a longer run only the last max_entries are there, and the\n"          \
    "file begins in mid-run. What was allocated before is known by address and size as\n"          \
    "far as it is freed later or still there, but its stack mostly is not: the row\n"              \
    "(not recorded).\n"                                                                            \
    "\n"                                                                                           \
    "stacks=\"python\" is cheap and mostly enough, stacks=\"all\" adds C++ frames.\n"              \
    "To dump when memory runs out, torch._C._cuda_attach_out_of_memory_observer.\n"

#define SNAPSHOTS                                                                                  \
    "A snapshot is one dict: segments with their blocks, device_traces with an entry for\n"        \
    "each allocation, free and call to the device, allocator_settings, and annotations.\n"         \
    "PyTorch writes it with pickle, which can run code when Python loads it. tarn reads\n"         \
    "the data and refuses what asks to import or call anything (exit code 4).\n"                   \
    "\n"                                                                                           \
    "To share one:  tarn trim --anonymize --drop-cpp dump.pickle public.pickle\n"                  \
    "To query it:   tarn export --to sqlite dump.pickle -o dump.db\n"

#define WHERE                                                                                      \
    "--where EXPR looks at blocks for which the expression holds, in every report that has\n"      \
    "the option:\n"                                                                                \
    "\n"                                                                                           \
    "  tarn peak dump.pickle --where 'size >= 64MiB && (frame ~ \"attention\" || life > 2s)'\n"    \
    "\n"                                                                                           \
    "Comparisons are joined by && (first) and ||, turned round by !, with parentheses.\n"          \
    "\n"                                                                                           \
    "  size                       bytes asked for: 512, 64MiB, 1.5GB\n"                            \
    "  life (or age)              from the allocation to the free, as far as the trace shows\n"    \
    "                             it: entries (100), or a time (2s, 300ms, 5us, 1.5min, 1h)\n"     \
    "  start, end                 of that: entries from 0, or a time from the first one on\n"      \
    "  address, segment           addresses, such as 0x7f0000000000\n"                             \
    "  stream, device             numbers\n"                                                       \
    "  pool                       default, private, or A,B; only == and !=\n"                      \
    "  category                   as --by category says, with --rules\n"                           \
    "  annotation                 the innermost that was open\n"                                   \
    "  metadata, compile          what the program and the compiler said of the block\n"           \
    "  frame, function, file      of some frame of the stack; a frame is file:line:function\n"     \
    "  freed, before              alone: freed in the trace; in use before it\n"                   \
    "\n"                                                                                           \
    "Numbers have == != < <= > >=. Texts have == and != (all of it, or all before a #; of\n"       \
    "a file also what follows a /), and ~ and !~ for POSIX extended regular expressions.\n"        \
    "They stand in single or double quotes unless they are one word; \\\" is a quote in\n"         \
    "quotes. Put the whole into single quotes for the shell.\n"                                    \
    "\n"                                                                                           \
    "What is not known of a block, as the pool of a segment that is gone, equals nothing, is\n"    \
    "neither more nor less, and matches nothing. != and !~ are the opposites of == and ~, so\n"    \
    "they hold for it.\n"

#define TOPICS(X)                                                                                  \
    X("fragmentation", "memory is free, and yet a request fails", FRAGMENTATION)                   \
    X("expandable-segments", "segments that grow where they are", EXPANDABLE_SEGMENTS)             \
    X("private-pools", "memory of CUDA graphs and of MemPool", PRIVATE_POOLS)                      \
    X("rounding", "why a block is larger than what was asked for", ROUNDING)                       \
    X("nvidia-smi", "why nvidia-smi shows another number", NVIDIA_SMI)                             \
    X("peaks", "allocated, requested, active and reserved, and their peaks", PEAKS)                \
    X("oom-verdicts", "what the verdicts of `tarn oom` mean, and what helps", OOM_VERDICTS)        \
    X("record-stream", "blocks that several streams use", RECORD_STREAM)                           \
    X("history", "how to record, and what a trace that begins in mid-run lacks", HISTORY)          \
    X("snapshots", "what is in the file, and how to share it", SNAPSHOTS)                          \
    X("where", "expressions that pick blocks, for --where", WHERE)

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

static char letter_plain(char c)
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

        while (topic->name[i] && topic->name[i] == letter_plain(name[i])) {
            i++;
        }
        if (topic->name[i] == '\0' && name[i] == '\0') {
            return topic;
        }
    }
    return NULL;
}
