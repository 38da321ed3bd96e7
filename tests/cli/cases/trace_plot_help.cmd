trace_plot --help
