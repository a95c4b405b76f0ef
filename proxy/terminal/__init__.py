"""The admin port's answers in a terminal: `starpruner top`, `digests` and `report`."""
