// SPDX-License-Identifier: Apache-2.0

package lldp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// nearest is the group address that no bridge forwards (802.1AB, 7.1).
var nearest = [8]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e}

// maxFrame is what is read of a frame, in bytes; an LLDPDU is one frame.
const maxFrame = 9216

// Packets are frames from the kernel's NICs. It needs CAP_NET_RAW, and
// CAP_NET_ADMIN for links that are down. A NIC whose firmware keeps LLDP to
// itself (Intel 700 and 800 series by default) hears nothing.
type Packets struct{}

// Listen implements Source. NICs that cannot be opened are left out; when none
// can, it returns their errors.
func (Packets) Listen(ctx context.Context, nics []string, heard func(nic string, frame []byte)) error {
	var wg sync.WaitGroup
	var errs []error
	for _, name := range nics {
		c, err := open(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("NIC %s: %w", name, err))
			continue
		}
		wg.Go(func() {
			defer c.Close()
			stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
			defer stop()
			buf := make([]byte, maxFrame)
			for {
				n, _, err := c.ReadFrom(buf)
				if err != nil {
					return // the end of ctx, or a NIC that went away
				}
				heard(name, buf[:n])
			}
		})
	}
	wg.Wait()
	if len(errs) == len(nics) {
		return errors.Join(errs...)
	}
	return nil
}

// open sets a link up, without an address, and joins the group.
func open(name string) (*packet.Conn, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	if link.Attrs().Flags&net.FlagUp == 0 {
		if err := netlink.LinkSetUp(link); err != nil {
			return nil, fmt.Errorf("set up: %w", err)
		}
	}
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	c, err := packet.Listen(ifi, packet.Raw, etherType, nil)
	if err != nil {
		return nil, err
	}
	if err := join(c, ifi.Index); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// join makes the NIC pass frames to the group.
func join(c *packet.Conn, index int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptPacketMreq(int(fd), unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
			&unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: 6, Address: nearest})
	})
	return errors.Join(err, set)
}
