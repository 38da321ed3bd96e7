version --color=never
