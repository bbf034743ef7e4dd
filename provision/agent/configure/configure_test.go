// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"crypto/ed25519"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// authorized returns a public key in authorized_keys form.
func authorized(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(key))
}

func params(t *testing.T) wire.ConfigureParams {
	return wire.ConfigureParams{
		Hostname: "n1", Domain: "lab.example", Timezone: "Europe/Berlin",
		BootNIC: addr.MAC{0x52, 0x54, 0, 0x77, 0, 0x11}, Address: "10.77.0.11/24", Gateway: "10.77.0.1", DNS: []string{"10.77.0.2"},
		TimeServers: []string{"10.77.0.2"}, KernelArgs: []string{"iommu=pt", "mitigations=off"}, Console: "ttyS0,115200",
		AuthorizedKeys: []string{authorized(t)}, Agent: true,
		Files: []wire.File{{Path: "/etc/ironrail/note", Mode: 0o640, Content: []byte("hello")}},
	}
}

// tree makes the few things of an image that matter. outside is a file that no
// link of the image may lead to.
func tree(t *testing.T) (root rootfs.Root, dir, outside string, self func() (io.ReadCloser, error)) {
	t.Helper()
	base := t.TempDir()
	dir, outside = filepath.Join(base, "root"), filepath.Join(base, "outside")
	self = func() (io.ReadCloser, error) { return os.Open(filepath.Join(base, "agent")) }
	for name, text := range map[string]string{
		"etc/ssh/ssh_host_rsa_key": "old", "etc/ssh/ssh_host_ed25519_key": "old", "etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\n",
		"usr/share/zoneinfo/Europe/Berlin": "TZif", "etc/chrony/chrony.conf": "", "var/lib/dbus/machine-id": "abc", "etc/machine-id": "abc",
		"usr/lib/systemd/system/systemd-networkd.service": "", "boot/grub/grub.cfg": "", "../outside": "mine", "../agent": "\x7fELF",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"lib": "usr/lib", "etc/resolv.conf": outside, "etc/hostname": "../../outside"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir, outside, self
}

func TestSettings(t *testing.T) {
	t.Parallel()
	root, dir, outside, self := tree(t)
	s, err := prepare(params(t))
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.write(root, self, true)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	for name, want := range map[string]string{
		"etc/hostname": "n1\n", "etc/hosts": "10.77.0.11 n1.lab.example n1\n", "etc/resolv.conf": "search lab.example\nnameserver 10.77.0.2\n",
		"etc/systemd/network/10-ironrail-boot.network": "MACAddress=52:54:00:77:00:11\nType=ether\n\n[Network]\nDHCP=no\nIPv6AcceptRA=no\nAddress=10.77.0.11/24\nGateway=10.77.0.1\nDNS=10.77.0.2\n",
		"etc/timezone": "Europe/Berlin\n", "etc/chrony/sources.d/ironrail.sources": "server 10.77.0.2 iburst\n", "etc/machine-id": "",
		"etc/ssh/sshd_config.d/10-ironrail.conf": "HostKey /etc/ssh/ssh_host_ed25519_key\n", "root/.ssh/authorized_keys": s.AuthorizedKeys[0],
		"boot/grub/ironrail.cfg": `set ironrail_args="iommu=pt mitigations=off console=tty0 console=ttyS0,115200"`,
		"etc/ironrail/note":      "hello", "usr/local/sbin/ironrail-agent": "\x7fELF", "etc/ssh/ssh_host_ed25519_key.pub": key,
	} {
		if got := read(name); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", name, got, want)
		}
	}
	for name, want := range map[string]os.FileMode{"etc/ssh/ssh_host_ed25519_key": 0o600, "root/.ssh": 0o700, "root/.ssh/authorized_keys": 0o600, "usr/local/sbin/ironrail-agent": 0o755, "etc/ironrail/note": 0o640} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got mode %v, want %v (%v)", name, info.Mode().Perm(), want, err)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "mine" {
		t.Errorf("a link led out of the root: %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "etc/ssh/ssh_host_rsa_key")); err == nil {
		t.Error("the image's host key is still there")
	}
	if got, err := os.Readlink(filepath.Join(dir, "etc/systemd/system/multi-user.target.wants/systemd-networkd.service")); err != nil || got != "/lib/systemd/system/systemd-networkd.service" {
		t.Errorf("networkd is not enabled: %q, %v", got, err)
	}
	again, err := s.write(root, self, false)
	if err != nil || again != key {
		t.Errorf("configured again: key %q, %v; want the same as before", again, err)
	}
	if fresh, err := s.write(root, self, true); err != nil || fresh == key {
		t.Errorf("a fresh install keeps the old key %q, %v", fresh, err)
	}
}

