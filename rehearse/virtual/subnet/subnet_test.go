// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// two are two leaves with two ports each and a cable between them.
type two struct{ lanes int }

func (w two) Ports() (list []Port) {
	for i := range 4 {
		g := addr.GUID(0x11 + i)
		list = append(list, Port{Node: fmt.Sprintf("n%d", i), Name: fmt.Sprintf("n%d mlx5_0", i), HCA: g, GUID: g, Switch: fmt.Sprintf("net/leaf-%d", i/2), Number: 1 + i%2, Lanes: 4, Speed: "NDR"})
	}
	return append(list, Port{Node: "n4", HCA: 0x20, GUID: 0x20}) // without a cable
}

func (w two) Trunks() []Trunk {
	return []Trunk{{From: "net/leaf-0", FromPort: 9, To: "net/leaf-1", ToPort: 9, Lanes: w.lanes, Speed: "NDR"}}
}

func (w two) Switches() []Switch { return []Switch{{"net/leaf-0", 16}, {"net/leaf-1", 16}} }

const folder = "/etc/opensm/"

// boot gives a controller its files and starts opensm.
func boot(t *testing.T, partitions string) *Manager {
	t.Helper()
	m := New(two{4}, clock.Wall{}, 0)
	for name, text := range map[string]string{"opensm.conf": "routing_engine bogus,updn\nsm_priority 14\npartition_config_file /etc/opensm/partitions.conf\n", "partitions.conf": partitions} {
		if err := m.Write(t.Context(), folder+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Reload(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	return m
}

func run(t *testing.T, m *Manager, argv ...string) string {
	t.Helper()
	out, err := m.Run(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s%s", out.Exit, out.Stdout, out.Stderr)
}

// TestPartitions: tables are those of the file, and after a syntax error those of
// a fabric without partitions, as opensm has them.
func TestPartitions(t *testing.T) {
	t.Parallel()
	const right = "Default=0x7fff : ALL=limited, SELF=full ;\na=0x0001, ipoib, defmember=full : 0x11=full, 0x99=full ; # n0\na=0x0001 :\n 0x12=bogus ;\n"
	for name, tt := range map[string]struct{ text, want, log string }{
		"right":         {right, "[[7fff 8001] [1 7fff] [7fff] [7fff]]", "SUBNET UP"},
		"syntax error":  {right + "b=0x0002 : zz=full ;\n", "[[ffff] [ffff] [ffff] [ffff]]", "PARSE ERROR"},
		"no P_Key":      {"a : 0x11 ;", "[[ffff] [ffff] [ffff] [ffff]]", "retrying with default config"},
		"without rules": {"a=0x0003, defmember=full : 0x13, 0x14=limited ;", "[[7fff] [7fff] [7fff 8003] [3 7fff]]", "updn tables configured"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := boot(t, tt.text)
			var got [][]uint16
			for g := addr.GUID(0x11); g < 0x15; g++ {
				lid, keys := m.Table(g)
				if lid == 0 {
					t.Errorf("%s has no LID", g)
				}
				got = append(got, keys)
				if text := run(t, m, "smpquery", "-L", "pkeys", fmt.Sprint(lid), "1"); !strings.Contains(text, fmt.Sprintf("   0: 0x%04x", keys[0])) {
					t.Errorf("smpquery says %.80q for %x", text, keys)
				}
			}
			if fmt.Sprintf("%x", got) != tt.want {
				t.Errorf("got %x, want %s", got, tt.want)
			}
			log, _, err := m.Log(t.Context(), 0)
			if err != nil || !strings.Contains(string(log), tt.log) || !strings.Contains(string(log), "routing engine 'bogus'") {
				t.Errorf("log: %s, %v", log, err)
			}
		})
	}
}

// TestSweep: what ibnetdiscover prints is read by our parser as it is plugged.
func TestSweep(t *testing.T) {
	t.Parallel()
	m := New(two{1}, clock.Wall{}, 0)
	if text := run(t, m, "sminfo"); !strings.HasPrefix(text, "255 ") {
		t.Errorf("without opensm: %s", text)
	}
	_, text, _ := strings.Cut(run(t, m, "ibnetdiscover"), " ")
	found, problems, err := ibnetdiscover.Parse([]byte(text))
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	if len(found.Switches) != 2 || len(found.HCAs) != 4 || len(found.Links) != 5 {
		t.Errorf("%d switches, %d HCAs, %d links", len(found.Switches), len(found.HCAs), len(found.Links))
	}
	narrow := 0
	for _, l := range found.Links {
		if l.Width == "1x" {
			narrow++
		}
	}
	if narrow != 1 {
		t.Errorf("%d narrow links", narrow)
	}
	if _, err := m.Read(t.Context(), folder+"opensm.conf"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that nobody wrote: %v", err)
	}
	if text := run(t, m, "ibdiagnet"); !strings.HasPrefix(text, "127 ") {
		t.Errorf("a program that there is not: %s", text)
	}
}

// TestTheManagerIsAlone: it answers for itself, and nobody else does.
func TestTheManagerIsAlone(t *testing.T) {
	t.Parallel()
	if text := run(t, New(two{4}, clock.Wall{}, 0), "saquery", "SMIR"); !strings.HasPrefix(text, "255 ") {
		t.Errorf("without opensm: %s", text)
	}
	m := boot(t, "Default=0x7fff : ALL=full ;\n")
	const rest = " sm guid 0x946dae0300fffff1, activity count 17 priority 14 state 3 SMINFO_MASTER"
	for args, want := range map[string]string{"": "sm lid 1" + rest, "1": "sm lid 1" + rest, "-D 0": "sm lid 0" + rest, "2": "iberror"} {
		if text := run(t, m, append([]string{"sminfo"}, strings.Fields(args)...)...); !strings.Contains(text, want) {
			t.Errorf("sminfo %s: %s", args, text)
		}
	}
	if text := run(t, m, "saquery", "SMIR"); strings.Count(text, "SMInfoRecord dump") != 1 || !strings.Contains(text, "SMState...............3\n") {
		t.Errorf("%s", text)
	}
}
