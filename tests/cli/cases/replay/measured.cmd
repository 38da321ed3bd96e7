replay "$data/snapshots/resnet_sizes.pickle.gz" --conf expandable_segments:True --measured "$data/measured.json"
