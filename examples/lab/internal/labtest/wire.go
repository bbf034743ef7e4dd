// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Corruption is how often the wire corrupts.
type Corruption string

// How often.
const (
	Once   Corruption = "limit rate 1/day burst 1 packets "
	Always Corruption = ""
)

// CorruptWire changes a byte in the full packets that go from the controller's
// HTTP server to an address, with a checksum that fits: what a switch with bad
// memory does, which TCP does not find.
func (l *Lab) CorruptWire(address string, how Corruption) {
	l.t.Helper()
	// Byte 1000 from the TCP header lies behind the header of any answer. The
	// kernel corrects the checksum of what it changes.
	rules := fmt.Sprintf(`table ip wire {
  chain out {
    type filter hook output priority 0; policy accept;
    ip daddr %s tcp sport 80 meta length > 1200 %scounter @th,8000,8 set 0xa5
  }
}
`, address, how)
	file := l.Program("wire.nft", rules)
	if out := l.Inside("nft", "-f", file); out.Code != 0 {
		l.t.Fatalf("nft: %s", out)
	}
}

// Corrupted is how many packets the wire has changed.
func (l *Lab) Corrupted() int {
	l.t.Helper()
	out := l.Inside("nft", "--json", "list", "table", "ip", "wire")
	at := strings.Index(out.Stdout, `"counter": {"packets": `)
	if at < 0 {
		l.t.Fatalf("nft: no counter: %s", out)
	}
	var counter struct{ Packets int }
	if err := json.NewDecoder(strings.NewReader(out.Stdout[at+len(`"counter": `):])).Decode(&counter); err != nil {
		l.t.Fatal(err)
	}
	return counter.Packets
}
