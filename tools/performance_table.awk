# SPDX-License-Identifier: MIT
# CSV files of figures (bench/figure.h) to tables, one run after the other. Run by
# performance_table.sh; with `summary` only what README.md shows.

BEGIN {
    FS = ","
    columns = "date,machine,commit,allocator,pattern,unit,median,fastest,slowest"
    # What tarn shall reach on an H200's host, nanoseconds per allocation and free.
    split("hot_512B hot_4KiB hot_1MiB hot_2MiB hot_20MiB hot_256MiB", hot, " ")
    for (i in hot) {
        goal[hot[i]] = 15
    }
    goal["ladder_small_256"] = 25
    goal["ladder_mixed_256"] = 25
    goal["churn_small_4096"] = 90
    goal["churn_mixed_1024"] = 90
    goal["churn_small_65536"] = 180
    goal["hot_while_1_waits"] = 20
    goal["hot_while_8_wait"] = 25
    goal["hot_while_routed"] = 25
    goal["threads_own_stream_16"] = 5
    goal["threads_one_stream_16"] = 60
    # ... for churn on own streams: wall time per pair, relative to that of one thread.
    thread_goal[2] = 0.6
    thread_goal[16] = 0.1
    # What tarn is compared with: on a GPU, and anywhere (bench/peers).
    device_count = split("torch-native torch-expandable cudaMallocAsync", devices, " ")
    peer_count = split("vma OffsetAllocator std::set mimalloc jemalloc", peers, " ")
    # ... for recording an event; switched off, nothing.
    event_goal["tarn-history"] = 25
    event_goal["tarn-history-stacks"] = 250
    goal_lock_ms = 2
    goal_tracker = 150
    goal_snapshot_ms = 20
    # ... for reading snapshots.
    goal_read_mb = 1000
    goal_read_times = 8
    goal_read_bytes = 48
    goal_read_seconds = 0.5
    goal_bytes = 96
    goal_growth = 2
    bad = 0
}

function fail(what) {
    printf "performance_table: %s:%d: %s\n", FILENAME, FNR, what >"/dev/stderr"
    bad = 1
    exit 1
}

function has(allocator, pattern) {
    return (allocator, pattern) in median
}

function ns(allocator, pattern) {
    return has(allocator, pattern) ? sprintf("%.1f", median[allocator, pattern]) : "-"
}

function spread(allocator, pattern) {
    if (!has(allocator, pattern)) {
        return "-"
    }
    return sprintf("%.1f to %.1f", fastest[allocator, pattern], slowest[allocator, pattern])
}

function ratio(other, allocator, pattern) {
    if (!has(other, pattern) || !has(allocator, pattern) || median[allocator, pattern] == 0) {
        return "-"
    }
    return sprintf("%.1f", median[other, pattern] / median[allocator, pattern])
}

function thousands(number,   text, out) {
    text = sprintf("%d", number)
    out = ""
    while (length(text) > 3) {
        out = "," substr(text, length(text) - 2) out
        text = substr(text, 1, length(text) - 3)
    }
    return text out
}

function bytes(allocator, pattern,   value) {
    if (!has(allocator, pattern)) {
        return "-"
    }
    value = median[allocator, pattern]
    if (value >= 1048576) {
        return sprintf("%.1f MiB", value / 1048576)
    }
    return value >= 10240 ? sprintf("%.1f KiB", value / 1024) : sprintf("%.0f", value)
}

function print_pattern(pattern) {
    printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", pattern,
        pattern in goal ? goal[pattern] : "", ns("tarn", pattern), spread("tarn", pattern),
        ns("torch-native", pattern), ratio("torch-native", "tarn", pattern),
        ns("cudaMallocAsync", pattern), ratio("cudaMallocAsync", "tarn", pattern),
        ns("tarn-expandable", pattern), ns("torch-expandable", pattern),
        ratio("torch-expandable", "tarn-expandable", pattern)
}

function is_pattern(name) {
    return name !~ /^(scale|history|read|tracker)_/
}

# Fills `present` with those of the allocators in `list` that have a figure for some pattern.
function find_present(list, count, present,   i, k, found) {
    for (i = 1; i <= count; i++) {
        for (k = 1; k <= patterns; k++) {
            if (is_pattern(names[k]) && has(list[i], names[k])) {
                present[++found] = list[i]
                break
            }
        }
    }
    return found + 0
}

