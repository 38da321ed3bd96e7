version --color
