version now
