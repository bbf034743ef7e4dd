// SPDX-License-Identifier: Apache-2.0

package pdu

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gosnmp/gosnmp"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
)

// objects is a PDU's tree of integers, by name without the leading dot.
type objects map[string]int

// hooks are what a test does to a PDU; all may be nil, and run one at a time.
type hooks struct {
	set    func(name string, value int)           // sees what is written
	look   func(name string, value int) (now int) // may change what is read
	mangle func([]byte) []byte                    // may change an answer
}

// serve answers GetBulk, Get and Set out of the tree.
func serve(t *testing.T, model string, tree objects, h hooks) *Unit {
	t.Helper()
	mem := network.NewMemory()
	at := netip.MustParseAddrPort("10.0.0.8:161")
	pc, err := mem.At(at.Addr()).ListenPacket(t.Context(), "udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		answerAll(pc, tree, h)
	}()
	t.Cleanup(func() { _ = pc.Close(); <-done })
	u, err := Open(Target{Name: "r01/a", Addr: at, Model: model, Community: secret.NewValue("c"), Network: mem.At(netip.MustParseAddr("10.0.0.2"))})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func answerAll(pc net.PacketConn, tree objects, h hooks) {
	var names []string
	for n := range tree {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if isNext(a, b) {
			return -1
		}
		return 1
	})
	codec := gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: "c"}
	buf := make([]byte, 2048)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		q, err := codec.SnmpDecodePacket(append([]byte(nil), buf[:n]...))
		if err != nil {
			continue
		}
		asked := strings.TrimPrefix(q.Variables[0].Name, ".")
		r := gosnmp.SnmpPacket{Version: gosnmp.Version2c, Community: "c", PDUType: gosnmp.GetResponse, RequestID: q.RequestID}
		value := func(name string) gosnmp.SnmpPDU {
			v := tree[name]
			if h.look != nil {
				v = h.look(name, v)
			}
			return gosnmp.SnmpPDU{Name: "." + name, Type: gosnmp.Gauge32, Value: uint32(v)}
		}
		switch v, ok := tree[asked]; {
		case q.PDUType == gosnmp.GetBulkRequest:
			for _, name := range names {
				if isNext(asked, name) && len(r.Variables) < 7 {
					r.Variables = append(r.Variables, value(name))
				}
			}
			if len(r.Variables) == 0 {
				r.Variables = []gosnmp.SnmpPDU{{Name: "." + asked, Type: gosnmp.EndOfMibView}}
			}
		case q.PDUType == gosnmp.SetRequest:
			h.set(asked, q.Variables[0].Value.(int))
			r.Variables = q.Variables
		case ok && v >= 0:
			r.Variables = []gosnmp.SnmpPDU{value(asked)}
		default:
			r.Variables = []gosnmp.SnmpPDU{{Name: "." + asked, Type: gosnmp.NoSuchInstance}}
		}
		b, err := r.MarshalMsg()
		if h.mangle != nil {
			b = h.mangle(b)
		}
		if err == nil && b != nil {
			_, _ = pc.WriteTo(b, from)
		}
	}
}

// TestRaritan: sensors share a table, each with its own number of digits, and a
// breaker says when it is open.
func TestRaritan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const r = "1.3.6.1.4.1.13742.6."
		tree := objects{r + "5.2.3.1.4.1.1.5": 4321, r + "3.3.4.1.7.1.1.5": 0}
		for n := 1; n <= 3; n++ {
			tree[fmt.Sprintf(r+"4.1.2.1.3.1.%d", n)] = 7 + n/3 // the third is off
			for sensor, v := range map[int]int{1: 1234 * n, 4: 230, 5: 500 * n, 14: 7} {
				tree[fmt.Sprintf(r+"5.4.3.1.4.1.%d.%d", n, sensor)] = v
				tree[fmt.Sprintf(r+"3.5.4.1.7.1.%d.%d", n, sensor)] = map[int]int{1: 3}[sensor]
			}
			for sensor, v := range map[int]int{1: 120, 4: 2305, 5: 2600} {
				tree[fmt.Sprintf(r+"5.2.4.1.4.1.1.%d.%d", n, sensor)] = v
				tree[fmt.Sprintf(r+"3.3.6.1.7.1.1.%d.%d", n, sensor)] = map[int]int{1: 1, 4: 1}[sensor]
			}
			tree[fmt.Sprintf(r+"5.3.3.1.3.1.%d.1", n)] = 4
			tree[fmt.Sprintf(r+"5.3.3.1.3.1.%d.15", n)] = min(n-1, 1) // the first is open
			tree[fmt.Sprintf(r+"5.3.3.1.4.1.%d.1", n)] = 55
			tree[fmt.Sprintf(r+"3.4.4.1.7.1.%d.1", n)] = 1
		}
		got, err := serve(t, "raritan-px", tree, hooks{}).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got.At = time.Time{}
		want := "{r01/a 0001-01-01 00:00:00 +0000 UTC 4321 [{1 12 230.5 2600} {2 12 230.5 2600} {3 12 230.5 2600}]" +
			" [{1 5.5 0 open } {2 5.5 0 closed } {3 5.5 0 closed }]" +
			" [{1 on true 1.234 500 0 0} {2 on true 2.468 1000 0 0} {3 off true 3.702 1500 0 0}]}"
		if s := fmt.Sprintf("%+.5v", got); fmt.Sprint(got) != want && s != want {
			t.Errorf("got  %v\nwant %s", got, want)
		}
	})
}

