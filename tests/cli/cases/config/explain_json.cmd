config --json 'roundup_power2_divisions:[64:8,128:2,>:1]'
