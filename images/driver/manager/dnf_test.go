// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/onnode"
)

// dnfOn is dnf on a node whose programs answer by rules.
func dnfOn(t *testing.T, rules ...onnodetest.Rule) (Manager, *onnodetest.Nodes) {
	t.Helper()
	nodes := &onnodetest.Nodes{Rules: rules}
	m, err := For(distribution.Release{Family: distribution.RHEL, Version: "9"}, On{Nodes: nodes, Run: onnodetest.NewRun(), Node: "n1", Source: "r580"})
	if err != nil {
		t.Fatal(err)
	}
	return m, nodes
}

// TestDnfInstall: what is newer than asked for goes down first, the rest is
// installed, and the only repository is ours.
func TestDnfInstall(t *testing.T) {
	t.Parallel()
	m, nodes := dnfOn(t, onnodetest.On("rpm --query", "nvidia-driver-cuda\t580.173.02-1.el9\npackage kmod-nvidia-open-dkms is not installed\n", 1), onnodetest.On("env LC_ALL=C dnf", "", 0))
	err := m.Install(t.Context(), []Package{{"nvidia-driver-cuda", "580.126.16-1.el9"}, {"kmod-nvidia-open-dkms", "580.126.16-1.el9"}})
	if err != nil {
		t.Fatal(err)
	}
	calls := nodes.Calls("dnf")
	if len(calls) != 2 || !strings.HasSuffix(calls[0].Line(), " downgrade nvidia-driver-cuda-580.126.16-1.el9") ||
		!strings.HasSuffix(calls[1].Line(), " install nvidia-driver-cuda-580.126.16-1.el9 kmod-nvidia-open-dkms-580.126.16-1.el9") {
		t.Errorf("%v", calls)
	}
	for _, c := range calls {
		if !strings.Contains(c.Line(), "--disablerepo=* --enablerepo=ironrail-r580 ") {
			t.Errorf("other repositories are read: %s", c.Line())
		}
	}
}

// TestDnfFiles: repository, pins and holds are files; what others locked stays, and
// what this stack locked before is replaced.
func TestDnfFiles(t *testing.T) {
	t.Parallel()
	var nodes *onnodetest.Nodes
	m, nodes := dnfOn(t, onnodetest.On("rpm --query", "nvidia-driver-cuda\t580.126.16-1.el9\n", 0), cat(&nodes))
	nodes.Put("n1", versionLock, []byte("kernel-0:5.14.*\n# ironrail-r580 pins\nold-0:1.*\n# end of ironrail-r580 pins\n"))
	pins := []repo.Pin{{Packages: []string{"*nvidia*"}, Version: "580.126.16-*"}}
	for range 2 { // twice is the same as once
		if err := m.Configure(t.Context(), Repository{URL: "http://c/r/", ArmoredKey: []byte("KEY")}); err != nil {
			t.Fatal(err)
		}
		if err := m.Pin(t.Context(), pins); err != nil {
			t.Fatal(err)
		}
		if err := m.Hold(t.Context(), []string{"nvidia-driver-cuda", "absent"}); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := nodes.File("n1", versionLock)
	want := "kernel-0:5.14.*\n# ironrail-r580 pins\n*nvidia*-0:580.126.16-*\n# end of ironrail-r580 pins\n# ironrail-r580 holds\nnvidia-driver-cuda-0:580.126.16-1.el9.*\n# end of ironrail-r580 holds\n"
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
	file, _ := nodes.File("n1", "/etc/yum.repos.d/ironrail-r580.repo")
	if !strings.Contains(string(file), "baseurl=http://c/r/\n") || !strings.Contains(string(file), "gpgcheck=1\nrepo_gpgcheck=1\n") {
		t.Errorf("%s", file)
	}
}

// cat answers with the files that were written.
func cat(nodes **onnodetest.Nodes) onnodetest.Rule {
	return func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		if c.Argv[0] != "cat" {
			return onnode.Output{}, nil, false
		}
		b, ok := (*nodes).File("n1", c.Argv[1])
		if !ok {
			return onnode.Output{Exit: 1}, nil, true
		}
		return onnode.Output{Stdout: b}, nil, true
	}
}
