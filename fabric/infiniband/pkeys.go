// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// asksAtOnce is how many programs look at ports at the same time.
const asksAtOnce = 4

// pkeys compares the P_Key table of every port that was found with the plan.
func (s *Subnet) pkeys(ctx context.Context, members []Member, t *ibnetdiscover.Topology) ([]string, error) {
	type place struct{ lid, port int }
	at := map[addr.GUID]place{}
	for _, h := range t.HCAs {
		for _, p := range h.Ports {
			at[p.GUID] = place{p.LID, p.Port}
		}
	}
	list := slices.DeleteFunc(byRail(members), func(m Member) bool { return at[m.GUID].lid == 0 })
	wrong, errs := make([]string, len(list)), make([]error, len(list))
	slots := make(chan struct{}, asksAtOnce)
	var wg sync.WaitGroup
	for i, m := range list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			p := at[m.GUID]
			have, err := s.table(ctx, p.lid, p.port)
			errs[i] = err
			if text := compareKeys(PKeys(s.Fabric, m.Node), have); err == nil && text != "" {
				wrong[i] = fmt.Sprintf("%s, port GUID %s: %s", m.title(), m.GUID, text)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("P_Keys of %s: %w", list[i].title(), err)
		}
	}
	return slices.DeleteFunc(wrong, func(text string) bool { return text == "" }), nil
}

// compareKeys says in words how a table differs; empty: it does not.
func compareKeys(want, have []uint16) string {
	var words []string
	for _, k := range want {
		if !slices.Contains(have, k) {
			words = append(words, fmt.Sprintf("P_Key %#04x is missing", k))
		}
	}
	for _, k := range have {
		if !slices.Contains(want, k) {
			words = append(words, fmt.Sprintf("P_Key %#04x should not be there", k))
		}
	}
	return strings.Join(words, ", ")
}

// table reads the P_Keys of a port.
func (s *Subnet) table(ctx context.Context, lid, port int) ([]uint16, error) {
	out, err := runDiagnostic(ctx, s.Host, "smpquery", "-L", "pkeys", strconv.Itoa(lid), strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	return parsePKeys(out)
}

// parsePKeys reads `smpquery pkeys`: lines of eight with the index of the first.
// Entries that are zero are free.
func parsePKeys(text []byte) ([]uint16, error) {
	var keys []uint16
	capacity := -1
	for line := range strings.SplitSeq(string(text), "\n") {
		if n, ok := strings.CutSuffix(strings.TrimSpace(line), " pkeys capacity for this port"); ok {
			capacity, _ = strconv.Atoi(n)
			continue
		}
		_, list, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for word := range strings.FieldsSeq(list) {
			k, err := strconv.ParseUint(word, 0, 16)
			if err != nil {
				return nil, errkind.New(errkind.Internal, "smpquery pkeys is not understood: %q", line)
			}
			if k != 0 {
				keys = append(keys, uint16(k))
			}
		}
	}
	if capacity < 0 {
		return nil, errkind.New(errkind.Internal, "smpquery pkeys ended early")
	}
	slices.Sort(keys)
	return keys, nil
}
