hlep
