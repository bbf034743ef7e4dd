// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// TestRHELRails: the rail of a node of an image of kind rhel has its address and its RDMA
// device, of a soft NIC, also after a restart, and NetworkManager leaves it alone.
func TestRHELRails(t *testing.T) {
	const node = "n2"
	l := labtest.Up(t, labtest.Options{Name: "rhel-rails", Machines: []string{node}, HCL: []labtest.Edit{{Old: "  drivers    = [driver.rdma]\n  validation = validation.lab\n"}}})
	url, key := l.RHELRepositories("bookworm", "9.6 linux-image-amd64") // the cloud kernel has no rdma_rxe
	l.Edit(labtest.Edit{Old: debianBlock, New: fmt.Sprintf("image \"rhel\" \"os\" {\n  release = \"9\"\n  repository \"appstream\" {\n    url = \"%[1]s/AppStream\"\n    key = %[2]q\n  }\n  repository \"baseos\" {\n    url = \"%[1]s/BaseOS\"\n    key = %[2]q\n  }\n}", url, key)})
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(node)
	look := func(when string) {
		for _, look := range []string{
			`rail=$(basename /sys/bus/pci/devices/0000:00:04.0/virtio*/net/*) && nmcli -g GENERAL.STATE device show $rail | grep unmanaged && ip -4 -o address show dev $rail | grep 'inet 10\.77\.16\.' && rdma link show | grep "state ACTIVE.*netdev $rail"`,
			`grep -F unmanaged-devices+=mac: /etc/NetworkManager/conf.d/20-ironrail-rails.conf && ! ls /etc/systemd/network/20-ironrail-rail0.network`,
			`ip -4 -o address show scope global | grep -c inet | grep 2 && ! systemctl --failed --no-legend | grep .`,
		} {
			t.Logf("%s: %s", when, l.OnNode(node, look))
		}
	}
	look("installed")
	l.Reboot(node)
	look("after a restart")
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
}