function print_device_table(   i) {
    print "| pattern, ns per pair | goal | tarn | fastest to slowest | PyTorch | PyTorch / tarn |" \
        " cudaMallocAsync | cudaMallocAsync / tarn | tarn, expandable | PyTorch, expandable |" \
        " PyTorch / tarn, expandable |"
    print "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= patterns; i++) {
        if (is_pattern(names[i])) {
            print_pattern(names[i])
        }
    }
}

function title(allocator) {
    return allocator == "vma" ? "VMA" : allocator
}

# The first figure divided by the second, to two digits or more.
function quotient(allocator, pattern, other, other_pattern,   value) {
    if (!has(allocator, pattern) || !has(other, other_pattern) || !median[other, other_pattern]) {
        return "-"
    }
    value = median[allocator, pattern] / median[other, other_pattern]
    return sprintf(value < 0.1 ? "%.2g" : value < 10 ? "%.2f" : "%.0f", value)
}

function print_peer_row(present, count, pattern,   i) {
    printf "| %s | %s | %s | %s | %s |", pattern, pattern in goal ? goal[pattern] : "",
        ns("tarn", pattern), spread("tarn", pattern), ns("tarn-expandable", pattern)
    for (i = 1; i <= count; i++) {
        printf " %s | %s |", ns(present[i], pattern),
            quotient("tarn", pattern, present[i], pattern)
    }
    print ""
}

function print_peer_table(present, count,   i, line, versions) {
    line = "|---|--:|--:|--:|--:|"
    printf "| pattern, ns per pair | goal | tarn | fastest to slowest | tarn, expandable |"
    for (i = 1; i <= count; i++) {
        printf " %s | tarn / %s |", title(present[i]), title(present[i])
        line = line "--:|--:|"
        versions = versions (i > 1 ? ", " : "") title(present[i]) " " version[present[i]]
    }
    print "\n" line
    for (i = 1; i <= patterns; i++) {
        if (is_pattern(names[i])) {
            print_peer_row(present, count, names[i])
        }
    }
    if (count) {
        printf "\nVersions: %s.\n", versions
    }
}

# Churn on own streams with more and more threads, each allocator beside itself with one.
function print_threads(present, count,   i, n, one, many) {
    one = "threads_churn_1"
    if (!has("tarn", one)) {
        return
    }
    printf "\n| churn on own streams, wall time per pair relative to one thread | goal | tarn |"
    for (i = 1; i <= count; i++) {
        printf " %s |", title(present[i])
    }
    printf "\n|--:|--:|--:|"
    for (i = 1; i <= count; i++) {
        printf "--:|"
    }
    print ""
    for (n = 2; n <= 16; n *= 2) {
        many = "threads_churn_" n
        if (!has("tarn", many)) {
            continue
        }
        printf "| %d threads | %s | %s |", n, n in thread_goal ? thread_goal[n] : "",
            quotient("tarn", many, "tarn", one)
        for (i = 1; i <= count; i++) {
            printf " %s |", quotient(present[i], many, present[i], one)
        }
        print ""
    }
}

function print_patterns(   i, pattern, met, goals, any, present, count, on_device, unused) {
    for (i = 1; i <= patterns; i++) {
        any = any || is_pattern(names[i])
    }
    if (!any) {
        return
    }
    on_device = find_present(devices, device_count, unused)
    count = find_present(peers, peer_count, present)
    if (on_device) {
        print_device_table()
    }
    if (count && on_device) {
        print ""
    }
    if (count || !on_device) {
        print_peer_table(present, count)
        print_threads(present, count)
    }
    for (i = 1; i <= patterns; i++) {
        pattern = names[i]
        if (is_pattern(pattern) && pattern in goal && has("tarn", pattern)) {
            goals++
            met += median["tarn", pattern] <= goal[pattern]
        }
    }
    if (goals) {
        printf "\nGoals met in this run: %d of %d.\n", met, goals
    }
}

function print_scale_row(allocator, name, what) {
    printf "| %s | %s | %s | %s | %s | %s | %s |\n", what, allocator, ns(allocator, name),
        spread(allocator, name), bytes(allocator, name "_bytes_per_block"),
        bytes(allocator, name "_bytes_freed"), bytes(allocator, name "_bytes_emptied")
}

