// SPDX-License-Identifier: Apache-2.0

// Package host_test tries the stage of host settings on the installed systems of the
// virtual rack.
package host_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/host"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// known is a view with the facts of a run.
type known struct{ run *onnodetest.Run }

func (k known) Fact(key fact.Key) (fact.Fact, bool) { return k.run.Fact(key) }

// steps are those of the stage, which must be n.
func steps(t *testing.T, s *host.Stage, run *onnodetest.Run, n int) []plan.Step {
	t.Helper()
	list, diags := s.Plan(known{run})
	if diags.HasErrors() || len(list) != n {
		t.Fatalf("%d steps, want %d: %v", len(list), n, diags)
	}
	return list
}

// TestSettings: settings are made on a node that runs, read back, found again after a
// reboot, changed, and taken back when the files no longer give them.
func TestSettings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		n := inv.Nodes[0]
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm", Packages: []string{"locales-all"}}
		n.Host = &inventory.HostSettings{Name: "gpu", HoldKernel: true, Locale: "en_US.UTF-8", Sysctl: map[string]string{"vm.swappiness": "10", "net.ipv4.conf.all.rp_filter": "2"}}
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		s, run := host.New(inv, r), onnodetest.NewRun()
		st := steps(t, s, run, 1)[0]
		is := func(want stage.Conformity, words ...string) {
			t.Helper()
			o, err := s.Observe(t.Context(), run, st)
			if err != nil || o.State != want {
				t.Fatalf("%+v, %v; want %s", o, err, want)
			}
			for _, w := range words {
				if !strings.Contains(o.Evidence, w) {
					t.Errorf("evidence %q lacks %q", o.Evidence, w)
				}
			}
		}
		apply := func() {
			t.Helper()
			if err := s.Apply(t.Context(), run, st); err != nil {
				t.Fatal(err)
			}
		}
		is(stage.Differs, "the kernel has no sysctl vm.swappiness", `net.ipv4.conf.all.rp_filter is "0", not "2"`, "not on hold: linux-image-", "/etc/locale.conf is not")
		apply()
		is(stage.Conforms)
		if out, _ := r.Sh("n1", "apt-mark showhold; cat /proc/sys/vm/swappiness /etc/locale.conf"); !strings.Contains(out, "linux-image-amd64\n") || !strings.HasSuffix(out, "\n10\nLANG=en_US.UTF-8\n") {
			t.Errorf("the node says %q", out)
		}
		r.Sh("n1", "reboot")
		r.Disconnect()
		pause := func(d time.Duration) {
			if err := (clock.Wall{}).Sleep(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		pause(time.Minute) // in the time of the bubble
		for o, err := s.Observe(t.Context(), run, st); o.State != stage.Conforms; o, err = s.Observe(t.Context(), run, st) {
			if o.State == stage.Differs {
				t.Fatalf("after a reboot: %+v, %v", o, err)
			}
			pause(time.Second)
		}
		r.Sh("n1", "sysctl vm.swappiness=60; apt-mark unhold linux-image-amd64")
		is(stage.Differs, `sysctl vm.swappiness is "60", not "10"`, "not on hold: linux-image-amd64")
		n.Host.Sysctl = map[string]string{"vm.swappiness": "1"}
		st = steps(t, s, run, 1)[0]
		apply()
		is(stage.Conforms)
		n.Host.Sysctl = map[string]string{"zoo.elephants": "1"} // refused by check, and here by the kernel
		if err := s.Apply(t.Context(), run, st); errkind.Of(err).Base() != errkind.Mismatch || !strings.Contains(err.Error(), "the kernel has no sysctl zoo.elephants") {
			t.Errorf("an unknown setting: %v", err)
		}
		*n.Host = inventory.HostSettings{Name: "gpu"}
		st = steps(t, s, run, 1)[0]
		is(stage.Differs, "on hold: linux-image-", "/etc/sysctl.d/99-zz-ironrail.conf is there")
		apply()
		is(stage.Conforms)
		steps(t, s, run, 0)
	})
}
