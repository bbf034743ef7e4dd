// SPDX-License-Identifier: Apache-2.0

// Package rack keeps the virtual rack of a site alive on loopback, in a process of its own,
// so that plan, apply and all other commands of the site can be used on it from other
// processes: by Join they get a network on which there is nothing but the devices of the
// rack. The hardware outlives whatever happens to those processes, and ends with its own.
package rack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/services"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// Folder is the name of the folder, in the site's, that belongs to its virtual rack.
const Folder = ".ironrail-rack"

// The folders in it.
const (
	stateFolder   = "state"   // of the controllers that work on the rack
	earlierFolder = "earlier" // the state of the rack before this one
	standInFolder = "stand-ins"
)

// StateFolder is the state folder of the commands that work on a site's virtual rack.
func StateFolder(dir string) string { return filepath.Join(dir, Folder, stateFolder) }

// mostNodes is how many nodes a rack has room for: each has two addresses, and sockets.
const mostNodes = 128

// Options of a rack. The zero value is a rack without faults.
type Options struct {
	Seed    uint64
	Speed   float64 // how much faster than in a room hardware is; 0: rehearsal.DefaultSpeed
	Faults  []fault.Fault
	Version string // of this program
	// OnReady is given where devices answer, once they do; nil: nobody is.
	OnReady func(Info, []virtual.Endpoint)
}

// Info says what a rack is.
type Info struct {
	Site       string                    `json:"site"`
	Seed       uint64                    `json:"seed"`
	Speed      float64                   `json:"speed"`
	Started    time.Time                 `json:"started"`
	Version    string                    `json:"version"`
	Controller netip.Addr                `json:"controller"`
	Places     map[netip.Addr]netip.Addr `json:"places"`         // real address of each device, by its site address
	Pins       map[string]string         `json:"pins,omitempty"` // digests in the site's files when the rack was started, by image
	Nodes      int                       `json:"nodes"`
	PID        int                       `json:"pid"`
}

// living is a rack that runs.
type living struct {
	info  Info
	inv   *inventory.Inventory
	world *virtual.World
	board *network.Loopback
	clock clock.Fast

	mu      sync.Mutex // guards what follows
	chassis int        // that were brought by technicians
}

// Run keeps the rack of a site alive until ctx ends, which is no error. Only one runs for
// a folder. What an earlier rack of the folder left as state is put aside: the hardware is
// new.
func Run(ctx context.Context, inv *inventory.Inventory, o Options) (err error) {
	if len(inv.Nodes) > mostNodes {
		return errkind.New(errkind.Unsupported, "a virtual rack has at most %d nodes; this site has %d", mostNodes, len(inv.Nodes)).
			Do("Rehearse it in memory: `ironrail rehearse`.")
	}
	for _, f := range o.Faults {
		if err := checkFault(inv, f); err != nil {
			return err
		}
	}
	folder := filepath.Join(inv.Dir, Folder)
	owner, err := control.AcquireFolder(folder, "rack", time.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, owner.Release()) }()
	// Nothing in it is a part of the site.
	if err := os.WriteFile(filepath.Join(folder, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return err
	}
	if err := putAside(folder); err != nil {
		return err
	}
	l, lease, err := open(ctx, inv, o, folder)
	if err != nil {
		return err
	}
	defer lease.Close()
	l.info.Started, l.info.PID, l.info.Places = owner.Started.UTC(), owner.PID, l.board.Places()
	ln, err := owner.Listen()
	if err != nil {
		return err
	}
	return l.serve(ctx, ln, o.OnReady)
}

// open makes the rack of a site and opens its sockets, in another block of addresses where a
// program that is no rack has one of those of the first. Closing the lease gives the block back.
func open(ctx context.Context, inv *inventory.Inventory, o Options, folder string) (*living, net.Listener, error) {
	const tries = 4
	for try := 0; ; try++ {
		block, lease, err := leaseBlock(folder, try)
		if err != nil {
			return nil, nil, err
		}
		l, err := openIn(ctx, inv, o, block)
		if err == nil {
			return l, lease, nil
		}
		if err = errors.Join(err, lease.Close()); try+1 == tries || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, nil, err
		}
	}
}

