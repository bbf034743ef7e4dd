package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/driver"
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

// Pin holds a node at an image and driver stacks that it was accepted with before,
// whatever the site's files say.
type Pin struct {
	Node    string           `json:"node"`
	Image   string           `json:"image"`  // name of the block
	Digest  string           `json:"digest"` // of the image
	Drivers []AcceptedDriver `json:"drivers,omitempty"`
	By      string           `json:"by,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	At      time.Time        `json:"at"`
}

// pinsOf reads the pins of the state, by node.
func pinsOf(ctx context.Context, r state.Reader) ([]Pin, error) {
	all, err := objectsOf[Pin](ctx, r, pinKind)
	if err != nil {
		return nil, err
	}
	var out []Pin
	for _, name := range sortedNames(all) {
		out = append(out, all[name])
	}
	return out, nil
}

// Pins lists the nodes that are held at an earlier image.
func (s *Site) Pins(ctx context.Context, r state.Reader) ([]Pin, error) { return pinsOf(ctx, r) }

// Warning says in every plan that a node does not follow the site.
func (p Pin) Warning() string {
	why := p.At.UTC().Format(time.DateOnly)
	if p.Reason != "" {
		why = p.Reason + ", " + why
	}
	return fmt.Sprintf("%s is pinned to image %s by rollback (%s); `ironrail rollback --release %s` lets it follow the site again", p.Node, short(p.Digest), why, p.Node)
}

// imageName is the name of the copy of an image block that pinned nodes have.
func (p Pin) imageName() string {
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
		name := p.imageName()
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
	pinned.Name, pinned.Kind, pinned.Digest = p.imageName(), debian.Kind, p.Digest
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

// input is what the step of a driver stack declared.
func (d AcceptedDriver) input(name string) string {
	i := slices.IndexFunc(d.Inputs, func(in plan.Input) bool { return in.Name == name })
	if i < 0 {
		return ""
	}
	return d.Inputs[i].Value
}
