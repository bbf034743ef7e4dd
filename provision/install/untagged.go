// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// blameUntagged ends the bring-up of a node whose ramdisk has found this controller without the tag of the
// boot network's VLAN: its firmware booted without a VLAN at a port that is an untagged member, and its system,
// which tags, would not be heard. It passes over another error.
func blameUntagged(ctx context.Context, run stage.Run, n *inventory.Node, id wire.Identity, err error) error {
	t, tagged := n.BootVLAN()
	if err != nil || !tagged || !id.Untagged {
		return err
	}
	vlan := t.Network.VLAN
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "boot NIC " + n.BootMAC.String()}},
		Cause: fmt.Sprintf("its switch port gives VLAN %d untagged, and network %s has it tagged there", vlan, t.Network.Name),
		Evidence: []string{fmt.Sprintf("the install ramdisk was not heard with the tag of VLAN %d, and reached this controller without it", vlan),
			"the firmware booted up to the ramdisk, so that it sets no tag either"},
		Action: fmt.Sprintf("Make the switch port of %s a tagged member of VLAN %d, and set VLAN %d for the NIC in its firmware; or remove vlan = %d from network %q where all of its ports are untagged members. Nothing was erased.", n.Name, vlan, vlan, vlan, t.Network.Name)}
	return errors.Join(run.Blame(ctx, f), errkind.New(errkind.Mismatch, "%s", f.Cause).Do(f.Action))
}
