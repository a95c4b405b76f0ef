"""The HTTP admin port: pages, and routes for statements, explain, metrics, health and the backends."""
