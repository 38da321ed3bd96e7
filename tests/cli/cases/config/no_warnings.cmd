config 'garbage_collection_threshold:0.8,per_process_memory_fraction:0.5' | grep -c warning || true
