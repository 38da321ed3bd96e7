config --markdown expandable_segments:True
