// SPDX-License-Identifier: Apache-2.0

// Package services holds what the controller serves while it owns a site: DHCP, TFTP,
// HTTP and the agent API, and what these saw.
package services

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/sockets"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/keys"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/connlimit"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
	"github.com/ironrail/ironrail/provision/netboot/evidence"
	"github.com/ironrail/ironrail/provision/netboot/loader"
	"github.com/ironrail/ironrail/provision/netboot/neighbour"
)

// agentPort is where agents of the install ramdisk call, with TLS.
const agentPort = 8443

// agentLimits of the agent API: an agent has two connections, its poll and its
// results, and as many again when its network broke. Others have nothing to ask.
var agentLimits = connlimit.Limits{Known: 8, Unknown: -1, Rate: 16 << 10, Grace: 20 * time.Second}

// Services are what the controller serves while it owns the site: DHCP, TFTP,
// HTTP, and the agent API.
type Services struct {
	boots         *install.Boots
	hub           *hub.Hub
	bootLog       *BootLog
	network       string            // boot network
	proxy         bool              // another server gives its addresses
	limiter       *evidence.Limiter // in front of bootLog
	counter       *evidence.Counter // in front of limiter, for all services
	fetches       *siteFindings     // of requests for the boot files of others
	duplicateMACs *siteFindings     // of MACs that two machines have
	boot          *netboot.Server
	api           *http.Server
	ln            net.Listener

	otherOwner func(netboot.Client) (addr.MAC, bool) // nil: no table of MACs on this network
}

// Config is what the services of a site are opened with.
type Config struct {
	Inv          *inventory.Inventory
	Keys         keys.Keys
	Network      network.Network
	Loaders      string     // folder of the first-stage loaders; empty: where the distribution has them
	ImageLoaders loader.Set // those that images bring; they are taken before those of the folder
	Mounts       []netboot.Mount
	Boots        *install.Boots
	Ramdisk      install.Ramdisk
	BootLog      *BootLog
	Kept         *sockets.Kept // of the operating system's network: keeps sockets open between services; nil: nothing does
}

// Open opens every socket; nothing is answered before Serve, and no DHCP before it is
// known that no other server is on the boot network.
func Open(ctx context.Context, s Config) (*Services, error) {
	c, served, err := findServed(s.Inv)
	if err != nil {
		return nil, err
	}
	if network.IsOS(s.Network) && hasVLANs(s.Inv) {
		have, err := vlanInterfaces()
		if err == nil {
			err = checkVLANs(s.Inv, have)
		}
		if err != nil {
			return nil, err
		}
	}
	boots, bootLog := s.Boots, s.BootLog
	limiter := evidence.NewLimiter(bootLog)
	counter := evidence.NewCounter(limiter)
	v := &Services{boots: boots, bootLog: bootLog, limiter: limiter, counter: counter, network: served.Name, proxy: served.DHCP.Mode == inventory.DHCPProxy, fetches: newSiteFindings(moreFetches(served.Name)), duplicateMACs: newSiteFindings(moreDuplicateMACs(served.Name))}
	files := &install.BootFiles{Boots: boots, Ramdisk: s.Ramdisk, Words: s.words(c), Recorder: counter, OtherFetch: v.reportOtherFetch}
	if network.IsOS(s.Network) { // others have no ARP table
		t := &neighbour.Table{Routers: served.DHCP.Relays}
		v.otherOwner, files.MAC = t.OtherOwner, t.MAC
	}
	v.hub = hub.New(hub.Config{Grants: boots, Recorder: counter, OtherOwner: v.otherOwner})
	files.OtherOwner, files.Conflict = v.otherOwner, v.hub.Conflict
	cfg := netboot.Config{Kept: s.Kept, Interface: c.Interface, Address: c.Address, Network: s.Network, LoaderDir: s.Loaders, Loaders: s.ImageLoaders, Relays: served.DHCP.Relays, AnyRelay: !network.IsOS(s.Network), TwoUUIDs: v.reportDuplicateMAC,
		WatchOthers: network.IsOS(s.Network) || network.Broadcasts(s.Network), Mounts: append([]netboot.Mount{{Prefix: "/boot/", Handler: files, UnknownClient: files.UnknownClient}}, s.Mounts...)}
	cfg.Proxy, cfg.Networks = v.proxy, answeredNetworks(s.Inv, c, served, boots)
	cfg.WrongPort = newSwitchPorts(s.Inv).wrong
	if served.DHCP.RouterAdvertisement == netboot.EmptyRA && network.IsOS(s.Network) {
		cfg.RouterAdvertisement = netboot.EmptyRA
	}
	if v.boot, err = netboot.Open(ctx, cfg, boots, counter); err != nil {
		return nil, err
	}
	at := netip.AddrPortFrom(c.Address, agentPort)
	kept := s.Kept
	if !network.IsOS(s.Network) {
		kept = nil
	}
	ln, err := kept.Listener(sockets.Where{Network: "tcp", Address: at}, func() (net.Listener, error) { return s.Network.Listen(ctx, "tcp", at.String()) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("agent API: %w", err), v.boot.Close())
	}
	v.ln = connlimit.New(ln, agentLimits, boots, counter, netboot.Agent)
	v.api = s.agentServer(v.hub)
	return v, nil
}

