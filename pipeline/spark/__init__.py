"""The running Spark and its JVM."""
