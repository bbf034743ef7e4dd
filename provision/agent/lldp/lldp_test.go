// SPDX-License-Identifier: Apache-2.0

package lldp

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// tlv writes one TLV.
func tlv(kind int, value string) []byte {
	return append([]byte{byte(kind<<1 | len(value)>>8), byte(len(value))}, value...)
}

// frame is an Ethernet frame of TLVs, padded as a NIC does.
func frame(tlvs ...[]byte) []byte {
	b, _ := hex.DecodeString("0180c200000e0c42a1880a1c88cc")
	b = append(append(b, bytes.Join(tlvs, nil)...), 0, 0)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

var (
	chassis = tlv(1, "\x04\x0c\x42\xa1\x88\x0a\x1c")
	port    = tlv(2, "\x07etp17")
	ttl     = tlv(3, "\x00\x78")
)

func TestParseFrame(t *testing.T) {
	t.Parallel()
	whole := frame(chassis, port, ttl, tlv(4, "Ethernet64"), tlv(5, "leaf-1\x00"), tlv(127, "\x00\x12\x0f\x01\x03"))
	tagged := append(append(append([]byte(nil), whole[:12]...), 0x81, 0, 0, 5), whole[12:]...)
	want := PDU{"0c:42:a1:88:0a:1c", "etp17", 2 * time.Minute, "Ethernet64", "leaf-1"}
	for _, c := range []struct {
		name  string
		frame []byte
		want  PDU
		fails string
	}{
		{"SONiC", whole, want, ""},
		{"tagged", tagged, want, ""},
		{"no end", frame(chassis, port, ttl)[:14+len(chassis)+len(port)+len(ttl)], PDU{ChassisID: want.ChassisID, PortID: "etp17", TTL: want.TTL}, ""},
		{"address and MAC as ids", frame(tlv(1, "\x05\x01\x0a\x00\x00\x07"), tlv(2, "\x03\x00\x01\x02\x03\x04\x05"), tlv(3, "\x00\x00")), PDU{"10.0.0.7", "00:01:02:03:04:05", 0, "", ""}, ""},
		{"IPv6", frame(tlv(1, "\x05\x02\xfe\x80"+strings.Repeat("\x00", 13)+"\x01"), port, ttl), PDU{"fe80::1", "etp17", want.TTL, "", ""}, ""},
		{"bytes that are no text", frame(tlv(1, "\x07\xff\xfe"), port, ttl), PDU{"\uFFFD", "etp17", want.TTL, "", ""}, ""},
		{"order", frame(port, chassis, ttl), PDU{}, "type 2 in place 1"},
		{"chassis twice", frame(chassis, port, ttl, chassis), PDU{}, "type 1 in place 4"},
		{"no TTL", frame(chassis, port), PDU{}, "after 2 of 3"},
		{"short id", frame(tlv(1, "\x04"), port, ttl), PDU{}, "id of 1 bytes"},
		{"cut", whole[:30], PDU{}, "cut off"},
		{"ARP", append(append([]byte(nil), whole[:12]...), 8, 6, 0, 0), PDU{}, "not an LLDP frame"},
		{"empty", nil, PDU{}, "not an LLDP frame"},
	} {
		got, err := ParseFrame(c.frame)
		if got != c.want || (c.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
}

// air is a source of frames at times.
type air []struct {
	at    time.Duration
	nic   string
	frame []byte
}

// Listen implements Source.
func (a air) Listen(ctx context.Context, nics []string, heard func(string, []byte)) error {
	began := time.Now()
	for _, f := range a {
		select {
		case <-time.After(time.Until(began.Add(f.at))):
			heard(f.nic, f.frame)
		case <-ctx.Done():
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

func TestListener(t *testing.T) {
	nics := []NIC{{"eth0", "0000:18:00.0"}, {"eth1", "0000:19:00.0"}}
	at := func(port string) []byte { return frame(chassis, tlv(2, "\x05"+port), ttl, tlv(5, "leaf-1")) }
	byMAC := frame(chassis, tlv(2, "\x03\x00\x01\x02\x03\x04\x05"), ttl, tlv(4, "swp4"))
	heard := func(nic, pci, port, system string) wire.Neighbour {
		return wire.Neighbour{NIC: nic, PCI: pci, ChassisID: "0c:42:a1:88:0a:1c", PortID: port, SystemName: system}
	}
	for _, c := range []struct {
		name string
		air  air
		want []wire.Neighbour
		took time.Duration
	}{
		{"both speak", air{{time.Second, "eth1", byMAC}, {29 * time.Second, "eth0", at("swp3")}},
			[]wire.Neighbour{heard("eth0", "0000:18:00.0", "swp3", "leaf-1"), heard("eth1", "0000:19:00.0", "swp4", "")}, 29 * time.Second},
		{"one is silent", air{{time.Second, "eth1", at("swp4")}, {2 * time.Second, "eth7", at("swp9")}, {3 * time.Second, "eth0", []byte("junk")}},
			[]wire.Neighbour{heard("eth1", "0000:19:00.0", "swp4", "leaf-1")}, Interval},
		{"recabled meanwhile", air{{time.Second, "eth1", at("swp4")}, {2 * time.Second, "eth1", frame(chassis, tlv(2, "\x05swp4"), tlv(3, "\x00\x00"))}, {9 * time.Second, "eth1", at("swp5")}},
			[]wire.Neighbour{heard("eth1", "0000:19:00.0", "swp5", "leaf-1")}, Interval},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			l := Start(t.Context(), c.air, nics, 0)
			if err := l.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(l.Neighbours()); got != fmt.Sprint(c.want) || time.Since(began) != c.took {
				t.Errorf("%s: after %v: %s", c.name, time.Since(began), got)
			}
		})
	}
}

// deaf is a source that cannot listen.
type deaf struct{}

func (deaf) Listen(context.Context, []string, func(string, []byte)) error {
	return errors.New("no permission")
}

func TestListenerFails(t *testing.T) {
	t.Parallel()
	l := Start(t.Context(), deaf{}, []NIC{{Name: "eth0"}}, 0)
	if err := l.Wait(t.Context()); err == nil || len(l.Neighbours()) != 0 {
		t.Errorf("%v", err)
	}
}

func FuzzParseFrame(f *testing.F) {
	f.Add(frame(chassis, port, ttl, tlv(4, "x"), tlv(5, "y")))
	f.Add(frame(tlv(1, "\x05\x01\x0a\x00\x00\x07"), tlv(2, "\x04\x02abc"), ttl))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseFrame(b)
		if err == nil && (len(p.ChassisID) > 3*256 || len(p.SystemName) > 3*512) {
			t.Errorf("%+v", p)
		}
	})
}

// TestOnNode: the answer comes when all have spoken, or after patience without
// the silent; who speaks later is in the next answer. InfiniBand is left out.
func TestOnNode(t *testing.T) {
	fs := sysfs.Of(fstest.MapFS{
		"sys/devices/pci0000:00/0000:18:00.0/net/eth0/type":   {Data: []byte("1\n")},
		"sys/devices/pci0000:00/0000:19:00.0/net/eth1/type":   {Data: []byte("1\n")},
		"sys/devices/pci0000:00/0000:1a:00.0/net/ib0/type":    {Data: []byte("32\n")},
		"sys/devices/virtual/net/lo/type":                     {Data: []byte("772\n")},
		"sys/class/net/eth0":                                  {Data: []byte("../../devices/pci0000:00/0000:18:00.0/net/eth0"), Mode: iofs.ModeSymlink},
		"sys/class/net/eth1":                                  {Data: []byte("../../devices/pci0000:00/0000:19:00.0/net/eth1"), Mode: iofs.ModeSymlink},
		"sys/class/net/ib0":                                   {Data: []byte("../../devices/pci0000:00/0000:1a:00.0/net/ib0"), Mode: iofs.ModeSymlink},
		"sys/class/net/lo":                                    {Data: []byte("../../devices/virtual/net/lo"), Mode: iofs.ModeSymlink},
		"sys/devices/pci0000:00/0000:18:00.0/net/eth0/device": {Data: []byte("../.."), Mode: iofs.ModeSymlink},
		"sys/devices/pci0000:00/0000:19:00.0/net/eth1/device": {Data: []byte("../.."), Mode: iofs.ModeSymlink},
		"sys/devices/pci0000:00/0000:1a:00.0/net/ib0/device":  {Data: []byte("../.."), Mode: iofs.ModeSymlink},
	})
	if got := fmt.Sprint(NICs(fs)); got != "[{eth0 0000:18:00.0} {eth1 0000:19:00.0}]" {
		t.Fatal(got)
	}
	whole := frame(chassis, port, ttl)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ready := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(ready) })
		heard := OnNode(ctx, air{{8 * time.Second, "eth0", whole}, {20 * time.Second, "eth1", whole}}, fs, ready)
		began := time.Now()
		if got := heard(); len(got) != 1 || time.Since(began) != time.Minute+listenTimeout {
			t.Errorf("after %v: %+v", time.Since(began), got)
		}
		time.Sleep(10 * time.Second)
		at := time.Now()
		if got := heard(); len(got) != 2 || time.Since(at) != 0 {
			t.Errorf("later, after %v: %+v", time.Since(at), got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if r := ListenNode(t.Context(), air{{8 * time.Second, "eth0", whole}}, fs); len(r.Neighbours) != 1 || r.Error != nil {
			t.Errorf("an installed node heard %+v", r)
		}
		if r := ListenNode(t.Context(), deaf{}, fs); len(r.Neighbours) != 0 || r.Error == nil {
			t.Errorf("one that cannot listen heard %+v", r)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		heard := OnNode(ctx, air{}, fs, nil)
		cancel()
		if got := heard(); got != nil {
			t.Errorf("a node that never settled heard %+v", got)
		}
	})
}