// openIn is open in one block.
func openIn(ctx context.Context, inv *inventory.Inventory, o Options, block byte) (*living, error) {
	l, err := build(inv, o, block)
	if err != nil {
		return nil, err
	}
	for _, f := range o.Faults {
		if err := l.world.Plant(f); err != nil {
			return nil, fmt.Errorf("fault %s: %w", f.Kind, err)
		}
	}
	return l, l.world.Open(ctx)
}

// build makes the rack of a site. Nothing runs yet.
func build(inv *inventory.Inventory, o Options, block byte) (*living, error) {
	if o.Speed <= 0 {
		o.Speed = rehearsal.DefaultSpeed
	}
	l := &living{inv: inv, board: network.NewSharedLoopback(block), clock: clock.NewFast(o.Speed)}
	controller, err := services.FindController(inv)
	if err != nil {
		return nil, err
	}
	if l.world, err = rehearsal.NewRack(inv, o.Seed, l.clock, l.board); err != nil {
		return nil, err
	}
	for _, c := range inv.Controllers {
		l.board.At(c.Address)
	}
	l.info = Info{Controller: controller.Address, Site: inv.Site.Name, Seed: o.Seed, Speed: o.Speed, Version: o.Version, Nodes: len(inv.Nodes), Pins: pinsOf(inv)}
	return l, nil
}

// pinsOf are the digests that the files name, by image.
func pinsOf(inv *inventory.Inventory) map[string]string {
	pins := map[string]string{}
	for _, i := range inv.Images {
		if i.Digest != "" {
			pins[i.Name] = i.Digest
		}
	}
	return pins
}

// putAside keeps the state of the last rack, and removes that of the one before.
func putAside(folder string) error {
	from, to := filepath.Join(folder, stateFolder), filepath.Join(folder, earlierFolder)
	if who, owned, err := control.FindOwner(from); err != nil || owned {
		if err == nil {
			err = errkind.New(errkind.Refused, "the state of the last virtual rack is in use by %s", who).Do("Wait until it ends, or stop it.")
		}
		return err
	}
	if _, err := os.Stat(from); os.IsNotExist(err) {
		return nil
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// serve runs the hardware and answers over the socket until ctx ends.
func (l *living) serve(ctx context.Context, ln net.Listener, ready func(Info, []virtual.Endpoint)) error {
	up, down := context.WithCancel(ctx)
	defer down()
	srv := &http.Server{Handler: l.handler(up), ReadHeaderTimeout: callLimit, IdleTimeout: callLimit}
	var wg sync.WaitGroup
	var ran, served error
	wg.Go(func() { defer down(); ran = l.world.Run(up) })
	wg.Go(func() {
		defer down()
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			served = err
		}
	})
	if ready != nil {
		ready(l.info, l.world.Endpoints())
	}
	<-up.Done()
	_ = srv.Close() // whoever asks now gets no answer, and needs none
	wg.Wait()
	return errors.Join(ran, served)
}

// Blocks of 127.0.0.0/8 that racks take, by their second byte, and the port on which one
// listens to show that a block is taken. 200 and 240 are those of rehearsals.
const (
	firstBlock, lastBlock = 201, 239
	leasePort             = 10001
)

// leaseBlock takes a block of loopback addresses that no other rack on this machine has:
// for the same folder the same one where it can be, of those after the first skip. Closing the
// lease gives it back.
func leaseBlock(folder string, skip int) (byte, net.Listener, error) {
	const blocks = lastBlock - firstBlock + 1
	begin := hashFolder(folder) % blocks
	for i := skip; i < blocks; i++ {
		block := byte(firstBlock + (begin+i)%blocks)
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, block, 255, 254}), leasePort)
		if ln, err := net.Listen("tcp4", at.String()); err == nil {
			return block, ln, nil
		}
	}
	return 0, nil, errkind.New(errkind.Unsupported, "no block of loopback addresses is free: %d virtual racks run on this machine, or it is not Linux, where all of 127.0.0.0/8 is local", blocks).
		Do("Stop one of them.")
}
