// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// TestNetplan: a system with netplan gets its addresses by that alone; what somebody else's
// image has beside it goes.
func TestNetplan(t *testing.T) {
	t.Parallel()
	root, dir, _, _ := tree(t)
	for _, name := range []string{"usr/sbin/netplan", "etc/netplan/50-cloud-init.yaml"} {
		if err := rootfs.WriteText(root, name, "", 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := prepare(params(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(s.network(root), s.foreignNetworks(root)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := fs.ReadFile(root.FS(), interfaces.NetplanFile)
	if err != nil || !strings.Contains(string(text), "      addresses:\n      - \""+s.Address+"\"\n") || !strings.Contains(string(text), s.BootNIC.String()) {
		t.Errorf("%v\n%s", err, text)
	}
	if info, err := os.Stat(filepath.Join(dir, interfaces.NetplanFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, pattern := range []string{"etc/netplan/50-*", interfaces.NetworkdPrefix + "*", interfaces.ManagerPrefix + "*"} {
		if names, err := fs.Glob(root.FS(), pattern); err != nil || len(names) > 0 {
			t.Errorf("%q beside it, %v", names, err)
		}
	}
	if resolver, err := fs.ReadFile(root.FS(), "etc/resolv.conf"); err != nil || !strings.Contains(string(resolver), "nameserver ") {
		t.Errorf("resolv.conf: %v\n%s", err, resolver)
	}
}