function print_scale_of(allocator,   i, name, count) {
    for (i = 1; i <= patterns; i++) {
        name = names[i]
        if (name !~ /^scale_(live|large|(large_)?streams)_[0-9]+$/ || !has(allocator, name)) {
            continue
        }
        count = name
        sub(/.*_/, "", count)
        print_scale_row(allocator, name, thousands(count) (name ~ /streams/ ? " streams" : "") \
            (name ~ /large/ ? ", large" : ""))
    }
}

function print_growth(allocator,   few, many) {
    few = "scale_live_1000"
    many = "scale_live_1000000"
    if (has(allocator, few) && has(allocator, many)) {
        printf "- %s: 1,000,000 live blocks cost %s times as much per operation as 1,000",
            allocator, ratio_of(median[allocator, many], median[allocator, few])
        printf " (goal: less than %d).\n", goal_growth
    }
    if (has(allocator, "scale_streams_1000_bytes_per_stream")) {
        printf "- %s: a stream with one block takes %s bytes of host memory.\n", allocator,
            thousands(median[allocator, "scale_streams_1000_bytes_per_stream"])
    }
}

function ratio_of(a, b) {
    return b > 0 ? sprintf("%.2f", a / b) : "-"
}

function print_scale(   i, any) {
    for (i = 1; i <= patterns; i++) {
        any = any || names[i] ~ /^scale_/
    }
    if (!any) {
        return
    }
    printf "\n| live blocks | settings | ns per replacement | fastest to slowest |"
    printf " host bytes per block (goal: %d) | kept when freed | kept when emptied |\n", goal_bytes
    print "|--:|---|--:|--:|--:|--:|--:|"
    print_scale_of("tarn")
    print_scale_of("tarn-expandable")
    print_scale_of("tarn-compact")
    print ""
    print_growth("tarn")
    print_growth("tarn-expandable")
    print_growth("tarn-compact")
}

function figure(allocator, pattern, format) {
    return has(allocator, pattern) ? sprintf(format, median[allocator, pattern]) : "-"
}

function print_reading_row(name) {
    printf "| %s | %s | %s | %s | %s | %s ", name, figure("tarn", "read_mb_" name, "%.0f"),
        spread("tarn", "read_mb_" name), figure("tarn", "read_events_" name, "%.2f"),
        figure("CPython", "read_mb_" name, "%.0f"), ratio("tarn", "CPython", "read_mb_" name)
    printf "| %s | %s | %s | %s | %s | %s |\n", figure("tarn", "read_bytes_" name, "%.1f"),
        figure("tarn", "read_info_" name, "%.0f ms"), figure("tarn", "read_rss_" name, "%.0f MiB"),
        figure("tarn", "read_peak_" name, "%.0f ms"), figure("tarn", "read_top_" name, "%.0f ms"),
        figure("tarn", "read_oom_" name, "%.0f ms")
}

function print_reading(   i, any) {
    for (i = 1; i <= patterns; i++) {
        any = any || names[i] ~ /^read_mb_/
    }
    if (!any) {
        return
    }
    printf "\n| snapshot | MB/s (goal: %d, or %d times CPython) | fastest to slowest |",
        goal_read_mb, goal_read_times
    printf " million events/s | `pickle.load`, MB/s | times CPython |"
    printf " host bytes per event (goal: %d and stacks) | `info` | resident | `peak` | `top` |",
        goal_read_bytes
    printf " `oom` (goal of these three: %.1f s) |\n", goal_read_seconds
    print "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= patterns; i++) {
        if (names[i] ~ /^read_mb_/) {
            print_reading_row(substr(names[i], length("read_mb_") + 1))
        }
    }
}

function print_event_row(name,   allocators, count, i) {
    count = split("tarn-history-off tarn-history tarn-history-stacks tarn-history-unwind",
        allocators, " ")
    printf "| %s ", substr(name, length("history_event_") + 1)
    for (i = 1; i <= count; i++) {
        printf "| %s | %s ", ns(allocators[i], name), spread(allocators[i], name)
    }
    print "|"
}

function ms(pattern) {
    return sprintf("%.1f ms", median["tarn-history-stacks", pattern])
}

function print_snapshot_times() {
    if (has("tarn-history-stacks", "history_snapshot_lock")) {
        printf "\n- A snapshot of 100,000 events with stacks and 10,000 blocks: taken in %s,",
            ms("history_snapshot_capture")
        printf " the lock held for %s of it (goal: %d), written in %s (goal, together: %d).\n",
            ms("history_snapshot_lock"), goal_lock_ms, ms("history_snapshot_write"),
            goal_snapshot_ms
    }
}

