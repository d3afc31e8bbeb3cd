package web

import (
	"net/netip"
	"testing"
)

func TestCheckAddress(t *testing.T) {
	allow, err := ParseAllow([]string{"10.1.2.3", "fd00:1::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true, "2002:808:808::1": true,
		"127.0.0.1": false, "127.255.255.254": false, "0.0.0.0": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "172.32.0.1": true,
		"192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "100.128.0.1": true, "192.0.0.170": false,
		"198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "203.0.113.9": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false, "ff02::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::7f00:1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2002:a00:1::": false, "2002:c0a8:101::": false,
		"2001::1": false, "2001:db8::1": false,
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.1.2.4": false, "fd00:1::5": true,
	} {
		if err := checkAddress(netip.MustParseAddr(address), allow); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", address, err, want)
		}
	}
	if _, err := ParseAllow([]string{"example.org"}); err == nil {
		t.Error("a name is no address")
	}
}
