// SPDX-License-Identifier: Apache-2.0

// Package httpboot is the HTTP side of the boot services: loaders, generated
// iPXE scripts, and what callers mount (kernels, images, repositories). It is
// made for firmware: HTTP/1.1, GET and HEAD, ranges, no redirects, no compression.
// It answers known clients only, by their source address.
package httpboot

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/connlimit"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// Bounds of the listener. writeTime is for one response: 256 MiB of ramdisk at
// 0.3 MB/s. A client that vanished is found earlier, by TCP_USER_TIMEOUT.
const (
	headerTime = 10 * time.Second
	idleTime   = 60 * time.Second
	writeTime  = 15 * time.Minute
	graceTime  = 2 * time.Second
	maxHeader  = 16 << 10
)

// limits of connections: 4,096 of which a quarter is for nodes with an open boot
// attempt, 32 for each known address (a package manager and an image together have
// ten), and 64 for all others, who are only told why they get nothing. Four thousand
// nodes that share 1 Gb/s have 30 KB/s each.
var limits = connlimit.Limits{Total: 4096, Reserve: 1024, Known: 32, Unknown: 4, AllUnknown: 64, Rate: 16 << 10, Grace: 20 * time.Second}

// Mount puts a handler into the service. It sees GET and HEAD of known clients
// only, with the whole path, cleaned of double slashes and dots. It must not list
// directories; redirects of it become 404, since firmware follows none.
type Mount struct {
	Prefix  string // begins and ends with a slash: /boot/, /images/, /repo/
	Handler http.Handler
	// UnknownClient is told of requests of clients that are not known, which are refused. It
	// must not block. Nil: nobody is told.
	UnknownClient func(*http.Request)
}

// Config is what is served.
type Config struct {
	Root     netip.AddrPort // address and port that clients reach us at, for URLs in scripts
	Loaders  loader.Set
	Mounts   []Mount // the longest prefix that matches serves a path
	Source   boot.Source
	Recorder boot.Recorder
}

// Server is an http.Handler, and serves one listener. It is safe for concurrent use.
type Server struct {
	cfg Config
}

// New returns a server; a mount whose prefix is not of the form /x/ is an error.
func New(cfg Config) (*Server, error) {
	for _, m := range cfg.Mounts {
		if !strings.HasPrefix(m.Prefix, "/") || !strings.HasSuffix(m.Prefix, "/") || m.Handler == nil {
			return nil, errkind.New(errkind.Internal, "http: mount %q: a prefix begins and ends with a slash and has a handler", m.Prefix)
		}
	}
	return &Server{cfg: cfg}, nil
}

// Serve answers on ln until ctx is done and then returns nil: running transfers
// have two seconds to end, all goroutines have ended.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, Protocols: new(http.Protocols),
		ErrorLog: log.New(io.Discard, "", 0), // broken clients; what matters is evidence
	}
	srv.Protocols.SetHTTP1(true) // HTTP/2 halves the throughput of one large file
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			srv.Close()
		}
	})
	err := srv.Serve(connlimit.New(ln, limits, s.cfg.Source, s.cfg.Recorder, boot.HTTP))
	if stop() {
		return errkind.New(errkind.Internal, "http: serve %s: %w", ln.Addr(), errors.Join(err, srv.Close()))
	}
	<-done
	return nil
}
