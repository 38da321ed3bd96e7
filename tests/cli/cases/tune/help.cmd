tune --help
