scale --help
