// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

// TestPortAt: of an HCA with two ports at one PCI function neither is taken for the one
// of the inventory.
func TestPortAt(t *testing.T) {
	t.Parallel()
	have := []wire.InfiniBandPort{{Device: "mlx5_0", PCI: "0000:18:00.0", Number: 1}, {Device: "mlx4_0", PCI: "0000:29:00.0", Number: 1, State: "DOWN"}, {Device: "mlx4_0", PCI: "0000:29:00.0", Number: 2, State: "ACTIVE"}}
	for pci, want := range map[string]struct{ device, problem string }{
		"0000:18:00.0": {"mlx5_0", ""},
		"0000:29:00.0": {"", "2 RDMA ports at 0000:29:00.0 (mlx4_0/1, mlx4_0/2)"},
		"0000:3a:00.0": {"", "no RDMA device at 0000:3a:00.0"},
	} {
		p, problem := portAt(have, pci)
		if p.Device != want.device || (problem == "") != (want.problem == "") || !strings.Contains(problem, want.problem) {
			t.Errorf("%s: %+v, %q", pci, p, problem)
		}
	}
}
