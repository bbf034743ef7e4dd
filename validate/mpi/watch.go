// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// telling are the words of Open MPI 4 and OpenSSH on lines that name a node
// which failed, as opposed to one which only noticed.
var telling = []string{
	"noticed that process", "exited on signal", "Remote daemon", "connect to host", "Permission denied", "connect() to", "Host key for", "lost connection", "Connection closed by", "on node ",
}

// ignoredInterface starts Open MPI's warning that a node has no interface in the
// data network. It then goes on over any other one, so that the run proves
// nothing about the rail.
const ignoredInterface = "invalid value was given for btl_tcp_if_include"

// membersByWord finds a member by its name and by each of its addresses.
func membersByWord(members []Member) map[string]string {
	known := map[string]string{}
	for _, m := range members {
		known[m.Node] = m.Node
		for _, a := range append([]netip.Addr{m.Address}, m.Rails...) {
			known[a.String()] = m.Node
		}
	}
	return known
}

// watcher looks through one stream of mpirun while it comes, for members that are
// named where something failed, and passes it on.
type watcher struct {
	lines    tool.Lines
	consumer io.Writer         // nil: nobody
	known    map[string]string // members by word

	ignored bool            // Open MPI went on without the data network
	noRail  bool            // within the warning that a node has no address on the rail
	found   map[string]bool // members
}

func newWatcher(known map[string]string, consumer io.Writer) *watcher {
	w := &watcher{consumer: consumer, known: known, found: map[string]bool{}}
	w.lines.Each = w.line
	return w
}

// Write implements io.Writer and never fails.
func (w *watcher) Write(p []byte) (int, error) {
	if w.consumer != nil {
		_, _ = w.consumer.Write(p)
	}
	return w.lines.Write(p)
}

func (w *watcher) close() { _ = w.lines.Close() }

func (w *watcher) line(line string) {
	switch {
	case strings.Contains(line, ignoredInterface):
		w.ignored, w.noRail = true, true
	case strings.HasPrefix(line, "-----"):
		w.noRail = false
	}
	tells := w.noRail && strings.Contains(line, "Local host:") ||
		slices.ContainsFunc(telling, func(s string) bool { return strings.Contains(line, s) }) && !strings.Contains(line, "HNP daemon")
	if !tells {
		return
	}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n,;()[]@'\"", r) }) {
		if node := w.member(strings.TrimSuffix(strings.TrimSuffix(word, "."), ":")); node != "" {
			w.found[node] = true
		}
	}
}

// member is the member whose name or address a word is, with or without a port.
func (w *watcher) member(word string) string {
	if node := w.known[word]; node != "" {
		return node
	}
	a, err := netip.ParseAddr(word)
	if err != nil {
		ap, err := netip.ParseAddrPort(word)
		if err != nil {
			return ""
		}
		a = ap.Addr()
	}
	return w.known[a.String()]
}

// namedMember returns the one member that the streams of a failed run name; "" when they name
// none or several.
func namedMember(streams ...*watcher) string {
	one := ""
	for _, w := range streams {
		for node := range w.found {
			if one != "" && node != one {
				return ""
			}
			one = node
		}
	}
	return one
}
