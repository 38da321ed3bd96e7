steps --help
