config 'expandable_segments:True,max_split_size_mb:40MB'
