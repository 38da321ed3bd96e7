help -- version
