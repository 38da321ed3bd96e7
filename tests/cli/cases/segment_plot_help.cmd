segment_plot --help
