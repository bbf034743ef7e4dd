// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"net/netip"

	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/netboot"
)

// attemptLife is how long a boot attempt may be used: longer than any install,
// short enough that a forgotten one does not netboot a node next week.
const attemptLife = 4 * time.Hour

// Phase is how far a boot attempt is.
type Phase string

// An attempt boots the ramdisk while it is open. Once the disk is verified the
// node is sent to its disk, but the agent may go on talking; after Ended it may not.
const (
	Open     Phase = "open"
	Verified Phase = "disk-verified"
	Ended    Phase = "ended"
)

// PowerBy is how an attempt brings the node to netboot, decided once and
// durably, so that a resumed run does not decide differently.
type PowerBy string

// The ways.
const (
	PowerOn    PowerBy = "on"
	PowerCycle PowerBy = "cycle"
)

// Attempt is one permission to netboot one node into the install ramdisk. It is
// durable as a fact. Its token is derived, never stored.
type Attempt struct {
	ID      string    `json:"id"`
	Node    string    `json:"node"`
	Phase   Phase     `json:"phase"`
	Power   PowerBy   `json:"power"`
	Opened  time.Time `json:"opened"`
	Expires time.Time `json:"expires"`
	Reason  string    `json:"reason,omitempty"` // why it ended
	// Image is the digest of the image that the node was to get when it was opened, whose kernel
	// the ramdisk has; "": none.
	Image string `json:"image,omitempty"`
	// Persistent says that the BMC keeps network boot for every boot, though it was asked
	// for one: it is put back before the node is sent to its disk.
	Persistent bool `json:"network_boot_lasts,omitempty"`
}

// live reports whether the attempt's agent may talk.
func (a Attempt) live(now time.Time) bool {
	return a.ID != "" && a.Phase != Ended && now.Before(a.Expires)
}

func (a Attempt) grant() hub.Grant { return hub.Grant{Node: a.Node, Attempt: a.ID} }

// Boots is the controller's memory of who may boot: known clients, and the
// current attempt of each node. The facts are the truth; Boots is loaded from
// them and kept in step by the stage. It implements netboot.Source and
// hub.Grants, and is safe for concurrent use.
type Boots struct {
	key    []byte              // derives tokens; from the controller's key folder
	kernel map[string][]string // further kernel arguments by node
	byMAC  map[addr.MAC]*netboot.Client
	byAddr map[netip.Addr]*netboot.Client

	mu       sync.RWMutex // guards what follows
	attempts map[string]Attempt
	fetched  map[string]fetch         // of the ramdisk with the token, by attempt
	served   map[string]*atomic.Int64 // bytes of kernel and initrd that a node fetched
}

// fetch is the last time that an attempt's ramdisk was fetched.
type fetch struct {
	at   time.Time
	from netip.Addr
}

// NewBoots makes the memory for the given clients. key is secret and at least
// 32 bytes; tokens of earlier processes with the same key stay good. kernel
// holds what nodes have of kernel arguments besides those of every ramdisk.
func NewBoots(key []byte, clients []netboot.Client, kernel map[string][]string) *Boots {
	b := &Boots{key: key, kernel: kernel, byMAC: map[addr.MAC]*netboot.Client{}, byAddr: map[netip.Addr]*netboot.Client{}, attempts: map[string]Attempt{},
		fetched: map[string]fetch{}, served: map[string]*atomic.Int64{}}
	clients = slices.Clone(clients)
	for i := range clients {
		c := &clients[i]
		for _, m := range c.MACs {
			b.byMAC[m] = c
		}
		b.byAddr[c.Address.Addr()] = c
	}
	return b
}

// Set makes a the current attempt of its node.
func (b *Boots) Set(a Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.attempts[a.Node].ID; old != a.ID {
		delete(b.fetched, old)
	}
	b.attempts[a.Node] = a
}

// noteFetch records that the ramdisk of an attempt, with its token in it, was asked
// for.
func (b *Boots) noteFetch(attempt string, from netip.Addr, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fetched[attempt] = fetch{now, from}
}

// lastFetch is what noteFetch has recorded last.
func (b *Boots) lastFetch(attempt string) (fetch, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	f, ok := b.fetched[attempt]
	return f, ok
}

// BootedSince implements hub.Grants.
func (b *Boots) BootedSince(g hub.Grant, t time.Time) bool {
	f, ok := b.lastFetch(g.Attempt)
	return ok && f.at.After(t)
}

