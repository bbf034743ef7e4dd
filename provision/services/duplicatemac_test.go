// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// TestTwinFinding: two machines with one MAC are one finding of each attempt, with
// both UUIDs, that takes nothing out of service; a flood of them is bounded.
func TestTwinFinding(t *testing.T) {
	t.Parallel()
	v := &Services{network: "boot", duplicateMACs: newSiteFindings(moreDuplicateMACs("boot"))}
	at := time.Date(2026, 11, 2, 15, 4, 5, 0, time.UTC)
	for i := range 100 {
		node := fmt.Sprintf("n%d", i)
		two := dhcp.TwoUUIDs{Client: netboot.Client{Node: node}, Attempt: node + "-a", MAC: addr.MAC{2, 0, 0, 0, 0, byte(i)}, Program: "a PXE firmware, UEFI x64",
			First: "aaaa", Second: "bbbb", FirstAt: at, At: at.Add(time.Second), Inventory: "aaaa"}
		v.reportDuplicateMAC(two)
		v.reportDuplicateMAC(two)
	}
	var all []stage.Finding
	ctx, cancel := context.WithCancel(t.Context())
	v.duplicateMACs.report(ctx, func(_ context.Context, f stage.Finding) error {
		if all = append(all, f); len(all) == MostFindings+1 {
			cancel()
		}
		return nil
	})
	if len(v.duplicateMACs.found) > 0 || !strings.Contains(all[MostFindings].Cause, "more than 16 nodes") {
		t.Errorf("%d findings more; the last is %+v", len(v.duplicateMACs.found), all[MostFindings])
	}
	f := all[0]
	text := strings.Join(append(f.Evidence, f.Cause, f.Action), "\n")
	for _, want := range []string{"n0 with its MAC 02:00:00:00:00:00", "UUIDs are aaaa and bbbb", "15:04:05 a PXE firmware, UEFI x64 says UUID aaaa", "15:04:06", "the inventory says that n0 has UUID aaaa", "address tables"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if f.Suspects[0].Subject != (subject.ID{Kind: subject.Site, Name: "network.boot"}) || len(f.Suspects) != 1 || len(f.Affected) > 0 || f.About[0] != subject.OfNode("n0") {
		t.Errorf("%+v", f)
	}
}
