// SPDX-License-Identifier: Apache-2.0

package mlxconfig

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "mlxconfig.txt")
	l, problems, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WantNoProblems(t, problems)
	if len(l.Cards) != 1 {
		t.Fatalf("%d cards", len(l.Cards))
	}
	c := l.Cards[0]
	if c.Type != "ConnectX7" || c.Part != "MCX755106AS-HEA_Ax" || c.Device != "0000:18:00.0" || !c.Current || !strings.HasSuffix(c.Description, "Secure Boot Enabled") || len(c.Settings) != 21 {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]Setting{
		"LINK_TYPE_P1":        {Default: "IB(1)", Current: "ETH(2)", Next: "IB(1)"},
		"EXP_ROM_PXE_ENABLE":  {Default: "True(1)", Current: "True(1)", Next: "False(0)"},
		"PCI_ATOMIC_MODE":     {Default: "PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED(0)", Current: "PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED(0)", Next: "PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED(0)"},
		"MODULE_SPLIT_M0":     {Default: "Array[0..15]", Current: "Array[0..15]", Next: "Array[0..15]"},
		"SAFE_MODE_THRESHOLD": {Default: "10", Current: "10", Next: "10", ReadOnly: true},
	} {
		want.Name = name
		if got, ok := c.Setting(name); !ok || got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if _, ok := c.Setting("LINK_TYPE_P3"); ok {
		t.Error("a setting is there that the card does not have")
	}
	if s := l.Summary(); s[0] != "0000:18:00.0 (ConnectX7, MCX755106AS-HEA_Ax): 21 settings, LINK_TYPE_P1 IB(1), LINK_TYPE_P2 IB(1); 3 wait for a power cycle" {
		t.Errorf("%q", s)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "two values", From: "_256KB(1)           \n", To: "\n", Kind: tool.Truncated, Line: 12, Text: "2 of 3"},
		{Name: "twice", From: "LINK_TYPE_P2", To: "LINK_TYPE_P1", Kind: tool.Inconsistent, Text: "LINK_TYPE_P1 is there twice"},
		{Name: "no table", From: good[strings.Index(good, "Configurations"):], Kind: tool.Truncated, Text: "0000:18:00.0"},
		{Name: "no device", From: good, To: "-E- Failed to open the device\n", Kind: tool.Failed, Line: 1, Text: "open the device"},
		{Name: "lost on the way", From: "        SRIOV_EN", To: "-E- Failed to query device current configuration\n        SRIOV_EN", Kind: tool.Failed, Text: "current configuration"},
	})
}

// A firmware that does not say what is in force has no such column; several devices follow
// each other; and a set shows what it is about to write, which is not there yet.
func TestForms(t *testing.T) {
	t.Parallel()
	short := tooltest.ReadSample(t, "mlxconfig.short.txt")
	l, problems, err := Parse([]byte(short + strings.ReplaceAll(short, "18:00.0", "19:00.0")))
	if err != nil || len(problems) != 0 || len(l.Cards) != 2 || l.Cards[0].Current || l.Cards[1].Device != "0000:19:00.0" {
		t.Fatalf("%+v, %v, %v", l, problems, err)
	}
	if s, ok := l.Cards[1].Setting("LINK_TYPE_P1"); !ok || s.Next != "IB(1)" || s.Current != "" || s.Default != "" {
		t.Errorf("%+v", s)
	}
	const set = "\nDevice #1:\n----------\n\nDevice type:    ConnectX6       \nName:           MCX653105A-HDA_Ax\nDescription:    ConnectX-6 VPI adapter card; HDR IB (200Gb/s) and 200GbE\nDevice:         0c:00.0         \n\n" +
		"Configurations:                              Next Boot       New\n         LINK_TYPE_P1                        IB(1)           ETH(2)          \n\n Apply new Configuration? (y/n) [n] : y\nApplying... Done!\n-I- Please reboot machine to load new configurations.\n"
	l, problems, err = Parse([]byte(set))
	if err != nil || len(problems) != 0 || len(l.Cards) != 1 || len(l.Cards[0].Settings) != 1 || l.Cards[0].Settings[0].Next != "IB(1)" {
		t.Errorf("%+v, %v, %v", l, problems, err)
	}
	if l, problems, err = Parse([]byte("-E- Failed to get devices.\n")); err != nil || len(l.Cards) != 0 || len(problems) != 1 {
		t.Errorf("%+v, %v, %v", l, problems, err)
	}
	for _, text := range []string{"", "Device: x\n", "Configurations: 3\n"} {
		if _, _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value  Value
		number int
		want   bool
	}{
		{"IB(1)", 1, true}, {"IB(1)", 2, false}, {"48", 48, true}, {"False(0)", 0, true}, {"N/A", 0, false}, {"", 0, false},
		{"Array[0..15]", 0, false}, {"0xff", 255, true}, {"0xFF", 255, true}, {"0x", 0, false}, {"1,2", 1, false}, {"IB(1", 1, false}, {"ETH", 2, false}, {"_4_VLs(3)", 3, true},
	} {
		if got := c.value.Is(c.number); got != c.want {
			t.Errorf("%q is %d: %v", c.value, c.number, got)
		}
	}
}

