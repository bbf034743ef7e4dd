// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/validate/floor"
)

// TestThroughput: of three machines of one hardware block one sends little over the boot network,
// which a token bucket in front of it holds to 0.5 MB/s, while it is installed as well. It is found
// by the limit of the site, and the others are accepted. Emulation is noisy, and three nodes have
// no median: the limit is twice that, and a part of what machines carry that are well.
func TestThroughput(t *testing.T) {
	const slow = "n6"
	l := labtest.Up(t, labtest.Options{Name: "network", Machines: []string{"n5", slow, "n7"}, HCL: bareSite(
		labtest.Edit{Old: "  host       = host.lab\n", New: "  host       = host.lab\n  validation = validation.network\n"},
		extra("validation \"network\" {\n  limit \"network.tcp\" {\n    at_least = \"1MB/s\"\n  }\n}"),
	)})
	l.Fault(slow, "slow-network")
	l.Want(labtest.ExitSomeFailed, l.Ironrail("apply", "--auto-approve"))
	for _, x := range l.Report().Tests {
		for _, m := range x.Measurements {
			if m.Check == floor.NetworkTCP {
				t.Logf("%s: the least is %.2f MB/s: %s", m.Part, m.Measured/1e6, m.Params)
			}
		}
	}
	l.Quarantined(slow, "it sends", "cable")
	l.Accepted("n5", "n7")
}
