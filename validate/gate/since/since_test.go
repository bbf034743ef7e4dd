// SPDX-License-Identifier: Apache-2.0

package since

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/uniform"
)

// TestCompareTraits: a version that changed between two looks is named with its part, a part that is
// gone as well; what one look does not report is not compared.
func TestCompareTraits(t *testing.T) {
	t.Parallel()
	bios := func(v string) uniform.Trait { return uniform.Trait{Key: uniform.BIOS, Value: v} }
	nic := func(v string, parts ...string) uniform.Trait {
		return uniform.Trait{Key: uniform.NICFirmware, Of: "MT4129", Value: v, Parts: parts}
	}
	for _, c := range []struct {
		name    string
		was, is []uniform.Trait
		want    string // part and cause
		nothing bool
	}{
		{"the same", []uniform.Trait{bios("1.0"), nic("28.43")}, []uniform.Trait{bios("1.0"), nic("28.43")}, "", true},
		{"not told now", []uniform.Trait{bios("1.0"), nic("28.43")}, []uniform.Trait{bios("1.0")}, "", true},
		{"not told then", []uniform.Trait{bios("1.0")}, []uniform.Trait{bios("1.0"), nic("28.43")}, "", true},
		{"found elsewhere", []uniform.Trait{{Key: uniform.RDMAPort, Value: "Ethernet, LinkUp, 400"}}, []uniform.Trait{{Key: uniform.RDMAPort, Value: "Ethernet, LinkUp, 200"}}, "", true},
		{"the node's", []uniform.Trait{bios("1.0")}, []uniform.Trait{bios("1.1")}, "BIOS: BIOS is 1.1, and was 1.0 when the node was tested", false},
		{"of one part", []uniform.Trait{nic("28.43")}, []uniform.Trait{nic("28.39", "NIC at a"), nic("28.43", "NIC at b", "NIC at c")},
			"NIC at a: NIC firmware of MT4129 is 28.39, and was 28.43 when the node was tested", false},
		{"exchanged", []uniform.Trait{nic("1", "NIC at a"), nic("2", "NIC at b")}, []uniform.Trait{nic("2", "NIC at a"), nic("1", "NIC at b")},
			"NIC at a and NIC at b: NIC firmware of MT4129 is 2, and was 1 when the node was tested", false},
		{"a part that is gone", []uniform.Trait{nic("1", "NIC at a", "NIC at b"), nic("2", "NIC at c")}, []uniform.Trait{nic("1", "NIC at a"), nic("2", "NIC at c")},
			"NIC at b: it was there when the node was tested, and is not any more (NIC firmware of MT4129: 1)", false},
	} {
		faults := CompareTraits(c.was, c.is)
		if c.nothing != (len(faults) == 0) || !c.nothing && (len(faults) != 1 || faults[0].Cause != c.want || !strings.HasPrefix(c.want, faults[0].Part+": ") || faults[0].Action == "" || len(faults[0].Evidence) == 0) {
			t.Errorf("%s: %+v, want %q", c.name, faults, c.want)
		}
	}
}

// TestComparePorts: a port that went down since the health checks is named; others, and slow
// rises, are not; after another boot counters begin at 0.
func TestComparePorts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	counts := func(boot string, after time.Duration, downed, symbols int64) *Counts {
		return &Counts{At: at.Add(after), BootID: boot, Ports: []wire.Counter{{Part: "0000:18:00.0", Name: "link_downed", Value: downed}, {Part: "0000:18:00.0", Name: "symbol_error", Value: symbols},
			{Part: "0000:99:00.0", Name: "link_downed", Value: downed}}}
	}
	names := map[string]string{"0000:18:00.0": "rail 0 of compute (NIC at 0000:18:00.0)"}
	for _, c := range []struct {
		name    string
		was, is *Counts
		want    int
	}{
		{"nothing rose", counts("a", 0, 3, 5), counts("a", time.Hour, 3, 5), 0},
		{"went down once", counts("a", 0, 3, 5), counts("a", time.Hour, 4, 5), 1},
		{"few symbols", counts("a", 0, 3, 5), counts("a", time.Hour, 3, 30_000), 0},
		{"many symbols", counts("a", 0, 3, 5), counts("a", time.Hour, 3, 40_000), 1},
		{"another boot", counts("a", 0, 3, 5), counts("b", time.Hour, 1, 5), 1},
		{"another boot, and nothing since", counts("a", 0, 3, 5), counts("b", time.Hour, 0, 0), 0},
		{"not told before", nil, counts("a", time.Hour, 9, 5), 0},
	} {
		if got := ComparePorts(c.was, c.is, names); len(got) != c.want || c.want > 0 && got[0].Part != "rail 0 of compute (NIC at 0000:18:00.0)" {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
	}
}
