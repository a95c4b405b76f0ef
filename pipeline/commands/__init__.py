"""One module for each command of `starpruner pipeline`."""
