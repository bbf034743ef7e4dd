// SPDX-License-Identifier: Apache-2.0

package doca

import (
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Recipe is the stack on one node: the profile's package, which brings the modules
// as sources (DOCA 3.2.1, "DOCA-Host Installation": install the profile, restart
// openibd or the host). The host restarts where its modules run already, since its
// own network may hang on them. It implements stack.Recipe.
func Recipe(t driver.Target, b stack.Base) (stack.Set, error) {
	if !stack.HasRepository(t.Driver) {
		return stack.Set{}, errkind.New(errkind.NotFound, "%s itself does not package DOCA", b.System).
			Do(`Name a repository in the block that has it: repository { url = "http://mirror.example/doca/3.2.1/debian12/x86_64/" key = file("doca.asc") }.`)
	}
	profile := t.Driver.Text("profile")
	if profile == "" {
		profile = "doca-ofed"
	}
	s := stack.Set{
		Pins:     []repo.Pin{{Packages: []string{"doca-ofed*", "doca-networking*", "doca-all*", "doca-roce*"}, Version: t.Driver.Version + "*"}},
		Holds:    held,
		Module:   stack.Module{Name: "mlx5_core", Package: modulePackage[b.System.Family]},
		Others:   []string{"mlx5_ib", "ib_umad", "ib_uverbs", "rdma_ucm"},
		Services: []string{"openibd"},
		Stays:    true,
	}
	stack.AddHeaders(t.Node.Image, b, &s)
	s.Packages = append(s.Packages, profile, modulePackage[b.System.Family])
	stack.AddExtra(t.Driver, &s)
	return s, nil
}

// modulePackage is the package with the sources of the modules, by family.
var modulePackage = map[string]string{distribution.Debian: "mlnx-ofed-kernel-dkms", distribution.Ubuntu: "mlnx-ofed-kernel-dkms", distribution.RHEL: "mlnx-ofa_kernel-dkms"}

// held are the packages that DOCA brings in the place of the distribution's: mixed
// with those, neither works.
var held = []string{"mlnx-*", "*mlx5*", "rdma-core", "libibverbs*", "librdmacm*", "libibumad*", "libibmad*", "ibverbs-*", "infiniband-diags", "perftest", "ucx*"}
