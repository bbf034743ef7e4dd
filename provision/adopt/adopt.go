// SPDX-License-Identifier: Apache-2.0

// Package adopt records nodes that run as they are found, unverified, without changing
// anything on them.
package adopt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/provision/selection"
)

// How nodes are adopted: so long for one that does not answer, and so many
// together.
const (
	nodeWait         = 30 * time.Second
	parallelNodes    = 64
	parallelCommands = 128
)

// Adopter adopts nodes of a site.
type Adopter struct {
	Observer observe.Observer
	Steps    func(stage.View) ([]plan.Step, error) // the steps that the site wants
}

// Options say which nodes are adopted.
type Options struct {
	Words []string // as selection reads them; with All: none
	All   bool     // every node with an image that this state does not know
	NoBMC bool     // their BMCs are not asked
	Now   time.Time
	Say   func(string) // is told how far it is; nil: nobody
}

// Node is what became of one node.
type Node struct {
	Node    string   `json:"node"`
	Adopted bool     `json:"adopted"`
	Already bool     `json:"already,omitempty"` // it was accepted before, and is left as it is
	Seen    []string `json:"seen,omitempty"`    // what it is, in words
	Unknown []string `json:"unknown,omitempty"` // what could not be seen
	Error   string   `json:"error,omitempty"`   // why it was not adopted
	Action  string   `json:"do,omitempty"`
}

// Adopt observes nodes that run and records them as they are, unverified. Nothing
// on them is changed or left behind: they are read by SSH and over their BMCs. The
// host key is taken as it is seen first; the result says which, so that a person
// can compare it. A chassis or a BMC with another serial than the site's is
// refused. What the stages find to be as the site has it is recorded as done, so
// that a later change of the site is a change to it.
func (ad Adopter) Adopt(ctx context.Context, store state.Store, fence state.Fence, o Options) ([]Node, error) {
	a, err := ad.open(ctx, store, fence, o)
	if err != nil {
		return nil, err
	}
	defer a.close()
	out, errs := make([]Node, len(a.nodes)), make([]error, len(a.nodes))
	slots := make(chan struct{}, parallelNodes)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards done
	done := 0
	for i, n := range a.nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i], errs[i] = a.one(ctx, n)
			mu.Lock()
			defer mu.Unlock()
			if done++; o.Say != nil && (done == len(a.nodes) || done%parallelNodes == 0) {
				o.Say(fmt.Sprintf("%d of %d nodes were looked at", done, len(a.nodes)))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return out, err
	}
	return out, errors.Join(ctx.Err(), a.groups(ctx))
}

// adoption is one adoption of many nodes.
type adoption struct {
	Adopter
	o      Options
	keep   drift.Writer
	nodes  []*inventory.Node
	stands map[string]state.Node
	pool   *remote.Pool
	bmcs   reach.BMCs
}

// open chooses the nodes and opens what reaches them.
func (ad Adopter) open(ctx context.Context, store state.Store, fence state.Fence, o Options) (*adoption, error) {
	chosen, err := selection.ReadSet(ad.Observer.Inv, o.Words)
	if err != nil {
		return nil, err
	}
	a := &adoption{Adopter: ad, o: o, keep: drift.Writer{Store: store, Fence: fence}}
	if a.stands, err = state.ReadNodes(ctx, store); err != nil {
		return nil, err
	}
	for _, n := range ad.Observer.Inv.Nodes {
		if n.Image == nil {
			continue
		}
		st := a.stands[n.Name]
		unknown := n.Address.IsValid() && !st.Accepted && !st.Adopted
		if !o.All && chosen[n.Name] || o.All && unknown {
			a.nodes = append(a.nodes, n)
		}
	}
	a.pool = remote.NewPoolOn(parallelCommands, ad.Observer.Network)
	a.bmcs = ad.Observer.BMCs(reach.Facts(store))
	return a, nil
}

// close ends the sessions; those that could not be closed expire by themselves.
func (a *adoption) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = a.pool.Close(), a.bmcs.Pool.Close(ctx)
}

