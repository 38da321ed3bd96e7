profile --help
