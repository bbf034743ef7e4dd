// SPDX-License-Identifier: Apache-2.0

// Package tftp serves first-stage loaders, and nothing else, to known clients.
// It wraps github.com/pin/tftp once: from memory, with bounds on transfers and
// on their time, and with evidence for each of them. Single-port mode, 15 to 30
// times slower, is used on networks in memory or translated ones only: the library
// opens the sockets of its other mode by itself, from the operating system.
package tftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pin/tftp/v3"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// Port is the port of RFC 1350.
const Port = 69

// Bounds. A loader of 200 KiB takes 140 round trips; with one packet in five
// lost it is done within the deadline.
const (
	timeout      = time.Second     // for one acknowledgement, then the block is sent again
	retries      = 8               // of one block
	longest      = 2 * time.Minute // one transfer
	perClient    = 4               // at once: firmware opens a second transfer before it ends the first
	transfers    = 512             // at once, all clients
	blockSize    = 1468            // bytes; 1500 less the headers of IPv4, UDP and TFTP
	longestName  = 128             // bytes of a file name that is repeated in evidence
	sizeQuestion = "asked for the size only"
)

// What words of the evidence.
const (
	eventStart   = "start"
	EventDone    = "done"
	eventFailed  = "failed"
	eventRefused = "refused"
	eventDropped = "dropped" // a source that was refused too often
)

// Config is what a server serves and whom it asks.
type Config struct {
	Loaders  loader.Set
	Source   boot.Source
	Recorder boot.Recorder
}

// Server serves one socket. New, then Serve once.
type Server struct {
	cfg Config

	block *blocker // nil: not on a socket of the operating system

	mu     sync.Mutex
	active map[netip.Addr]int // transfers of each client; guarded by mu
	total  int                // guarded by mu
}

// New returns a server without a socket.
func New(cfg Config) *Server { return &Server{cfg: cfg, active: map[netip.Addr]int{}} }

// Serve answers read requests on conn until ctx is done, and then returns nil:
// running transfers are cut, conn is closed, all goroutines have ended.
func (s *Server) Serve(ctx context.Context, conn net.PacketConn) error {
	srv := tftp.NewServer(func(name string, rf io.ReaderFrom) error { return s.read(ctx, name, rf) }, nil)
	srv.SetTimeout(timeout)
	srv.SetRetries(retries)
	srv.SetBackoff(func(int) time.Duration { return 0 }) // the default adds up to a second to each time-out
	srv.SetBlockSize(blockSize)
	if _, socket := conn.(*net.UDPConn); !socket {
		return serveSingle(ctx, srv, conn)
	}
	s.block = newBlocker(conn)
	defer s.block.stop()
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		conn.Close() // Shutdown alone misses a Serve that has not begun to read
		srv.Shutdown()
	})
	err := srv.Serve(conn)
	if stop() {
		conn.Close()
		if err != nil {
			return errkind.New(errkind.Internal, "tftp: serve %s: %w", conn.LocalAddr(), err)
		}
		return nil
	}
	<-done
	return nil
}

// read handles one read request.
func (s *Server) read(ctx context.Context, name string, rf io.ReaderFrom) error {
	from := rf.(tftp.OutgoingTransfer).RemoteAddr()
	peer := from.AddrPort().Addr().Unmap()
	c, known := s.cfg.Source.ByAddress(peer)
	ev := boot.Evidence{Node: c.Node, Address: peer, Proto: boot.TFTP}
	if len(c.MACs) == 1 {
		ev.MAC = c.MACs[0]
	}
	data, err := s.admit(peer, c, known, name)
	if err != nil {
		s.refuse(ev, err)
		return err
	}
	defer s.release(peer)
	name = cleanName(name)
	s.recordEvent(ev, eventStart, name, 0)
	src := &source{Reader: bytes.NewReader(data), ctx: ctx, until: time.Now().Add(longest)}
	n, err := rf.ReadFrom(src)
	switch {
	case err == nil:
		s.recordEvent(ev, EventDone, name, n)
	case !src.read && ctx.Err() == nil:
		// UEFI asks with tsize, and ends that transfer with an error (seen on EDK2).
		s.recordEvent(ev, EventDone, name+": "+sizeQuestion, 0)
	default:
		s.recordEvent(ev, eventFailed, fmt.Sprintf("%s: %d of %d bytes: %v", name, n, len(data), err), n)
	}
	return nil // the transfer has told the client by itself
}

// refuse tells of a refusal, and of the one after which the source is dropped.
func (s *Server) refuse(ev boot.Evidence, err error) {
	s.recordEvent(ev, eventRefused, err.Error(), 0)
	// A node's address is not dropped: anybody can send in its name.
	if s.block != nil && ev.Node == "" && s.block.refused(ev.Address, time.Now()) {
		s.recordEvent(ev, eventDropped, fmt.Sprintf("%s was refused more than %d times in %v: what it sends is dropped for %v", ev.Address, refusals, refusalsIn, blockTime), 0)
	}
}

// admit finds the bytes for a request or says why it is refused. It counts the
// transfer; release counts it off.
func (s *Server) admit(peer netip.Addr, c boot.Client, known bool, name string) ([]byte, error) {
	switch {
	case !known:
		return nil, fmt.Errorf("no node of the inventory has address %s", peer)
	case c.Kind == boot.BMC:
		return nil, fmt.Errorf("%s is the BMC of %s and boots nothing", peer, c.Node)
	}
	data, ok := s.cfg.Loaders[cleanName(name)]
	if !ok {
		return nil, fmt.Errorf("%.*q is no first-stage loader; there are %s", longestName, name, strings.Join(s.cfg.Loaders.Names(), ", "))
	}
	if path.Base(name) == loader.MOKX64 && !c.MOK {
		return nil, fmt.Errorf("%s is not for %s: no certificate is enrolled there by its console", loader.MOKX64, c.Node)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= transfers || s.active[peer] >= perClient {
		return nil, fmt.Errorf("too many transfers at once: %d, of them %d to %s", s.total, s.active[peer], peer)
	}
	s.total++
	s.active[peer]++
	return data, nil
}

func (s *Server) release(peer netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.active[peer]--; s.active[peer] == 0 {
		delete(s.active, peer)
	}
}

func (s *Server) recordEvent(e boot.Evidence, what, detail string, n int64) {
	e.Time, e.What, e.Detail, e.Bytes, e.Refused = time.Now(), what, detail, n, what == eventRefused || what == eventDropped
	s.cfg.Recorder.Record(e)
}

// cleanName takes off the leading slashes that some firmware adds, and those that shim doubles where
// it is in a folder. Everything else must be the loader's name exactly.
func cleanName(name string) string {
	for strings.Contains(name, "//") {
		name = strings.ReplaceAll(name, "//", "/")
	}
	return strings.TrimPrefix(name, "/")
}

// source is a loader's bytes that end early when the server stops or the
// transfer takes too long. It seeks, so that tsize is answered.
type source struct {
	*bytes.Reader
	ctx   context.Context // of the server; a handler of the library is given none
	until time.Time
	read  bool // at least one block was asked for
}

var errSlow = errors.New("the transfer took longer than two minutes")

// Read gives the next bytes, or the reason why there are none any more.
func (s *source) Read(b []byte) (int, error) {
	s.read = true
	if err := s.ctx.Err(); err != nil {
		return 0, fmt.Errorf("the boot service stops: %w", err)
	}
	if time.Now().After(s.until) {
		return 0, errSlow
	}
	return s.Reader.Read(b)
}