// one adopts one node. The error is about the state; what is wrong with the node
// is in the result.
func (a *adoption) one(ctx context.Context, n *inventory.Node) (Node, error) {
	r := Node{Node: n.Name}
	if a.stands[n.Name].Accepted {
		r.Already = true
		return r, nil
	}
	f, err := a.find(ctx, n)
	if err != nil {
		r.Error, r.Action = err.Error(), errkind.Action(err)
		return r, nil
	}
	r.Seen, r.Unknown = f.words(n)
	if err := a.record(ctx, n, f); err != nil {
		return r, err
	}
	r.Adopted = true
	return r, nil
}

// found is what was seen of a node that is adopted.
type found struct {
	key   ssh.PublicKey
	seen  drift.Observation
	facts *gathered
	done  []observe.StepState
}

// find looks at a node and refuses one that is not the site's.
func (a *adoption) find(ctx context.Context, n *inventory.Node) (found, error) {
	f := found{facts: &gathered{base: reach.Facts(a.keep.Store), now: a.o.Now}}
	first, cancel := context.WithTimeout(ctx, nodeWait)
	defer cancel()
	var err error
	if f.key, err = readHostKey(first, a.Observer.Network, netip.AddrPortFrom(n.Address, reach.SSHPort)); err != nil {
		return f, errkind.New(errkind.Of(err), "%s cannot be observed, and what cannot be observed is not adopted: %w", n.Name, err).
			Do("Adopt a node while it runs and answers SSH.")
	}
	me := subject.OfNode(n.Name)
	if err := f.facts.add(install.HostKeyFact.New(me, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(f.key))), n.Serial)); err != nil {
		return f, err
	}
	ssh := a.Observer.Nodes(a.pool, f.facts.Fact)
	w := drift.NewObserver(ssh, nil)
	w.Hardware = true
	if !a.o.NoBMC {
		w = w.With(func(node string) (*bmc.Handle, error) { return a.bmcs.Handle(node) })
	}
	f.seen = w.Observe(ctx, n, a.o.Now)
	if got := f.seen.Serial; n.Serial != "" && got != "" && got != n.Serial {
		return f, errkind.New(errkind.Mismatch, "%s answers at %s with chassis serial %q; the site says %q", n.Name, n.Address, got, n.Serial).
			Do("Correct the serial or the address in the site's files: another chassis stands there.")
	}
	if err := f.ofBMC(n, a.bmcs); err != nil {
		return f, err
	}
	if err := f.ofSystem(n); err != nil {
		return f, err
	}
	f.done = a.Observer.NodeObserver(ssh, f.facts)(ctx, n.Name)
	return f, nil
}

// ofBMC records who the BMC is; one that sits in another node is refused.
func (f *found) ofBMC(n *inventory.Node, b reach.BMCs) error {
	s := f.seen.BMC
	if s == nil {
		return nil
	}
	for _, g := range s.Gaps {
		if strings.Contains(g.Why, "is that of serial") {
			return errkind.New(errkind.Mismatch, "%s: %s", n.Name, g.Why).Do("Compare the rows of the two nodes in the site's list: BMC addresses may be exchanged. Nothing was recorded.")
		}
	}
	if len(s.Items) == 0 {
		return nil // it does not answer, or takes no log-in: nothing is known of it
	}
	me, report := subject.OfNode(n.Name), oob.Report{Serial: s.Serial}
	for _, i := range s.Items {
		if i.Part == "BMC" {
			report.Firmware = i.Value
		}
	}
	if err := f.facts.add(oob.ReportFact.New(me, report, s.Serial)); err != nil {
		return err
	}
	h, err := b.Handle(n.Name)
	if err != nil || h.Certificate() == "" || !oob.Pins(n) {
		return err
	}
	return f.facts.add(oob.CertificateFact.New(me, h.Certificate(), s.Serial))
}

