// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// notes keeps what a limiter passes on; the tests have one goroutine at a time.
type notes struct{ all []boot.Evidence }

func (n *notes) Record(e boot.Evidence) { n.all = append(n.all, e) }

func (n *notes) text() string {
	var b strings.Builder
	for _, e := range n.all {
		fmt.Fprintf(&b, "%s %s %s: %s\n", e.Address, e.Proto, e.What, e.Detail)
	}
	return b.String()
}

func refusedRead(from string) boot.Evidence {
	return boot.Evidence{Proto: boot.TFTP, What: "refused", Refused: true, Address: netip.MustParseAddr(from), Detail: "no node has it"}
}

// TestFloodOfRefusedReads: 20,000 refusals within ten seconds are two records, the
// first and one that counts the others, also when no further one comes.
func TestFloodOfRefusedReads(t *testing.T) {
	for _, service := range []boot.Proto{boot.TFTP, boot.HTTP, boot.IPXE, boot.Agent, boot.DHCP} {
		t.Run(string(service), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n notes
				l := NewLimiter(&n)
				for range 20000 {
					e := refusedRead("10.0.0.99")
					e.Proto = service
					l.Record(e)
					time.Sleep(time.Second / 2500)
				}
				time.Sleep(window)
				synctest.Wait()
				if len(n.all) != 2 || !strings.Contains(n.all[1].Detail, "refused 19999 times more in 8s") || n.all[1].Address.String() != "10.0.0.99" {
					t.Errorf("got\n%s", n.text())
				}
				l.Close()
			})
		})
	}
}

// TestEachSourceIsNamed: a flood of one does not hide the first refusal of another,
// and thousands of unknown clients are one record beside the first of them.
func TestEachSourceIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		l := NewLimiter(&n)
		for i := range 100 {
			l.Record(refusedRead("10.0.0.99"))
			known := refusedRead("10.0.0.11")
			known.Node = "n1"
			l.Record(known)
			l.Record(refusedRead(fmt.Sprintf("10.1.0.%d", i)))
		}
		l.Record(boot.Evidence{Proto: boot.Agent, What: "connection-refused", Refused: true, Address: netip.MustParseAddr("10.2.0.1")})
		if last := n.all[len(n.all)-1]; last.Address.String() != "10.2.0.1" {
			t.Errorf("a flood of another kind hides %+v", last)
		}
		told := len(n.all) - 1
		l.Close()
		if want := unknown + 1; told != want { // n1 is known
			t.Errorf("%d told one by one, want %d", told, want)
		}
		text := n.text()
		for _, want := range []string{"10.0.0.99 tftp refused: refused 99 times more", "10.0.0.11 tftp refused: refused 99 times more", "81 refusals of further sources in 0s"} {
			if !strings.Contains(text, want) {
				t.Errorf("missing %q in\n%s", want, text)
			}
		}
	})
}

// TestRepeatedOffers: what DHCP answers is told once in ten seconds, with the count
// of what was left out; unknown clients are told one by one up to a bound.
func TestRepeatedOffers(t *testing.T) {
	t.Parallel()
	var n notes
	l := NewLimiter(&n)
	defer l.Close()
	now := time.Now()
	for i := range 30 {
		l.Record(boot.Evidence{Time: now.Add(time.Duration(i) * time.Second), Proto: boot.DHCP, What: "offer", Node: "n1", Detail: "offered"})
	}
	if len(n.all) != 3 || n.all[1].Detail != "offered (and 9 times before)" {
		t.Errorf("30 offers in 30 s: got\n%s", n.text())
	}
	n.all = nil
	for i := range 500 {
		l.Record(boot.Evidence{Time: now.Add(time.Minute), Proto: boot.DHCP, What: "unknown", MAC: addr.MAC{2, 2, 0, 0, byte(i >> 8), byte(i)}, Refused: true})
	}
	if len(n.all) != unknown {
		t.Errorf("500 unknown clients at once: %d told, want %d", len(n.all), unknown)
	}
}

// TestOrdinaryRecords: a boot is told wholly, a firmware that loops is not, and
// random MACs do not fill the memory.
func TestOrdinaryRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		l := NewLimiter(&n)
		offer := boot.Evidence{Proto: boot.DHCP, What: "offer", Node: "n1", Detail: "snponly.efi"}
		for i := range 30 {
			l.Record(offer)
			l.Record(boot.Evidence{Proto: boot.HTTP, What: "image", Node: "n1", Detail: fmt.Sprint(i)})
		}
		if len(n.all) != 31 {
			t.Errorf("%d told, want one offer and thirty transfers:\n%s", len(n.all), n.text())
		}
		time.Sleep(window)
		l.Record(offer)
		if last := n.all[len(n.all)-1]; last.Detail != "snponly.efi (and 29 times before)" {
			t.Errorf("got %+v", last)
		}
		for i := range 100_000 {
			l.Record(boot.Evidence{Proto: boot.DHCP, What: "unknown", Refused: true, MAC: addr.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}})
		}
		if len(l.counts) > 2*unknown {
			t.Errorf("%d sources are counted one by one", len(l.counts))
		}
		l.Close()
		if last := n.all[len(n.all)-1]; !strings.Contains(last.Detail, "99980 refusals of further sources") {
			t.Errorf("got %+v", last)
		}
	})
}
