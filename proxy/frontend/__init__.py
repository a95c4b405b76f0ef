"""Client connections over the binary protocol, and what all connections share. Shell."""
