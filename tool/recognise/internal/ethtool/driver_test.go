// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestDriver(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "ethtool-i.txt")
	d, problems, err := ParseDriver([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if d.Driver != "mlx5_core" || d.Firmware != "28.43.2026" || d.PSID != "MT_0000000838" || d.Bus != "0000:18:00.0" || d.ROM != "" || !d.Supports["statistics"] || d.Supports["eeprom-access"] {
		t.Errorf("%+v", d)
	}
	if got := d.Summary()[0]; got != "driver mlx5_core, version 24.10-1.1.4, firmware 28.43.2026, at 0000:18:00.0" {
		t.Error(got)
	}
	tooltest.CheckWrong(t, DriverFormat, good, []tooltest.Case{
		{Name: "cut", From: "supports-priv-flags: yes\n", To: "", Kind: tool.Truncated, Text: "last one"},
		{Name: "two interfaces", From: "bus-info", To: "driver: ice\nbus-info", Kind: tool.Inconsistent, Line: 5, Text: "second"},
		{Name: "torn", From: "test: yes", To: "test: y", Kind: tool.Truncated, Line: 7, Text: "neither"},
	})
	tooltest.CheckTorn(t, DriverFormat, good, func(rest string) bool { return strings.HasSuffix(rest, "priv-flags: yes") })
	virtual := "driver: veth\nversion: 1.0\nfirmware-version: \nexpansion-rom-version: \nbus-info: \nsupports-statistics: yes\nsupports-test: no\nsupports-eeprom-access: no\nsupports-register-dump: no\nsupports-priv-flags: no\n"
	if d, problems, err := ParseDriver([]byte(virtual)); err != nil || len(problems) != 0 || d.Firmware != "" || DriverFormat.Is([]byte(virtual)) == 0 {
		t.Errorf("%v, %v, %+v", err, problems, d)
	}
}

// TestNoDriver: of an interface that is not there, ethtool has one line.
func TestNoDriver(t *testing.T) {
	t.Parallel()
	text := "Cannot get driver information: No such device\n"
	d, problems, err := ParseDriver([]byte(text))
	if err != nil || DriverFormat.Is([]byte(text)) == 0 || d.Summary()[0] != "the driver is not known" {
		t.Fatal(err)
	}
	tooltest.WantProblem(t, problems, tool.Failed, 1, "No such device")
}

func FuzzDriver(f *testing.F) { tooltest.Fuzz(f, DriverFormat, "ethtool-i.txt") }
