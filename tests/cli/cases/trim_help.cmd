trim --help
