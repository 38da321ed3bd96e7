segments --help
