trace $data/README.md