// ofSystem records what runs and whom the ports hear.
func (f *found) ofSystem(n *inventory.Node) error {
	me, sys := subject.OfNode(n.Name), install.System{BootID: f.seen.BootID}
	sys.Root, _ = f.root()
	for _, i := range f.seen.Items {
		switch {
		case i.Kind == wire.ItemKernel && i.Name == "release":
			sys.Kernel = i.Value
		case i.Kind == wire.ItemImage && i.Name == "install":
			sys.Marker = i.Value
		}
	}
	if hw := f.seen.Hardware; hw != nil {
		if err := f.facts.add(install.HardwareFact.New(me, *hw, n.Serial)); err != nil {
			return err
		}
	}
	if heard := f.seen.Neighbours; len(heard) > 0 {
		if err := f.facts.add(cabling.NeighboursFact.New(me, heard, n.Serial)); err != nil {
			return err
		}
	}
	if sys.Kernel == "" {
		return nil
	}
	return f.facts.add(install.SystemFact.New(me, sys, n.Serial))
}

// root is the one disk that the system runs from, with something to know it again by;
// else why that is not known.
func (f *found) root() (*wire.Disk, string) {
	switch all := f.seen.Root; {
	case len(all) == 0:
		return nil, "the disk that its root file system lies on"
	case len(all) > 1:
		var names []string
		for _, d := range all {
			names = append(names, d.Name)
		}
		return nil, "one disk that its root file system lies on: there are " + strings.Join(names, ", ")
	case !install.Identified(all[0]):
		return nil, "which disk its root file system lies on: " + all[0].Name + " has neither serial number nor WWN"
	default:
		return &all[0], ""
	}
}

// silence is why nothing is known of the system.
func (f *found) silence() string {
	for _, g := range f.seen.Gaps {
		if g.Kind == wire.ItemKernel {
			return "its system: " + g.Why
		}
	}
	return "its system"
}

// words says what was seen and what was not.
func (f *found) words(n *inventory.Node) (seen, unknown []string) {
	seen = []string{fmt.Sprintf("it answers at %s with host key %s", n.Address, ssh.FingerprintSHA256(f.key))}
	for _, i := range f.seen.Items {
		if i.Kind == wire.ItemKernel && i.Name == "release" {
			seen = append(seen, "it runs kernel "+i.Value)
		}
	}
	if len(seen) == 1 {
		unknown = append(unknown, f.silence())
	} else if root, why := f.root(); root != nil {
		seen = append(seen, "its system runs from disk "+install.IdentifyDisk(*root))
	} else {
		unknown = append(unknown, why+"; its rebuild needs --disk")
	}
	var as []string
	for _, x := range f.done {
		if _, name, _ := strings.Cut(string(x.Step.ID), "/"); conforms(x) {
			as = append(as, name)
		}
	}
	if len(as) > 0 {
		seen = append(seen, "as the site has it: "+strings.Join(as, ", "))
	}
	if s := f.seen.BMC; s != nil && len(s.Items) > 0 {
		seen = append(seen, fmt.Sprintf("its BMC at %s says that it is the same chassis", n.BMC.Address))
		if s.Serial == "" {
			seen[len(seen)-1] = fmt.Sprintf("its BMC at %s answers", n.BMC.Address)
		}
	} else if s != nil {
		for _, g := range s.Gaps[:min(1, len(s.Gaps))] {
			unknown = append(unknown, g.Why)
		}
	}
	return seen, unknown
}

// readHostKey asks an SSH server for its host key and leaves.
func readHostKey(ctx context.Context, nw network.Network, at netip.AddrPort) (ssh.PublicKey, error) {
	c, err := nw.Dial(ctx, "tcp", at.String())
	if err != nil {
		return nil, errkind.New(errkind.Unreachable, "%w", err)
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	var seen ssh.PublicKey
	enough := errors.New("host key seen")
	_, _, _, err = ssh.NewClientConn(c, at.String(), &ssh.ClientConfig{User: "root", HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error { seen = k; return enough }})
	if seen == nil {
		return nil, errkind.New(errkind.Invalid, "SSH handshake: %w", err)
	}
	return seen, nil
}