// Current returns the last attempt of a node.
func (b *Boots) Current(node string) (Attempt, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	a, ok := b.attempts[node]
	return a, ok
}

// counter counts what a node fetches of its ramdisk.
func (b *Boots) counter(node string) *atomic.Int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.served[node]
	if c == nil {
		c = &atomic.Int64{}
		b.served[node] = c
	}
	return c
}

// Served returns how many bytes of kernels and initrds a node has fetched in the life
// of this process.
func (b *Boots) Served(node string) int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if c := b.served[node]; c != nil {
		return c.Load()
	}
	return 0
}

// ByMAC implements netboot.Source.
func (b *Boots) ByMAC(m addr.MAC) (netboot.Client, bool) { return found(b.byMAC[m]) }

// found is a client; false: nil.
func found(c *netboot.Client) (netboot.Client, bool) {
	if c == nil {
		return netboot.Client{}, false
	}
	return *c, true
}

// ByAddress implements netboot.Source.
func (b *Boots) ByAddress(a netip.Addr) (netboot.Client, bool) {
	return found(b.byAddr[a.Unmap()])
}

// Attempt implements netboot.Source: only an open attempt boots the ramdisk.
func (b *Boots) Attempt(node string) (netboot.Attempt, bool) {
	a, ok := b.Current(node)
	if !ok || a.Phase != Open || !a.live(time.Now()) {
		return netboot.Attempt{}, false
	}
	return netboot.Attempt{ID: a.ID, Node: a.Node, Expires: a.Expires, Kernel: bootPrefix + a.ID + "/" + kernelName,
		Initrds: []string{bootPrefix + a.ID + "/" + initrdName}, Args: b.args(node)}, true
}

// args are the kernel arguments of the ramdisk.
func (b *Boots) args(node string) []string { return append([]string{"panic=60"}, b.kernel[node]...) }

// RamdiskArgs are the kernel arguments of a node's ramdisk besides those of every one: its console,
// and those of its system, where that runs under the same kernel.
func RamdiskArgs(n *inventory.Node) (args []string) {
	if n.Diskless() && n.Host != nil {
		args = slices.Clone(n.Host.KernelArgs)
	}
	if out := kinds.KeptOut(n); len(out) > 0 {
		args = append(args, "modprobe.blacklist="+strings.Join(out, ","))
	}
	if n.Hardware != nil && n.Hardware.Console.Port != "" {
		args = append(args, "console=tty0", "console="+ConsoleArg(n.Hardware.Console))
	}
	return args
}

// newAttempt makes an attempt; it counts once it is recorded and Set.
func newAttempt(node string, power PowerBy, now time.Time) Attempt {
	var id [8]byte
	rand.Read(id[:]) // never fails: crypto/rand aborts the program instead
	return Attempt{ID: node + "-" + hex.EncodeToString(id[:]), Node: node, Phase: Open, Power: power,
		Opened: now.UTC(), Expires: now.Add(attemptLife).UTC()}
}

// Token derives the bearer token of an attempt: its id and a MAC of it under the
// controller's key (RFC 2104 with SHA-256).
func (b *Boots) Token(id string) string {
	m := hmac.New(sha256.New, b.key)
	m.Write([]byte("boot-attempt\x00" + id))
	return id + "." + hex.EncodeToString(m.Sum(nil))
}

// Grant implements hub.Grants.
func (b *Boots) Grant(token string) (hub.Grant, bool) {
	g, ok := b.given(token)
	a, _ := b.Current(g.Node)
	if !ok || a.ID != g.Attempt || !a.live(time.Now()) {
		return hub.Grant{}, false
	}
	return g, true
}

// Ended implements hub.Grants.
func (b *Boots) Ended(token string) (hub.Grant, bool) {
	if _, open := b.Grant(token); open {
		return hub.Grant{}, false
	}
	return b.given(token)
}

// given returns the attempt that a token was derived for, whether it is live or not.
func (b *Boots) given(token string) (hub.Grant, bool) {
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 || !hmac.Equal([]byte(token), []byte(b.Token(token[:dot]))) {
		return hub.Grant{}, false
	}
	id := token[:dot]
	return hub.Grant{Node: id[:max(0, strings.LastIndexByte(id, '-'))], Attempt: id}, true
}
