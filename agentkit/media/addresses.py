"""Functions that check if an IP address is public or local.

By default, URLs in messages are fetched from public addresses only, so that no URL in a message can reach an
internal service.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

__all__ = ["is_local", "is_public"]

_Address: TypeAlias = IPv4Address | IPv6Address

_RESERVED = tuple(
    ip_network(block)
    for block in (
        # The complete IANA IPv4 Special-Purpose Address Registry.
        # The list in the module `ipaddress` is not used, because the list depends on the Python version.
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
        "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",  # a public address that Azure uses for internal services
        # The IPv6 addresses from the IANA registry that are in the global unicast range.
        # Assigned to IETF protocols (including Teredo), documentation, 6to4 (which embeds IPv4 addresses), AS112.
        "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
    )
)  # fmt: skip

_GLOBAL = ip_network("2000::/3")  # the only IPv6 range from which IANA assigns unicast addresses (RFC 4291, 2.4)
_NAT64 = ip_network("64:ff9b::/96")  # the last 32 bits of these addresses are an IPv4 address (RFC 6052, 2.1)

_LOCAL = tuple(
    ip_network(block)
    for block in (
        # Loopback, private networks (RFC 1918), carrier-grade NAT (RFC 6598), and unique local IPv6 (RFC 4193).
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7",
    )
)  # fmt: skip


# Private addresses of the metadata services of Alibaba, AWS and Google. These services return access keys.
_METADATA = tuple(ip_network(block) for block in ("100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/32"))


def is_public(text: str) -> bool:
    """Returns True if a text is a public IP address.

    An IPv6 address that embeds an IPv4 address is public if the IPv4 address is public.

    Example:
        >>> is_public("93.184.216.34"), is_public("::ffff:10.0.0.1")
        (True, False)
    """
    address = _parse_address(text)
    if address is None or any(address in block for block in _RESERVED if block.version == address.version):
        return False
    return address.version == 4 or address in _GLOBAL


def is_local(text: str) -> bool:
    """Returns True if a text is an IP address of this machine or of a private network.

    Returns False for link-local addresses and for cloud metadata services, because metadata services return access
    keys.
    """
    address = _parse_address(text)
    if address is None or any(address in block for block in _METADATA if block.version == address.version):
        return False
    return any(address in block for block in _LOCAL if block.version == address.version)


def _parse_address(text: str) -> _Address | None:
    """Parses an IP address. Returns None if the text is not an IP address.

    If an IPv6 address embeds an IPv4 address, the result is the IPv4 address.
    """
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
