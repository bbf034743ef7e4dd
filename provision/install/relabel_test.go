// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// TestBootsTwice: a system that gives labels to its files at its first boot, and restarts
// for that, may take two boots until it can be logged in to; its install ramdisk may not.
func TestBootsTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		image       *inventory.Image
		bootTimeout time.Duration
		boot        time.Duration // the limit on silence of the boot from disk
	}{
		{&inventory.Image{OS: "rhel"}, 0, 30 * time.Minute}, {&inventory.Image{OS: "rhel"}, 10 * time.Minute, 20 * time.Minute},
		{&inventory.Image{OS: "ubuntu"}, 0, 15 * time.Minute}, {&inventory.Image{}, 10 * time.Minute, 10 * time.Minute}, {nil, 0, 15 * time.Minute},
	} {
		n := &inventory.Node{Name: "n1", Image: c.image, Hardware: &inventory.Hardware{BootTimeout: unit.Duration(c.bootTimeout)}}
		st := func(action string, limit time.Duration) plan.Step {
			return plan.Step{ID: plan.StepID("n1/install." + action), Deadline: plan.Budget{Limit: limit}}
		}
		if got := silenceLimit(n, st(Boot, diskLimit*boots(n))); got != c.boot {
			t.Errorf("%+v: %s until the login, want %s", c.image, got, c.boot)
		}
		if got := silenceLimit(n, st(Netboot, bootLimit)); c.bootTimeout == 0 && got != 15*time.Minute || c.bootTimeout > 0 && got != c.bootTimeout {
			t.Errorf("%+v: %s until the ramdisk", c.image, got)
		}
	}
}
