// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"fmt"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// judgeVLAN holds the VLAN that a BMC tags its frames with, 0 for none, against the files. cause is
// what is wrong; "": nothing is. A BMC that sends untagged frames fits any network whose bmc block has no
// vlan: its switch port is then an untagged member.
func judgeVLAN(n *inventory.Node, shown int) (cause string) {
	said := fmt.Sprintf("its BMC tags frames with VLAN %d", shown)
	if shown == 0 {
		said = "its BMC sends untagged frames"
	}
	net := n.BMC.Network
	switch p := n.BMC.Profile; {
	case p != nil && p.VLAN != 0 && shown != p.VLAN:
		return fmt.Sprintf("%s, and bmc.%s has vlan = %d", said, p.Name, p.VLAN)
	case (p == nil || p.VLAN == 0) && net != nil && net.VLAN != 0 && shown != 0 && shown != net.VLAN:
		return fmt.Sprintf("%s, and its network %s has vlan = %d", said, net.Name, net.VLAN)
	}
	return ""
}

// checkVLAN asks a BMC for its VLAN where the files name one. It is read and never set: a BMC whose
// VLAN is changed over that VLAN is gone. One that does not say is let be.
func (s *Stage) checkVLAN(ctx context.Context, run stage.Run, n *inventory.Node, b BMC) error {
	h, ok := b.(*bmc.Handle)
	if !ok || (n.BMC.Profile == nil || n.BMC.Profile.VLAN == 0) && (n.BMC.Network == nil || n.BMC.Network.VLAN == 0) {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, markWait)
	defer cancel()
	shown := 0
	err := bmc.Use(asking, h, "read the VLAN", func(x bmc.VLANTagger) (err error) { shown, err = x.VLAN(asking); return err })
	if err != nil {
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the VLAN of the BMC of %s is not compared: %s", n.Name, errkind.Line(err))})
		return context.Cause(ctx)
	}
	cause := judgeVLAN(n, shown)
	if cause == "" {
		return nil
	}
	action := correctVLAN(n)
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "BMC"}}, Cause: cause, Evidence: []string{fmt.Sprintf("the BMC at %s shows VLAN %d (0: untagged)", n.BMC.Address, shown)}, Action: action}
	if err := run.Blame(ctx, f); err != nil {
		return err
	}
	return errkind.New(errkind.Mismatch, "%s", cause).Do(action)
}

// correctVLAN is what to do about a BMC that is on another VLAN than the files say. Where they leave
// open whether the BMC tags, both settings are in it.
func correctVLAN(n *inventory.Node) string {
	const set = "`ipmitool lan set 1 vlan id "
	command, net := "", n.BMC.Network
	if p := n.BMC.Profile; p != nil && p.VLAN != 0 {
		command = fmt.Sprintf("%s%d`", set, p.VLAN)
	} else {
		command = fmt.Sprintf("%s%d`, or %soff` where its port is an untagged member", set, net.VLAN, set)
	}
	return "Correct vlan in the files; or set it from the node itself, since over its network the BMC would be cut off: " + command + ", with the channel that `ipmitool channel info` has, or in the firmware's setup. Then run `ironrail apply`."
}
