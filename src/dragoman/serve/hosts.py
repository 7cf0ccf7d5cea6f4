"""Names of hosts, and the names of the machine itself."""

import ipaddress

from starlette.requests import Request

FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers that proxies add."""


def is_loopback(host: str) -> bool:
    """True for a name or an address of the machine itself.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    host = host.lower().removesuffix(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_local(request: Request) -> bool:
    """True for a request from the machine itself that no proxy has handed on."""
    is_from_here = request.client is not None and is_loopback(request.client.host)
    return is_from_here and not any(name in request.headers for name in FORWARDED)


def host_name(host: str) -> str:
    """The name in a `Host` header, without the port.

    >>> host_name("localhost:5000"), host_name("[::1]:5000"), host_name("::1")
    ('localhost', '::1', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def network_of(host: str) -> str:
    """The address that identifies a client: the whole IPv4 address, or the /64 network of an IPv6 address, which is the
    least that a household has.

    >>> network_of("::ffff:192.0.2.1"), network_of("2001:db8:0:1:a:b:c:d"), network_of("fe80::1%eth0"), network_of("")
    ('192.0.2.1', '2001:db8:0:1::/64', 'fe80::/64', 'unknown')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host or "unknown"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
