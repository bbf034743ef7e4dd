// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// rhelExample is the example demo with an image of kind rhel, without rails and tests. The driver
// takes the place of its own; "": it has none.
func rhelExample(t *testing.T, driver, drivers string) *inventory.Inventory {
	t.Helper()
	return rhelWithout(t, driver, drivers, "  hca \"rail\" {", "driver \"inbox\" \"rdma\" {", "fabric \"roce\" \"compute\" {", "validation \"h100\" {", "rack \"net\" {", "cable {")
}

// rhelWithout is the example demo with an image of kind rhel, without some of its blocks.
func rhelWithout(t *testing.T, driver, drivers string, blocks ...string) *inventory.Inventory {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "demo", "site.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	changes := []string{"image \"debian\" \"os\" {\n  release  = \"bookworm\"\n  kernel   = \"linux-image-amd64\"\n", "image \"rhel\" \"os\" {\n  release  = \"9\"\n",
		"  drivers    = [driver.rdma]\n  validation = validation.h100\n", drivers}
	if strings.Contains(driver, "precompiled") {
		changes = append(changes, "  kernel_args = [\"iommu=pt\"]\n", "  kernel_args = [\"iommu=pt\"]\n  hold_kernel = true\n")
	}
	for _, block := range blocks {
		_, rest, found := strings.Cut(string(text), block)
		indent := block[:len(block)-len(strings.TrimLeft(block, " "))]
		body, _, ended := strings.Cut(rest, "\n"+indent+"}\n")
		if !found || !ended {
			t.Fatalf("the example has no %q", block)
		}
		by := ""
		if strings.HasPrefix(block, "driver") {
			by = driver
		}
		changes = append(changes, block+body+"\n"+indent+"}\n", by)
	}
	return otherExample(t, "demo", changes...)
}

// TestRHEL: a site with an image of kind rhel is planned and rehearsed, with the second start of
// each node that gives its files their labels.
func TestRHEL(t *testing.T) {
	t.Parallel()
	sum := rehearsed(t, rhelExample(t, "", ""))
	if len(sum.Accepted) != 8 || len(sum.Unexpected) != 0 {
		t.Errorf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
	}
	said := ""
	for _, s := range sum.Simulated {
		said += s.Name + ": " + s.How + "\n"
	}
	if !strings.Contains(said, "RHEL 9 for amd64") {
		t.Errorf("simulated:\n%s", said)
	}
}

// TestRHELRails: its nodes have the rails of a RoCE fabric, which NetworkManager leaves alone.
func TestRHELRails(t *testing.T) {
	t.Parallel()
	sum := rehearsed(t, rhelWithout(t, "", "", "driver \"inbox\" \"rdma\" {", "validation \"h100\" {"))
	if len(sum.Accepted) != 8 || len(sum.Unexpected) != 0 {
		t.Errorf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
	}
}

// TestRHELTools: what its tests run comes by dnf, and its Open MPI is started in its own place.
func TestRHELTools(t *testing.T) {
	t.Parallel()
	const drivers = "driver \"inbox\" \"rdma\" {\n  packages = [\"rdma-core\", \"libibverbs-utils\"]\n}\n\ndriver \"tools\" \"tools\" {}\n"
	inv := rhelWithout(t, drivers, "  drivers = [driver.rdma, driver.tools]\n  validation = validation.h100\n", "driver \"inbox\" \"rdma\" {")
	sum := rehearsed(t, inv)
	if len(sum.Accepted) != 8 || len(sum.Unexpected) != 0 {
		t.Errorf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
	}
}

// TestRHELDiskless: its nodes keep their systems in memory, with drivers whose modules are built already, and
// nothing is written to a disk.
func TestRHELDiskless(t *testing.T) {
	t.Parallel()
	const drivers = "driver \"cuda\" \"r580\" {\n  version        = \"580.126.16\"\n  fabric_manager = true\n  precompiled    = true\n  repository {\n    url = \"http://mirror.example/cuda/rhel9/x86_64/\"\n  }\n}\n"
	inv := rhelExample(t, drivers, "  drivers = [driver.r580]\n")
	for _, i := range inv.Images {
		i.Kernel = "kernel-5.14.0-570.12.1.el9_6.x86_64"
	}
	inMemory(inv)
	sum, err := rehearsal.Run(t.Context(), inv, rehearsal.Options{Seed: 1, Then: func(_ context.Context, r *rehearsal.Rehearsal) error {
		return blankDisks(inv, rehearsaltest.Of(r).World)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != 8 || len(sum.Unexpected) != 0 {
		t.Errorf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
	}
}

// TestRHELDrivers: its nodes get drivers by dnf from a repository of the controller.
func TestRHELDrivers(t *testing.T) {
	t.Parallel()
	const drivers = "driver \"inbox\" \"own\" {\n  packages = [\"NetworkManager-tui\"]\n}\n\ndriver \"cuda\" \"r580\" {\n  version        = \"580.126.16\"\n  module         = \"open\"\n  fabric_manager = true\n" +
		"  repository {\n    url = \"http://mirror.example/cuda/rhel9/x86_64/\"\n  }\n}\n"
	sum := rehearsed(t, rhelExample(t, drivers, "  drivers = [driver.own, driver.r580]\n"))
	if len(sum.Accepted) != 8 || len(sum.Unexpected) != 0 {
		t.Errorf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
	}
}

// TestRHELPrecompiled: a module that NVIDIA built for the kernel of the image comes by dnf, and
// nothing is built.
func TestRHELPrecompiled(t *testing.T) {
	t.Parallel()
	const drivers = "driver \"cuda\" \"r580\" {\n  version        = \"580.126.16\"\n  fabric_manager = true\n  precompiled    = true\n  repository {\n    url = \"http://mirror.example/cuda/rhel9/x86_64/\"\n  }\n}\n"
	inv := rhelExample(t, drivers, "  drivers = [driver.r580]\n")
	for _, i := range inv.Images {
		i.Kernel = "kernel-5.14.0-570.12.1.el9_6.x86_64"
	}
	sum := rehearsed(t, inv)
	if len(sum.Accepted) != 8 || len(sum.Unexpected) != 0 {
		t.Errorf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
	}
}

// TestRHELCompiled: programs that are compiled come as packages of RPM, and find Open MPI's libraries.
func TestRHELCompiled(t *testing.T) {
	t.Parallel()
	const drivers = "driver \"inbox\" \"rdma\" {\n  packages = [\"rdma-core\", \"libibverbs-utils\"]\n}\n\ndriver \"cuda\" \"r580\" {\n  version        = \"580.126.16\"\n  cuda           = \"13.0\"\n  fabric_manager = true\n" +
		"  repository {\n    url = \"http://mirror.example/cuda/rhel9/x86_64/\"\n  }\n}\n\ndriver \"tools\" \"tools\" {\n  nccl_tests {\n    source   = \"https://github.com/NVIDIA/nccl-tests/archive/v2.17.6.tar.gz\"\n" +
		"    checksum = \"sha256:38974e70342150ede0e3fb8fd24bfe60ccbde90fa20241716ba8bb338e6b61a0\"\n  }\n}\n"
	inv := rhelWithout(t, drivers, "  drivers = [driver.rdma, driver.r580, driver.tools]\n  validation = validation.h100\n", "driver \"inbox\" \"rdma\" {")
	for _, v := range inv.Validations {
		v.AllReduce.Engine = "nccl"
	}
	sum := rehearsed(t, inv)
	if len(sum.Accepted) != 8 || len(sum.Unexpected) != 0 {
		t.Errorf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
	}
}
