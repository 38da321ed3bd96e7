config --env expandable_segments:True
