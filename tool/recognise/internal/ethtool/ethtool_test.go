// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ethtool-S.txt")
	s, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if len(s.Counters) != 7 || s.Counters["rx_prio3_pause"] != 142 || s.Counters["[0]: rx_ucast_packets"] != 12 {
		t.Errorf("%v", s.Counters)
	}
	if got := strings.Join(s.Summary(), "; "); got != "7 counters; link_down_events_phy 1; rx_discards_phy 7; rx_prio3_pause 142" {
		t.Error(got)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "twice", From: "tx_packets", To: "rx_packets", Kind: tool.Inconsistent, Line: 3, Text: "twice"},
		{Name: "no number", From: "142", To: "many", Kind: tool.Inconsistent, Line: 5, Text: "many"},
		{Name: "negative", From: "142", To: "-1", Kind: tool.Inconsistent, Line: 5, Text: "-1"},
		{Name: "two interfaces", From: "     rx_discards", To: "NIC statistics:\n     rx_discards", Kind: tool.Inconsistent, Line: 4, Text: "second"},
		{Name: "no value", From: "tx_prio3_pause: 0", To: "tx_prio3_pause:", Kind: tool.Truncated, Line: 6, Text: "value"},
	})
	tooltest.CheckTorn(t, Format, good, func(rest string) bool {
		return line.MatchString(strings.TrimSpace(rest[strings.LastIndexByte(strings.TrimSpace(rest), '\n')+1:])) // drivers end with any counter
	})
}

// TestGroups: --groups has the counters that all drivers share, under another
// head.
func TestGroups(t *testing.T) {
	t.Parallel()
	text := "Standard stats for ens6f0np0:\neth-mac-FramesTransmittedOK: 529\nrx-rmon-etherStatsPkts64to64Octets: 3\n"
	s, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 0 || Format.Is([]byte(text)) == 0 || s.Counters["rx-rmon-etherStatsPkts64to64Octets"] != 3 || len(s.Counters) != 2 {
		t.Errorf("%v, %v, %+v", err, problems, s)
	}
	s, problems, err = Parse([]byte("NIC statistics:\n     rx_packets: 7\n\nroot@n1:~# ip link\n[root@n1 ~]#\nlogout\nConnection to n1 closed.\n"))
	if err != nil || len(problems) != 0 || len(s.Counters) != 1 {
		t.Errorf("%v, %v, %+v", err, problems, s)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"no stats available\n", "Cannot get stats strings information: Operation not supported\n"} {
		_, problems, err := Parse([]byte(text))
		if err != nil || Format.Is([]byte(text)) == 0 {
			t.Fatal(err)
		}
		tooltest.WantProblem(t, problems, tool.Failed, 1, "stats")
	}
	s, problems, err := Parse([]byte(tooltest.ReadPublic(t, "ethtool-S/node_exporter-eth0.txt")))
	if err != nil || len(s.Counters) != 16 || len(problems) != 0 {
		t.Errorf("%+v, %v, %v", s, problems, err)
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "ethtool-S.txt") }
