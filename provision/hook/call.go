// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// Format is the version of what programs read; fields are only ever added.
const Format = 1

// Call is what a program reads on its standard input. It holds no secret.
type Call struct {
	Format   int    `json:"format"`
	Key      string `json:"key"` // of this very call; the same key comes again only when the first try had no good end
	Site     string `json:"site"`
	When     string `json:"when"` // before or after
	Stage    string `json:"stage"`
	Node     Node   `json:"node"`
	Standing string `json:"standing"` // accepted, adopted, not accepted, held: ..., quarantined: ...
	// Facts are what was learned of the node until now, by name: a few that
	// describe it, each in the form that `ironrail show --json` prints.
	Facts map[string]json.RawMessage `json:"facts,omitempty"`
}

// Node is a node as the site's files say it. What is not given is left out.
type Node struct {
	Name       string `json:"name"`
	Serial     string `json:"serial,omitempty"`
	UUID       string `json:"uuid,omitempty"`
	BootMAC    string `json:"boot_mac,omitempty"`
	Address    string `json:"address,omitempty"`
	Address6   string `json:"address6,omitempty"` // IPv6, where the boot network has a cidr6
	BMCAddress string `json:"bmc_address,omitempty"`
	Rack       string `json:"rack,omitempty"`
	Unit       int    `json:"unit,omitempty"`
	Role       string `json:"role,omitempty"`
	Hardware   string `json:"hardware,omitempty"`
	Image      string `json:"image,omitempty"`
	Handover   string `json:"handover,omitempty"`
}

// shownFacts are those that programs are told. None of them is a secret.
var shownFacts = []string{"node.identity", "node.system", "bmc.report", "install.written", "validate.accepted"}

// call is what a hook is told of a node.
func (s *Stage) call(ctx context.Context, run stage.Run, h *inventory.Hook, n *inventory.Node, key string) (Call, error) {
	c := Call{Format: Format, Key: key, Site: s.inv.Site.Name, When: h.When, Stage: h.Stage, Node: nodeOf(n)}
	if s.nodeStatus != nil {
		var err error
		if c.Standing, err = s.nodeStatus(ctx, n.Name); err != nil {
			return c, fmt.Errorf("status of node %s: %w", n.Name, err)
		}
	}
	for _, name := range shownFacts {
		f, ok := run.Fact(fact.Key{Subject: subject.OfNode(n.Name), Name: name})
		if !ok {
			continue
		}
		if c.Facts == nil {
			c.Facts = map[string]json.RawMessage{}
		}
		c.Facts[name] = f.Value
	}
	return c, nil
}

// nodeOf describes a node.
func nodeOf(n *inventory.Node) Node {
	of := n.BlockNames()
	out := Node{Name: n.Name, Serial: n.Serial, UUID: n.UUID, Unit: n.Unit, Rack: of.Rack, Role: of.Role, Hardware: of.Hardware, Image: of.Image, Handover: of.Handover}
	if !n.BootMAC.IsZero() {
		out.BootMAC = n.BootMAC.String()
	}
	if n.Address.IsValid() {
		out.Address = n.Address.String()
	}
	if n.Address6.IsValid() {
		out.Address6 = n.Address6.String()
	}
	if n.BMC.Address.IsValid() {
		out.BMCAddress = n.BMC.Address.String()
	}
	return out
}
