"""The HTTP admin port: explain, metrics, health and the backends."""
