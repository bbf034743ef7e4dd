// SPDX-License-Identifier: Apache-2.0

package since

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/uniform"
)

// TestUnread: what was read at the health checks and is not now is named; what never was is not.
func TestUnread(t *testing.T) {
	t.Parallel()
	outcome := func(gate string, v judge.Verdict) judge.Outcome {
		return judge.Outcome{Gate: gate, Verdict: v, Why: "chronyd did not report"}
	}
	before := []judge.Outcome{outcome("clock", judge.Pass), outcome("disks", judge.Pass), outcome("acs", judge.Allowed), outcome("flaps", judge.NotJudged), outcome("fans", judge.Pass)}
	now := []judge.Outcome{outcome("clock", judge.NotJudged), outcome("acs", judge.Pass), outcome("flaps", judge.NotJudged)}
	if got := strings.Join(UnreadGates(before, now, []string{"clock", "disks", "acs", "flaps"}), "; "); got != "health check clock (chronyd did not report); health check disks (nothing is reported of it)" {
		t.Error(got)
	}
	counts := &Counts{At: time.Now(), Ports: []wire.Counter{{Part: "0000:18:00.0", Name: "link_downed"}, {Part: "0000:99:00.0", Name: "link_downed"}}}
	names := map[string]string{"0000:18:00.0": "rail 0 of compute"}
	if got := UnreadPorts(counts, nil, names); len(got) != 1 || got[0] != "what rail 0 of compute counted" {
		t.Error(got)
	}
	if got := append(UnreadPorts(counts, counts, names), UnreadPorts(nil, nil, names)...); len(got) > 0 {
		t.Error(got)
	}
	traits := []uniform.Trait{{Key: uniform.BIOS, Value: "1.0"}, {Key: uniform.BMC, Value: "2.0"}, {Key: uniform.Fans, Value: "12"}, {Key: uniform.NICFirmware, Of: "MT4129", Value: "28.43"}}
	if got := strings.Join(UnreadTraits(traits, traits[:1]), "; "); got != "NIC firmware of MT4129" {
		t.Error(got)
	}
	f := UnreadFault([]string{"a", "b", "c", "d", "e"}, 3)
	if f.Part != "" || len(f.Evidence) != 5 || !strings.Contains(f.Cause, "a, b, c, d and 1 more") || !strings.Contains(f.Action, "tested again") {
		t.Errorf("%+v", f)
	}
}
