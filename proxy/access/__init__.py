"""Handles and the users who may use them; users, and the others for whom they may act."""
