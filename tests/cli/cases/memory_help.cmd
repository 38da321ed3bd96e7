memory --help