function print_history(   i, any) {
    for (i = 1; i <= patterns; i++) {
        any = any || names[i] ~ /^history_event_/
    }
    if (!any) {
        print_snapshot_times()
        return
    }
    printf "\n| pattern, ns per recorded event | off | fastest to slowest |"
    printf " without stacks (goal: %d) | fastest to slowest |", event_goal["tarn-history"]
    printf " 32 C frames (goal: %d) | fastest to slowest |", event_goal["tarn-history-stacks"]
    print " 32 C frames, unwound | fastest to slowest |"
    print "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= patterns; i++) {
        if (names[i] ~ /^history_event_/) {
            print_event_row(names[i])
        }
    }
    print_snapshot_times()
}

function print_tracker(   i, any) {
    for (i = 1; i <= patterns; i++) {
        if (names[i] ~ /^tracker_/) {
            if (!any++) {
                printf "\n| the tracker, ns per event (goal: %d) | median | fastest to slowest |\n",
                    goal_tracker
                print "|---|--:|--:|"
            }
            printf "| %s | %s | %s |\n", substr(names[i], length("tracker_") + 1),
                ns("tarn", names[i]), spread("tarn", names[i])
        }
    }
}

# 3847.5 as 3,848: tenths only where they say something.
function rounded(value) {
    return value < 100 ? sprintf("%.1f", value) : thousands(int(value + 0.5))
}

function compared(other, pattern,   times) {
    if (!has(other, pattern)) {
        return "-"
    }
    times = median[other, pattern] / median["tarn", pattern]
    return rounded(median[other, pattern]) " (" (times < 10 ? sprintf("%.1f", times) : \
        thousands(int(times + 0.5))) ")"
}

function print_summary_row(pattern, what) {
    if (has("tarn", pattern)) {
        printf "| %s | %s | %s | %s |\n", what, rounded(median["tarn", pattern]),
            compared("torch-native", pattern), compared("cudaMallocAsync", pattern)
    }
}

function print_summary() {
    printf "\nFrom `bench/results/%s`:\n", source
    printf "%s, commit %s, %s.\n\n", date, commit, machine
    print "| pattern | tarn | PyTorch 2.11 (times tarn) | `cudaMallocAsync` (times tarn) |"
    print "|---|--:|--:|--:|"
    print_summary_row("hot_4KiB", "one size over and over, 4 KiB")
    print_summary_row("ladder_mixed_256", "256 allocations freed in reverse, up to 64 MiB")
    print_summary_row("churn_small_4096", "4,096 live blocks up to 1 MiB, replaced at random")
    print_summary_row("threads_own_stream_16", "16 threads, each its own stream")
    print_summary_row("threads_one_stream_16", "16 threads on one stream")
}

function print_tables() {
    printf "\n### %s, %s, commit %s\n\nFrom `bench/results/%s`.\n\n", machine, date, commit, source
    print_patterns()
    print_history()
    print_reading()
    print_tracker()
    print_scale()
}

function print_run(   key) {
    if (patterns == 0) {
        return
    }
    if (summary) {
        print_summary()
    } else {
        print_tables()
    }
    for (key in median) {
        delete median[key]
        delete fastest[key]
        delete slowest[key]
    }
    for (key in seen) {
        delete seen[key]
    }
    patterns = 0
}

FNR == 1 {
    print_run()
    if ($0 != columns) {
        fail("is not a file of figures: the first line is not " columns)
    }
    source = FILENAME
    sub(/.*\//, "", source)
    next
}

NF != 9 || $7 !~ /^[0-9.]+$/ || $8 !~ /^[0-9.]+$/ || $9 !~ /^[0-9.]+$/ {
    fail("is not a line of figures: " $0)
}

{
    date = $1
    machine = $2
    commit = $3
    if (!($5 in seen)) {
        seen[$5] = 1
        names[++patterns] = $5
    }
    allocator = $4
    if ((at = index(allocator, "@")) > 0) { # somebody else's, and which
        allocator = substr($4, 1, at - 1)
        version[allocator] = substr($4, at + 1)
    }
    median[allocator, $5] = $7 + 0
    fastest[allocator, $5] = $8 + 0
    slowest[allocator, $5] = $9 + 0
}

END {
    if (bad) {
        exit 1
    }
    print_run()
    print ""
}
