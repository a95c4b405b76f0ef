"""A pool of backends: load balancing, health checks, circuit breakers, DNS lookups, ZooKeeper registration."""
