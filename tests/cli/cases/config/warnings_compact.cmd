config 'policy:compact,backend:cudaMallocAsync,garbage_collection_threshold:0.6,throw_on_cudamalloc_oom:True,expandable_segments:True,large_segment_size_mb:25,max_split_size_mb:64' | grep warning
