// SPDX-License-Identifier: Apache-2.0

package sonicshow

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

// The samples are composed in the forms of the tables that the tests of sonic-utilities
// compare with.
func TestCommands(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"status":   "show interfaces status: 4 rows, 3 up",
		"counters": "show interfaces counters: 3 rows, 2 up, 1 with drops",
		"pfc":      "show pfc counters: 2 rows; show pfc counters: 2 rows",
		"queues":   "show queue counters: 4 rows",
		"groups":   "show priority-group drop counters, Ingress PG dropped packets: 2 rows",
		"lldp":     "show lldp table: 4 rows",
		"eeprom":   "Ethernet0: NVIDIA MMS4X00-NS MT2511FT00001; Ethernet8: no module",
	} {
		r, problems, err := Parse([]byte(tooltest.ReadSample(t, "sonic-show."+name+".txt")))
		if err != nil {
			t.Fatal(err)
		}
		tooltest.WantNoProblems(t, problems)
		if got := strings.Join(r.Summary(), "; "); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	r, _, err := Parse([]byte(tooltest.ReadSample(t, "sonic-show.lldp.txt")))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Tables[0].Rows[1], "|"); got != "Ethernet8|r01-u02|9c:63:c0:00:00:21||" {
		t.Error(got)
	}
	if got := strings.Join(r.Tables[0].Rows[2], "|"); got != "Ethernet448|spine1|etp1|BR|Ethernet0 of leaf1" {
		t.Error(got)
	}
	r, _, err = Parse([]byte(tooltest.ReadSample(t, "sonic-show.eeprom.txt")))
	if err != nil || r.Modules[0].Values["RX1Power"] != 1.3802 || r.Modules[0].Limits["TempHighAlarm"] != 80 || r.Modules[0].Fields["Identifier"] != "OSFP 8X Pluggable Transceiver" {
		t.Errorf("%+v, %v", r.Modules, err)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, cases := range map[string][]tooltest.Case{
		"status": {
			{Name: "down", From: "down     down", To: "down       up", Kind: tool.Failed, Line: 6, Text: "Ethernet24 (etp4) is enabled and down"},
			{Name: "torn", From: "OSFP 8X Pluggable Transceiver         off\n  Ethernet8", To: "OSFP 8X\n  Ethernet8", Kind: tool.Truncated, Line: 3, Text: "10 of 11 columns"},
		},
		"counters": {
			{Name: "errors", From: "91.20%         0", To: "91.20%     1,207", Kind: tool.Failed, Line: 4, Text: "Ethernet0 counts 1207 in RX_ERR"},
		},
		"queues": {
			{Name: "drops", From: "852,072            0", To: "852,072       91,786", Kind: tool.Failed, Line: 7, Text: "Queue UC3 of Ethernet0 dropped 91786"},
		},
		"groups": {
			{Name: "drops", From: "Ethernet8      0      0      0      0", To: "Ethernet8      0      0      0    803", Kind: tool.Failed, Line: 5, Text: "PG3 of Ethernet8 dropped 803"},
		},
		"lldp": {
			{Name: "count", From: "displayed:  4", To: "displayed:  5", Kind: tool.Inconsistent, Text: "5 entries were displayed, and 4"},
			{Name: "no count", From: "Total entries displayed:  4\n", Kind: tool.Truncated, Text: "Total entries"},
			{Name: "several", From: "Ethernet448", To: "Ethernet0  ", Kind: tool.Inconsistent, Line: 6, Text: "Ethernet0 has more than one neighbour"},
			{Name: "same end", From: "r01-u02         9c:63:c0:00:00:21", To: "r01-u01         9c:63:c0:00:00:11", Kind: tool.Inconsistent, Line: 5, Text: "Ethernet0 and Ethernet8 hear the same port"},
		},
		"eeprom": {
			{Name: "weak", From: "RX2Power: 1.4871dBm", To: "RX2Power: -9.5000dBm", Kind: tool.Failed, Line: 16, Text: "RX2Power of the module of Ethernet0 is -9.5, below its alarm of -8.9044"},
			{Name: "dark", From: "RX2Power: 1.4871dBm", To: "RX2Power: -infdBm", Kind: tool.Failed, Line: 1, Text: "no light"},
			{Name: "hot", From: "Temperature: 44.9883C", To: "Temperature: 81.5C", Kind: tool.Failed, Line: 35, Text: "above its alarm of 80"},
		},
	} {
		tooltest.CheckWrong(t, Format, tooltest.ReadSample(t, "sonic-show."+name+".txt"), cases)
	}
}

// TestTexts are small outputs that no sample has.
func TestTexts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Port       Presence\n---------  -----------\nEthernet0  Present\nEthernet8  Not present\n":                                                                                                        "",
		"Port       Error Status\n---------  --------------\nEthernet0  OK\nEthernet8  Blocking error|High temperature\n":                                                                                  "The module of Ethernet8 says: Blocking error|High temperature.",
		"    IFACE    STATE    FEC_CORR    FEC_UNCORR    FEC_SYMBOL_ERR\n---------  -------  ----------  ------------  ----------------\nEthernet0        U     130,402             3                 4\n": "Ethernet0 counts 3 code words that were not corrected.",
		"Ethernet4:\n        Tx fault flag on media lane 1: False\n        Rx loss of signal flag on media lane 2: True\n        TX disable status on lane 1: True\n":                                      "The module of Ethernet4 says: Rx loss of signal flag on media lane 2.",
		"     Port    TxQ    Counter/pkts    Counter/bytes    Drop/pkts    Drop/bytes\n---------  -----  --------------  ---------------  -----------  ------------\n":                                     "The table of show queue counters has no row.",
		"Egress shared pool occupancy per unicast queue:\n     Port    UC0    UC1\n---------  -----  -----\nEthernet0      0  25548\nadmin@leaf1:~$ exit\n":                                                "",
	} {
		_, problems, err := Parse([]byte(in))
		if err != nil || Format.Is([]byte(in)) == 0 {
			t.Errorf("%s: %v", in, err)
		}
		got := ""
		for _, p := range problems {
			got += p.Text
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	open := strings.Replace(tooltest.ReadSample(t, "sonic-show.eeprom.txt"), "RxPowerLowAlarm   : -8.9044dBm", "RxPowerLowAlarm   : -infdBm", 1)
	if _, problems, err := Parse([]byte(open)); err != nil || len(problems) > 0 {
		t.Errorf("a limit that is none: %v, %v", problems, err)
	}
	if _, _, err := Parse([]byte("Interface  Lanes\n")); err == nil {
		t.Error("anything is taken for show")
	}
}

func FuzzParse(f *testing.F) {
	tooltest.Fuzz(f, Format, "sonic-show.status.txt", "sonic-show.counters.txt", "sonic-show.queues.txt", "sonic-show.groups.txt", "sonic-show.lldp.txt", "sonic-show.eeprom.txt")
}
