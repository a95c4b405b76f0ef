"""Hashes of administrators' passwords, by scrypt.

>>> is_password("secret", hash_of("secret", b"a salt"))
True
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

# 2 ** 15 blocks of 8 times 128 bytes: 32 MB and a tenth of a second for each guess.
_LOG_COST: Final = 15
_BLOCKS: Final = 8
_LANES: Final = 1
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
# Twice the memory that the parameters above take. A hash with larger ones is refused.
_MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024


def hash_of(password: str, salt: bytes | None = None) -> str:
    """The hash of a password, with the parameters that it was made by."""
    salt = os.urandom(_SALT_BYTES) if salt is None else salt
    hashed = _scrypt(password, salt, _LOG_COST, _BLOCKS, _LANES)
    parts = b64encode(salt).decode(), b64encode(hashed).decode()
    return f"scrypt${_LOG_COST}${_BLOCKS}${_LANES}${parts[0]}${parts[1]}"


def is_password(password: str, hashed: str) -> bool:
    """True if this is the password of the hash. Takes a tenth of a second: not on the event loop."""
    try:
        _, log_cost, blocks, lanes, salt, wanted = hashed.split("$")
        found = _scrypt(password, b64decode(salt), int(log_cost), int(blocks), int(lanes))
        return hmac.compare_digest(found, b64decode(wanted))
    except (ValueError, Base64Error, MemoryError):
        return False


def _scrypt(password: str, salt: bytes, log_cost: int, blocks: int, lanes: int) -> bytes:
    return hashlib.scrypt(
        password.encode(errors="surrogatepass"),
        salt=salt,
        n=2**log_cost,
        r=blocks,
        p=lanes,
        maxmem=_MEMORY_BYTES_MAX,
        dklen=_HASH_BYTES,
    )
