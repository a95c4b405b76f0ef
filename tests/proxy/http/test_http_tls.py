"""TLS on either side of HTTP."""

import ssl
from pathlib import Path

import aiohttp
import pytest
import trustme
from support.http_stage import HTTP_TO_BINARY, Tls, body_of, message, stage
from support.relay_dialogue import ACCEPTED, LOGIN, open_session, session_opened
from support.scripted_session import HOST

from proxy.config.endpoints import ListenerTls, UpstreamTls


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.fixture
def secured(authority: trustme.CA, trusted: Path, tmp_path: Path) -> Tls:
    """TLS on both sides, with the client's certificate and ours asked for."""
    leaf, own = authority.issue_cert(HOST, "localhost"), authority.issue_cert("client@example.invalid")
    listener = ListenerTls(tmp_path / "server.pem", tmp_path / "server.key", trusted)
    upstream = UpstreamTls(trusted, None, tmp_path / "own.pem", tmp_path / "own.key")
    for issued, tls in ((leaf, listener), (own, upstream)):
        assert tls.certificate is not None
        assert tls.key is not None
        issued.cert_chain_pems[0].write_to_path(tls.certificate)
        issued.private_key_pem.write_to_path(tls.key)
    client = ssl.create_default_context(cafile=trusted)
    own.configure_cert(client)
    backend = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=trusted)
    leaf.configure_cert(backend)
    backend.verify_mode = ssl.CERT_REQUIRED
    return Tls(client, listener, upstream, backend)


async def test_https_on_both_sides_with_certificates_of_both(secured: Tls) -> None:
    async with stage(tls=secured) as on:
        post = on.start(message(open_session()))
        await on.backend.answer(message(open_session()), message(session_opened()))
        assert await body_of(post) == message(session_opened())


async def test_https_before_a_backend_that_speaks_sasl_without_tls(secured: Tls) -> None:
    async with stage(None, HTTP_TO_BINARY, tls=Tls(secured.client, secured.listener)) as on:
        post = on.start(message(open_session()))
        link = await on.link()
        await link.expect(LOGIN)
        link.send(ACCEPTED)
        await link.expect(open_session())
        link.send(session_opened())
        assert await body_of(post) == message(session_opened())


async def test_a_client_without_a_certificate_comes_no_further(
    secured: Tls, trusted: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    client = ssl.create_default_context(cafile=trusted)
    async with stage(tls=Tls(client, secured.listener, secured.upstream, secured.backend)) as on:
        with pytest.raises(aiohttp.ClientError):
            await on.post(message(open_session()))
        assert on.backend.asked.empty()
    assert "no TLS: the other side has shown no certificate" in caplog.text


async def test_a_backend_that_another_authority_vouches_for_is_not_spoken_to(secured: Tls, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    async with stage(tls=Tls(upstream=UpstreamTls(other), backend=secured.backend)) as on:
        status, body, _ = await on.post(message(open_session()))
        assert status == 503
        assert b"no TLS: " in body
        assert b"certificate" in body
        assert on.backend.asked.empty()
