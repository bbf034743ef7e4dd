// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/kinds"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// pinKind is the kind of the state objects of pins: a Pin in JSON, by the name of
// its node. The format only grows.
const pinKind = "pin"

// pinMark stands in the name of an image block's copy that a node is pinned to:
// os~ab12cd34ef56. No block can have such a name.
const pinMark = install.PinMark

// The records of pins in the journal.
const (
	Pinned   state.RecordKind = "pinned"       // Pin
	Unpinned state.RecordKind = "pin-released" // Pin
)

// Driver is one driver stack of a node as it was installed.
type Driver struct {
	Name     string            `json:"name"`
	Inputs   []plan.Input      `json:"inputs,omitempty"`   // what its step declared
	Packages map[string]string `json:"packages,omitempty"` // name to version, as installed
}

// Pin holds a node at an image and driver stacks that it was accepted with before,
// whatever the site's files say.
type Pin struct {
	Node    string    `json:"node"`
	Image   string    `json:"image"`  // name of the block
	Digest  string    `json:"digest"` // of the image
	Drivers []Driver  `json:"drivers,omitempty"`
	By      string    `json:"by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
}

// Pins reads the pins of the state, by the name of their node.
func Pins(ctx context.Context, r state.Reader) ([]Pin, error) { return readPins(ctx, r, nil) }

// PinnedNodes reads which nodes are pinned to each image, by its digest.
func PinnedNodes(ctx context.Context, r state.Reader) (map[string][]string, error) {
	pins, err := Pins(ctx, r)
	nodes := map[string][]string{}
	for _, p := range pins {
		nodes[p.Digest] = append(nodes[p.Digest], p.Node)
	}
	return nodes, err
}

// readPins reads the pins of the state, by node; those that are requested come before
// them.
func readPins(ctx context.Context, r state.Reader, requested []Pin) ([]Pin, error) {
	all, err := readObjects[Pin](ctx, r, pinKind)
	if err != nil {
		return nil, err
	}
	for _, p := range requested {
		all[p.Node] = p
	}
	var out []Pin
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out, nil
}

// Warning says in every plan that a node does not follow the site.
func (p Pin) Warning() string {
	why := p.At.UTC().Format(time.DateOnly)
	if p.Reason != "" {
		why = p.Reason + ", " + why
	}
	return fmt.Sprintf("%s is pinned to image %s by rollback (%s); `ironrail rollback --release %s` lets it follow the site again", p.Node, store.Short(p.Digest), why, p.Node)
}

// ImageName is the name of the copy of an image block that pinned nodes have.
func (p Pin) ImageName() string {
	digest := strings.TrimPrefix(p.Digest, "sha256:")
	return p.Image + pinMark + digest[:min(12, len(digest))]
}

// applyPins gives pinned nodes their image and their driver stacks. inv is a copy
// that nobody else has seen yet.
func applyPins(inv *inventory.Inventory, pins []Pin) {
	images := map[string]*inventory.Image{}
	for _, p := range pins {
		n, ok := inv.Node(p.Node)
		if !ok || n.Image == nil {
			continue
		}
		name := p.ImageName()
		if images[name] == nil {
			images[name] = pinnedImage(inv, n, p)
			inv.Images = append(inv.Images, images[name])
		}
		n.Image = images[name]
		n.Drivers = pinnedDrivers(inv, p)
	}
}

// pinnedImage is the image block of a pin with another digest; where the block is
// gone, what the node has now lends its place.
func pinnedImage(inv *inventory.Inventory, n *inventory.Node, p Pin) *inventory.Image {
	of := n.Image
	for _, i := range inv.Images {
		if i.Name == p.Image {
			of = i
		}
	}
	pinned := *of
	pinned.Name, pinned.Digest = p.ImageName(), p.Digest
	if !kinds.Supported(of) { // it was, when the node was installed: then Debian 12 was all there was
		pinned.Kind, pinned.Release = distribution.Debian, "12"
	}
	return &pinned
}

// pinnedDrivers are the driver stacks as they were. One whose block is gone cannot
// be made again, and a rollback to it was refused.
func pinnedDrivers(inv *inventory.Inventory, p Pin) (out []*inventory.Driver) {
	for _, was := range p.Drivers {
		for _, d := range inv.Drivers {
			if d.Name == was.Name {
				out = append(out, driver.Was(d, was.Inputs))
			}
		}
	}
	return out
}

// Input is what the step of a driver stack declared.
func (d Driver) Input(name string) string {
	i := slices.IndexFunc(d.Inputs, func(in plan.Input) bool { return in.Name == name })
	if i < 0 {
		return ""
	}
	return d.Inputs[i].Value
}

// DriverBlock is the block of a driver stack of a pin as it was. A block that is gone or
// of another kind now is refused.
func (d *Desired) DriverBlock(was Driver, p Pin) (*inventory.Driver, error) {
	for _, b := range d.Files.Drivers {
		if b.Name != was.Name {
			continue
		}
		if kind := was.Input("kind"); kind != b.Kind {
			return nil, errkind.New(errkind.Unsupported, "driver %s was of kind %q and is of kind %q (%s:%d): a stack is brought back by its own kind", was.Name, kind, b.Kind, b.Decl.Filename, b.Decl.Start.Line).
				Do("Put the block back as it was, then `ironrail rebuild " + p.Node + "`. Nothing was erased.")
		}
		return driver.Was(b, was.Inputs), nil
	}
	return nil, errkind.New(errkind.NotFound, "%s was accepted with driver %s, and the site has no such block any more", p.Node, was.Name).
		Do(fmt.Sprintf("Put driver %q back, then roll back. Nothing was erased.", was.Name))
}

// RecordPins makes pins durable, before anything is planned by them without a request.
func RecordPins(ctx context.Context, store state.Store, fence state.Fence, pins []Pin) error {
	var parts []state.Batch
	for _, p := range pins {
		put, err := state.PutOf(state.Key{Kind: pinKind, Name: p.Node}, p)
		if err != nil {
			return err
		}
		parts = append(parts, state.Batch{Puts: []state.Put{put},
			Records: []state.Record{state.Record{Kind: Pinned, Time: p.At, Subject: subject.OfNode(p.Node)}.With(p)}})
	}
	return state.AppendParts(ctx, store, fence, parts...)
}

// ReleasePins lets nodes follow the site's files again. A node that is not pinned is
// refused, and then none is released.
func ReleasePins(ctx context.Context, store state.Store, fence state.Fence, names []string, by string, now time.Time) error {
	pins, err := readObjects[Pin](ctx, store, pinKind)
	if err != nil {
		return err
	}
	var parts []state.Batch
	for _, name := range names {
		p, ok := pins[name]
		if !ok {
			return errkind.New(errkind.Refused, "%s is not pinned", name).Do("`ironrail rollback --list " + name + "` shows what it was accepted with.")
		}
		p.By, p.At = by, now.UTC()
		parts = append(parts, state.Batch{Puts: []state.Put{{Key: state.Key{Kind: pinKind, Name: name}, Want: state.Any}},
			Records: []state.Record{state.Record{Kind: Unpinned, Time: now.UTC(), Subject: subject.OfNode(name)}.With(p)}})
	}
	return state.AppendParts(ctx, store, fence, parts...)
}
