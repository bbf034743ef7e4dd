// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/web/guard"
)

// socket is an open socket with who may ask there: on loopback whoever reaches it, elsewhere
// over TLS who has the token.
type socket struct {
	what        string // that is served: web page
	http        *http.Server
	ln          net.Listener
	host        string // for links
	token       string
	secure      bool
	fingerprint string
}

// listen opens a socket. Elsewhere than on loopback it is one of TLS.
func listen(l Listen, what string) (*socket, error) {
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "%s: %q is no address with a port: %w", what, l.Address, err).Do("Write it as 127.0.0.1:8470 or [::1]:8470.")
	}
	ip := net.ParseIP(host)
	if ip == nil && host != "localhost" {
		return nil, errkind.New(errkind.Invalid, "%s: %q is no IP address to listen on", what, host).Do("Give an address of this machine, and names of it with --host, or the flag of that name for this socket.")
	}
	if ip.IsUnspecified() && len(l.Hosts) == 0 {
		return nil, errkind.New(errkind.Invalid, "%s: %s is every address of this machine, and none that clients ask for", what, host).Do("Name those with --host, or the flag of that name for this socket, or listen on one address.")
	}
	ln, err := net.Listen("tcp", l.Address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, errkind.New(errkind.Conflict, "%s: %w", what, err).Do("Perhaps another ironrail serves there. Give another port.")
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	s := &socket{what: what, ln: netutil.LimitListener(ln, maxConnections)}
	s.secure = l.Certificate != "" || !s.isLoopback() // localhost may be anything
	return s, nil
}

// protect makes the guard of the socket and its TLS, with what lies in the state's folder: the
// token, and a certificate where none is given. token is set where it is needed on loopback too.
func (s *socket) protect(l Listen, folder string, token bool, now func() time.Time) (*guard.Guard, error) {
	hosts, given := l.names(s.ln.Addr(), s.secure)
	s.host = hosts[0]
	if token || !s.isLoopback() {
		var err error
		if s.token, err = guard.ReadToken(folder, true); err != nil {
			return nil, err
		}
	}
	s.http = &http.Server{ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0)} // what clients do wrong is not for the terminal of a run
	if s.secure {
		c, print, err := guard.LoadCertificate(l.Certificate, l.Key, folder, hosts, now())
		if err != nil {
			return nil, err
		}
		s.fingerprint = print
		s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
	}
	return guard.New(guard.Options{Hosts: hosts, Proxy: given, Open: s.isLoopback(), Secure: s.secure, Token: s.token, Now: now}), nil
}

func (s *socket) isLoopback() bool {
	a, ok := s.ln.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// URL is where the socket is.
func (s *socket) URL() string { return urlOf(s.host, s.secure) }

// Link is where a browser logs in once; empty where nobody needs to.
func (s *socket) Link(now time.Time) string {
	if s.token == "" {
		return ""
	}
	return s.URL() + "login?" + guard.MakeLink(s.token, now)
}

// Fingerprint is the SHA-256 of the certificate; empty without TLS.
func (s *socket) Fingerprint() string { return s.fingerprint }

// Close closes a socket that is not served.
func (s *socket) Close() error { return s.ln.Close() }

// answer answers until ctx is done, and then closes the socket.
func (s *socket) answer(ctx context.Context) (err error) {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer stop()
	if s.secure {
		err = s.http.ServeTLS(s.ln, "", "")
	} else {
		err = s.http.Serve(s.ln)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	return nil
}
