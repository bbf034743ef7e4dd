// SPDX-License-Identifier: Apache-2.0

package netboot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
	"github.com/ironrail/ironrail/provision/netboot/grub"
	"github.com/ironrail/ironrail/provision/netboot/httpboot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
	"github.com/ironrail/ironrail/provision/netboot/ra"
	"github.com/ironrail/ironrail/provision/netboot/tftp"
)

// The defaults of Config.
const (
	DefaultHTTPPort = 80
	DefaultLease    = 24 * time.Hour
	EmptyRA         = "empty" // the one value of Config.RouterAdvertisement that is not ""
)

// vanished is how long sent data may stay unacknowledged before a connection is
// given up: a node that was powered off in a download.
const vanished = 60 * time.Second

// Server is the open boot services. Open, then Serve once or Close.
type Server struct {
	dhcp  *dhcp.Server
	http  *httpboot.Server
	tftp  *tftp.Server
	ra    *ra.Server  // nil: not asked for
	watch *dhcp.Watch // nil: not asked for

	untagged string // as Untagged has it

	httpLn   net.Listener
	tftpConn net.PacketConn
}

// Open reads the loaders and opens all sockets; where one cannot be opened, it
// closes the others and says which. Nothing is answered before Serve.
func Open(ctx context.Context, cfg Config, src Source, w Recorder) (_ *Server, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	set, err := loader.Read(cfg.LoaderDir)
	if err != nil {
		return nil, fmt.Errorf("netboot: %w", err)
	}
	set = set.With(cfg.Loaders)
	s := &Server{untagged: set.Untagged(loader.SNPOnly)}
	defer func() {
		if err != nil {
			s.Close()
			err = fmt.Errorf("netboot: %w", err)
		}
	}()
	if s.httpLn, err = listenTCP(ctx, cfg, netip.AddrPortFrom(cfg.Address, cfg.HTTPPort)); err != nil {
		return nil, err
	}
	root := s.httpLn.Addr().(*net.TCPAddr).AddrPort()
	s.http, err = httpboot.New(httpboot.Config{Root: root, Loaders: set, Mounts: cfg.Mounts, Source: src, Recorder: w})
	if err != nil {
		return nil, err
	}
	s.tftp = tftp.New(tftp.Config{Loaders: withGRUB(set, root), Source: src, Recorder: w})
	if s.tftpConn, err = listenUDP(ctx, cfg, netip.AddrPortFrom(cfg.Address, cfg.TFTPPort)); err != nil {
		return nil, err
	}
	if cfg.WatchOthers {
		if s.watch, err = dhcp.OpenWatch(ctx, dhcp.WatchConfig{Network: cfg.Network, Kept: cfg.Kept, Interface: cfg.Interface, Address: cfg.Address, BootFiles: cfg.Proxy}); err != nil {
			return nil, err
		}
	}
	s.dhcp, err = dhcp.Open(ctx, dhcp.Config{Network: cfg.Network, Kept: cfg.Kept, Interface: cfg.Interface, Port: cfg.DHCPPort, Source: src, Recorder: w,
		Policy: bootPolicy(cfg, root.Port(), set), Watch: s.watch, TwoUUIDs: cfg.TwoUUIDs})
	if err != nil {
		return nil, err
	}
	if cfg.RouterAdvertisement == EmptyRA {
		s.ra, err = ra.Open(ctx, cfg.Interface, src, w)
	}
	return s, err
}

// withGRUB adds, where there is a GRUB, what leads it from TFTP to HTTP.
func withGRUB(set loader.Set, root netip.AddrPort) loader.Set {
	if !slices.ContainsFunc(set.Names(), func(name string) bool { return path.Base(name) == loader.GRUBX64 || name == loader.GRUBARM64 }) {
		return set
	}
	more := loader.Set{}
	for _, name := range grub.Names() {
		more[name] = []byte(grub.ChainConfig(root))
	}
	return set.With(more)
}

