leaks --help
