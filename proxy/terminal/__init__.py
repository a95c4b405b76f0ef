"""The admin port's answers in a terminal: `starpruner top` and `starpruner digests`."""
