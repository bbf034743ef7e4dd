// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"
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

// served is the repository of the tests.
var served = Repository{URL: "http://c/r/", ArmoredKey: []byte("KEY"), Packages: map[string]string{
	"nvidia-driver-cuda": "3:580.126.16-1.el9", "nvidia-driver-cuda-libs": "3:580.126.16-1.el9", "nvidia-persistenced": "3:580.126.16-1.el9", "kmod-nvidia-open-dkms": "3:580.126.16-1.el9", "kernel-devel": "5.14.0-570.el9"}}

// TestDnfInstall: packages are named with their versions, and with them what is there in another
// version; the only repository is ours.
func TestDnfInstall(t *testing.T) {
	t.Parallel()
	m, nodes := dnfOn(t, onnodetest.On("env LC_ALL=C rpm --query", "nvidia-driver-cuda\t3\t580.173.02-1.el9\nnvidia-driver-cuda-libs\t3\t580.173.02-1.el9\npackage kmod-nvidia-open-dkms is not installed\n"+
		"nvidia-persistenced\t3\t580.126.16-1.el9\nkernel-devel\t0\t5.14.0-570.el9\nkernel-devel\t0\t5.14.0-600.el9\n", 1), onnodetest.On("env LC_ALL=C dnf", "", 0))
	if err := m.Install(t.Context(), served, []string{"nvidia-driver-cuda", "kmod-nvidia-open-dkms", "gcc"}); err != nil {
		t.Fatal(err)
	}
	calls := nodes.Calls("dnf")
	if len(calls) != 1 || !strings.HasSuffix(calls[0].Line(), " --allowerasing install nvidia-driver-cuda-3:580.126.16-1.el9 kmod-nvidia-open-dkms-3:580.126.16-1.el9 gcc nvidia-driver-cuda-libs-3:580.126.16-1.el9") {
		t.Fatalf("%v", calls)
	}
	if !strings.Contains(calls[0].Line(), "--disablerepo=* --enablerepo=ironrail-r580 ") {
		t.Errorf("other repositories are read: %s", calls[0].Line())
	}
}

// TestDnfFiles: repository and holds are files; what others locked stays, what this stack locked
// before is replaced, and what is released is not held any more.
func TestDnfFiles(t *testing.T) {
	t.Parallel()
	var nodes *onnodetest.Nodes
	m, nodes := dnfOn(t, onnodetest.On("env LC_ALL=C rpm --query", "nvidia-driver-cuda\t3\t580.126.16-1.el9\nmlnx-ofa_kernel\t0\t25.10-1.el9\npython3-dnf-plugin-versionlock\t0\t4.3.0-1.el9\n", 0), cat(&nodes))
	nodes.Put("n1", versionLock, []byte("kernel-0:5.14.*\n# ironrail-r580 holds\nold-0:1.*\n# end of ironrail-r580 holds\n"))
	for range 2 { // twice is the same as once
		if err := m.Configure(t.Context(), served); err != nil {
			t.Fatal(err)
		}
		if err := m.Pin(t.Context(), []repo.Pin{{Packages: []string{"*nvidia*"}, Version: "580.126.16-*"}}); err != nil {
			t.Fatal(err)
		}
		if err := m.Hold(t.Context(), []string{"nvidia-driver-cuda", "mlnx-ofa_kernel", "absent"}); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := nodes.File("n1", versionLock)
	want := "kernel-0:5.14.*\n# ironrail-r580 holds\nnvidia-driver-cuda-3:580.126.16-1.el9.*\nmlnx-ofa_kernel-0:25.10-1.el9.*\n# end of ironrail-r580 holds\n"
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
	if held, err := m.Held(t.Context()); err != nil || !slices.Equal(held, []string{"nvidia-driver-cuda", "mlnx-ofa_kernel"}) {
		t.Errorf("held: %q, %v", held, err)
	}
	file, _ := nodes.File("n1", "/etc/yum.repos.d/ironrail-r580.repo")
	if !strings.Contains(string(file), "baseurl=http://c/r/\nenabled=0\ngpgcheck=0\nrepo_gpgcheck=1\nmodule_hotfixes=1\n") {
		t.Errorf("%s", file)
	}
	if err := m.Release(t.Context(), []string{"nvidia-driver-cuda", "mlnx-ofa_kernel"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := nodes.File("n1", versionLock); string(got) != "kernel-0:5.14.*\n" {
		t.Errorf("after all are released:\n%s", got)
	}
}

// TestDnfUnknown: without the plugin nothing is held, and a database that cannot be read is not
// one without packages.
func TestDnfUnknown(t *testing.T) {
	t.Parallel()
	var nodes *onnodetest.Nodes
	m, nodes := dnfOn(t, onnodetest.On("env LC_ALL=C rpm --query", "package python3-dnf-plugin-versionlock is not installed\n", 1), cat(&nodes))
	nodes.Put("n1", versionLock, []byte("# ironrail-r580 holds\na-0:1-1.*\n# end of ironrail-r580 holds\n"))
	if held, err := m.Held(t.Context()); err != nil || len(held) != 0 {
		t.Errorf("held without the plugin: %q, %v", held, err)
	}
	m, _ = dnfOn(t, func(context.Context, onnodetest.Call) (onnode.Output, error, bool) {
		return onnode.Output{Exit: 1, Stdout: []byte("package a is not installed\n"), Stderr: []byte("error: cannot open Packages database in /var/lib/rpm\n")}, nil, true
	})
	if have, err := m.Installed(t.Context(), []string{"a"}); err == nil {
		t.Errorf("a database that cannot be read has %v", have)
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
