// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/network"
)

// Limits of the firmware's HTTP clients.
const (
	dialTime  = 30 * time.Second
	stallTime = 60 * time.Second // without a byte
)

// errStatus is an answer that is not 200. Firmware follows no redirect.
var errStatus = errors.New("HTTP status")

// fetchURL gets a URL and writes its body; with HEAD there is none. It returns the
// length that was announced (-1: none) and how many bytes came. Names are not
// resolved: the host is an address.
func fetchURL(ctx context.Context, n network.Network, method, from, agent string, body io.Writer) (announced, got int64, err error) {
	u, host, err := parseTarget(from)
	if err != nil {
		return -1, 0, err
	}
	dial, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := n.Dial(dial, "tcp", host)
	if err != nil {
		return -1, 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	announced, got, err = sendRequest(conn, method, u, agent, body)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return announced, got, err
}

// parseTarget checks a URL.
func parseTarget(s string) (u *url.URL, host string, err error) {
	if u, err = url.Parse(s); err != nil {
		return nil, "", err
	}
	at, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(strings.Trim(u.Host, "[]")); err != nil {
			return nil, "", fmt.Errorf("%q is not the address of a server", u.Host)
		}
		at = netip.AddrPortFrom(a, 80)
	}
	if u.Scheme != "http" || u.User != nil {
		return nil, "", fmt.Errorf("%q is not an HTTP URL that firmware takes", s)
	}
	return u, at.String(), nil
}

// sendRequest returns one request on a fresh connection.
func sendRequest(conn net.Conn, method string, u *url.URL, agent string, body io.Writer) (announced, got int64, err error) {
	s := stalling{conn}
	_, err = fmt.Fprintf(s, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nConnection: close\r\n\r\n", method, u.RequestURI(), u.Host, agent)
	if err != nil {
		return -1, 0, err
	}
	r, err := http.ReadResponse(bufio.NewReaderSize(s, 4<<10), &http.Request{Method: method})
	if err != nil {
		return -1, 0, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return r.ContentLength, 0, fmt.Errorf("%w %d", errStatus, r.StatusCode)
	}
	got, err = io.Copy(body, r.Body)
	if err == nil && method == http.MethodGet && r.ContentLength >= 0 && got != r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	return r.ContentLength, got, err
}

// stalling gives each read and write a deadline of its own.
type stalling struct{ net.Conn }

// Read waits for bytes no longer than stallTime.
func (s stalling) Read(b []byte) (int, error) {
	if err := s.SetReadDeadline(time.Now().Add(stallTime)); err != nil {
		return 0, err
	}
	return s.Conn.Read(b)
}

// Write waits for room no longer than stallTime.
func (s stalling) Write(b []byte) (int, error) {
	if err := s.SetWriteDeadline(time.Now().Add(stallTime)); err != nil {
		return 0, err
	}
	return s.Conn.Write(b)
}
