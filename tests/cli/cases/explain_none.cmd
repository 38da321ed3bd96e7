explain zzzzzzzz
