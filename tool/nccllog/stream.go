// SPDX-License-Identifier: Apache-2.0

package nccllog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// mostKept is how many entries of one kind a Stream keeps at most: ranks, devices,
// hosts. The largest machines have some 100,000 GPUs.
const mostKept = 1 << 20

// Stream reads a log line by line. What it keeps grows with the ranks and their
// devices, not with the length of the log. It is not safe for concurrent use.
type Stream struct {
	r     *reader
	found int // lines of NCCL
	lost  string
}

// NewStream returns a Stream that has read nothing.
func NewStream() *Stream {
	r := &reader{
		devices: map[Device]bool{}, hosts: map[string]bool{}, networks: map[string]bool{}, choices: map[Choice]int{},
		ready: map[string]bool{}, begun: map[string]bool{}, warnings: map[string]int{},
	}
	r.c.Transports, r.c.Settings = map[string]int{}, map[string]string{}
	r.c.Of, r.c.NoGDR = map[string]map[string]int{}, map[string]int{}
	return &Stream{r: r}
}

// stream is a Stream as tool.Format has it.
func stream([]byte) (tool.Stream, bool) {
	s := NewStream()
	return tool.Stream{
		Line: func(line string) bool {
			found := s.found
			s.Line(line)
			return s.found > found || s.lost != ""
		},
		End: func() (any, tool.Problems, error) { return s.End() },
	}, true
}

// Line reads the next line, which may be one of another program.
func (s *Stream) Line(line string) {
	if s.lost == "" {
		s.read(line)
		s.lost = s.r.tooMany()
	}
}

// Lost is what the log has too much of to be kept; the content is not whole then.
func (s *Stream) Lost() string { return s.lost }

// End returns what was read, as Parse does. It is called once.
func (s *Stream) End() (Content, tool.Problems, error) {
	if s.found == 0 {
		return Content{}, nil, errors.New("there is no line of NCCL in it")
	}
	s.r.finish()
	var problems tool.Problems
	checkContent(&s.r.c, len(s.r.begun), &problems)
	if s.lost != "" {
		problems.Add(tool.Truncated, s.r.line, "there are %s: the log was read up to there", s.lost)
	}
	return s.r.c, problems, nil
}

func (s *Stream) read(line string) {
	s.r.line++
	if !strings.Contains(line, "CCL ") { // every line that is read has it
		return
	}
	line = strings.TrimRight(line, " \t\r\n")
	if host, text, ok := ParseInfo(line); ok {
		s.found++
		s.r.info(host, text)
	} else if m := entry.FindStringSubmatch(line); m != nil {
		s.found++
		s.r.entry(m)
	} else if m := bareVersion.FindStringSubmatch(line); m != nil {
		s.r.c.Version = m[1]
	}
}

// tooMany names what there is too much of; "" when all of it is kept.
func (r *reader) tooMany() string {
	for _, k := range []struct {
		what string
		n    int
	}{
		{"ranks", len(r.begun)}, {"devices", len(r.devices)}, {"hosts", len(r.hosts)}, {"hosts", len(r.c.Of)},
		{"networks", len(r.networks)}, {"transports", len(r.c.Transports)}, {"settings", len(r.c.Settings)},
	} {
		if k.n > mostKept {
			return fmt.Sprintf("more than %d %s", mostKept, k.what)
		}
	}
	return ""
}
