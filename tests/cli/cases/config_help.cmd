config --help
