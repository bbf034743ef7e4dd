// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/nccl"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// notDomain is why a run over an NVLink domain is bad whose data did not go over its
// NVLink; "" when it did. A library that cannot use it takes the rails and goes on. Where
// it writes no log, more than the rails can carry is the proof.
func (c *Test) notDomain(b *grouprun.Run) string {
	if b.Scope != grouprun.Domain || len(b.Got.Outside) == 0 {
		return ""
	}
	list := slices.Sorted(maps.Keys(b.Got.Outside))
	h := b.Nodes[0].Hardware
	rails := nccl.BandwidthCeiling(len(b.Nodes), h.GPUCount(), floor.ExpectCollective(h, true, 0).Wire, false)
	if len(list) == len(b.Nodes) && rails > 0 && b.Got.BusBW > beyond*rails {
		return ""
	}
	return fmt.Sprintf("%s did not use the NVLink between nodes: the all-reduce fell back to the rails, with %s", result.NameSome(list), result.FormatRate(b.Got.BusBW))
}

// SuspectOutside blames the nodes of a domain that do not use its NVLink, where others of
// it do; all together where none does. It is false where all use it.
func (c *Test) SuspectOutside(b *grouprun.Run) bool {
	if b.Err != nil || c.notDomain(b) == "" {
		return false
	}
	list := slices.Sorted(maps.Keys(b.Got.Outside))
	if len(list) == len(b.Nodes) {
		c.BlameSet(b, "no node of the domain uses it: look at what they share, such as NCCL_MNNVL_ENABLE and NCCL_CUMEM_ENABLE in /etc/nccl.conf of the image, the version of the library, and the NVLink switches")
		return true
	}
	for _, node := range list {
		if slices.Contains(c.Suspects, node) {
			continue
		}
		c.Suspects = append(c.Suspects, node)
		c.Findings = append(c.Findings, stage.Finding{
			Suspects: []stage.Suspect{{Subject: subject.OfNode(node), Part: "NVLink between nodes"}},
			Cause:    fmt.Sprintf("the GPUs of %s do not use the NVLink of domain %s, though others of it do: what is sent to and from them goes over the rails", node, b.Nodes[0].Domain),
			Evidence: []string{"all-reduce over " + result.NameSome(target.NodeNames(b.Nodes)) + ": " + result.FormatRate(b.Got.BusBW), b.Got.Outside[node], b.Reference(c.Rec)},
			Action:   fmt.Sprintf("Look on %s at /dev/nvidia-caps-imex-channels (channel0 is there with NVreg_CreateImexChannel0=1), at nvidia-imex-ctl -N, and at NCCL_MNNVL_ENABLE and NCCL_CUMEM_ENABLE in /etc/nccl.conf; then apply again.", node),
		})
	}
	return true
}
