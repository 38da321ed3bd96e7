help versoin
