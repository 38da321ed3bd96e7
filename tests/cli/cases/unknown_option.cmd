version --frobnicate
