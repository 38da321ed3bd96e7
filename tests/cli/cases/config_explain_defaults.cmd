config ''
