view --help
