// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/onnode"
)

func TestParseInstalled(t *testing.T) {
	t.Parallel()
	in := "a\t1:2-3\tinstalled\nb\t2\tconfig-files\nc\t\tnot-installed\nhalf\t1\tunpacked\nbroken line\n\n"
	if got := parseInstalled([]byte(in)); !maps.Equal(got, map[string]string{"a": "1:2-3"}) {
		t.Errorf("got %v", got)
	}
	if got := parseUnfinished([]byte(in)); !slices.Equal(got, []string{"half"}) {
		t.Errorf("unfinished: %v", got)
	}
}

func FuzzParseInstalled(f *testing.F) {
	f.Add([]byte("a\t1\tinstalled\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, version := range parseInstalled(b) {
			if name == "" || version == "" {
				t.Errorf("%q %q", name, version)
			}
		}
	})
}

// TestUnattended: patterns become regular expressions of apt.conf.
func TestUnattended(t *testing.T) {
	t.Parallel()
	nodes := &onnodetest.Nodes{}
	a := Apt{On{Nodes: nodes, Node: "n1", Source: "r580"}}
	if err := a.Pin(t.Context(), []repo.Pin{{Packages: []string{"*nvidia*", "libstdc++6"}, Version: "580.126.16-*"}}); err != nil {
		t.Fatal(err)
	}
	got, _ := nodes.File("n1", "/etc/apt/apt.conf.d/52ironrail-r580")
	if want := "Unattended-Upgrade::Package-Blacklist {\n\t\"^.*nvidia.*$\";\n\t\"^libstdc\\\\+\\\\+6$\";\n};\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInterrupted: what dpkg was killed at is configured first, once.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	finished := false
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		switch {
		case strings.Contains(c.Line(), "dpkg --configure --pending"):
			finished = true
		case !finished:
			return onnode.Output{Exit: 100, Stderr: []byte("E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.\n")}, nil, true
		}
		return onnode.Output{}, nil, true
	}}}
	m, err := For(distribution.Release{Family: distribution.Debian, Version: "12"}, On{Nodes: nodes, Run: onnodetest.NewRun(), Node: "n1", Source: "r580"})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Install(t.Context(), Repository{Packages: map[string]string{"nvidia-open": "580.126.16-1"}}, []string{"nvidia-open"}); err != nil {
		t.Fatal(err)
	}
	if n := len(nodes.Calls("dpkg --configure --pending")); n != 1 || !finished {
		t.Errorf("dpkg was asked %d times", n)
	}
}
