replay "$data/snapshots/multistream.pickle.gz" --conf "" --conf expandable_segments:True
