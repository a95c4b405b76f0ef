"""Tools for those who work on the repository: pages that are made from the code, and figures about it."""
