summary --help
