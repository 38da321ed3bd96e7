flame --help
