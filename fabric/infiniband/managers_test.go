// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

func TestReadManagers(t *testing.T) {
	t.Parallel()
	record := func(lid, guid, state string) string {
		return "SMInfoRecord dump:\n\t\tRID\n\t\tLID..................." + lid + "\n\t\tSMInfo dump:\n\t\tGUID.................." + guid + "\n\t\tSM_Key................0x0000000000000000\n\t\tActCount..............7\n\t\tPriority..............13\n\t\tSMState..............." + state + "\n"
	}
	for name, tt := range map[string]struct{ text, want, err string }{
		"two":        {record("1", "0x11", "3") + record("14", "0x21", "2"), "[{1 0x0000000000000011 13 MASTER} {14 0x0000000000000021 13 STANDBY}]", ""},
		"none":       {"", "[]", ""},
		"cut":        {record("1", "0x11", "3") + "SMInfoRecord dump:\n\t\tRID\n", "", "record 2 has no LID"},
		"no number":  {record("x", "0x11", "3"), "", "invalid syntax"},
		"not a GUID": {record("1", "zz", "3"), "", "zz"},
	} {
		list, err := readManagers([]byte(tt.text))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %q", name, err, tt.err)
			}
			continue
		}
		if got := fmt.Sprint(list); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, tt.want)
		}
	}
}

// TestJudgeManagers judges what there can be beside a master and its standby.
func TestJudgeManagers(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 1, "[]") // run_on has head1 and head2
	sub := &Subnet{Inv: inv, Fabric: inv.Fabrics[0]}
	name := sub.namer(nil, &ibnetdiscover.Topology{
		HCAs:     []ibnetdiscover.HCA{{Name: "head2 \x1b[31m", Ports: []ibnetdiscover.Port{{GUID: 2}}}},
		Switches: []ibnetdiscover.Switch{{GUID: 9, Name: "MF0;core-7:MQM9700/U1"}}})
	sm := func(guid addr.GUID, priority int, state managerState) SM { return SM{int(guid), guid, priority, state} }
	own := sm(1, 14, isMaster)
	for _, tt := range []struct {
		name     string
		list     []SM
		wrong    string
		findings string // their causes
		standbys int
		settled  bool
	}{
		{"as it should be", []SM{own, sm(2, 13, isStandby)}, "", "", 1, true},
		{"no standby", []SM{own}, "", "the subnet manager on head2 does not stand by", 0, true},
		{"a standby that is gone", []SM{own, sm(2, 13, isSilent)}, "", "the subnet manager on head2 does not stand by", 0, true},
		{"a standby that was told to be none", []SM{own, sm(2, 13, "NOTACT")}, "", "the subnet manager on head2 does not stand by", 0, true},
		{"a switch's own", []SM{own, sm(2, 13, isStandby), sm(9, 4, isStandby)}, "", `does not have: switch "MF0;core-7:MQM9700/U1" (port GUID 0x0000000000000009)`, 1, true},
		{"two of one priority", []SM{own, sm(2, 13, isStandby), sm(3, 13, isStandby)}, "", "does not have: port GUID 0x0000000000000003", 1, true},
		{"two masters", []SM{own, sm(2, 13, isMaster)}, `2 subnet managers say that they are the master: port GUID 0x0000000000000001, "head2 \x1b[31m" (port GUID`, "", 1, false},
		{"a switch is the master", []SM{sm(1, 14, isStandby), sm(2, 13, isStandby), sm(9, 15, isMaster)}, "the master is switch", "does not have", 1, true},
		{"the lower is the master", []SM{sm(1, 14, isStandby), sm(2, 13, isMaster)}, "has the highest priority (14) and is STANDBY: the master is", "", 1, false},
		{"no master", []SM{sm(1, 14, isDiscovering), sm(2, 13, isStandby)}, "no subnet manager of the fabric is its master", "", 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := sub.compareManagers(own, tt.list, name)
			var causes []string
			for _, f := range m.Findings {
				causes = append(causes, f.Cause)
				if f.Action == "" || len(f.Suspects) == 0 || len(f.Evidence) == 0 {
					t.Errorf("finding %+v", f)
				}
			}
			if got := strings.Join(m.Wrong, "; "); !strings.Contains(got, tt.wrong) || tt.wrong == "" && got != "" {
				t.Errorf("wrong %q, want %q", got, tt.wrong)
			}
			if got := strings.Join(causes, "; "); !strings.Contains(got, tt.findings) || tt.findings == "" && got != "" {
				t.Errorf("findings %q, want %q", got, tt.findings)
			}
			if m.Standbys != tt.standbys || sub.settled(tt.list) != tt.settled {
				t.Errorf("%d standbys, settled %v", m.Standbys, sub.settled(tt.list))
			}
		})
	}
}
