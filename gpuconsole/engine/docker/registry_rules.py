"""Engines' words about pulls and registries, and what they mean."""

from __future__ import annotations

from gpuconsole.engine.docker.refusal_rules import rule
from gpuconsole.engine.pullfailures import (
    DownloadBroken,
    ImageUnknown,
    LoginNeeded,
    PlatformMissing,
    RateLimited,
    RegistryUnreached,
)

REGISTRY_RULES = (
    rule(
        r"manifest(?: for (\S+))? (?:not found|unknown)|(\S+): not found",
        ImageUnknown,
        "The registry has no such image{ 1}.",
        "Look at the tag's spelling; old tags get deleted by their publishers.",
    ),
    rule(
        r"no matching manifest for (\S+)",
        PlatformMissing,
        "The image is not published for this machine's processor ({1}).",
        "Choose another image.",
    ),
    rule(
        r"toomanyrequests|pull rate limit|429 Too Many Requests",
        RateLimited,
        "The registry's limit on pulls is reached.",
        "Log in with 'docker login', or wait some hours; trying again at once does not help.",
    ),
    rule(
        r"unauthorized|authentication required|pull access denied|no basic auth credentials|requested access to the"
        r"|401 Unauthorized|403 Forbidden|incorrect username or password",
        LoginNeeded,
        "The registry does not give out this image without a login, or has no image of this name.",
        "Look at the name, then 'docker login REGISTRY'; nvcr.io takes the user $oauthtoken and an NGC API key.",
    ),
    rule(
        r"(?:layer|filesystem layer|manifest|image) verification failed|unexpected commit digest|digest mismatch"
        r"|does not match (?:its )?digest|failed size validation|unexpected commit size",
        DownloadBroken,
        "What arrived is not what its digest promises.",
        "Pull again; if it stays so, the copy in the registry, or a proxy or mirror on the way, is damaged.",
    ),
    rule(
        r"unexpected EOF|unexpected end of|connection reset by peer|httpReadSeeker"
        r"|short read|(?:^|: )EOF(?:;|$)",
        DownloadBroken,
        "The download broke off.",
        "Pull again: finished layers are kept; if the same layer fails again, look at network, proxy and disk.",
    ),
    rule(
        r"(no such host|TLS handshake timeout|x509: [^;]*|proxyconnect [^;]*|connection refused|i/o timeout"
        r"|network is unreachable|no route to host|deadline exceeded|Client\.Timeout|context canceled"
        r"|server gave HTTP response to HTTPS client)",
        RegistryUnreached,
        "The engine cannot reach the registry: {1}.",
        "The engine uses its own proxy and DNS settings, not this shell's: look at 'docker info'.",
    ),
)
