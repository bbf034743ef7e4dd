// SPDX-License-Identifier: Apache-2.0

package install

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// OtherFetch is a request for the boot files of a node from an address that is not
// the node's. It was refused. Its path holds the id of the attempt, 64 random bits
// that only the boot script of the node names: they are not guessed.
type OtherFetch struct {
	Node, Attempt string // whose files were asked for
	From          netip.Addr
	Owner         netboot.Client // that From is reserved for; no Node: no client of the inventory
	MAC           addr.MAC       // that answers for From; zero: not known
	Request       string         // method and path
	At            time.Time
	NodeFrom      netip.Addr // of the last fetch of the node itself; zero: there was none
	NodeAt        time.Time
}

// UnknownClient takes a request from an address that no client has, which is refused
// before it comes to ServeHTTP.
func (f *BootFiles) UnknownClient(r *http.Request) {
	if at, _, open := f.attempt(r); open {
		f.otherFetch(r, at)
	}
}

// otherFetch tells of a request from an address that is not the node's.
func (f *BootFiles) otherFetch(r *http.Request, at netboot.Attempt) {
	if f.OtherFetch == nil {
		return
	}
	from := boot.AddressOf(r.RemoteAddr)
	o := OtherFetch{Node: at.Node, Attempt: at.ID, From: from, Request: r.Method + " " + r.URL.Path, At: time.Now()}
	o.Owner, _ = f.Boots.ByAddress(from)
	if f.MAC != nil {
		o.MAC, _ = f.MAC(from)
	}
	if last, ok := f.Boots.lastFetch(at.ID); ok {
		o.NodeFrom, o.NodeAt = last.from, last.at
	}
	f.OtherFetch(o)
}
