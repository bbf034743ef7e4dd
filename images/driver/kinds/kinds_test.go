// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory"
)

// TestNames: the language has the kinds that are listed here, and no other.
func TestNames(t *testing.T) {
	t.Parallel()
	if want := slices.Sorted(maps.Keys(inventory.DefaultKinds().Driver)); !slices.Equal(Names(), want) {
		t.Errorf("%v, and the language has %v", Names(), want)
	}
}

func TestBrought(t *testing.T) {
	t.Parallel()
	source := cty.ObjectVal(map[string]cty.Value{"source": cty.StringVal("sources/v2.tar.gz")})
	stack := func(kind string, attrs map[string]cty.Value, packages ...string) *inventory.Driver {
		d := &inventory.Driver{Block: inventory.Block{Kind: kind, Name: kind, Value: cty.ObjectVal(attrs)}, Packages: packages}
		d.Version = d.Text("version")
		return d
	}
	repository := cty.ObjectVal(map[string]cty.Value{"url": cty.StringVal("http://mirror.example/x/")})
	cuda := stack("cuda", map[string]cty.Value{"version": cty.StringVal("580.126.16"), "cuda": cty.StringVal("13.0"), "repository": repository})
	doca := stack("doca", map[string]cty.Value{"version": cty.StringVal("3.2.1"), "repository": repository})
	all := []Program{MPI, MPI4Py, WriteBW, NCCLTests, RCCLTests, NVBandwidth, DCGM, RVS}
	for name, c := range map[string]struct {
		packages []string
		drivers  []*inventory.Driver
		want     []Program
	}{
		"nothing":              {nil, nil, nil},
		"the image":            {[]string{"openmpi-bin=4.1.4-3", "chrony"}, nil, []Program{MPI}},
		"inbox":                {nil, []*inventory.Driver{stack("inbox", nil, "perftest", "openmpi-bin", "python3-mpi4py")}, []Program{MPI, MPI4Py, WriteBW}},
		"cuda":                 {nil, []*inventory.Driver{cuda}, []Program{NVBandwidth, DCGM}},
		"doca":                 {nil, []*inventory.Driver{doca}, []Program{WriteBW}},
		"rocm":                 {nil, []*inventory.Driver{stack("rocm", map[string]cty.Value{"version": cty.StringVal("7.0.2"), "repository": repository})}, []Program{RVS}},
		"rocm of Debian":       {nil, []*inventory.Driver{stack("rocm", map[string]cty.Value{"version": cty.StringVal("5.2")})}, nil},
		"tools":                {nil, []*inventory.Driver{stack("tools", map[string]cty.Value{})}, []Program{MPI, MPI4Py, WriteBW}},
		"tools with NCCL":      {nil, []*inventory.Driver{cuda, stack("tools", map[string]cty.Value{"nccl_tests": source})}, []Program{MPI, MPI4Py, WriteBW, NCCLTests, NVBandwidth, DCGM}},
		"tools with RCCL":      {nil, []*inventory.Driver{stack("tools", map[string]cty.Value{"rccl_tests": source, "nvbandwidth": source})}, []Program{MPI, MPI4Py, WriteBW, RCCLTests, NVBandwidth}},
		"tools, DOCA's writes": {nil, []*inventory.Driver{doca, stack("tools", map[string]cty.Value{})}, []Program{MPI, MPI4Py, WriteBW}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &inventory.Node{Name: "n1", Drivers: c.drivers, Image: &inventory.Image{Block: inventory.Block{Kind: "debian"}, Release: "bookworm", Packages: c.packages}}
			for _, p := range all {
				if got := Brought(n, p); got != slices.Contains(c.want, p) {
					t.Errorf("%s: %v", p, got)
				}
			}
		})
	}
}
