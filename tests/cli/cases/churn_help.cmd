churn --help
