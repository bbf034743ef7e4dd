// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/result"
)

// probeScript says which programs of tests there are, and the GIDs of RDMA devices with
// their types, which the kernel keeps for its own entries alone.
const probeScript = `command -v ib_write_bw >/dev/null && echo 'has ib_write_bw'
for d in /sys/class/infiniband/*; do
	for t in "$d"/ports/1/gid_attrs/types/*; do
		n=${t##*/}
		{ IFS= read -r kind <"$t" && IFS= read -r gid <"$d/ports/1/gids/$n"; } 2>/dev/null || continue
		printf 'gid %s %s %s %s\n' "${d##*/}" "$n" "$gid" "$kind"
	done
done
true`

// probe is what a host can be loaded with.
type probe struct {
	writes bool           // it has ib_write_bw
	gids   map[string]int // index of the GID to send by over RoCE v2, by device
	err    error
}

// takeProbes asks all hosts what they can be loaded with.
func takeProbes(ctx context.Context, f *fleet) map[string]probe {
	var mu sync.Mutex
	all := map[string]probe{}
	each(f.names(), func(name string) {
		p := takeProbe(ctx, f, name)
		mu.Lock()
		defer mu.Unlock()
		all[name] = p
	})
	return all
}

func takeProbe(ctx context.Context, f *fleet, name string) probe {
	ctx, cancel := context.WithTimeout(ctx, shortWait)
	defer cancel()
	out, err := onnode.Do(ctx, f, name, "sh", "-c", probeScript)
	if err != nil {
		return probe{err: err}
	}
	return parseProbe(string(out))
}

// ipv4GID begins the GIDs that stand for IPv4 addresses.
const ipv4GID = "0000:0000:0000:0000:0000:ffff:"

// parseProbe reads what probeScript prints. Of the GIDs of RoCE v2 the first of an IPv4
// address counts, since others may be of the link alone.
func parseProbe(text string) probe {
	p := probe{gids: map[string]int{}}
	routed := map[string]bool{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "has":
			p.writes = p.writes || f[1] == "ib_write_bw"
		case len(f) == 6 && f[0] == "gid" && f[4] == "RoCE" && f[5] == "v2":
			n, err := strconv.Atoi(f[2])
			_, known := p.gids[f[1]]
			v4 := strings.HasPrefix(f[3], ipv4GID)
			if err == nil && n >= 0 && (!known || v4 && !routed[f[1]]) {
				p.gids[f[1]], routed[f[1]] = n, v4
			}
		}
	}
	return p
}

// inUse is what a host is used for; empty: nothing that its GPUs know of.
func (s survey) inUse() string {
	if s.seen.NVIDIA != nil {
		for _, g := range s.seen.NVIDIA.GPUs {
			for _, p := range g.Processes {
				if strings.Contains(p.Type, "C") { // compute; G is a display
					return fmt.Sprintf("process %d (%s) uses GPU %d", p.PID, p.Name, g.Index)
				}
			}
		}
	}
	if s.seen.AMD != nil {
		for _, g := range s.seen.AMD.GPUs {
			if g.Metric != nil && g.Metric.GFX != nil && *g.Metric.GFX > 0 {
				return fmt.Sprintf("GPU %d is %g %% busy", g.GPU, *g.Metric.GFX)
			}
		}
	}
	return ""
}

// noLoad is why a host is not loaded, and noWrites why it is not tested with others;
// empty: it is.
func (r *run) noLoad(s survey) string {
	if !r.Load {
		return "nothing is loaded without --load"
	}
	if use := s.inUse(); use != "" {
		return "the node is in use: " + use
	}
	return ""
}

func (r *run) noWrites(s survey, h *inventory.Hardware) string {
	p := r.probes[s.name]
	rails := false
	for _, nic := range h.NICs {
		rails = rails || nic.Fabric != nil
	}
	switch why := r.noLoad(s); {
	case why != "":
		return why
	case p.err != nil:
		return "what it can be loaded with was not read: " + p.err.Error()
	case !rails:
		return "its hardware block has no ports on a fabric"
	case !p.writes:
		return "there is no ib_write_bw on the node (package perftest)"
	}
	return ""
}

// validations are the validation blocks of a cohort: of hosts that are tested with
// others, and of those that are not.
func (r *run) validations(c cohort, want *Expected) (with, without *inventory.Validation) {
	without = want.validation()
	if without == nil {
		without = &inventory.Validation{Name: c.name, Decl: r.fleet.nodes[c.members[0].name].host.Decl}
	}
	tested := *without
	plain := *without
	plain.Name, plain.Pair = c.name+"-alone", nil
	plain.Limits = slices.DeleteFunc(slices.Clone(plain.Limits), func(l inventory.MeasureLimit) bool { return l.Name == result.WriteBandwidth })
	tested.Name = c.name
	if tested.Pair == nil {
		tested.Pair = &inventory.PairTest{Engine: "perftest", Decl: tested.Decl}
	}
	if tested.Quorum == 0 {
		tested.Quorum = 1 // percent: whoever is left is tested, two at least
	}
	return &tested, &plain
}
