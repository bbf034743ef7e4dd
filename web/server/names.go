// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// names are what browsers write in Host, the one of links first. given are those of l.Hosts: a
// proxy before the server may have another port, and leaves out that of its scheme.
func (l Listen) names(bound net.Addr, secure bool) (hosts, given []string) {
	at, _ := netip.ParseAddrPort(bound.String()) // as net.Listen wrote it; none has no name
	_, port, _ := net.SplitHostPort(bound.String())
	for _, h := range l.Hosts {
		h = strings.ToLower(h)
		if _, _, err := net.SplitHostPort(h); err != nil {
			name := strings.Trim(h, "[]")
			given = append(given, net.JoinHostPort(name, port), strings.TrimSuffix(net.JoinHostPort(name, ""), ":"))
			continue
		}
		given = append(given, h, withoutPort(h, true))
		if !secure {
			given = append(given, withoutPort(h, false))
		}
	}
	hosts = slices.Clone(given)
	if addr := at.Addr().Unmap().WithZone(""); addr.IsValid() && !addr.IsUnspecified() {
		own := []string{addr.String()}
		if addr.IsLoopback() {
			own = append(own, "localhost")
		}
		for _, name := range own {
			name = net.JoinHostPort(name, port)
			hosts = append(hosts, name, withoutPort(name, secure))
		}
	}
	return unique(hosts), unique(given)
}

// withoutPort is a name without the port of its scheme, which browsers leave out.
func withoutPort(name string, secure bool) string {
	if secure {
		return strings.TrimSuffix(name, ":443")
	}
	return strings.TrimSuffix(name, ":80")
}

// unique keeps the first of each.
func unique(list []string) (out []string) {
	for _, x := range list {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

func urlOf(host string, secure bool) string {
	if secure {
		return "https://" + host + "/"
	}
	return "http://" + host + "/"
}

// URLOf is where the page of a server is that listens there: over TLS on loopback only with a certificate.
func URLOf(l Listen) (string, error) {
	host, port, err := net.SplitHostPort(l.Address)
	if host == "localhost" {
		host = "127.0.0.1"
	}
	at, wrong := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil || wrong != nil {
		return "", errkind.New(errkind.Invalid, "%q is no address with a port", l.Address).Do("Write it as 127.0.0.1:8470 or [::1]:8470.")
	}
	secure := l.Certificate != "" || !at.Addr().Unmap().IsLoopback()
	hosts, _ := l.names(net.TCPAddrFromAddrPort(at), secure)
	if len(hosts) == 0 {
		return "", errkind.New(errkind.Invalid, "%s is every address of this machine, and none that browsers ask for", host).Do("Name the one of the link with --host.")
	}
	return urlOf(hosts[0], secure), nil
}