// Serve answers until ctx is done, and then returns nil with all sockets closed
// and all goroutines ended. If one service fails, the others are stopped and its
// error is returned.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	services := []func(context.Context) error{
		s.dhcp.Serve,
		func(ctx context.Context) error { return s.tftp.Serve(ctx, s.tftpConn) },
		func(ctx context.Context) error { return s.http.Serve(ctx, s.httpLn) },
	}
	if s.ra != nil {
		services = append(services, s.ra.Serve)
	}
	if s.watch != nil {
		services = append(services, s.watch.Run)
	}
	errs := make([]error, len(services))
	var wg sync.WaitGroup
	for i, serve := range services {
		wg.Go(func() {
			defer cancel()
			errs[i] = serve(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close closes the sockets of a server that is not served.
func (s *Server) Close() error {
	var errs []error
	if s.httpLn != nil {
		errs = append(errs, s.httpLn.Close())
	}
	if s.tftpConn != nil {
		errs = append(errs, s.tftpConn.Close())
	}
	if s.dhcp != nil {
		errs = append(errs, s.dhcp.Close())
	}
	if s.ra != nil {
		errs = append(errs, s.ra.Close())
	}
	if s.watch != nil {
		errs = append(errs, s.watch.Close())
	}
	return errors.Join(errs...)
}

// Untagged returns the version of the iPXE that is served where it is known to send untagged frames
// whatever the firmware does; "" where it tags, or where nobody can tell.
func (s *Server) Untagged() string { return s.untagged }

// Watch is the search for other DHCP servers; nil where it was not asked for.
func (s *Server) Watch() *dhcp.Watch { return s.watch }

// Root is the URL of the HTTP root, without a slash at its end.
func (s *Server) Root() string { return "http://" + s.httpLn.Addr().String() }

// DHCPStats returns the counters of the DHCP service.
func (s *Server) DHCPStats() dhcp.Stats { return s.dhcp.Stats() }

// complete checks the configuration and fills in the defaults.
func (c *Config) complete() error {
	switch {
	case !c.Address.Is4():
		return errkind.New(errkind.Internal, "netboot: the controller's address %v is not IPv4", c.Address)
	case c.RouterAdvertisement != "" && c.RouterAdvertisement != EmptyRA:
		return errkind.New(errkind.Unsupported, "netboot: router_advertisement %q is not known: only %q is", c.RouterAdvertisement, EmptyRA)
	case c.RouterAdvertisement != "" && !network.IsOS(c.Network):
		return errkind.New(errkind.Unsupported, "netboot: router advertisements need the operating system's network")
	case c.Lease < 0 || c.Lease/time.Second > math.MaxUint32:
		return errkind.New(errkind.Internal, "netboot: lease %v is not within 0 and 136 years", c.Lease)
	}
	if c.HTTPPort == 0 {
		c.HTTPPort = DefaultHTTPPort
	}
	if c.TFTPPort == 0 {
		c.TFTPPort = tftp.Port
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.LoaderDir == "" {
		c.LoaderDir = loader.Dir
	}
	return nil
}

func bootPolicy(cfg Config, httpPort uint16, set loader.Set) dhcp.Policy {
	names := map[string]bool{}
	for _, n := range set.Names() {
		names[n] = true
	}
	return dhcp.Policy{Address: cfg.Address, HTTPPort: httpPort, Lease: uint32(cfg.Lease / time.Second), Loaders: names, Untagged: set.Untagged(loader.SNPOnly), Chain: &dhcp.Chain{}, Relays: cfg.Relays, AnyRelay: cfg.AnyRelay, Proxy: cfg.Proxy, Networks: cfg.Networks, WrongPort: cfg.WrongPort}
}

func listenTCP(ctx context.Context, cfg Config, at netip.AddrPort) (net.Listener, error) {
	if !network.IsOS(cfg.Network) {
		ln, err := cfg.Network.Listen(ctx, "tcp4", at.String())
		if err != nil {
			return nil, addressTaken("HTTP", at, err)
		}
		return ln, nil
	}
	lc := net.ListenConfig{KeepAlive: 15 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(vanished.Milliseconds()))
		})
		return errors.Join(cerr, err)
	}}
	ln, err := cfg.Kept.Listener(sockets.Where{Network: "tcp", Address: at}, func() (net.Listener, error) { return lc.Listen(ctx, "tcp4", at.String()) })
	if err != nil {
		return nil, addressTaken("HTTP", at, err)
	}
	return ln, nil
}

func listenUDP(ctx context.Context, cfg Config, at netip.AddrPort) (net.PacketConn, error) {
	kept := cfg.Kept
	if !network.IsOS(cfg.Network) {
		kept = nil
	}
	conn, err := kept.PacketConn(sockets.Where{Network: "udp", Address: at}, func() (net.PacketConn, error) {
		return network.Or(cfg.Network).ListenPacket(ctx, "udp4", at.String())
	})
	if err != nil {
		return nil, addressTaken("TFTP", at, err)
	}
	return conn, nil
}

// addressTaken classifies why an address cannot be listened on.
func addressTaken(what string, at netip.AddrPort, err error) error {
	e := errkind.New(errkind.Refused, "%s: listen on %s: %w", what, at, err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return e.Do("Another service of this controller has this port: stop it, or give ironrail another one.")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return e.Do("The controller's address of the inventory is not on this controller: add it to the boot interface.")
	}
	return e.Do("Run as root, or give the program CAP_NET_BIND_SERVICE.")
}
