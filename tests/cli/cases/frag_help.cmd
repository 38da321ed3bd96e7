frag --help
