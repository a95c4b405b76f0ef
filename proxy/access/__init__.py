"""The users who may use each handle, and the users for whom a login may act."""
