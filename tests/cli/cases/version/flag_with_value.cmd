version --help=yes
