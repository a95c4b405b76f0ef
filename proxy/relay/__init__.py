"""The state machine of one binary client connection. No I/O: bytes in, commands out."""
