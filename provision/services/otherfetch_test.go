// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot"
)

// reported runs reportFetches on what was seen, until all of it is reported.
func reported(t *testing.T, seen ...install.OtherFetch) (all []stage.Finding) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &Services{network: "boot", fetches: newSiteFindings(moreFetches("boot"))}
		for _, f := range seen {
			v.reportOtherFetch(f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			v.fetches.report(ctx, func(_ context.Context, f stage.Finding) error { all = append(all, f); return nil })
		}()
		synctest.Wait()
		cancel()
		<-done
	})
	return all
}

// fetchBy is a request for the initrd of a node.
func fetchBy(node, from string) install.OtherFetch {
	return install.OtherFetch{Node: node, Attempt: node + "-a1", From: netip.MustParseAddr(from), Request: "GET /boot/" + node + "-a1/initrd",
		At: time.Date(2026, 11, 2, 15, 4, 5, 0, time.UTC)}
}

// TestFetchFinding: the finding names the address, its owner, both MACs and whose
// files they are, and suspects no node.
func TestFetchFinding(t *testing.T) {
	f := fetchBy("n1", "10.0.0.12")
	f.Owner = netboot.Client{Node: "n2", MACs: []addr.MAC{{2, 0, 0, 0, 0, 2}}}
	f.MAC = addr.MAC{2, 0, 0, 0, 0, 0x66}
	f.NodeFrom, f.NodeAt = netip.MustParseAddr("10.0.0.11"), f.At.Add(-time.Minute)
	bmc := fetchBy("n1", "10.0.0.13")
	bmc.Owner = netboot.Client{Node: "n3", Kind: netboot.BMC}
	all := reported(t, f, f, bmc, fetchBy("n1", "10.0.0.99"), fetchBy("n2", "10.0.0.99"), fetchBy("n1", "10.0.0.99"))
	if len(all) != 4 {
		t.Fatalf("%d findings, want one of each attempt and address: %+v", len(all), all)
	}
	for i, want := range [][]string{
		{"boot files of n1", "from 10.0.0.12, the address of n2", "15:04:05 GET /boot/n1-a1/initrd from 10.0.0.12: refused", "reserved for MAC 02:00:00:00:00:02 (n2)",
			"MAC 02:00:00:00:00:66 answers for 10.0.0.12", "n1 fetched its initrd from 10.0.0.11 at 15:03:05", "Find MAC 02:00:00:00:00:66 in", "nothing is wrong with n1"},
		{"from 10.0.0.13, the address of the BMC of n3"},
		{"boot files of n1", "from 10.0.0.99, which no node of the inventory has", "Find the machine that has 10.0.0.99"},
		{"boot files of n2", "10.0.0.99"},
	} {
		got := all[i]
		text := strings.Join(append(got.Evidence, got.Cause, got.Action), "\n")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("finding %d lacks %q:\n%s", i, w, text)
			}
		}
		if len(got.Suspects) != 1 || got.Suspects[0].Subject != (subject.ID{Kind: subject.Site, Name: "network.boot"}) || len(got.Affected) != 0 {
			t.Errorf("finding %d takes out %+v %+v", i, got.Suspects, got.Affected)
		}
	}
	if about := all[0].About; len(about) != 2 || about[0] != subject.OfNode("n1") || about[1] != subject.OfNode("n2") {
		t.Errorf("about %v", about)
	}
}

// TestFetchesAreBounded: a flood from 4,000 addresses makes a bounded number of
// findings, the last of which says so, and is remembered in bounded memory.
func TestFetchesAreBounded(t *testing.T) {
	var flood []install.OtherFetch
	for i := range 4000 {
		flood = append(flood, fetchBy("n1", fmt.Sprintf("10.1.%d.%d", i/256, i%256)))
	}
	all := reported(t, append(flood, flood...)...)
	if len(all) != MostFindings+1 || !strings.Contains(all[MostFindings].Cause, "more than 16 times") || all[MostFindings].Action == "" {
		t.Errorf("%d findings, the last %+v", len(all), all[len(all)-1])
	}
	v := &Services{fetches: newSiteFindings(moreFetches("boot"))}
	for _, f := range flood {
		v.reportOtherFetch(f)
	}
	if o := v.fetches; len(o.seen) > MostFindings+1 || len(o.found) != MostFindings+1 {
		t.Errorf("%d remembered, %d to report", len(o.seen), len(o.found))
	}
}

// TestFetchesEndWithTheRun: nothing is reported once that fails.
func TestFetchesEndWithTheRun(t *testing.T) {
	t.Parallel()
	v := &Services{fetches: newSiteFindings(moreFetches("boot"))}
	v.reportOtherFetch(fetchBy("n1", "10.0.0.99"))
	v.reportOtherFetch(fetchBy("n1", "10.0.0.98"))
	n := 0
	v.fetches.report(t.Context(), func(context.Context, stage.Finding) error { n++; return errors.New("closed") })
	if n != 1 {
		t.Errorf("reported %d times", n)
	}
}
