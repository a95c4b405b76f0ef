"""The client's text: its tokens, its tree, its conditions, and what of it may be repeated in a key query."""
