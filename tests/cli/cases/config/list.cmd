config
