segment_plot -o - $data/snapshots/tiny.pickle.gz | grep h1
