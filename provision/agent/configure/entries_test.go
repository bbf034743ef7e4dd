// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// entriesRoot is what matters of a system in the layout of Rocky 9: entries of the Boot
// Loader Specification, NetworkManager, chrony.conf, SELinux.
func entriesRoot(t *testing.T) rootfs.Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"etc/fstab":                                     "UUID=old / xfs defaults 0 0\nLABEL=BOOT /boot xfs defaults 0 0\nUUID=7B77-95E7 /boot/efi vfat defaults,uid=0,gid=0,umask=077,shortname=winnt 0 2\n",
		"etc/ssh/ssh_host_ecdsa_key":                    "old",
		"etc/ssh/sshd_config":                           "Include /etc/ssh/sshd_config.d/*.conf\n",
		"etc/chrony.conf":                               "# Use public servers.\npool 2.rocky.pool.ntp.org iburst\n\nsourcedir /run/chrony-dhcp\ndriftfile /var/lib/chrony/drift\n",
		"etc/selinux/config":                            "# enforcing\nSELINUX=enforcing\nSELINUXTYPE=targeted\n",
		"etc/machine-id":                                "",
		"etc/cloud/cloud.cfg":                           "users: [default]\n",
		"etc/default/grub":                              "GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX=\"console=ttyS1,9600 no_timer_check crashkernel=1G-4G:192M rhgb quiet\"\nGRUB_ENABLE_BLSCFG=true",
		"etc/NetworkManager/x.conf":                     "",
		"boot/grub2/grub.cfg":                           "blscfg\n",
		"boot/grub2/grubenv":                            "# GRUB Environment Block\nsaved_entry=a-5.14.0-427.el9.x86_64\nkernelopts=root=UUID=old ro console=ttyS1,9600 crashkernel=1G-4G:192M rhgb quiet \n######",
		"usr/share/zoneinfo/Europe/Berlin":              "TZif",
		"usr/lib/systemd/system/NetworkManager.service": "",
		"etc/NetworkManager/system-connections/cloud-init-eth0.nmconnection": "[connection]\n",
		"etc/sysconfig/network-scripts/ifcfg-eth0":                           "BOOTPROTO=dhcp\n",
		"boot/loader/entries/a-0-rescue.conf":                                "title Rescue\nlinux /vmlinuz-0-rescue\ninitrd /initramfs-0-rescue.img\noptions root=UUID=old ro rescue\n",
		"boot/loader/entries/a-5.14.0-427.el9.x86_64.conf":                   "title Rocky Linux\nversion 5.14.0-427.el9.x86_64\nlinux /vmlinuz-5.14.0-427.el9.x86_64\ninitrd /initramfs-5.14.0-427.el9.x86_64.img $tuned_initrd\noptions root=UUID=old ro console=ttyS1,9600 no_timer_check quiet iommu=pt $tuned_params\ngrub_users $grub_users\n",
		"boot/loader/entries/a-5.14.0-70.el9.x86_64.conf":                    "linux /vmlinuz-5.14.0-70.el9.x86_64\noptions $kernelopts\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestPeerForeignEntries: a system in the layout of Rocky 9 is set up as the node that it is,
