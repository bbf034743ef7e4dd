// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/system/shell"
)

// refusing is a network on which nobody answers, at once.
type refusing struct{}

func (refusing) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func (refusing) Listen(context.Context, string, string) (net.Listener, error) {
	return nil, &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE}
}

func (refusing) ListenPacket(context.Context, string, string) (net.PacketConn, error) {
	return nil, &net.OpError{Op: "listen", Net: "udp", Err: syscall.EADDRINUSE}
}

// hurried is a clock on which waits take no time, but only so many of them.
type hurried struct{ now time.Time }

func (h *hurried) Now() time.Time { return h.now }
func (h *hurried) Sleep(ctx context.Context, d time.Duration) error {
	h.now = h.now.Add(min(max(d, 0), time.Hour))
	return context.Cause(ctx)
}
func (h *hurried) WithTimeout(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// alone is a node without a network.
func alone(t testing.TB) *node {
	t.Helper()
	inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Serial: "S", Hardware: &inventory.Hardware{Name: "h", Disks: []inventory.Disk{{Name: "os", Type: "nvme", Count: 1}},
		NICs: []inventory.NIC{{Name: "rail", HCA: true, Speed: 400e9, LinkType: "ethernet", Ports: []inventory.NICPort{{PCI: "0000:18:00.0"}}}}}}}}
	m := metal.BuildNode(inv.Nodes[0], metal.Options{})
	if err := m.Disks()[0].Fill(0, metaltest.MakeImage(5<<20, 1)); err != nil {
		t.Fatal(err)
	}
	kernel := m.Boot(DefaultKernel, "ro", m.Root())
	cfg := Config{Node: "n1", Address: netip.MustParseAddr("10.0.0.1"), Kernel: kernel, Root: m.Root(), Net: refusing{}, Clock: &hurried{now: time.Unix(1e9, 0)},
		Site: NewSite(model.New(inv, 1), 1), Image: &inventory.Image{Packages: []string{pkgPerftest, pkgMPI, pkgMPI4Py, pkgDiags, pkgVerbs}}}
	for _, p := range m.Ports() {
		cfg.Ports = append(cfg.Ports, Port{ID: model.PortID{Node: "n1", NIC: p.NIC, Index: p.Index}, PCI: p.PCI, Netdev: p.Netdev, RDMA: p.RDMA})
	}
	n := newNode(cfg.withDefaults(), func(chassis.Exit) {})
	n.startUnits(t.Context())
	return n
}

// No script that anybody sends makes a node panic or hang, or leaves its tree.
func FuzzScript(f *testing.F) {
	for _, s := range []string{
		"set -e; d=$(dirname -- \"$1\"); mkdir -p -- \"$d\"; t=$(mktemp -- \"$d/.x.XXXXXXXX\"); cat >\"$t\"; chmod 0644 \"$t\"; sync \"$t\"; mv -fT -- \"$t\" \"$1\"",
		"ibstat; ibv_devinfo; rdma -j link; ip -j a; ethtool -S x; lscpu -J; dmidecode -s system-uuid; nvidia-smi", "ib_write_bw -d mlx5_0 -x 3 -s 1 -n 1 -F 10.0.0.1",
		"timeout -k 5 9 mpirun --mca btl_tcp_if_include 10.0.0.0/8 --host 10.0.0.1:1,10.0.0.2:1 /usr/bin/python3 /run/allreduce.py 1 1 4096", "apt-get -o a=b install x=1; apt-get update",
		"dpkg-query --show --showformat='${Package}\\n' -- a", "ln -s ../../.. /run/x; cat /run/x/etc/os-release; ls -l /; rm -rf /run", "systemctl show -p ActiveState ssh; systemctl reboot",
		"printf '%s%%\\n' a b; test 1 -lt 2 && [ -d / ]; env A=b sh -c 'echo $A'; kill -0 1; sysctl -w net.ipv4.conf.all.arp_ignore=1",
	} {
		f.Add(s, []byte("input"))
	}
	f.Fuzz(func(t *testing.T, src string, in []byte) {
		if len(src) > 2000 || strings.Contains(src, "mpirun") && len(src) > 400 {
			return
		}
		n := alone(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		n.script(ctx, 700, src, "sh", []string{"/etc/a/b", "0644"}, "/", nil, shell.Streams{In: bytes.NewReader(in), Out: io.Discard, Err: io.Discard})
		if ctx.Err() != nil {
			t.Error("it did not end")
		}
		for name := range n.tree.over {
			if name != path.Clean(name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") {
				t.Errorf("a file at %q", name)
			}
		}
	})
}

// What comes from repositories and files is read without surprise.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{"Package: a\nVersion: 1\nDepends: b (>= 1) | c, d:any\nSize: 9\n\n", "-----BEGIN PGP SIGNED MESSAGE-----\nSHA256:\n ab 12 Packages\n-----BEGIN PGP SIGNATURE-----\n-----END PGP SIGNATURE-----\n",
		"[Match]\nMACAddress=52:54:00:77:00:11\n[Network]\nAddress=10.0.0.1/24\n[Link]\nMTUBytes=9000\n", "Package: a\nStatus: install ok installed\nVersion: 1\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, p := range parseIndex(b) {
			if name == "" || p.version == "" {
				t.Errorf("%q %+v", name, p)
			}
		}
		if r, err := parseRelease(b); err == nil {
			for name, l := range r.files {
				if name == "" || l.sum != strings.ToLower(l.sum) {
					t.Errorf("%q %+v", name, l)
				}
			}
		}
		for name, version := range versionsOf(string(b)) {
			if name == "" || version == "" {
				t.Errorf("%q %q", name, version)
			}
		}
		for _, a := range parseNetwork(string(b)).addresses {
			if !a.IsValid() {
				t.Error(a)
			}
		}
	})
}

func TestIndex(t *testing.T) {
	t.Parallel()
	got := parseIndex([]byte("Package: a\nVersion: 1:2-3\nFilename: pool/a.deb\nSize: 17\nDepends: b (>= 1) | c,\n d, e:any\nDescription: x\n  Package: no\n\n\nPackage: b\nVersion: 2\n"))
	a := got["a"]
	if len(got) != 2 || a.version != "1:2-3" || a.size != 17 || a.file != "pool/a.deb" || len(a.depends) != 1 || a.depends[0] != "b" {
		t.Errorf("%+v", got)
	}
	if _, err := parseRelease([]byte("SHA256:\n ab 1 Packages\n")); err == nil {
		t.Error("an unsigned list was taken")
	}
}

func TestFromOption(t *testing.T) {
	t.Parallel()
	n := alone(t)
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 4000}
	for options, want := range map[string]bool{
		`from="10.0.0.7"`: true, `from="10.0.0.8"`: false, `from="10.0.0.0/29"`: true, `from="10.0.0.8,10.0.0.7"`: true, `from="*"`: false,
		`expiry-time="29990909014640Z"`: true, `expiry-time="20010909014639Z"`: false, `expiry-time="soon"`: false, `restrict`: true,
	} {
		if got := n.lets([]string{options}, at); got != want {
			t.Errorf("%s: %v", options, got)
		}
	}
}

func versionsOf(status string) map[string]string {
	have, _, _ := parseStatus(status)
	return have
}
