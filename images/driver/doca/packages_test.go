// SPDX-License-Identifier: Apache-2.0

package doca

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

func TestRecipe(t *testing.T) {
	t.Parallel()
	d := &inventory.Driver{Version: "3.2.1", Block: inventory.Block{Kind: Name, Name: "d", Value: cty.ObjectVal(map[string]cty.Value{"profile": cty.StringVal("doca-all")})}}
	image := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
	tt := driver.Target{Driver: d, Node: &inventory.Node{Name: "n1", Image: image, Drivers: []*inventory.Driver{d}}}
	base := stack.Base{System: distribution.Release{Family: distribution.Debian, Version: "12"}, Kernel: "6.1.0-56-amd64"}
	if _, err := Recipe(tt, base); errkind.Of(err) != errkind.NotFound || !strings.Contains(errkind.Action(err), "repository") {
		t.Errorf("without a repository: %v", err)
	}
	d.Value = cty.ObjectVal(map[string]cty.Value{"profile": cty.StringVal("doca-all"), "repository": cty.ObjectVal(map[string]cty.Value{"url": cty.StringVal("http://m.example/doca/")})})
	s, err := Recipe(tt, base)
	if err != nil || !slices.Equal(s.Packages, []string{"linux-headers-6.1.0-56-amd64", "doca-all", "mlnx-ofed-kernel-dkms"}) || !s.Stays || s.Pins[0].Version != "3.2.1*" {
		t.Errorf("%+v: %v", s, err)
	}
	base = stack.Base{System: distribution.Release{Family: distribution.RHEL, Version: "9"}, Kernel: "5.14.0-570.el9.x86_64"}
	s, err = Recipe(tt, base)
	if err != nil || !slices.Equal(s.Packages, []string{"kernel-devel", "doca-all", "mlnx-ofa_kernel-dkms"}) || len(s.Pins) != 2 || s.Pins[1].Version != "5.14.0-570.el9" {
		t.Errorf("RHEL: %+v: %v", s, err)
	}
}
