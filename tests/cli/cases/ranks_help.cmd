ranks --help
