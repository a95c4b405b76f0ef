"""POST /explain on the admin port of a proxy that runs."""

import json
from base64 import b64encode
from typing import Any
from urllib.request import Request, urlopen


def explanation_of(admin_url: str, user: str = "anonymous", seconds_max: float = 60, **asked: Any) -> Any:
    """The answer to this request of a user, at a backend that takes any password."""
    login = b64encode(f"{user}:x".encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}
    request = Request(f"{admin_url}/explain", json.dumps(asked).encode(), headers)
    with urlopen(request, timeout=seconds_max) as answer:
        return json.load(answer)
