run --record $tmp/run.pickle -- sh -c "echo \$# \$1; exit 5" sh --policy
