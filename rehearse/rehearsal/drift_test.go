// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// brief writes changes in a line each, without values.
func brief(d observe.Drift) (out []string) {
	for _, c := range d.Changes {
		out = append(out, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", c.Node, c.Kind, c.Part, c.Name)), " "))
	}
	return out
}

// TestDrift changes one thing after another on a rack that was accepted, and holds
// drift to finding exactly that, on that node, until it is taken as it is.
func TestDrift(t *testing.T) {
	t.Parallel()
	inv := load(t, demo, nil)
	a, b := inv.Nodes[1].Name, inv.Nodes[5].Name
	const port, at = "rail/0", "0000:18:00.0"
	plant := func(text string) func(*rehearsaltest.Later) error {
		f, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return func(l *rehearsaltest.Later) error { return l.Plant(f) }
	}
	cases := []struct {
		name string
		do   func(*rehearsaltest.Later) error
		want string // node, kind, part and name of each change
	}{
		{"nothing", func(*rehearsaltest.Later) error { return nil }, ""},
		{"a BIOS setting", func(l *rehearsaltest.Later) error { return l.World.SetBIOS(a, "QuietBoot#002E", "Disabled") }, "A bios QuietBoot#002E"},
		{"the BMC's firmware", func(l *rehearsaltest.Later) error { return l.World.SetFirmware(a, "BMC", "9.9.9") }, "A firmware BMC version"},
		{"a package", func(l *rehearsaltest.Later) error { return l.World.SetPackage(a, "rsyslog", "8.2") }, "A packages rsyslog"},
		{"a package that is gone", func(l *rehearsaltest.Later) error { return l.World.SetPackage(a, "rsyslog", "") }, "A packages rsyslog"},
		{"a kernel argument", func(l *rehearsaltest.Later) error { return l.World.AddKernelArgument(a, "iommu=off") }, "A kernel arguments"},
		{"an MTU", func(l *rehearsaltest.Later) error { return l.World.SetMTU(a, port, 1500) }, "A settings fabric.compute|A network " + at + " mtu"},
		{"errors", func(l *rehearsaltest.Later) error { return l.World.DirtyLink(a, port, b, 1e-12, 1e13) }, "A settings fabric.compute|A errors " + at + " local_link_integrity_errors|A errors " + at + " port_rcv_errors|A errors " + at + " symbol_error"},
		{"cables", plant("kind=cable-swap,node=" + a + ",with=" + b + ",port=" + port), "A settings fabric.compute|A cables " + at + " neighbour|B cables " + at + " neighbour"},
		{"a lane", func(l *rehearsaltest.Later) error { return l.World.SetLanes(b, port, 1) }, "A settings fabric.compute|B link " + at + " RDMA rate|B link " + at + " speed"},
		{"a node that is dead", plant("kind=bmc-dead,node=" + b), "A settings fabric.compute"},
	}
	got := make([]string, len(cases))
	var unknown []string
	_, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for i, c := range cases {
			if err := c.do(l); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			d, err := l.Drift(ctx, observe.DriftOptions{BMCs: observe.BMCsAlways})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			got[i] = strings.NewReplacer(a, "A", b, "B").Replace(strings.Join(brief(d), "|"))
			for _, u := range d.Unknown {
				unknown = append(unknown, fmt.Sprintf("%s: %s %s", c.name, u.Node, u.Kind))
			}
			for _, n := range d.Notes {
				t.Errorf("%s: note %+v", c.name, n)
			}
			for _, x := range d.Changes {
				if want := c.name == "a lane" && x.Kind == "link"; x.Lower != want || x.Since.IsZero() {
					t.Errorf("%s: %+v", c.name, x)
				}
			}
			if _, _, err := l.DriftAccept(ctx, observe.DriftOptions{Words: []string{a, b}}, "test"); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if got[i] != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got[i], c.want)
		}
	}
	if want := "a node that is dead: " + b + " bios"; strings.Join(unknown, "|") != want {
		t.Errorf("unknown %q, want %q", unknown, want)
	}
}

// TestDriftPeace: BMCs that were asked a moment ago are left alone, and what they
// said is used meanwhile.
func TestDriftPeace(t *testing.T) {
	t.Parallel()
	inv := load(t, demo, nil)
	a := inv.Nodes[2].Name
	var got []string
	_, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 4, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for _, how := range []observe.BMCs{"", "", observe.BMCsNever, observe.BMCsAlways} {
			d, err := l.Drift(ctx, observe.DriftOptions{BMCs: how, Kinds: []string{"bios", "firmware"}})
			if err != nil {
				return err
			}
			got = append(got, strings.Join(brief(d), "|"))
			if err := l.World.SetBIOS(a, "QuietBoot#002E", "Disabled"); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "", "", a + " bios QuietBoot#002E"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
