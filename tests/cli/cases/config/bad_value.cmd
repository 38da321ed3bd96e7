config max_split_size_mb:2
