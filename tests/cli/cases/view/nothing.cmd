view
