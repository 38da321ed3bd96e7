man peek
