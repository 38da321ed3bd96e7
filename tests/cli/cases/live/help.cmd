live --help
