version --help