func FuzzParse(f *testing.F) { tooltest.Fuzz(f, Format, "mlxconfig.txt", "mlxconfig.short.txt") }

// TestArray: elements of an array, asked for by name, are lines of their own, as in what NVIDIA's
// operator for NIC configuration reads.
func TestArray(t *testing.T) {
	t.Parallel()
	const text = "\nDevice #1:\n----------\n\nDevice type:    ConnectX8       \nName:           N/A\nDescription:    N/A\nDevice:         0000:18:00.0    \n\n" +
		"Configurations:                              Default         Current         Next Boot\n" +
		"*        MODULE_SPLIT_M0[0]                  1               1               2\n         MODULE_SPLIT_M0[15]                 255             255             255\n" +
		"The '*' shows parameters with next value different from default/current value.\n"
	l, problems, err := Parse([]byte(text))
	if err != nil || len(problems) != 0 || len(l.Cards) != 1 || len(l.Cards[0].Settings) != 2 {
		t.Fatalf("%+v, %v, %v", l, problems, err)
	}
	if s, ok := l.Cards[0].Setting("MODULE_SPLIT_M0[0]"); !ok || !s.Current.Is(1) || !s.Next.Is(2) {
		t.Errorf("%+v", s)
	}
	if s, ok := l.Cards[0].Setting("MODULE_SPLIT_M0[15]"); !ok || !s.Next.Is(Unused) {
		t.Errorf("%+v", s)
	}
}

// TestSplits are the splits that NVIDIA publishes, lane by lane.
func TestSplits(t *testing.T) {
	t.Parallel()
	const none = Unused
	for _, c := range []struct {
		model string
		into  int
		want  []int // of the first eight lanes; nil: no split
	}{
		{"ConnectX-8", 2, []int{1, 1, 1, 1, 2, 2, 2, 2}},
		{"ConnectX-8 C8180", 4, []int{1, 1, 2, 2, 3, 3, 4, 4}},
		{"BlueField-3 B3140H", 2, []int{1, 1, 2, 2, none, none, none, none}},
		{"BlueField-3", 4, []int{1, 2, 3, 4, none, none, none, none}},
		{"ConnectX-7", 4, []int{1, 2, 3, 4, none, none, none, none}},
		{"ConnectX-7", 2, nil}, {"ConnectX-8", 3, nil}, {"ConnectX-6", 2, nil},
	} {
		m, _ := FindModel(c.model)
		got := m.Split.Ports(c.into)
		if c.want == nil {
			if got != nil {
				t.Errorf("%s into %d: %v", c.model, c.into, got)
			}
			continue
		}
		if len(got) != SplitLanes || !slices.Equal(got[:8], c.want) || slices.ContainsFunc(got[8:], func(p int) bool { return p != Unused }) {
			t.Errorf("%s into %d: %v", c.model, c.into, got)
		}
	}
}
