// SPDX-License-Identifier: Apache-2.0

package ibnetdiscover

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
)

// device is a node of a subnet that was made up, and socket a port of it.
type device struct {
	letter byte // S or H
	guid   uint64
	name   string
	ports  int
	lid    int
	peers  map[int]socket
}

type socket struct {
	of   *device
	port int
}

func (d *device) id() string { return fmt.Sprintf("%c-%016x", d.letter, d.guid) }

// lidOf is the LID of a port: of a switch that of the switch, of an HCA its own.
func (s socket) lidOf() int {
	if s.of.letter == 'S' {
		return s.of.lid
	}
	return s.of.lid + s.port
}

// subnet makes up switches and HCAs with cables between ports that are free, two
// of one switch too.
func subnet(r *rand.Rand) []*device {
	var all []*device
	names := []string{"MF0;leaf %d:MQM9700/U1", `say "x" %d`, "gpu-%d mlx5_0", "Mellanox Technologies Aggregation Node # %d", "] lid %d 4xNDR"}
	for i := range 2 + r.IntN(30) {
		d := &device{letter: 'H', guid: 0x946dae0300000000 + uint64(r.IntN(1<<20))<<8 + uint64(i), ports: 1 + r.IntN(3), lid: 1 + 4*i, peers: map[int]socket{}}
		if r.IntN(3) == 0 {
			d.letter, d.ports = 'S', 4+r.IntN(140)
		}
		d.name = fmt.Sprintf(names[r.IntN(len(names))], i)
		all = append(all, d)
	}
	for range r.IntN(200) {
		a, b := all[r.IntN(len(all))], all[r.IntN(len(all))]
		x, y := socket{a, 1 + r.IntN(a.ports)}, socket{b, 1 + r.IntN(b.ports)}
		_, used := a.peers[x.port]
		_, taken := b.peers[y.port]
		if !used && !taken && x != y {
			a.peers[x.port], b.peers[y.port] = y, x
		}
	}
	return all
}

// write prints a subnet as ibnetdiscover does, its ports in any order.
func write(all []*device, r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("#\n# Topology file: generated on Sat Nov 21 10:00:00 2026\n#\n")
	for _, d := range all {
		kind, word, after := "Ca", "ca", ""
		if d.letter == 'S' {
			kind, word, after = "Switch", "switch", fmt.Sprintf(" enhanced port 0 lid %d lmc 0", d.lid)
		}
		fmt.Fprintf(&b, "\nvendid=0x2c9\ndevid=0x1021\nsysimgguid=0x%x\n%sguid=0x%x\n%s\t%d %q\t\t# \"%s\"%s\n", d.guid, word, d.guid, kind, d.ports, d.id(), d.name, after)
		for _, n := range r.Perm(d.ports) {
			p, cabled := d.peers[n+1]
			if !cabled {
				continue
			}
			own, before, peer := "", "", ""
			if d.letter == 'H' {
				own, before = fmt.Sprintf("(%x)", d.guid+uint64(n)+1), fmt.Sprintf("lid %d lmc 0 ", d.lid+n+1)
			}
			if p.of.letter == 'H' {
				peer = fmt.Sprintf("(%x)", p.of.guid+uint64(p.port))
			}
			fmt.Fprintf(&b, "[%d]%s \t%q[%d]%s\t\t# %s\"%s\" lid %d 4xNDR\n", n+1, own, p.of.id(), p.port, peer, before, p.of.name, p.lidOf())
		}
	}
	return b.String()
}

// cables returns each cable once, as its two ends in their order.
func cables(all []*device) (list []string) {
	for _, d := range all {
		for n, p := range d.peers {
			list = append(list, cable(d.id(), n, p.of.id(), p.port))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func cable(a string, x int, b string, y int) string {
	ends := []string{fmt.Sprintf("%s/%d", a, x), fmt.Sprintf("%s/%d", b, y)}
	slices.Sort(ends)
	return strings.Join(ends, " ")
}

// TestEveryCableOnce: whatever a subnet looks like, both lines of a cable are one
// link, and nothing is wrong; a line less is told.
func TestEveryCableOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		all := subnet(r)
		text := write(all, r)
		top, problems, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var got []string
		for _, l := range top.Links {
			got = append(got, cable(l.From.ID, l.From.Port, l.To.ID, l.To.Port))
			if l.From.GUID == 0 || l.To.GUID == 0 || l.Speed != "NDR" || l.Width != "4x" || l.From.Name != nameOf(all, l.From.GUID) || l.To.Name != nameOf(all, l.To.GUID) {
				t.Errorf("seed %d: %+v", seed, l)
			}
		}
		slices.Sort(got)
		if want := cables(all); !slices.Equal(got, want) || len(top.Switches)+len(top.HCAs) != len(all) || len(problems) > 0 {
			t.Fatalf("seed %d: got %d links of %d, %d nodes of %d, problems %v in\n%s", seed, len(got), len(want), len(top.Switches)+len(top.HCAs), len(all), problems, text)
		}
		lines := strings.SplitAfter(text, "\n")
		at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "[") })
		if at < 0 {
			continue
		}
		top, problems, err = Parse([]byte(strings.Join(slices.Delete(lines, at, at+1), "")))
		if err != nil || len(problems) == 0 || len(top.Links) != len(got) {
			t.Errorf("seed %d, a line less: %v, %v, %d links of %d", seed, err, problems, len(top.Links), len(got))
		}
	}
}

func nameOf(all []*device, guid addr.GUID) string {
	for _, d := range all {
		if d.guid == uint64(guid) {
			return d.name
		}
	}
	return ""
}
