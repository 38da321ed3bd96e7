summarize /nonexistent/r
