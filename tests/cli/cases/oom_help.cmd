oom --help
