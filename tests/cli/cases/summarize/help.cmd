summarize --help
