// SPDX-License-Identifier: Apache-2.0

package power

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gosnmp/gosnmp"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/pdu"
)

// rack is r01/a with seven nodes of 2300 W on nine outlets.
func rack(t *testing.T) *site {
	t.Helper()
	feeds, names := single(7)
	return newSite(t, 9, feeds, names...)
}

// TestPeerNetSNMP: the tools of net-snmp, another implementation, read and switch.
func TestPeerNetSNMP(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "snmpwalk")
	s := rack(t)
	p, _ := s.PDU("r01/a")
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { served <- p.Serve(ctx, pc, Options{Community: "wr", ReadOnly: "ro"}) }()
	snmp := func(tool, community string, args ...string) string {
		args = append([]string{"-v2c", "-c", community, "-On", "-t", "5", "-r", "0", pc.LocalAddr().String()}, args...)
		out, _ := exec.CommandContext(ctx, tool, args...).CombinedOutput()
		return string(out)
	}
	const apc = ".1.3.6.1.4.1.318.1.1.26."
	for _, c := range []struct {
		tool, community string
		args            []string
		want            []string
	}{
		{"snmpget", "ro", []string{system + "5.0", apc + "4.2.1.4.1", apc + "6.3.1.5.1"}, []string{`STRING: "r01/a"`, "4.2.1.4.1 = INTEGER: 9", "6.3.1.5.1 = INTEGER: 299"}},
		{"snmpget", "ro", []string{apc + "9.4.3.1.7.1", apc + "9.4.3.1.7.8", apc + "9.4.3.1.7.99"}, []string{"7.1 = INTEGER: 2300", "7.8 = INTEGER: 0", "No Such"}},
		{"snmpset", "ro", []string{apc + "9.2.4.1.5.1", "i", "2"}, []string{"noAccess"}},
		{"snmpset", "wr", []string{apc + "9.2.4.1.5.1", "i", "9"}, []string{"wrongValue"}},
		{"snmpset", "wr", []string{apc + "9.2.3.1.5.1", "i", "1"}, []string{"notWritable"}},
		{"snmpset", "wr", []string{apc + "9.2.4.1.5.1", "i", "2"}, []string{"9.2.4.1.5.1 = INTEGER: 2"}},
		{"snmpget", "ro", []string{apc + "9.2.3.1.5.1", apc + "9.4.3.1.7.1"}, []string{"9.2.3.1.5.1 = INTEGER: 1", "7.1 = INTEGER: 0"}},
		{"snmpgetnext", "ro", []string{"1.3.6.1.2.1.1.6", "1.3.6.1.2.1.1.6.0"}, []string{`1.6.0 = STRING: "r01"`, apc + "2.1.1.1 = INTEGER: 1"}},
		{"snmpget", "nobody", []string{"-t", "0.2", system + "5.0"}, []string{"Timeout"}},
	} {
		got := snmp(c.tool, c.community, c.args...)
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s %v: no %q in\n%s", c.tool, c.args, w, got)
			}
		}
	}
	walk, bulk := snmp("snmpwalk", "ro", ".1"), snmp("snmpbulkwalk", "ro", ".1")
	instances := 1 // the last line says that there is no more
	for _, c := range columnsOf("apc-rpdu2") {
		instances += c.rows(p.view())
	}
	if n := strings.Count(walk, " = "); n != instances || withoutUptime(walk) != withoutUptime(bulk) {
		t.Errorf("snmpwalk shows %d of %d objects, snmpbulkwalk %d; it ends %q", n, instances, strings.Count(bulk, " = "), walk[max(0, len(walk)-120):])
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// withoutUptime leaves out what differs by the time.
func withoutUptime(walk string) string {
	var lines []string
	for line := range strings.Lines(walk) {
		if !strings.HasPrefix(line, "."+system+"3.0 ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// client serves r01/a in memory and opens it as the product does.
func client(t *testing.T, s *site, model, community string) *pdu.Unit {
	t.Helper()
	mem := network.NewMemory()
	at := netip.MustParseAddrPort("10.0.0.8:161")
	pc, err := mem.At(at.Addr()).ListenPacket(t.Context(), "udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	p, _ := s.PDU("r01/a")
	p.spec.Control = &inventory.PDUControl{Model: model}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Serve(ctx, pc, Options{Community: "wr", ReadOnly: "ro"}); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done; _ = pc.Close() })
	u, err := pdu.Open(pdu.Target{Name: "r01/a", Addr: at, Model: model, Community: secret.NewValue(community), Network: mem.At(netip.MustParseAddr("10.0.0.2"))})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestProductReadsAndSwitches: provision/pdu against the agent of each model, on
// virtual time. What a model says beside amperes is in the table.
func TestProductReadsAndSwitches(t *testing.T) {
	for _, c := range []struct {
		model   string
		rating  float64
		tripped pdu.BreakerState
		phase   int // of outlet 2, as the PDU says it
	}{
		{"apc-rpdu2", 32, pdu.BreakerUnknown, 2},
		{"raritan-px", 0, pdu.BreakerOpen, 0},
		{"servertech-sentry4", 32, pdu.BreakerOpen, 0},
	} {
		t.Run(c.model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rack(t)
				u := client(t, s, c.model, "wr")
				if err := s.Trip("r01/a", 2); err != nil {
					t.Fatal(err)
				}
				r, err := u.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Phases) != 3 || len(r.Breakers) != 3 || len(r.Outlets) != 9 {
					t.Fatalf("%+v", r)
				}
				if !near(r.Phases[0].Amps, 29.9) || math.Abs(r.Phases[0].Volts-231) > 0.1 || !near(r.Watts, 5*2300) {
					t.Errorf("%+v, %.0f W", r.Phases, r.Watts)
				}
				if b := r.Breakers; b[1].Amps != 0 || b[1].Rating != c.rating || b[1].State != c.tripped || !near(b[0].Amps, 29.9) || b[0].State == pdu.BreakerOpen {
					t.Errorf("%+v", b)
				}
				if o := r.Outlets; o[1].State != pdu.On || !o[1].Metered || o[1].Watts != 0 || o[1].Phase != c.phase || o[1].Breaker != c.phase || !near(o[0].Watts, 2300) {
					t.Errorf("%+v", o)
				}
				if err := u.Switch(t.Context(), 1, pdu.Off); err != nil {
					t.Fatal(err)
				}
				if state, err := u.Outlet(t.Context(), 1); state != pdu.Off || err != nil || s.Live("n1") {
					t.Errorf("outlet 1 is %s, %v; n1 has power: %v", state, err, s.Live("n1"))
				}
				if err := u.Switch(t.Context(), 1, pdu.On); err != nil || !s.Live("n1") {
					t.Errorf("on again: %v", err)
				}
				if err := u.Switch(t.Context(), 10, pdu.Off); errkind.Of(err) != errkind.Unsupported {
					t.Errorf("outlet 10: %v", err)
				}
			})
		})
	}
}

