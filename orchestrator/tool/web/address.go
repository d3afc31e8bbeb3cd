// Package web has the tools that read the network: FetchURL and SearchWeb. Their results count
// as evidence from outside. It is the only package that uses go-readability and
// html-to-markdown.
package web

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// blocked are the addresses outside the public internet, from the registries
// https://www.iana.org/assignments/iana-ipv4-special-registry and
// https://www.iana.org/assignments/iana-ipv6-special-registry.
const blocked = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 " +
	"192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 " +
	"::/128 ::1/128 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 3fff::/20 5f00::/16 fc00::/7 fe80::/10 " +
	"fec0::/10 ff00::/8"

// checkAddress returns why an address must not be reached. allow holds a user's exceptions.
func checkAddress(a netip.Addr, allow []netip.Prefix) error {
	a = a.Unmap().WithZone("")
	for _, p := range allow {
		if p.Contains(a) {
			return nil
		}
	}
	for p := range strings.FieldsSeq(blocked) {
		if netip.MustParsePrefix(p).Contains(a) {
			return fmt.Errorf("%v is not a public address (%s)", a, p)
		}
	}
	// The IPv6 forms of an IPv4 address, with the byte at which it begins: IPv4-compatible,
	// NAT64, 6to4.
	for _, e := range []struct {
		prefix string
		at     int
	}{{"::/96", 12}, {"64:ff9b::/96", 12}, {"2002::/16", 2}} {
		if netip.MustParsePrefix(e.prefix).Contains(a) {
			b := a.As16()
			v4 := netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
			if err := checkAddress(v4, allow); err != nil {
				return fmt.Errorf("%v stands for %v: %w", a, v4, err)
			}
		}
	}
	return nil
}

// ParseAllow parses addresses and prefixes that are exceptions.
func ParseAllow(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a, aerr := netip.ParseAddr(s)
			if aerr != nil {
				return nil, fmt.Errorf("%q: want an address such as 10.1.2.3, or a prefix such as 10.0.0.0/8", s)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p.Masked())
	}
	return slices.Clip(out), nil
}
