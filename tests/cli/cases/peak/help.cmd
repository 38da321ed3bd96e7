peak --help