// TestProductErrors: what does not answer is unreachable, after the tries and
// not forever; a reader may not write.
func TestProductErrors(t *testing.T) {
	for _, c := range []struct {
		name, community string
		dark            bool
		want            errkind.Kind
		after           time.Duration
	}{
		{"wrong community", "wrong", false, errkind.Unreachable, 6 * time.Second},
		{"no input", "wr", true, errkind.Unreachable, 6 * time.Second},
		{"may only read", "ro", false, errkind.Refused, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rack(t)
				u := client(t, s, "apc-rpdu2", c.community)
				if err := s.Input("r01/a", !c.dark); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err := u.Switch(t.Context(), 2, pdu.Off)
				if errkind.Of(err) != c.want || errkind.Action(err) == "" || time.Since(began) != c.after {
					t.Errorf("after %v: %v (%s)", time.Since(began), err, errkind.Of(err))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if c.after > 0 {
					if _, err := u.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("with a second left: %v", err)
					}
				}
			})
		})
	}
}

// TestReboot: an outlet comes back by itself.
func TestReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rack(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		p, _ := s.PDU("r01/a")
		a := agent{pdu: p, options: Options{Community: "c"}, tree: p.tree()}
		codec := gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: "c"}
		b, err := codec.MkSnmpPacket(gosnmp.SetRequest, []gosnmp.SnmpPDU{{Name: command + ".3", Type: gosnmp.Integer, Value: 3}}, 0, 0).MarshalMsg()
		if err != nil || a.answer(b) == nil {
			t.Fatal(err)
		}
		if s.Live("n3") {
			t.Error("the outlet is on at once")
		}
		time.Sleep(rebootFor + time.Second)
		synctest.Wait()
		if !s.Live("n3") {
			t.Error("the outlet did not come back")
		}
	})
}

// TestExplainsATrip: from the breaker to one finding, by way of SNMP.
func TestExplainsATrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rack(t)
		u := client(t, s, "raritan-px", "ro")
		before, err := u.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Trip("r01/a", 1)
		now, err := u.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		feeds, names := single(7)
		o := pdu.Outage{Feeds: map[string][]pdu.Feed{}, Now: map[string]pdu.Reading{"r01/a": now}, Before: map[string]pdu.Reading{"r01/a": before}}
		for _, n := range names {
			o.Feeds[n] = []pdu.Feed{{Supply: feeds[n][0].Supply, PDU: feeds[n][0].PDU.Name, Outlet: feeds[n][0].Outlet}}
			if !s.Live(n) {
				o.Losses = append(o.Losses, pdu.Loss{Node: n, At: time.Now()})
			}
		}
		causes := pdu.ExplainOutage(o)
		if len(causes) != 1 || causes[0].Parts[0].String() != "breaker 1 of PDU r01/a" || strings.Join(causes[0].Nodes, " ") != "n1 n4 n7" {
			t.Errorf("%+v", causes)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	g, err := New(Config{PDUs: []*inventory.PDU{pduOf("r01/a", 4)}})
	if err != nil {
		f.Fatal(err)
	}
	p, _ := g.PDU("r01/a")
	var agents []agent
	for _, model := range pdu.Models() {
		agents = append(agents, agent{pdu: p, options: Options{Community: "c"}, tree: columnsOf(model)})
	}
	codec := gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: "c"}
	for _, kind := range []gosnmp.PDUType{gosnmp.GetRequest, gosnmp.GetNextRequest, gosnmp.GetBulkRequest, gosnmp.SetRequest} {
		for _, o := range []string{".1.3", command + ".1", system + "1.0", ".2.39.1", "." + raritan + "5.4.3.1.4.1.2.5"} {
			b, err := codec.MkSnmpPacket(kind, []gosnmp.SnmpPDU{{Name: o, Type: gosnmp.Integer, Value: 1}}, 0, 9).MarshalMsg()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for i := range agents {
			if r := agents[i].answer(append([]byte(nil), b...)); len(r) > maxMessage {
				t.Errorf("an answer of %d bytes", len(r))
			}
		}
	})
}
