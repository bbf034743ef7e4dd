// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// inCloud puts the image of a cloud on the machines' system disks, and beside it the disk
// from which cloud-init takes who the machine is, its address, and who may log in. ironrail
// has no part in it. The first of the machines tells the others the time.
func inCloud(l *labtest.Lab, machines ...string) {
	image, _ := l.CloudImage("bookworm", labtest.UbuntuDisk)
	for _, m := range machines {
		number := strings.TrimPrefix(m, "n")
		l.Fill(m, labtest.SystemDisk, "qemu-img convert -n -O raw "+image+` "$D"`)
		chrony := "server 10.77.0.1" + strings.TrimPrefix(machines[0], "n") + " iburst minpoll 0 maxpoll 2\nmakestep 1 -1\n"
		if m == machines[0] {
			chrony = "local stratum 8\nallow 10.77.0.0/16\n"
		}
		l.Fill(m, "seed", fmt.Sprintf(`d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
cat >"$d/meta-data" <<X
instance-id: lab-%[1]s
local-hostname: %[1]s
X
cat >"$d/user-data" <<X
#cloud-config
disable_root: false
ssh_deletekeys: true
users: []
write_files:
- path: /root/.ssh/authorized_keys
  permissions: "0600"
  content: "%[3]s"
- path: /etc/chrony/chrony.conf
  content: |
%[4]s
- path: /etc/systemd/network/05-lab.network
  content: |
    [Match]
    MACAddress=52:54:00:77:00:1%[2]s
    [Network]
    Address=10.77.0.1%[2]s/24
runcmd:
- [systemctl, restart, systemd-networkd, chrony]
X
mkfs.vfat -n cidata -C "$d/fs" 1024 >/dev/null
mcopy -i "$d/fs" "$d/meta-data" "$d/user-data" ::
dd if="$d/fs" of="$D" conv=notrunc status=none`, m, number, l.PublicKey(), "    "+strings.ReplaceAll(strings.TrimSpace(chrony), "\n", "\n    ")))
	}
}

// testHosts is ironrail test of nodes, each with what is found of it, in the words of the
// report.
func testHosts(l *labtest.Lab, code int, list string, more ...string) map[string]string {
	args := append([]string{"test", "--hosts", list, "--key", l.Key(),
		"--known-hosts", list + ".keys", "--accept-new-host-keys", "--format", "json"}, more...)
	res := l.Ironrail(args...)
	l.Want(code, res)
	var in report.Input
	if err := json.Unmarshal([]byte(res.Stdout), &in); err != nil {
		panic(fmt.Sprintf("%v: %s", err, res)) // there is nothing to compare
	}
	found := map[string]string{}
	for _, n := range in.Nodes {
		found[n.Name] = n.Status.String()
		for _, f := range n.Findings {
			found[n.Name] += "; " + f.Cause
		}
	}
	return found
}

// TestHosts: machines that ironrail did not install are accepted and rejected over SSH. Two
// of them have no reference; with a third they are accepted. Then one thing of one of them is
// made bad at a time, and is found.
func TestHosts(t *testing.T) {
	machines := []string{"n2", "n5", "n6"}
	o := labtest.Options{Name: "hosts", Machines: machines}
	for _, m := range machines {
		o.Disks = append(o.Disks, labtest.Disk{Machine: m, Name: "seed", PCI: higherSlot, Serial: "SEED000" + strings.TrimPrefix(m, "n"), Size: "64MiB"})
	}
	l := labtest.Up(t, o)
	inCloud(l, machines...)
	l.PowerOn(machines...)
	for _, m := range machines {
		l.OnNode(m, "cloud-init status --wait >/dev/null; systemctl is-system-running --wait >/dev/null; test ! -e /etc/ironrail && test $(hostname) = "+m)
	}
	list := func(name string, machines ...string) string {
		var lines string
		for _, m := range machines {
			lines += "10.77.0.1" + strings.TrimPrefix(m, "n") + " " + m + "\n"
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	want := func(t *testing.T, got map[string]string, want ...string) {
		t.Helper()
		if len(got) != len(want)/2 {
			t.Errorf("%d nodes: %v", len(got), got)
		}
		for i := 0; i < len(want); i += 2 {
			if is := got[want[i]]; !strings.HasPrefix(is, want[i+1]) || want[i+1] == "accepted" && is != "accepted" {
				t.Errorf("%s: %q, want %q", want[i], is, want[i+1])
			}
		}
		t.Logf("%v", got)
	}
	all := list("all", machines...)
	want(t, testHosts(l, labtest.ExitSomeFailed, list("two", "n2", "n5")), "n2", "no reference", "n5", "no reference")
	want(t, testHosts(l, labtest.ExitDone, all), "n2", "accepted", "n5", "accepted", "n6", "accepted")

	for _, c := range []struct{ name, break_, undo, found string }{
		{"mtu", "ip link set dev enp0s4 mtu 1400", "ip link set dev enp0s4 mtu 1500", "MTU is 1400, and 2 of 3 nodes"},
		{"clock without a source", "systemctl stop chrony", "systemctl start chrony", "time source is none, and 2 of 3 nodes"},
		{"time server that does not answer", "iptables-nft -A INPUT -p udp --sport 123 -j DROP || nft 'add table inet f; add chain inet f i { type filter hook input priority 0; }; add rule inet f i udp sport 123 drop'; systemctl restart chrony; true",
			"iptables-nft -F INPUT || nft flush ruleset; systemctl restart chrony", "none of its time servers answers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := l.For(t)
			l.OnNode("n5", c.break_)
			want(t, testHosts(l, labtest.ExitSomeFailed, all), "n2", "accepted", "n5", "not accepted", "n6", "accepted")
			if got := testHosts(l, labtest.ExitSomeFailed, all)["n5"]; !strings.Contains(got, c.found) {
				t.Errorf("n5: %q, want %q", got, c.found)
			}
			l.OnNode("n5", c.undo)
		})
	}
	for _, m := range machines {
		if left := l.OnNode(m, "ls -d /dev/shm/ironrail* /tmp/ironrail* /var/tmp/ironrail* 2>/dev/null; pgrep -l ironrail; true"); left != "" {
			t.Errorf("%s: remains %s", m, left)
		}
	}
}
