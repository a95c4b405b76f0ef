"""The client's text: its tokens, its tree, its conditions, and the parts that a key query may repeat."""
