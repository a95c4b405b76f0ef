"""Handles and the users who may use them, and the users that somebody may act for."""
