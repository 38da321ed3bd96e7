man --help
