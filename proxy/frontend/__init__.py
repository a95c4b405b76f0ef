"""Client connections over the binary protocol, and the state that all connections share. Shell."""