// TestPeerHostKey lets OpenSSH read the private key.
func TestPeerHostKey(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ssh-keygen")
	root, dir, _, self := tree(t)
	s, err := prepare(params(t))
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.write(root, self, true)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-y", "-f", filepath.Join(dir, keyFile)).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), key) {
		t.Errorf("ssh-keygen: %v, %s; want %s", err, out, key)
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(*wire.ConfigureParams)
	}{
		{"host name with a dot", func(p *wire.ConfigureParams) { p.Hostname = "n1.lab" }},
		{"host name empty", func(p *wire.ConfigureParams) { p.Hostname = "" }},
		{"quote in a kernel argument", func(p *wire.ConfigureParams) { p.KernelArgs = []string{`a"; reboot; "`} }},
		{"variable in a kernel argument", func(p *wire.ConfigureParams) { p.KernelArgs = []string{"$prefix"} }},
		{"line break in a time server", func(p *wire.ConfigureParams) { p.TimeServers = []string{"a\nserver b"} }},
		{"zone that climbs", func(p *wire.ConfigureParams) { p.Timezone = "../../../etc/shadow" }},
		{"address without length", func(p *wire.ConfigureParams) { p.Address = "10.0.0.1" }},
		{"no boot NIC", func(p *wire.ConfigureParams) { p.BootNIC = addr.MAC{} }},
		{"DNS by name", func(p *wire.ConfigureParams) { p.DNS = []string{"ns.example"} }},
		{"two keys in one", func(p *wire.ConfigureParams) { p.AuthorizedKeys[0] += p.AuthorizedKeys[0] }},
		{"garbage key", func(p *wire.ConfigureParams) { p.AuthorizedKeys = []string{"hello"} }},
		{"relative file", func(p *wire.ConfigureParams) { p.Files[0].Path = "etc/x" }},
		{"file that climbs", func(p *wire.ConfigureParams) { p.Files[0].Path = "/etc/../../x" }},
		{"setuid file", func(p *wire.ConfigureParams) { p.Files[0].Mode = 0o4755 }},
		{"sysctl with a line break", func(p *wire.ConfigureParams) {
			p.Host.Sysctl = map[string]string{"vm.swappiness": "1\nkernel.x = 1"}
		}},
		{"sudo group with rights", func(p *wire.ConfigureParams) { p.Host.SudoGroups = []string{"a ALL"} }},
		{"locale", func(p *wire.ConfigureParams) { p.Host.Locale = "C\nX=1" }},
		{"console", func(p *wire.ConfigureParams) { p.Console = "ttyS0 init=/bin/sh" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := params(t)
			c.spoil(&p)
			if _, err := prepare(p); err == nil {
				t.Error("was taken")
			}
		})
	}
}

func TestUnknownZone(t *testing.T) {
	t.Parallel()
	root, _, _, self := tree(t)
	p := params(t)
	p.Timezone = "Mars/Olympus"
	s, err := prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.write(root, self, true); err == nil || !strings.Contains(err.Error(), "no time zone Mars/Olympus") {
		t.Errorf("got %v", err)
	}
}

func TestPartitionPath(t *testing.T) {
	t.Parallel()
	for disk, want := range map[string]string{"/dev/vda": "/dev/vda3", "/dev/nvme0n1": "/dev/nvme0n1p3", "/dev/mmcblk0": "/dev/mmcblk0p3"} {
		if got := partitionPath(disk, 3); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestSystemPartition: of two EFI system partitions none is made the one that boots.
func TestSystemPartition(t *testing.T) {
	t.Parallel()
	esp := func(n int) gpt.Partition { return gpt.Partition{Number: n, Type: gpt.EFISystem} }
	root := gpt.Partition{Number: 3, Type: "0fc63daf-8483-4772-8e79-3d69d8477de4"}
	for _, c := range []struct {
		all     []gpt.Partition
		number  int
		problem string
	}{
		{[]gpt.Partition{root, esp(2)}, 2, ""},
		{[]gpt.Partition{root}, 0, "no EFI system partition"},
		{[]gpt.Partition{esp(1), root, esp(4)}, 0, "2 EFI system partitions (1, 4)"},
	} {
		p, problem := systemPartition(c.all)
		if (problem == "") != (c.problem == "") || !strings.Contains(problem, c.problem) || problem == "" && p.Number != c.number {
			t.Errorf("%+v: partition %d, problem %q", c.all, p.Number, problem)
		}
	}
}

// TestHost: settings of the host are in the files of the system that is installed, on
// one with dpkg and on one with dnf, and a second time changes nothing.
func TestHost(t *testing.T) {
	t.Parallel()
	root, dir, _, self := tree(t)
	const status = "Package: linux-image-amd64\nStatus: install ok installed\nVersion: 1\n\nPackage: bash\nStatus: install ok installed\nVersion: 1\n"
	for name, text := range map[string]string{
		"var/lib/dpkg/status": status, "etc/dnf/dnf.conf": "[main]\ngpgcheck=1\n", "etc/apt/apt.conf.d/01x": "", "usr/lib/systemd/system/apt-daily.timer": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := params(t)
	p.Host = wire.HostSettings{Sysctl: map[string]string{"vm.swappiness": "10"}, Locale: "C.UTF-8", SudoGroups: []string{"ops"}, NoUpdates: true,
		HoldKernel: &wire.KernelPackages{Dpkg: []string{"linux-image-*"}, Dnf: []string{"kernel"}}}
	s, err := prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.write(root, self, true); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"etc/sysctl.d/99-zz-ironrail.conf": "vm.swappiness = 10\n", "etc/sudoers.d/90-ironrail": "%ops ALL=(ALL:ALL) ALL\n",
			"etc/locale.conf": "LANG=C.UTF-8\n", "etc/default/locale": "LANG=C.UTF-8\n", "etc/apt/apt.conf.d/99ironrail-no-updates": "APT::Periodic::Unattended-Upgrade \"0\";",
			"var/lib/dpkg/status": strings.Replace(status, "install", "hold", 1), "etc/dnf/dnf.conf": "[main]\nexcludepkgs=kernel\ngpgcheck=1\n",
		} {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), want) {
				t.Errorf("%s: %q, %v; want %q in it", name, b, err, want)
			}
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "etc/systemd/system/apt-daily.timer")); to != "/dev/null" {
		t.Errorf("apt-daily.timer is not masked: %q, %v", to, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "etc/systemd/system/dnf-automatic.timer")); err == nil {
		t.Error("a unit is masked that is not there")
	}
	if info, err := os.Stat(filepath.Join(dir, "etc/sudoers.d/90-ironrail")); err != nil || info.Mode().Perm() != 0o440 {
		t.Errorf("sudo does not read its file: %v, %v", info, err)
	}
}