// and is the same when it is configured again. It is tested on files; no such system was
// started.
func TestPeerForeignEntries(t *testing.T) {
	t.Parallel()
	dev, err := disk.Open(cloudDisk(t), disk.Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	root := entriesRoot(t)
	s, err := prepare(params(t))
	if err != nil {
		t.Fatal(err)
	}
	self := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("\x7fELF")), nil }
	var keys []string
	for again := range 2 {
		key, err := s.write(root, self, again == 0)
		if err != nil || !isForeign(root) {
			t.Fatal(err)
		}
		if err := s.foreign(root, target{devs: []disk.Device{dev}}); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if keys[0] != keys[1] || keys[0] == "" {
		t.Errorf("the host key was %q and is %q", keys[0], keys[1])
	}
	const rootUUID, args = "root=UUID=a0000000-0000-4000-8000-000000000001", "iommu=pt mitigations=off console=tty0 console=ttyS0,115200"
	for name, want := range map[string]string{
		"etc/fstab":                                        "UUID=a0000000-0000-4000-8000-000000000001 / xfs defaults 0 0\nUUID=b0000000-0000-4000-8000-000000000016 /boot xfs defaults 0 0\nPARTUUID=0a0b0c0d-0000-4000-8000-000000000015 /boot/efi vfat defaults,uid=0,gid=0,umask=077,shortname=winnt 0 2\n",
		"boot/loader/entries/a-0-rescue.conf":              "title Rescue\nlinux /vmlinuz-0-rescue\ninitrd /initramfs-0-rescue.img\noptions " + rootUUID + " ro rescue " + args + "\n",
		"boot/loader/entries/a-5.14.0-427.el9.x86_64.conf": "title Rocky Linux\nversion 5.14.0-427.el9.x86_64\nlinux /vmlinuz-5.14.0-427.el9.x86_64\ninitrd /initramfs-5.14.0-427.el9.x86_64.img $tuned_initrd\noptions " + rootUUID + " ro no_timer_check iommu=pt $tuned_params mitigations=off console=tty0 console=ttyS0,115200\ngrub_users $grub_users\n",
		"boot/loader/entries/a-5.14.0-70.el9.x86_64.conf":  "linux /vmlinuz-5.14.0-70.el9.x86_64\noptions " + rootUUID + " ro crashkernel=1G-4G:192M " + args + "\n",
		"boot/grub2/grub.cfg":                              "blscfg\n",
		"etc/kernel/cmdline":                               rootUUID + " ro no_timer_check iommu=pt mitigations=off console=tty0 console=ttyS0,115200\n",
		"etc/default/grub":                                 "GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX=\"no_timer_check crashkernel=1G-4G:192M " + args + "\"\nGRUB_ENABLE_BLSCFG=true",
		"etc/chrony.conf":                                  "server 10.77.0.2 iburst\n# Use public servers.\n\ndriftfile /var/lib/chrony/drift\n",
		bootProfile:                                        "# Written by ironrail when this node was installed.\n[connection]\nid=ironrail-boot\nuuid=67f4cfe8-2e1f-5c4e-8f5a-000000000000\ntype=ethernet\nautoconnect-priority=100\n\n[ethernet]\nmac-address=52:54:00:77:00:11\n\n[ipv4]\nmethod=manual\naddress1=10.77.0.11/24\ngateway=10.77.0.1\ndns=10.77.0.2;\ndns-search=lab.example;\n\n[ipv6]\nmethod=link-local\n",
		managerConf:                                        "# Written by ironrail: the addresses of this node are those of its profile.\n[main]\nno-auto-default=*\ndns=none\n",
		"etc/resolv.conf":                                  "# Written by ironrail when this node was installed.\nsearch lab.example\nnameserver 10.77.0.2\n",
		"etc/cloud/cloud-init.disabled":                    foreignFiles["etc/cloud/cloud-init.disabled"],
		autorelabel:                                        "",
		"etc/machine-id":                                   "",
	} {
		got, err := fs.ReadFile(root.FS(), name)
		if err != nil || withoutUUID(string(got)) != withoutUUID(want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	if info, err := fs.Stat(root.FS(), bootProfile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v: NetworkManager reads no profile that others may read", bootProfile, info, err)
	}
	for _, name := range []string{
		"etc/NetworkManager/system-connections/cloud-init-eth0.nmconnection", "etc/sysconfig/network-scripts/ifcfg-eth0", "etc/ssh/ssh_host_ecdsa_key",
		"etc/systemd/network", "etc/systemd/system/systemd-networkd-wait-online.service.d", "boot/grub", defaultsFile,
	} {
		if rootfs.Exists(root, name) {
			t.Errorf("/%s is there", name)
		}
	}
}

// withoutUUID is a profile without the one of its connection.
func withoutUUID(text string) string {
	head, rest, ok := strings.Cut(text, "\nuuid=")
	if !ok {
		return text
	}
	uuid, rest, _ := strings.Cut(rest, "\n")
	if len(uuid) != 36 {
		return text
	}
	return head + "\n" + rest
}

// TestEntriesRefused: entries that the node's arguments cannot be given to are refused.
func TestEntriesRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(rootfs.Root) error{
		"gives its kernel no options": func(r rootfs.Root) error {
			return rootfs.WriteText(r, "boot/loader/entries/b.conf", "linux /vmlinuz\n", 0o644)
		},
		"none but rescue entries": func(r rootfs.Root) error {
			for _, name := range []string{"427", "70"} {
				if err := rootfs.Remove(r, "boot/loader/entries/a-5.14.0-"+name+".el9.x86_64.conf"); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		root := entriesRoot(t)
		if err := change(root); err != nil {
			t.Fatal(err)
		}
		if err := (settings{}).entries(root, "UUID=x"); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
}

// TestManagerIPv6: the profile of a node whose address is of IPv6.
func TestManagerIPv6(t *testing.T) {
	t.Parallel()
	root, p := entriesRoot(t), params(t)
	p.Address, p.Gateway, p.DNS = "2001:db8::11/64", "2001:db8::1", []string{"10.77.0.2", "2001:db8::2"}
	s, err := prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.network(root); err != nil {
		t.Fatal(err)
	}
	got, err := fs.ReadFile(root.FS(), bootProfile)
	if want := "[ipv6]\nmethod=manual\naddress1=2001:db8::11/64\ngateway=2001:db8::1\ndns=2001:db8::2;\ndns-search=lab.example;\n\n[ipv4]\nmethod=disabled\n"; err != nil || !strings.HasSuffix(string(got), want) {
		t.Errorf("%v\n%s\nwant at its end\n%s", err, got, want)
	}
}

// TestPeerManagerProfile: NetworkManager's own program reads the profiles as they are meant.
func TestPeerManagerProfile(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "nmcli")
	for _, c := range []struct{ address, gateway, want string }{
		{"10.77.0.11/24", "10.77.0.1", "address1=10.77.0.11/24,10.77.0.1\n"}, {"10.77.0.11/24", "", "address1=10.77.0.11/24\n"}, {"2001:db8::11/64", "2001:db8::1", "address1=2001:db8::11/64,2001:db8::1\n"},
	} {
		root, p := entriesRoot(t), params(t)
		p.Address, p.Gateway = c.address, c.gateway
		s, err := prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.network(root); err != nil {
			t.Fatal(err)
		}
		profile, err := fs.ReadFile(root.FS(), bootProfile)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "nmcli", "--offline", "connection", "modify", "connection.autoconnect", "yes")
		cmd.Stdin = bytes.NewReader(profile)
		out, err := cmd.CombinedOutput()
		for _, want := range []string{c.want, "method=manual\n", "mac-address=52:54:00:77:00:11\n", "id=ironrail-boot\n"} {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v: nmcli reads\n%s\nwithout %q of\n%s", err, out, want, profile)
			}
		}
	}
}

// TestPeerEnvironment: what GRUB's own program has set in its environment block is read.
func TestPeerEnvironment(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "grub-editenv")
	path := filepath.Join(t.TempDir(), "grubenv")
	want := map[string]string{"saved_entry": "a-5.14.0-427.el9.x86_64", "kernelopts": "root=UUID=0a ro crashkernel=1G-4G:192M"}
	for _, argv := range [][]string{{path, "create"}, {path, "set", "saved_entry=" + want["saved_entry"]}, {path, "set", "kernelopts=" + want["kernelopts"]}} {
		if out, err := exec.CommandContext(t.Context(), "grub-editenv", argv...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := environment(string(text)); !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEditDefaults: the settings of grub2-mkconfig, where they are not as usual.
func TestEditDefaults(t *testing.T) {
	t.Parallel()
	more := []string{"iommu=pt", "console=tty0"}
	for text, want := range map[string]string{
		"":               "GRUB_CMDLINE_LINUX=\"iommu=pt console=tty0\"\n",
		"GRUB_TIMEOUT=1": "GRUB_TIMEOUT=1\nGRUB_CMDLINE_LINUX=\"iommu=pt console=tty0\"\n",
		"# GRUB_CMDLINE_LINUX=\"x\"\nGRUB_CMDLINE_LINUX='a console=ttyS1'\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet b\"\n": "# GRUB_CMDLINE_LINUX=\"x\"\nGRUB_CMDLINE_LINUX=\"a iommu=pt console=tty0\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"b\"\n",
	} {
		got := editDefaults(text, more, true)
		if got != want || editDefaults(got, more, true) != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