// agentServer is the agent API with the pinned key, HTTP/1.1 only.
func (s Config) agentServer(h *hub.Hub) *http.Server {
	var p http.Protocols
	p.SetHTTP1(true)
	return &http.Server{Handler: h.Handler(), Protocols: &p, ErrorLog: log.New(discard{}, "", 0),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{s.Keys.TLS}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: 15 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute, IdleTimeout: 3 * time.Minute, MaxHeaderBytes: 16 << 10}
}

// discard drops the HTTP server's notes on handshakes that clients broke off;
// what matters of them is seen by the agent, which tries again.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// Serve answers until ctx is done; nil then. The first service that fails ends
// the others.
func (v *Services) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var bootErr, apiErr error
	wg.Go(func() {
		defer cancel()
		bootErr = v.boot.Serve(ctx)
	})
	wg.Go(func() {
		defer cancel()
		if err := v.api.ServeTLS(v.ln, "", ""); !errors.Is(err, http.ErrServerClosed) {
			apiErr = fmt.Errorf("agent API: %w", err)
		}
	})
	<-ctx.Done()
	apiErr = errors.Join(apiErr, v.api.Close())
	wg.Wait()
	v.limiter.Close()
	return errors.Join(bootErr, apiErr)
}

// Close gives back the sockets of services that were never served.
func (v *Services) Close() error { return errors.Join(v.ln.Close(), v.boot.Close()) }

// findServed returns this controller and the network that it serves.
func findServed(inv *inventory.Inventory) (*inventory.Controller, *inventory.Network, error) {
	c, err := FindController(inv)
	if err != nil {
		return nil, nil, err
	}
	n, ok := findBootNetwork(inv, c)
	if !ok {
		return nil, nil, errkind.New(errkind.Unsupported, "no network with `dhcp { mode = \"authoritative\" }` or \"proxy\" holds the controller's address %s", c.Address).
			Do("Give the boot network a dhcp block with such a mode.")
	}
	return c, n, nil
}

// words are what a node of the install ramdisk is told.
func (s Config) words(c *inventory.Controller) func(string) (wire.Boot, error) {
	return func(node string) (wire.Boot, error) {
		n, ok := s.Inv.Node(node)
		if !ok {
			return wire.Boot{}, errkind.New(errkind.NotFound, "%s is not in the inventory", node)
		}
		b := wire.Boot{Controller: "https://" + netip.AddrPortFrom(c.Address, agentPort).String(), Pin: s.Keys.Pin,
			BootMAC: addr.MAC(n.BootMAC), Address: install.Prefix(n).String()}
		b.VLAN = n.BootNetwork.VLAN
		if n.BootNetwork.Gateway.IsValid() {
			b.Gateway = n.BootNetwork.Gateway.String()
		}
		return b, nil
	}
}

// Root is the URL of the HTTP root.
func (v *Services) Root() string { return v.boot.Root() }

// DHCPStats counts what the DHCP service was asked.
func (v *Services) DHCPStats() dhcp.Stats { return v.boot.DHCPStats() }

// BootCounts count what clients asked and were answered, all of it.
func (v *Services) BootCounts() []evidence.Count { return v.counter.Counts() }

// Hub is where agents call.
func (v *Services) Hub() *hub.Hub { return v.hub }

// Boots are the boot attempts of nodes.
func (v *Services) Boots() *install.Boots { return v.boots }

// OtherOwner says who else answers for the address of a client; nil: nobody can tell.
func (v *Services) OtherOwner() func(netboot.Client) (addr.MAC, bool) { return v.otherOwner }

// ReportFindings passes on what the boot services find, until ctx is done.
func (v *Services) ReportFindings(ctx context.Context, report func(context.Context, stage.Finding) error) {
	var wg sync.WaitGroup
	wg.Go(func() { v.ReportOthers(ctx, report) })
	wg.Go(func() { v.fetches.report(ctx, report) })
	wg.Go(func() { v.duplicateMACs.report(ctx, report) })
	wg.Wait()
}
