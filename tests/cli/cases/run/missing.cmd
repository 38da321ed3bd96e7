run --summary ./none-such
