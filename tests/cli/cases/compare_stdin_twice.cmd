compare - -