// TestSentry4: units of hundredths, rows behind unit and cord, and no sum.
func TestSentry4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = "1.3.6.1.4.1.1718.4.1."
		tree := objects{
			s + "5.3.1.3.1.1.1": 2281, s + "5.3.1.6.1.1.1": 853, s + "5.3.1.8.1.1.1": 1900, s + "5.3.1.8.1.2.1": 7,
			s + "7.2.1.6.1.1.1": 20, s + "7.2.1.6.1.1.2": 20, s + "7.3.1.1.1.1.1": 1, s + "7.3.1.1.1.1.2": 2, s + "7.3.1.3.1.1.1": 405, s + "7.3.1.3.1.1.2": 0,
			s + "8.3.1.1.1.1.1": 1, s + "8.3.1.1.1.1.2": 2, s + "8.3.1.3.1.1.1": 15, s + "8.3.1.7.1.1.1": 34,
		}
		got, err := serve(t, "servertech-sentry4", tree, hooks{}).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Watts != 1900 || len(got.Phases) != 1 || len(got.Breakers) != 2 || len(got.Outlets) != 2 {
			t.Fatalf("%+v", got)
		}
		if b := got.Breakers; b[0].Amps != 4.05 || b[0].Rating != 20 || b[0].State != BreakerClosed || b[1].State != BreakerOpen {
			t.Errorf("%+v", b)
		}
		if o := got.Outlets; o[0].Amps != 0.15 || o[0].Watts != 34 || o[1].State != Off || o[1].Metered {
			t.Errorf("%+v", o)
		}
	})
}

// TestSwitchFollows: a relay with a delay is waited for, one that sticks is a
// mismatch, and what is so already is not written.
func TestSwitchFollows(t *testing.T) {
	const state, control = "1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.4", "1.3.6.1.4.1.318.1.1.26.9.2.4.1.5.4"
	for _, c := range []struct {
		name  string
		to    State
		delay time.Duration
		want  errkind.Kind
		fails bool
		wrote int
	}{
		{"at once", Off, 0, 0, false, 1},
		{"after four seconds", Off, 4 * time.Second, 0, false, 1},
		{"never", Off, time.Hour, errkind.Mismatch, true, 1},
		{"so already", On, 0, 0, false, 0},
		{"not a state", Unknown, 0, errkind.Unsupported, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			wrote, since := 0, time.Time{}
			u := serve(t, "apc-rpdu2", objects{state: 2}, hooks{
				set: func(name string, v int) {
					if wrote++; name != control || v != 2 {
						t.Errorf("%s: wrote %d to %s", c.name, v, name)
					}
					since = time.Now()
				},
				look: func(_ string, v int) int {
					if wrote > 0 && time.Since(since) >= c.delay {
						return 1
					}
					return v
				},
			})
			err := u.Switch(t.Context(), 4, c.to)
			if (err != nil) != c.fails || c.fails && errkind.Of(err) != c.want || wrote != c.wrote {
				t.Errorf("%s: %v, %d writes", c.name, err, wrote)
			}
		})
	}
}

// TestHostileAnswers: circles, junk and silence end in errors, in bounded time.
func TestHostileAnswers(t *testing.T) {
	const column = "1.3.6.1.4.1.318.1.1.26.4.3.1.5."
	for name, mangle := range map[string]func([]byte) []byte{
		"silence": func([]byte) []byte { return nil },
		"junk":    func(b []byte) []byte { return []byte{0x30, 0x84, 0xff, 0xff} },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := serve(t, "apc-rpdu2", objects{column + "1": 1}, hooks{mangle: mangle}).Read(t.Context())
			if errkind.Of(err) != errkind.Unreachable || time.Since(began) > time.Minute {
				t.Errorf("%s: after %v: %v", name, time.Since(began), err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		tree := objects{}
		for i := range 9 {
			tree[fmt.Sprint(column, i+1)] = 1
		}
		u := serve(t, "apc-rpdu2", tree, hooks{mangle: func(b []byte) []byte {
			b[len(b)-4] = 1 // the last part of the last name
			return b
		}})
		if _, err := u.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "circles") {
			t.Errorf("a circle: %v", err)
		}
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	good := Target{Addr: netip.MustParseAddrPort("10.0.0.8:0"), Model: "apc-rpdu2", Community: secret.NewValue("public")}
	if u, err := Open(good); err != nil || u.target.Addr.Port() != 161 {
		t.Errorf("%v", err)
	}
	unknown, mute, long := good, good, good
	unknown.Model, mute.Community, long.Community = "acme", secret.Value{}, secret.NewValue(strings.Repeat("x", 128))
	for _, c := range []struct {
		t    Target
		want errkind.Kind
	}{{unknown, errkind.Unsupported}, {mute, errkind.Auth}, {long, errkind.Auth}} {
		if _, err := Open(c.t); errkind.Of(err) != c.want || errkind.Action(err) == "" {
			t.Errorf("%v: %v", c.want, err)
		}
	}
}

// TestUnreachable: a closed port of the operating system is said at once.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := pc.LocalAddr().(*net.UDPAddr).AddrPort()
	_ = pc.Close()
	u, err := Open(Target{Name: "x", Addr: at, Model: "apc-rpdu2", Community: secret.NewValue("c"), Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := u.Outlet(ctx, 1); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	codec := gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: "c"}
	p := codec.MkSnmpPacket(gosnmp.GetResponse, []gosnmp.SnmpPDU{{Name: ".1.3.6.1.2", Type: gosnmp.Gauge32, Value: uint32(7)}, {Name: ".1.3.6.1.3", Type: gosnmp.OctetString, Value: "x"}}, 0, 0)
	b, err := p.MarshalMsg()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decodePacket(&codec, b); err == nil {
			for _, v := range p.Variables {
				_, _ = toInteger(v.Value)
				_ = isNext(v.Name, ".1.3.6")
			}
		}
	})
}
